"""The limits of a process, really read: under every interpreter found, and where the system really refuses."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ideepdoctor.facts.collect import read_facts
from ideepdoctor.model.facts import Limits
from ideepdoctor.targets.bare import bare_probe, read_bare
from ideepdoctor.targets.target import Target, payload_source
from tests.conftest import legacy_python
from tests.payload.test_probe import probed

PR_SET_MDWE, REFUSE = 65, 1


def refuse_written_code() -> None:
    """Have the kernel refuse this process memory that can be written and run (prctl(2), Linux 6.3)."""
    ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE, 0, 0, 0)


def can_refuse() -> bool:
    """Whether this kernel knows that."""
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def limits_of(python: str, prepare: Callable[[], None] | None = None) -> Limits:
    """What the bare probe tells of the limits, started after ``prepare``."""
    argv = [python, "-B", "-E", "-s", "-"]
    environ = {"PATH": os.defpath, "HOME": "/nonexistent"}
    done = subprocess.run(argv, input=bare_probe(), capture_output=True, env=environ, preexec_fn=prepare, check=False)
    assert done.returncode == 0, done.stderr
    return read_bare(json.loads(done.stdout)).limits


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_every_interpreter_tells_them(version: str) -> None:
    limits = probed(legacy_python(version), quick=True).limits
    soft = resource.getrlimit(resource.RLIMIT_STACK)[0]
    shared = os.statvfs("/dev/shm")
    assert limits.stack_bytes == (None if soft == resource.RLIM_INFINITY else soft)
    assert limits.shared_memory_bytes == (shared.f_blocks * shared.f_frsize or None)
    assert (limits.executable_memory, limits.prefix_noexec) == (True, False)


@pytest.mark.skipif(not can_refuse(), reason="this kernel has no PR_SET_MDWE")
def test_refused_code_is_told() -> None:
    assert limits_of(sys.executable, refuse_written_code).executable_memory is False


def test_limits_of_resources_are_told() -> None:
    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (5 << 30, 5 << 30))
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 4 << 20))

    limits = limits_of(sys.executable, prepare)
    assert (limits.address_space_bytes, limits.stack_bytes) == (5 << 30, 4 << 20)


@pytest.fixture(scope="module")
def part() -> dict:
    """The names of the probe's parts."""
    names: dict = {"__name__": "part"}
    exec(compile(payload_source("probe"), "probe", "exec"), names)
    return names


@pytest.mark.parametrize(
    ("told", "code", "timed_out", "answer"),
    [
        ({"executable_started": True, "executable": "runs"}, 0, False, "runs"),
        ({"executable_started": True, "executable": None}, 0, False, None),
        ({"executable_started": True, "executable": "errno 13"}, -11, False, "errno 13"),
        ({"executable_started": True}, -11, False, "signal 11"),
        ({"executable_started": True}, 1, False, None),
        ({"executable_started": True}, None, False, None),
        ({"executable_started": True}, -9, True, None),
        ({}, -9, False, None),
    ],
)
def test_what_became_of_the_attempt(part: dict, told: dict, code: int, timed_out: bool, answer: str | None) -> None:
    assert part["executable_memory"](told, {"code": code, "timed_out": timed_out}) == answer


def test_shared_memory(part: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = part["shared_memory_bytes"]
    monkeypatch.setitem(part, "SHARED_MEMORY", str(tmp_path))
    assert size() > 0
    monkeypatch.setitem(part, "SHARED_MEMORY", str(tmp_path / "none"))
    assert size() == 0
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.setitem(part, "SHARED_MEMORY", str(tmp_path / "loop"))
    assert size() is None
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_blocks=0, f_frsize=4096))
    assert size() is None  # a tmpfs without a limit says 0


def test_a_file_system_that_refuses_code(part: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = {"/a": 0, "/b": 8 | 1, "/c": 4}

    def statvfs(path: str) -> SimpleNamespace:
        if path not in flags:
            raise FileNotFoundError(path)
        return SimpleNamespace(f_flag=flags[path])

    monkeypatch.setattr(os, "statvfs", statvfs)
    refuses = part["refuses_code"]
    assert [refuses(["/a"]), refuses(["/a", "/b"]), refuses(["/c", "/x"]), refuses(["/x"])] == [
        False,
        True,
        False,
        None,
    ]


def test_other_systems_tell_nothing(part: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert part["host_limits"]() == {}


def test_the_answer_of_an_older_probe_is_understood() -> None:
    whole = json.loads(
        subprocess.run([sys.executable, "-B", "-"], input=bare_probe(), capture_output=True, check=True).stdout
    )["probe"]
    del whole["machine"]["host_limits"], whole["executable_memory"]
    limits = read_facts(whole, Target(sys.executable), quick=True).limits
    assert (limits.executable_memory, limits.prefix_noexec, limits.shared_memory_bytes) == (None, None, None)
