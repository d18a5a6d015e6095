"""What a program's Python loads at its start under ``run``, under old and new Pythons."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from ideepdoctor.targets.target import payload_source
from tests.conftest import installed_interpreters, legacy_python
from tests.payload.test_guard import PYTHONS, interpreter

TELL = "import sys; print(sorted(name for name in sys.modules if name.startswith('_ideepdoctor')))"
GUARD = "STATUS = {\"guard\": %s, 'other': 0}\nWHERE = %r\n"


class World:
    """A folder of ``run`` with stand-ins for what it holds, and one of the user's, both on PYTHONPATH."""

    def __init__(self, folder: Path, python: str) -> None:
        self.python, self.ours, self.users = python, folder / "ours", folder / "users"
        self.ours.mkdir()
        self.users.mkdir()
        (self.ours / "sitecustomize.py").write_bytes(payload_source("run_start"))
        for name in ("guard", "auto", "trace"):
            (self.ours / f"_ideepdoctor_{name}.py").write_text(GUARD % (2, "ours"))

    def run(self, code: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        given = {"PATH": os.defpath, "PYTHONPATH": f"{self.ours}:{self.users}", **environ}
        given.setdefault("IDEEPDOCTOR_RUN", "_ideepdoctor_guard,_ideepdoctor_auto")
        command = [self.python, "-B", *options, "-c", code]
        return subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)

    def out(self, code: str, *options: str, **environ: str) -> str:
        """Standard output of a program that must end well and say nothing else."""
        done = self.run(code, *options, **environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()


@pytest.fixture
def world(tmp_path: Path, version: str) -> World:
    return World(tmp_path, interpreter(version))


@PYTHONS
def test_what_is_named_is_loaded_and_the_folder_is_gone(world: World) -> None:
    assert world.out(TELL) == "['_ideepdoctor_auto', '_ideepdoctor_guard']"
    assert world.out(TELL, IDEEPDOCTOR_RUN="_ideepdoctor_trace,os,_ideepdoctor_else") == "['_ideepdoctor_trace']"
    assert world.out(TELL, IDEEPDOCTOR_RUN="") == "[]"
    assert world.out(f"import sys; print({str(world.ours)!r} in sys.path, {str(world.users)!r} in sys.path)") == (
        "False True" if world.python != interpreter("2.7") else "(False, True)"
    )


@PYTHONS
def test_nothing_is_loaded_by_a_python_that_ignores_variables(world: World) -> None:
    isolated = ["-E", "-S"] + (["-I"] if world.python != interpreter("2.7") else [])
    for option in isolated:
        assert world.out(TELL, option) == "[]"


@PYTHONS
@pytest.mark.parametrize("broken", ["syntax error", "raise RuntimeError(1)", "raise ImportError('x')", "1 / 0"])
def test_what_is_broken_stops_nothing_and_says_nothing(world: World, broken: str) -> None:
    (world.ours / "_ideepdoctor_guard.py").write_text(broken + "\n")
    (world.users / "sitecustomize.py").write_text("import sys; sys.mine = True\n")
    assert world.out(TELL + "; assert sys.mine") == "['_ideepdoctor_auto']"


@PYTHONS
@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.stdout.write('mine\\n')",
        "raise RuntimeError('of mine')",
        "raise ImportError('of mine')",
        "import a_module_that_is_not_there",
        "raise SystemExit(3)",
        "syntax error",
        "import sys; sys.modules[__name__] = None",
        "import sitecustomize, sys; sys.stdout.write(sitecustomize.__file__.partition('.')[0] + '\\n')",
    ],
)
def test_the_users_sitecustomize_does_what_it_does_without_us(world: World, text: str) -> None:
    (world.users / "sitecustomize.py").write_text(text + "\n")
    (world.users / "usercustomize.py").write_text("import sys; sys.stdout.write('user\\n')\n")
    code = "import sys; print('sitecustomize' in sys.modules, 'ran')"
    theirs = world.run(code, PYTHONPATH=str(world.users), PYTHONUSERBASE=str(world.users))
    ours = world.run(code, PYTHONUSERBASE=str(world.users))
    # What ends Python in the middle of its start is shown with two lines of ours on the way to it.
    assert (ours.returncode, ours.stderr[-20:]) == (theirs.returncode, theirs.stderr[-20:])
    assert theirs.returncode or ours.stderr == theirs.stderr
    # One that failed is in sys.modules no more; ours is, where there is no other.
    assert ours.stdout.replace("True", "False") == theirs.stdout.replace("True", "False")


@PYTHONS
def test_a_failing_usercustomize_and_start_up_files_are_pythons_own(world: World, tmp_path: Path) -> None:
    (world.users / "usercustomize.py").write_text("raise RuntimeError('of mine')\n")
    start = tmp_path / "start.py"
    start.write_text("print('started')\n")
    for arguments in ({}, {"PYTHONSTARTUP": str(start)}):
        given = {"PATH": os.defpath, **arguments}
        command = [world.python, "-B", "-i"]
        found = [
            subprocess.run(
                command,
                env={**given, "PYTHONPATH": path, "IDEEPDOCTOR_RUN": "_ideepdoctor_guard"},
                input="",
                capture_output=True,
                text=True,
                timeout=60,
            )
            for path in (str(world.users), f"{world.ours}:{world.users}")
        ]
        assert found[0].stdout == found[1].stdout == ("started\n" if arguments else "")
        assert found[0].stderr == found[1].stderr


@PYTHONS
@pytest.mark.parametrize(
    ("ours", "theirs", "wins"),
    [("2", "3", "theirs"), ("2", "2", "ours"), ("3", "2", "ours"), ("2", "None", "ours"), ("None", "1", "theirs")],
)
@pytest.mark.parametrize("first", [False, True])
def test_the_newer_guard_wins(world: World, tmp_path: Path, ours: str, theirs: str, wins: str, first: bool) -> None:
    """In whichever order the two are found; the environment's is in site-packages, which PYTHONPATH stands in for."""
    (world.ours / "_ideepdoctor_guard.py").write_text(GUARD % (ours, "ours"))
    (world.users / "_ideepdoctor_guard.py").write_text(GUARD % (theirs, "theirs"))
    order = (world.users, world.ours) if first else (world.ours, world.users)
    code = "import sys; guard = sys.modules['_ideepdoctor_guard']; print(guard.WHERE)"
    assert world.out(code, PYTHONPATH=":".join(map(str, order))) == wins


def test_the_guard_tells_its_number_where_it_is_looked_for(tmp_path: Path) -> None:
    [number] = re.findall(r'\{"guard": (\d+),', payload_source("guard").decode("ascii"))
    assert int(number) > 0


@pytest.mark.parametrize(
    "python",
    [found.place.path for found in installed_interpreters() if not found.identity.is_virtual],
    ids=lambda path: Path(path).name if path.startswith("/usr") else path.rsplit("/", 3)[-3],
)
def test_every_python_that_a_program_may_start_bears_the_real_files(python: str, tmp_path: Path) -> None:
    world = World(tmp_path, python)
    for name in ("guard", "auto", "trace"):
        (world.ours / f"_ideepdoctor_{name}.py").write_bytes(payload_source(name))
    code = "import sys, json, logging, subprocess, decimal; " + TELL
    run = "_ideepdoctor_trace,_ideepdoctor_guard,_ideepdoctor_auto"
    assert world.out(code, IDEEPDOCTOR_RUN=run) == str(sorted(run.split(",")))


def test_compiled_files_of_old_pythons_do_not_outlive_their_source(tmp_path: Path) -> None:
    world = World(tmp_path, legacy_python("2.7"))
    command = [world.python, "-c", TELL]
    given = {"PATH": os.defpath, "PYTHONPATH": str(world.ours), "IDEEPDOCTOR_RUN": "_ideepdoctor_guard"}
    for _ in range(2):
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("['_ideepdoctor_guard']\n", "")
    assert (world.ours / "sitecustomize.pyc").exists()
