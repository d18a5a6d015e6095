"""Getting a Python with conda or pyenv: what the tools are asked, and what goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, CouldNotCheck
from ideepdoctor.model.plan import CreateEnv, Plan, Reversible
from ideepdoctor.treatment.plandata import plan_from_data, plan_to_data
from ideepdoctor.treatment.pythons import forget_python, get_python
from tests.doubles import Call, FakeSystem, completed


def step(folder: Path, tool: str = "conda", release: str = "3.7") -> CreateEnv:
    return CreateEnv(str(folder / "versions" / "made"), f"/opt/bin/{tool}", tool, release=release)


def system(folder: Path, tool: str = "conda", said: str = "", code: int = 0, makes: bool = True) -> FakeSystem:
    def answer(call: Call):
        if makes:
            python = folder / "versions/made/bin/python"
            python.parent.mkdir(parents=True, exist_ok=True)
            python.write_text("#!/bin/sh\n")
            python.chmod(0o755)
        return completed(said, returncode=code)

    return FakeSystem().on(f"/opt/bin/{tool}", answer)


@pytest.mark.parametrize(
    ("tool", "release", "words"),
    [
        ("conda", "3.7", ["create", "--yes", "--prefix", "PREFIX", "python=3.7"]),
        ("mamba", "3.6", ["create", "--yes", "--prefix", "PREFIX", "python=3.6"]),
        ("micromamba", "3.7", ["create", "--yes", "--prefix", "PREFIX", "-c", "conda-forge", "python=3.7"]),
        ("pyenv", "3.7.17", ["install", "3.7.17"]),
    ],
)
def test_what_the_tool_is_asked(tmp_path, tool, release, words):
    made, wanted = system(tmp_path, tool), step(tmp_path, tool, release)
    get_python(made, wanted, lambda _line: None)
    assert made.commands() == [(f"/opt/bin/{tool}", *(word.replace("PREFIX", wanted.path) for word in words))]


def test_pyenv_is_told_where(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/else")
    made = system(tmp_path, "pyenv")
    get_python(made, step(tmp_path, "pyenv", "3.7.17"), lambda _line: None)
    (call,) = [call for call in made.calls if call.argv]
    assert call.env is not None
    assert call.env["PYENV_ROOT"] == str(tmp_path) and "PYTHONPATH" not in call.env


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("CondaHTTPError: could not connect to the channel", CouldNotCheck, "network is needed"),
        (
            "BUILD FAILED\ncurl: (6) Could not resolve host: www.python.org\n",
            CouldNotCheck,
            "network is needed.*\n.*curl",
        ),
        ("CondaHTTPError: HTTP 000 CONNECTION FAILED for url", CouldNotCheck, "network is needed"),
        ("PackagesNotFoundError: python=3.7", ApplyFailed, "python=3.7"),
        ("OSError: No space left on device", ApplyFailed, "disk is full"),
    ],
)
def test_a_tool_that_fails(tmp_path, said, kind, words):
    made = system(tmp_path, said=said, code=1, makes=False)
    with pytest.raises(kind, match=words):
        get_python(made, step(tmp_path), lambda _line: None)


def test_a_tool_that_ends_well_and_made_nothing(tmp_path):
    with pytest.raises(CouldNotCheck, match="is not there"):
        get_python(system(tmp_path, makes=False), step(tmp_path), lambda _line: None)


def test_pyenv_forgets_and_conda_has_nothing_to_forget(tmp_path):
    program = tmp_path / "pyenv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = FakeSystem().on(str(program), completed())
    for tool in ("pyenv", "conda"):
        forget_python(made, CreateEnv("/x/versions/3.7.17", str(program), tool, release="3.7"), lambda _line: None)
    assert made.commands() == [(str(program), "rehash")]


def test_the_step_says_what_it_does_and_survives_the_journal(tmp_path):
    wanted = step(tmp_path)
    assert wanted.title == f"get Python 3.7 with conda (/opt/bin/conda) into {wanted.path}"
    assert wanted.reversible is Reversible.FULL
    plan = Plan("x", (wanted,))
    assert plan_from_data(plan_to_data(plan)) == plan
