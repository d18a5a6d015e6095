"""Every command in a terminal and without one: results on standard output alone, progress where somebody watches."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main

from ideepdoctor.cli import app
from tests.conftest import legacy_python

ROOT = Path(__file__).parents[2]
HOSTS = ROOT / "tests" / "hosts"
FAULTY, HEALTHY = HOSTS / "py311-nothing.json", HOSTS / "py37-healthy.json"
COLOUR = re.compile(r"\x1b\[[\d;]*(3|4|9|10)\d[\d;]*m")
MOVES = re.compile(r"\x1b\[(\?25l|2K|\d*A)|\r(?!\n)")

QUICK = [
    f"diagnose --facts {FAULTY}",
    "history",
    "cpu --python {own}",
]
"""What the default run looks at: a text with colours, one without, one with progress."""

ALONE = [
    "explain",
    "explain IDP305",
    "explain NOPE",
    "schema",
    "lint {folder}/program.py",
    f"diff {HEALTHY} {FAULTY}",
    f"report --facts {HEALTHY}",
    "recipe",
    "recipe conda",
    "undo no-such-run",
    "resume",
    "bench history",
    "bench compare no-such-file.json",
    "bench chart no-such-file.json -o chart.html",
    f"fleet merge {HEALTHY} {FAULTY}",
    "fleet diagnose -i no-such-inventory",
    "fleet setup -i no-such-inventory --check",
    "self-test",
    "completion zsh",
    "man",
    "probe",
    "setup --dry-run --python {own}",
    "wheelhouse {folder}/wh --check",
    "build --dry-run --offline --python {own}",
    "--help",
    "--version -v",
    "bench --help",
    "no-such-command",
    "diagnose --no-such-option",
]
"""What needs no environment."""

INSIDE = [
    "diagnose --python {env}",
    "libs --python {env}",
    "env --python {env}",
    "guard --python {env}",
    "fix --dry-run --python {env}",
    "install ideep4py==2.0.0.post3 --dry-run --python {env}",
    "upgrade --dry-run --python {env}",
    "downgrade --dry-run --python {env} --to chainer6.7.0-ideep4py2.0.0.post3",
    "setup --dry-run --python {legacy} --env {folder}/new",
    "smoke --no-timing --python {env}",
    "certify --budget 3s --ops bn --python {env}",
    "bench -p {env} --engine numpy --net conv --batch 1 --blocks 2 --seconds 0.01 --no-details --no-keep",
    "tune --dry-run --budget 5s --python {env}",
    "run --python {env} -- python {folder}/program.py",
    "trace --python {env} -- {folder}/program.py",
]
"""What needs an environment with Chainer and ideep4py."""
MEASURING = ("smoke", "certify", "bench ", "tune", "trace")
"""What says other numbers each time."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came on the two streams."""

    code: int
    out: str
    err: str


class Doctor:
    """Runs command lines.

    Args:
        folder: to work in; it has a program.
        names: what stands in the command lines for places.
    """

    def __init__(self, folder: Path, **names: str) -> None:
        (folder / "program.py").write_text("print('from the program')\n")
        self._folder, self._names = folder, {"folder": str(folder), "own": sys.executable, **names}

    def __call__(self, line: str, *, out: bool = False, err: bool = False, **variables: str) -> Seen:
        """Run a line; ``out`` and ``err``: that stream is a terminal of 100 columns."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("IDEEPDOCTOR_")}
        for name in ("CI", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM", "LANG", "LC_ALL"):
            kept.pop(name, None)
        env = {
            **kept,
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "IDEEPDOCTOR_STATE_DIR": str(self._folder / "state"),
            "IDEEPDOCTOR_CACHE_DIR": str(self._folder / "cache"),
            **variables,
        }
        words = [word.format(**self._names) for word in shlex.split(line)]
        ends = [_terminal() if wanted else os.pipe() for wanted in (out, err)]
        process = subprocess.Popen(
            [sys.executable, "-m", "ideepdoctor", *words],
            stdin=subprocess.DEVNULL,
            stdout=ends[0][1],
            stderr=ends[1][1],
            env=env,
            cwd=self._folder,
        )
        for _, end in ends:
            os.close(end)
        told = _read_all([end for end, _ in ends], 300)
        return Seen(process.wait(timeout=10), told[0], told[1])


def _terminal() -> tuple[int, int]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    return ours, theirs


def _read_all(ends: list[int], seconds: float) -> list[str]:
    told, left, deadline = dict.fromkeys(ends, b""), set(ends), time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        for end in select.select(list(left), [], [], 1)[0]:
            try:
                data = os.read(end, 65536)
            except OSError:  # a terminal whose other end is closed
                data = b""
            told[end] += data
            if not data:
                left.discard(end)
    for end in ends:
        os.close(end)
    assert not left, "it does not end"
    return [told[end].decode("utf-8", "replace") for end in ends]


def plain(text: str) -> str:
    """A text without numbers, which are other ones each time, and without blanks: a terminal decides on the breaks."""
    return re.sub(r"\d+([.:]\d+)*", "N", "".join(text.split()))


def check_pipes(doctor: Doctor, line: str) -> Seen:
    """Without a terminal: no escape anywhere, and standard error says nothing where all is well."""
    seen = doctor(line)
    assert "\x1b" not in seen.out + seen.err
    assert "Traceback" not in seen.out + seen.err
    assert not MOVES.search(seen.err)
    assert not re.search(r"^\[\d+/\d+\]", seen.err, re.MULTILINE), "steps where nobody watches"
    if seen.code in (2, 3):
        assert seen.out == "" and seen.err.startswith(("error", "ideepdoctor")), seen
    elif not line.startswith("trace"):  # its report goes there
        assert seen.err == "" or seen.out == "", seen.err
    return seen


def check_watched(doctor: Doctor, line: str, pipes: Seen) -> None:
    """Where only standard error is a terminal, standard output is the same; what moves is gone at the end."""
    seen = doctor(line, err=True)
    assert "\x1b" not in seen.out
    assert seen.code == pipes.code
    if not line.startswith(MEASURING):
        assert plain(seen.out) == plain(pipes.out)
    assert "\x1b[?25l" not in seen.err or "\x1b[?25h" in seen.err, "the cursor is gone"


def check_terminals(doctor: Doctor, line: str) -> None:
    """Both are terminals: NO_COLOR, TERM=dumb and CI are heeded."""
    seen = doctor(line, out=True, err=True, NO_COLOR="1")
    assert not COLOUR.search(seen.out + seen.err)
    seen = doctor(line, out=True, err=True, TERM="dumb")
    assert "\x1b" not in seen.out + seen.err
    seen = doctor(line, out=True, err=True, CI="true")
    assert not MOVES.search(seen.err), seen.err


@pytest.mark.parametrize("line", QUICK, ids=lambda line: line.split()[0])
def test_some_commands(line: str, tmp_path: Path) -> None:
    doctor = Doctor(tmp_path)
    check_watched(doctor, line, check_pipes(doctor, line))


@pytest.mark.slow
@pytest.mark.parametrize("line", [*QUICK, *ALONE])
def test_commands_that_need_no_environment(line: str, tmp_path: Path) -> None:
    doctor = Doctor(tmp_path)
    check_watched(doctor, line, check_pipes(doctor, line))
    check_terminals(doctor, line)


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("line", INSIDE)
def test_commands_in_an_environment(line: str, tmp_path: Path, made: Callable[..., tuple[Path, object]]) -> None:
    doctor = Doctor(tmp_path, env=str(made("3.7")[0]), legacy=legacy_python("3.7"))
    check_watched(doctor, line, check_pipes(doctor, line))
    check_terminals(doctor, line)


def test_every_command_is_in_the_table() -> None:
    lines = [*QUICK, *ALONE, *INSIDE]
    missing = []
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        words = [f"{name} {inner}" for inner in getattr(command, "commands", {})] or [name]
        missing += [word for word in words if not any(f"{line} ".startswith(f"{word} ") for line in lines)]
    assert not missing


@pytest.mark.slow
def test_progress_is_shown_to_who_watches_and_to_nobody_else(tmp_path: Path) -> None:
    line = "self-test"
    doctor = Doctor(tmp_path)
    assert "[6/6] programs for other Pythons" in doctor(line, err=True).err
    for variables in ({"IDEEPDOCTOR_QUIET": "1"}, {"IDEEPDOCTOR_QUIET": "1", "CI": "1"}):
        assert doctor(line, err=True, **variables).err == ""
    still = doctor(line, err=True, CI="true").err
    assert "[6/6] programs for other Pythons\r\n" in still and not MOVES.search(still)
    assert "[6/6] programs for other Pythons\n" in doctor(line, IDEEPDOCTOR_VERBOSE="1").err


def test_colour_is_forced_and_forbidden(tmp_path: Path) -> None:
    doctor = Doctor(tmp_path)
    line = QUICK[0]
    assert COLOUR.search(doctor(line, out=True).out)
    assert COLOUR.search(doctor(line, FORCE_COLOR="1").out)
    assert not COLOUR.search(doctor(line, FORCE_COLOR="1", NO_COLOR="1").out)
    told = doctor(f"{line} --format json", FORCE_COLOR="1", out=True).out
    assert "\x1b" not in told and json.loads(told)["findings"]


@pytest.mark.parametrize("columns", ["50", "120"])
def test_columns_are_heeded(tmp_path: Path, columns: str) -> None:
    doctor = Doctor(tmp_path)
    for line in (QUICK[0], "--help"):
        longest = max(len(text) for text in doctor(line, COLUMNS=columns).out.splitlines())
        assert longest <= int(columns) and (columns == "50" or longest > 60)
