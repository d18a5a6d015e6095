"""The Tab key in real shells: bash, zsh and fish are started in a terminal and typed at."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from ideepdoctor.cli import app
from ideepdoctor.cli_shells import SCRIPTS, Shell

READY = "@READY@"
_ESCAPES = re.compile(r"\x1b\[[0-9;?>=]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07|\x0f|\r")


def surroundings(tmp_path: Path) -> dict[str, str]:
    """Variables with a doctor on PATH that is this one, and folders of its own."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / "ideepdoctor"
    script.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m ideepdoctor \"$@\"\n")
    script.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("IDEEPDOCTOR_", "LC_", "LANG"))}
    return {
        **kept,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "ZDOTDIR": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
    }


def script_of(shell: Shell, tmp_path: Path) -> Path:
    path = tmp_path / f"completion.{shell}"
    path.write_text(SCRIPTS[shell])
    return path


class Terminal:
    """A shell in a terminal of 200 columns."""

    def __init__(self, words: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(words[0], words, dict(env))
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self.seen = ""

    def type(self, text: str) -> None:
        self.seen = ""
        os.write(self.descriptor, text.encode())

    def until(self, pattern: str, seconds: float = 30.0) -> str:
        """What is shown until a pattern is in it, without what moves the cursor; fails after a while."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, _ESCAPES.sub("", self.seen)):
            left = deadline - time.monotonic()
            assert left > 0, f"{pattern!r} does not come: {self.seen!r}"
            if select.select([self.descriptor], [], [], left)[0]:
                self.seen += os.read(self.descriptor, 65536).decode("utf-8", "replace")
        return _ESCAPES.sub("", self.seen)


@contextmanager
def typed_at(words: list[str], env: Mapping[str, str], cwd: Path) -> Iterator[Terminal]:
    terminal = Terminal(words, env, cwd)
    try:
        yield terminal
    finally:
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)
        os.close(terminal.descriptor)


TYPED = [
    ("ideepdoctor expl\t", r"ideepdoctor explain "),
    ("ideepdoctor explain IDP30\t\t", r"(?s)IDP301.*IDP309"),
    ("ideepdoctor setup --stack chainer6\t", r"--stack chainer6\.7\.0-ideep4py2\.0\.0\.post3"),
    ("ideepdoctor diagnose --format sa\t", r"--format sarif"),
    ("ideepdoctor diagnose --format=sa\t", r"--format=sarif"),
    ("ideepdoctor smoke --qui\t", r"smoke --quiet"),
    ("ideepdoctor recipe con\t", r"recipe conda"),
    ("ideepdoctor bench com\t", r"bench compare"),
    ("ideepdoctor diagnose --facts fac\t", r"--facts facts-of-a-host\.json"),
]
"""What is typed, and what the line, or the list below it, becomes. The last one is the name of a file."""


SOME, ALL = pytest.param(slice(1, 3), id="some"), pytest.param(slice(None), id="all", marks=pytest.mark.slow)


def check(terminal: Terminal, which: slice) -> None:
    for text, wanted in TYPED[which]:
        terminal.type(text)
        shown = terminal.until(wanted)
        assert "Traceback" not in shown and "rror" not in shown, shown
        terminal.type("\x15\x0c")  # take the line away, and the screen
        time.sleep(0.1)


@pytest.mark.parametrize("which", [SOME, ALL])
def test_bash(tmp_path: Path, which: slice) -> None:
    env = {**surroundings(tmp_path), "PS1": "$ "}
    (tmp_path / "facts-of-a-host.json").write_text("{}")
    with typed_at(["bash", "--norc", "--noprofile", "-i"], env, tmp_path) as terminal:
        terminal.type(f"source {script_of(Shell.BASH, tmp_path)}; echo @READY''@\n")
        terminal.until(READY)
        check(terminal, which)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
@pytest.mark.parametrize("which", [SOME, ALL])
@pytest.mark.parametrize("how", [pytest.param("sourced", marks=pytest.mark.slow), "autoloaded"])
def test_zsh(tmp_path: Path, how: str, which: slice) -> None:
    env = surroundings(tmp_path)
    (tmp_path / "facts-of-a-host.json").write_text("{}")
    functions = tmp_path / "functions"
    functions.mkdir()
    script = script_of(Shell.ZSH, functions if how == "autoloaded" else tmp_path)
    if how == "autoloaded":
        script.rename(functions / "_ideepdoctor")
    begin = f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -d {tmp_path}/dump"
    source = f"source {script}" if how == "sourced" else ":"
    with typed_at(["zsh", "-f", "-i"], env, tmp_path) as terminal:
        terminal.type(f"PS1='$ '; {begin}; {source}; echo @READY''@\n")
        terminal.until(READY)
        check(terminal, which)


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("explain IDP30", ["IDP301\tideep4py is not installed", "IDP309\t"]),
        ("diagnose --facts fac", ["facts-of-a-host.json"]),
        *(
            pytest.param(line, wanted, marks=pytest.mark.slow)
            for line, wanted in (
                ("expl", ["explain\t"]),
                ("setup --stack chainer6", ["chainer6.7.0-ideep4py2.0.0.post3\tChainer 6.7.0"]),
                ("diagnose --format sa", ["sarif"]),
                ("diagnose --format=sa", ["--format=sarif"]),
                ("smoke --qui", ["--quiet\tResults and errors only"]),
                ("recipe con", ["conda\t"]),
            )
        ),
    ],
)
def test_fish(tmp_path: Path, line: str, wanted: list[str]) -> None:
    (tmp_path / "facts-of-a-host.json").write_text("{}")
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {script_of(Shell.FISH, tmp_path)}; complete -C 'ideepdoctor {line}'"],
        env=surroundings(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    for text in wanted:
        assert text in done.stdout


def offers(line: str, tmp_path: Path, shell: str = "bash", **more: str) -> list[str]:
    """The words that are offered; fails where anything else is printed."""
    asked = {"_IDEEPDOCTOR_COMPLETE": shell, "_IDEEPDOCTOR_LINE": line, **more}
    env = {**surroundings(tmp_path), **asked}
    done = subprocess.run(["ideepdoctor"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert all("\t" in text for text in done.stdout.splitlines())
    return [text.split("\t")[0] for text in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("ideepdoctor di", ["diagnose", "diff"]),
        ("ideepdoctor --quiet --log-file x bench h", ["history"]),
        ("ideepdoctor diagnose --select IDP305,IDP31", [f"IDP305,IDP31{digit}" for digit in "0123456789"]),
        ("ideepdoctor explain idp30", [f"idp30{digit}" for digit in "123456789"]),
        ("ideepdoctor cpu --why-not avx", ["avx512", "avx2", "avx"]),
        ("ideepdoctor tune --net alexnet,goo", ["alexnet,googlenet"]),
        ("ideepdoctor wheelhouse wh --python 2", ["2.7"]),
        ("ideepdoctor guard en", ["enable"]),
        ("ideepdoctor env --format f", ["fish"]),
        ("ideepdoctor completion z", ["zsh"]),
        ("ideepdoctor run -- train.py --q", []),
        ("ideepdoctor undo ", []),
        ("", None),
    ],
)
def test_what_is_offered(tmp_path, monkeypatch, capsys, line: str, wanted: list[str] | None) -> None:
    for name in ("IDEEPDOCTOR_STATE_DIR", "IDEEPDOCTOR_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("_IDEEPDOCTOR_COMPLETE", "bash")
    monkeypatch.setenv("_IDEEPDOCTOR_LINE", line)
    assert app([]) == 0
    told = capsys.readouterr()
    found = [text.split("\t")[0] for text in told.out.splitlines()]
    assert found == wanted if wanted is not None else "setup" in found
    assert told.err == ""


def test_nothing_is_started_written_or_said(tmp_path: Path) -> None:
    """Not even where a log is asked for, and the folder of the doctor's own files cannot be made."""
    log = tmp_path / "log"
    fake = tmp_path / "bin"
    fake.mkdir()
    for name in ("python3.6", "pyenv"):
        (fake / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
        (fake / name).chmod(0o755)
    before = sorted(path.name for path in tmp_path.iterdir())
    found = offers("ideepdoctor smoke --python ", tmp_path, IDEEPDOCTOR_LOG_FILE=str(log), IDEEPDOCTOR_VERBOSE="2")
    assert str(fake / "python3.6") in found
    offers("ideepdoctor resume ", tmp_path, IDEEPDOCTOR_STATE_DIR="/proc/none")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("line", ["ideepdoctor ", "ideepdoctor explain ", "ideepdoctor smoke --python "])
def test_it_takes_less_than_a_third_of_a_second(tmp_path: Path, line: str) -> None:
    """Of a processor: how long the machine is busy with other things is none of its doing."""
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert offers(line, tmp_path)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.3


@pytest.mark.parametrize("shell", [Shell.ZSH])
def test_the_command_prints_the_script_alone(tmp_path: Path, shell: Shell) -> None:
    done = subprocess.run(
        ["ideepdoctor", "completion", str(shell)],
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, SCRIPTS[shell], "")
