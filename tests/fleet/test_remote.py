"""The command that a host runs, run by a shell: which Python it starts, and what its output is read as."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from ideepdoctor.fleet.remote import Told, read_told, remote_command

COOKIE = "cookie"
FAKE = """#!/bin/sh
case "$*" in
    *chainer*) exit {has} ;;
    *) printf 'this is %s\n' "$0"; cat; exit {code} ;;
esac
"""


def fake(path: Path, *, has: bool = True, code: int = 0) -> str:
    """A program that stands for a Python: whether it has Chainer, and how it ends with the probe."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FAKE.format(has=0 if has else 1, code=code))
    path.chmod(0o755)
    return str(path)


def run(
    home: Path, python: str = "", *, path: str = "", seconds: int = 20, shell: str = "sh", **more: str
) -> Told | None:
    before, after = remote_command(COOKIE, seconds)
    environ = {"PATH": f"{path}:/usr/bin:/bin" if path else "/usr/bin:/bin", "HOME": str(home), **more}
    done = subprocess.run(
        [shell, "-c", before + shlex.quote(python) + after],
        input="the probe",
        capture_output=True,
        text=True,
        env=environ,
        cwd=home,
        timeout=60,
    )
    return read_told(f"Welcome!\n{done.stdout}", COOKIE)


def test_the_python_that_was_asked_for_gets_the_probe_and_its_answer_comes_back(tmp_path):
    python = fake(tmp_path / "env" / "bin" / "python")
    for asked in (python, str(tmp_path / "env"), "~/env"):
        told = run(tmp_path, asked)
        assert told == Told(python, f"this is {python}\nthe probe", 0), asked


def test_a_version_is_a_command(tmp_path):
    python = fake(tmp_path / "python3.7")
    told = run(tmp_path, "3.7", path=str(tmp_path))
    assert told is not None
    assert told.python == python


@pytest.mark.parametrize("asked", ["/no/such/python", "9.9", "~/nothing"])
def test_one_that_is_not_there_is_named(tmp_path, asked):
    told = run(tmp_path, asked)
    assert told is not None
    assert (told.python, told.asked.removeprefix("python")) == (None, asked.replace("~", str(tmp_path)))


def test_without_a_name_the_first_one_with_chainer_is_taken(tmp_path):
    fake(tmp_path / "first" / "python", has=False)
    second = fake(tmp_path / "second" / "python3")
    path = f"{tmp_path}/first:{tmp_path}/second"
    told = run(tmp_path, path=path)
    assert told is not None
    assert told.python == second
    own = fake(tmp_path / ".ideep" / "bin" / "python")
    told = run(tmp_path, path=path)
    assert told is not None
    assert told.python == own
    active = fake(tmp_path / "active" / "bin" / "python")
    told = run(tmp_path, path=path, VIRTUAL_ENV=f"{tmp_path}/active")
    assert told is not None
    assert told.python == active


def test_where_none_has_chainer_the_first_one_that_runs_is_taken(tmp_path):
    (tmp_path / "python").write_text("no program")
    (tmp_path / "python").chmod(0o755)
    python = fake(tmp_path / "python3", has=False)
    told = run(tmp_path, path=str(tmp_path))
    assert told is not None
    assert told.python == python


def test_one_that_hangs_is_stopped_and_one_that_dies_is_told(tmp_path):
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    told = run(tmp_path, str(hanging), seconds=1)
    assert told is not None
    assert (told.python, told.stopped, told.answer) == (str(hanging), True, "")
    told = run(tmp_path, fake(tmp_path / "dying", code=7))
    assert told is not None
    assert (told.code, told.stopped) == (7, False)


def test_words_of_an_inventory_are_no_shell(tmp_path):
    python = fake(tmp_path / "a b';$(touch x)" / "python")
    told = run(tmp_path, python)
    assert told is not None
    assert told.python == python
    assert not (tmp_path / "x").exists()


def test_nothing_of_ours_is_nothing():
    assert read_told("Welcome!\nsh: not found\n", COOKIE) is None
    assert read_told("", COOKIE) is None
    assert read_told(f"{COOKIE} begin /p\nhalf of", COOKIE) == Told("/p", "half of", None)


def test_it_is_one_line_without_a_template_of_ansible():
    text = "".join(remote_command(COOKIE, 5))
    assert "\n" not in text
    assert not any(mark in text for mark in ("{{", "{%", "{#"))
