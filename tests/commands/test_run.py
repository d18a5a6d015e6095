"""What ``run`` makes of a program's words and environment before it becomes the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ideepdoctor.commands.run import RunOptions, command_line, run, start_folder, variables
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import UsageError
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import CountingSystem
from tests.rules.hosts import facts_on


def session(cache: Path, **environ: str) -> Session:
    given = {"IDEEPDOCTOR_CACHE_DIR": str(cache), "PATH": "/usr/bin:/bin", **environ}
    return Session(RealSystem(), given, str(cache), Quiet(), lambda _report: True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("train.py", "--lr", "1"), ["/py", "train.py", "--lr", "1"]),
        (("-m", "train"), ["/py", "-m", "train"]),
        (("python", "train.py"), ["python", "train.py"]),
        (("mpiexec", "-n", "2", "python", "train.py"), ["mpiexec", "-n", "2", "python", "train.py"]),
    ],
)
def test_a_script_and_options_are_for_the_targets_python(words: tuple[str, ...], expected: list[str]):
    assert command_line(words, "/py") == expected


def test_variables_are_set_where_the_user_has_set_nothing_and_named_as_ours():
    facts = facts_on("py37-healthy")
    made = variables({"HOME": "/h"}, facts)
    assert made["CHAINER_USE_IDEEP"] == "auto"
    assert "CHAINER_USE_IDEEP" in made["IDEEPDOCTOR_SET"].split(",")
    kept = variables({"CHAINER_USE_IDEEP": "never"}, facts)
    assert kept["CHAINER_USE_IDEEP"] == "never"
    assert "CHAINER_USE_IDEEP" not in kept.get("IDEEPDOCTOR_SET", "").split(",")


def test_what_was_ours_before_stays_ours():
    made = variables(
        {"CHAINER_USE_IDEEP": "auto", "IDEEPDOCTOR_SET": "CHAINER_USE_IDEEP,GONE"}, facts_on("py37-healthy")
    )
    names = made["IDEEPDOCTOR_SET"].split(",")
    assert "CHAINER_USE_IDEEP" in names
    assert "GONE" not in names


def test_the_folder_of_the_start_files_is_written_once(tmp_path: Path):
    system = CountingSystem()
    made = Session(system, {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path)}, "/", Quiet(), lambda _report: True)
    folder = Path(start_folder(made))
    assert sorted(path.name for path in folder.iterdir()) == [
        "_ideepdoctor_auto.py",
        "_ideepdoctor_guard.py",
        "_ideepdoctor_trace.py",
        "sitecustomize.py",
    ]
    written = len(system.written)
    assert start_folder(made) == str(folder)
    assert len(system.written) == written
    (folder / "sitecustomize.py").write_text("half")
    start_folder(made)
    assert len(system.written) == written + 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (RunOptions(TargetOptions(), ()), "no program"),
        (RunOptions(TargetOptions(python="/nonexistent"), ("true",)), "nonexistent"),
    ],
)
def test_what_cannot_be_run_is_one_clear_error(tmp_path: Path, options: RunOptions, said: str):
    with pytest.raises(UsageError, match=said):
        run(session(tmp_path), options)


def test_a_program_that_is_none_is_one_clear_error(tmp_path: Path):
    import sys

    options = RunOptions(TargetOptions(python=sys.executable), ("no-such-program-here",))
    with pytest.raises(UsageError, match="no-such-program-here cannot be started"):
        run(session(tmp_path), options)
