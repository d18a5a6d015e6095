"""Programs of a build: started with its variables and nothing else, watched, and judged by how they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ideepdoctor.errors import BuildFailed
from ideepdoctor.system import System

HOURS = 3600.0


@dataclass(frozen=True, slots=True)
class Programs:
    """Starts the programs of one build.

    Attributes:
        system: starts them and writes them into the log.
        environ: their whole environment.
        line: told each line that they print.
    """

    system: System
    environ: Mapping[str, str]
    line: Callable[[str], None]

    def run(self, argv: Sequence[str], *, cwd: str, what: str, timeout_seconds: float = 2 * HOURS) -> str:
        """Start a program and wait for it; what it printed.

        Args:
            argv: the program and its arguments.
            cwd: its folder.
            what: it does, as a phrase for the error.
            timeout_seconds: after that it is killed.

        Raises:
            BuildFailed: it ended with anything but 0.
        """
        done = self.system.run(argv, timeout_seconds=timeout_seconds, env=self.environ, cwd=cwd, on_output=self.line)
        if done.ok:
            return done.text()
        if done.timed_out:
            how = f"no end within {timeout_seconds / HOURS:.0f} hours"
        elif done.error:
            how = done.error
        elif done.returncode < 0:
            how = f"killed by signal {-done.returncode}"
        else:
            how = f"ended with {done.returncode}"
        raise BuildFailed(f"{what}: {how}", context={"command": " ".join(argv), "folder": cwd})
