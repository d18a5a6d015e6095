"""The log of a build: every program that is started and all that it prints, in a file that grows as it goes."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.system import Completed, Observer, System
from ideepdoctor.treatment.sources import shown

_KEPT_LINES = 20_000
"""Of one stage, in memory, for the search for signatures."""
_SHOWN_BYTES = 4000
"""Of what a program printed for the doctor alone (an answer): its end is in the log."""


class BuildLog:
    """A log file.

    Args:
        system: writes it.
        folder: of the logs; made.

    Raises:
        CouldNotCheck: the file cannot be made.
    """

    def __init__(self, system: System, folder: str, now: datetime | None = None) -> None:
        self._system = system
        stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%S.%fZ")
        self.path = f"{folder}/build-{stamp}.log"
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        """What was written since the last ``begin``; of very much the end."""
        try:
            system.make_folder(folder)
            system.append_text(self.path, "")
        except OSError as error:
            raise CouldNotCheck(
                f"cannot write the log {self.path}: {error.strerror or error}",
                hint="make room or set IDEEPDOCTOR_STATE_DIR to a folder that you can write",
            ) from error

    def write(self, text: str) -> None:
        """Add a line. A disk that is full must not hide what filled it, so that no error is raised."""
        line = shown(text) if "://" in text else text
        self.lines.append(line)
        with contextlib.suppress(OSError):
            self._system.append_text(self.path, f"{line}\n")

    def begin(self, title: str) -> None:
        """A stage begins."""
        self.lines.clear()
        self.write(f"=== {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC  {title}")

    def watching(self) -> System:
        """The same system, whose programs are written down here."""
        return cast(System, _Watched(self._system, self))


class _Watched:
    """A system that writes down what it starts; everything else goes to the one behind it."""

    def __init__(self, system: System, log: BuildLog) -> None:
        self._system, self._log = system, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_line: Observer = lambda _text: None,
        on_output: Observer | None = None,
    ) -> Completed:
        """See ``System.run``."""
        self._log.write(f"$ {' '.join(argv)}" + (f"   (in {cwd})" if cwd else ""))

        def heard(line: str, tell: Observer) -> None:
            self._log.write(line)
            tell(line)

        done = self._system.run(
            argv,
            timeout_seconds=timeout_seconds,
            stdin=stdin,
            env=env,
            cwd=cwd,
            on_line=lambda line: heard(line, on_line),
            on_output=None if on_output is None else lambda line: heard(line, on_output),
        )
        if on_output is None and done.stdout:
            for line in done.stdout[-_SHOWN_BYTES:].decode("utf-8", "replace").splitlines():
                self._log.write(line)
        if not done.ok:
            why = done.error or ("no end in time" if done.timed_out else f"ended with {done.returncode}")
            self._log.write(f"# {why} after {done.seconds:.1f} s")
        return done
