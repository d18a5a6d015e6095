"""Helpers of the tests that build: the command on a stand-in of upstream, a compiler that takes its time."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.builder.standin import StandIn

DOCTOR = str(Path(sys.executable).with_name("ideepdoctor"))
SECONDS = 600.0


@dataclass
class Site:
    """A place to build at: a stand-in, and a cache and a state of its own.

    Attributes:
        standin: what is built.
        folder: of this test.
        environ: added to the variables of every build.
    """

    standin: StandIn
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def cache(self) -> Path:
        return Path(self.environ["IDEEPDOCTOR_CACHE_DIR"]) / "build"

    @property
    def works(self) -> list[Path]:
        """Work folders that are left."""
        return sorted((self.cache / "work").glob("*")) if (self.cache / "work").exists() else []

    @property
    def logs(self) -> list[Path]:
        return sorted((Path(self.environ["IDEEPDOCTOR_STATE_DIR"]) / "logs").glob("build-*.log"))

    def words(self, python: str, *options: str, ref: str = "post3", output: str = "out") -> list[str]:
        given = ["build", "--python", python, "--source", self.standin.url, "--ref", self.standin.commits[ref]]
        given += ["--mkldnn-source", self.standin.mkldnn_url, "-o", str(self.folder / output), "--format", "json"]
        return [*given, *options]

    def start(self, words: Sequence[str], before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start a build in a session of its own, as a terminal would."""
        return subprocess.Popen(
            [*before, DOCTOR, *words],
            env={**os.environ, **self.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def site(standin: StandIn, folder: Path, environ: Mapping[str, str] | None = None) -> Site:
    """A place with an empty cache."""
    folder.mkdir(parents=True, exist_ok=True)
    own = {"IDEEPDOCTOR_CACHE_DIR": str(folder / "cache"), "IDEEPDOCTOR_STATE_DIR": str(folder / "state")}
    return Site(standin, folder, {**own, **(environ or {})})


def slow_compiler(folder: Path, when: str, action: str) -> dict[str, str]:
    """Variables with a PATH whose first c++ does something before it compiles a file.

    Args:
        folder: for the program and for ``compiled``, a list of what it was asked to compile.
        when: end of the name of the source file.
        action: of a shell; ``$$`` is the compiler's process.
    """
    real = shutil.which("c++")
    assert real is not None
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "c++"
    program.write_text(
        f"""#!/bin/sh
for word; do
    case $word in
        *.cpp|*.cc) echo "$word" >> {shlex.quote(str(folder / "compiled"))} ;;
    esac
    case $word in
        *"{when}") {action} ;;
    esac
done
exec {shlex.quote(real)} "$@"
"""
    )
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def compiled(folder: Path) -> list[str]:
    """Names of the files that the slow compiler was asked to compile, in order."""
    path = folder / "compiled"
    return [Path(line).name for line in path.read_text().split()] if path.exists() else []


def wait_until(true: Callable[[], object], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def end(process: subprocess.Popen[str], number: int = signal.SIGINT) -> tuple[int, str, str]:
    """Send a signal to the doctor alone, and wait."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def alive(marker: str) -> list[int]:
    """Processes whose command line or folder names this path."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes().decode("utf-8", "replace") + str((entry / "cwd").readlink())
            except OSError:
                continue
            if marker in said:
                found.append(int(entry.name))
    return found
