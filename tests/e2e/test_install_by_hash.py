"""Real packages by hash into a new environment; a hash that is wrong leaves nothing."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.model.plan import CreateEnv, Install, Plan, Requirement, WriteFile
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.apply import apply_plan
from ideepdoctor.treatment.installers import HashMismatch
from ideepdoctor.treatment.journal import runs, unfinished
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.undo import undo
from tests.conftest import legacy_python

pytestmark = pytest.mark.e2e

NAMES = ("setuptools", "six", "wheel")


def pins() -> tuple[Requirement, ...]:
    """Small packages of the newest stack for 3.7."""
    lock = next(lock for stack in all_stacks() for lock in stack.locks if lock.python == "3.7")
    return tuple(item for item in lock.requirements if item.name in NAMES)


def plan(world: Path, requirements: tuple[Requirement, ...]) -> Plan:
    env = str(world / "deep" / "env")
    return Plan(
        "small",
        (
            CreateEnv(env, legacy_python("3.7"), "uv"),
            WriteFile(str(world / "note"), "new\n", "a note"),
            Install(f"{env}/bin/python", requirements, "uv"),
        ),
    )


def test_installed_by_hash_used_and_taken_back(tmp_path):
    world, state = tmp_path / "world", str(tmp_path / "state")
    world.mkdir()
    (world / "note").write_text("old\n")
    before = manifest(str(world))
    apply_plan(RealSystem(), plan(world, pins()), state, Quiet())
    asked = "import six, wheel, setuptools; print(six.__version__, wheel.__version__, setuptools.__version__)"
    answer = subprocess.run([world / "deep" / "env" / "bin" / "python", "-c", asked], capture_output=True, text=True)
    versions = {item.name: item.version for item in pins()}
    assert answer.stdout.split() == [versions["six"], versions["wheel"], versions["setuptools"]], answer.stderr
    # Being used left bytecode, which is nobody's work.
    undo(RealSystem(), state, None, force=False, sink=Quiet())
    assert manifest(str(world)) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_hash_leaves_nothing(tmp_path, name):
    world, state = tmp_path / "world", str(tmp_path / "state")
    world.mkdir()
    (world / "note").write_text("old\n")
    os.utime(world / "note", ns=(1, 1_500_000_000_000_000_001))
    before = manifest(str(world))
    wrong = tuple(replace(item, sha256=("0" * 64,)) if item.name == name else item for item in pins())
    with pytest.raises(HashMismatch) as caught:
        apply_plan(RealSystem(), plan(world, wrong), state, Quiet())
    assert name in caught.value.message
    assert int(caught.value.exit_code) == 4
    assert manifest(str(world)) == before
    assert (runs(state)[0].status, unfinished(state)) == ("rolled-back", None)
