"""The bare probe: one script, any Python, one JSON document that reads as facts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.targets.bare import bare_probe, is_bare, read_bare
from tests.conftest import legacy_python

PROBE = Path(__file__).parents[2] / "ideepdoctor" / "payload" / "probe.py"
QUICK = ["2.7", "3.7"]
REST = ["3.6", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bare") / "probe.py"
    path.write_bytes(bare_probe())
    return path


def told_by(*words: str, **given: Any) -> dict[str, Any]:
    """The document that a run prints, which must be all that it prints and end with 0."""
    done = subprocess.run(words, capture_output=True, timeout=120, check=False, **given)
    assert (done.returncode, done.stderr) == (0, b"")
    told = json.loads(done.stdout)
    assert is_bare(told)
    assert told["problems"] == {}
    return dict(told)


@pytest.mark.parametrize("version", [*QUICK, *(pytest.param(one, marks=pytest.mark.slow) for one in REST)])
def test_every_python_tells_its_facts_and_leaves_nothing(version: str, script: Path) -> None:
    python = legacy_python(version)
    facts = read_bare(told_by(python, str(script), cwd=script.parent))
    assert facts.python.version.startswith(f"{version}.")
    assert facts.target.python == facts.python.executable
    assert (facts.mode, facts.imports is not None, facts.native is not None) == ("full", True, True)
    assert [path.name for path in script.parent.iterdir()] == ["probe.py"]


def test_the_file_of_the_package_tells_the_same_from_where_it_lies() -> None:
    before = sorted(path.name for path in PROBE.parent.iterdir())
    facts = read_bare(told_by(sys.executable, str(PROBE)))
    assert facts.python.version == ".".join(map(str, sys.version_info[:3]))
    assert sorted(path.name for path in PROBE.parent.iterdir()) == before


def test_the_file_of_the_package_alone_says_what_it_lacks(tmp_path: Path) -> None:
    alone = tmp_path / "probe.py"
    alone.write_bytes(PROBE.read_bytes())
    done = subprocess.run([sys.executable, str(alone)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error  this probe.py needs the files beside it; one that is whole: ideepdoctor probe > probe.py"
    ]


def test_it_runs_over_standard_input_and_beside_a_file_that_would_hide_the_standard_library(
    script: Path, tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken')\n")
    whole = tmp_path / "probe.py"
    whole.write_bytes(script.read_bytes())
    with script.open("rb") as stream:
        over_input = told_by(sys.executable, "-B", "-", stdin=stream)
    assert (
        read_bare(over_input).python.executable
        == read_bare(told_by(sys.executable, "-S", str(whole))).python.executable
    )


def test_what_can_kill_every_program_is_given_to_the_children_alone(script: Path) -> None:
    environ = {**os.environ, "LD_PRELOAD": "/no/such/library.so"}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, env=environ, check=False)
    facts = read_bare(json.loads(done.stdout))
    assert facts.variables.inherited["LD_PRELOAD"] == "/no/such/library.so"


def test_a_document_is_read_from_a_file_and_refused_where_it_is_another(script: Path, tmp_path: Path) -> None:
    told = told_by(sys.executable, str(script))
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(told))
    assert load_facts(str(path)).target.reason == "the bare probe ran in it"
    path.write_text(json.dumps({**told, "schema_version": "9"}))
    with pytest.raises(UsageError, match=f"{path}: an answer of another bare probe"):
        load_facts(str(path))
    path.write_text(json.dumps({**told, "probe": {"machine": 1}}))
    with pytest.raises(UsageError, match=r"not what the bare probe prints: .* int for answer\.machine"):
        load_facts(str(path))
    path.write_text(json.dumps({**told, "libraries": None, "problems": {"libraries": "ended with -9 and no answer"}}))
    assert load_facts(str(path)).native is None
