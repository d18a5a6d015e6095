"""What ``run`` makes of a program's words and environment before it becomes the program."""

from __future__ import annotations

import errno
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from ideepdoctor.commands.run import (
    RunOptions,
    cannot_start,
    command_line,
    ignores_variables,
    prepare,
    run,
    search_path,
    start_folder,
    variables,
)
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.facts.collect import BARE
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
        (("train.py", "--lr", "1"), ["PY", "train.py", "--lr", "1"]),
        (("train.pyz",), ["PY", "train.pyz"]),
        (("-m", "train"), ["PY", "-m", "train"]),
        (("package", "x"), ["PY", "package", "x"]),
        (("folder.py",), ["folder.py"]),
        (("python", "train.py"), ["python", "train.py"]),
        (("python3", "train.py"), ["PY", "train.py"]),
        (("python3.6", "train.py"), ["python3.6", "train.py"]),
        (("mpiexec", "-n", "2", "python", "train.py"), ["mpiexec", "-n", "2", "python", "train.py"]),
        (("",), [""]),
    ],
)
def test_what_only_a_python_can_run_is_for_the_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: list[str]
):
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / "__main__.py").touch()  # an empty word is not the current folder
    monkeypatch.chdir(tmp_path)
    python = str(tmp_path / "bin" / "python3.7")
    assert command_line(words, python) == [python if word == "PY" else word for word in expected]


def test_the_targets_commands_come_first_unless_they_do_already(tmp_path: Path):
    for folder in ("target", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "target" / "python").touch(0o755)
    target, tools = str(tmp_path / "target"), str(tmp_path / "tools")
    assert search_path("", f"{target}/python") == target
    assert search_path(tools, f"{target}/python") == f"{target}:{tools}"
    assert search_path(f"{tools}:{target}", f"{target}/python3.7") == f"{tools}:{target}"
    (tmp_path / "tools" / "python").touch(0o755)
    assert search_path(f"{tools}:{target}", f"{target}/python") == f"{target}:{tools}:{target}"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python -E train.py", True),
        ("/x/python3.7 -uS train.py", True),
        ("python -W ignore -I train.py", True),
        ("python -Wignore -X dev -sI -m train", True),
        ("python train.py -E", False),
        ("python -c EIS", False),
        ("python -cEIS", False),
        ("python -mE", False),
        ("python -W E train.py", False),
        ("python -", False),
        ("python --version", False),
        ("python", False),
        ("mpiexec python -E", False),
    ],
)
def test_options_that_keep_a_python_from_pythonpath_are_seen(words: str, expected: bool):
    assert ignores_variables(words.split()) is expected


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


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "'' cannot be started: there is no such command on PATH"),
        ("no-such-program-here", "there is no such command on PATH"),
        ("./missing", "there is no such file"),
        ("./plain", "it is not executable"),
        ("./folder", "it is a folder"),
        ("folder", "it is a folder"),
        ("./not\udcfftext", r"'./not\\xfftext' cannot be started"),
    ],
)
def test_a_program_that_is_none_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
):
    (tmp_path / "plain").touch(0o644)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    options = RunOptions(TargetOptions(python=sys.executable), (name,))
    with pytest.raises(UsageError, match=why):
        run(session(tmp_path), options)


def test_a_program_that_the_system_refuses_is_explained(tmp_path: Path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/python -u\n")
    missing = OSError(errno.ENOENT, "No such file or directory")
    assert "its first line names /no/such/python -u, which is not there" in str(cannot_start(str(script), missing))
    script.write_bytes(b"\x7fELF")
    assert "the loader that it needs" in str(cannot_start(str(script), missing))
    refused = cannot_start(str(script), OSError(errno.ENOEXEC, "Exec format error"))
    assert refused.hint == f"if it is a shell script: sh {script}"
    assert "Argument list too long" in str(cannot_start("ls", OSError(errno.E2BIG, "Argument list too long")))


def prepared(cache: Path, modules: list[str], *words: str, **environ: str) -> dict[str, str]:
    made = session(cache, **environ)
    asked = TargetOptions(python=sys.executable)
    return prepare(made, asked, words or ("true",), "run", BARE, modules).environ


def test_the_users_own_python_path_is_kept(tmp_path: Path):
    folder = start_folder(session(tmp_path))
    for given, expected in (("", folder), ("/a:/b", f"{folder}:/a:/b"), (":", f"{folder}::"), (f"{folder}:/a",) * 2):
        assert prepared(tmp_path, ["guard"], PYTHONPATH=given)["PYTHONPATH"] == expected
    assert prepared(tmp_path, [], PYTHONPATH="/a")["PYTHONPATH"] == "/a"
    assert "PYTHONPATH" not in prepared(tmp_path, [])


def test_what_was_not_asked_for_is_switched_off_within_another_run(tmp_path: Path):
    outer = {"IDEEPDOCTOR_RUN": "_ideepdoctor_guard,_ideepdoctor_auto", "IDEEPDOCTOR_GUARD": "-bn"}
    both = prepared(tmp_path, ["guard", "auto"], **outer)
    assert (both["IDEEPDOCTOR_RUN"], both["IDEEPDOCTOR_GUARD"]) == tuple(outer.values())
    assert prepared(tmp_path, ["guard"], **outer)["IDEEPDOCTOR_RUN"] == "_ideepdoctor_guard"
    none = prepared(tmp_path, [], **outer)
    assert "IDEEPDOCTOR_RUN" not in none

    class Becoming(RealSystem):
        def become(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
            raise SystemExit(env["IDEEPDOCTOR_GUARD"])

    for guard, expected in ((True, "-bn"), (False, "off")):
        options = RunOptions(TargetOptions(python=sys.executable), ("true",), guard=guard)
        with pytest.raises(SystemExit) as became:
            run(replace(session(tmp_path, **outer), system=Becoming()), options)
        assert became.value.code == expected


def test_a_cache_that_cannot_be_written_serves_where_it_holds_what_is_needed(tmp_path: Path):
    class Full(RealSystem):
        def make_folder(self, path: str) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

    closed = Session(Full(), {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path)}, "/", Quiet(), lambda _report: True)
    with pytest.raises(CouldNotCheck, match="Read-only file system") as raised:
        start_folder(closed)
    assert "IDEEPDOCTOR_CACHE_DIR" in raised.value.hint
    assert "--no-guard" in raised.value.hint
    made = start_folder(session(tmp_path))
    assert start_folder(closed) == made
    (Path(made) / "_ideepdoctor_guard.py").write_text("tampered = True\n")
    with pytest.raises(CouldNotCheck):
        start_folder(closed)


def test_a_cache_that_no_python_path_can_name_is_one_clear_error(tmp_path: Path):
    with pytest.raises(CouldNotCheck, match="colon"):
        start_folder(session(tmp_path / "a:b"))
    assert not (tmp_path / "a:b").exists()
