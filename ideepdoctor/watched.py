"""The machine and the progress of a run, watched: every process and every step is told to whoever listens."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ideepdoctor.streams import Dialogue
from ideepdoctor.system import Completed, Ended, RealSystem
from ideepdoctor.trail import tell
from ideepdoctor.treatment.progress import Progress


class WatchedSystem(RealSystem):
    """The machine itself; each process is told when it starts and when it has ended.

    Args:
        stays: whether this process waits for a program that it shall become, so that its end can be told.
    """

    def __init__(self, *, stays: bool = False) -> None:
        self._stays = stays

    def run(self, argv: Sequence[str], **how: Any) -> Completed:
        """See ``System.run``."""
        told = _Told(argv)
        try:
            done = super().run(argv, **how)
        except BaseException as error:
            told.ended(None, error=type(error).__name__)
            raise
        told.ended(done.returncode, timed_out=done.timed_out, error=done.error)
        return done

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Dialogue:
        """See ``System.converse``."""
        told = _Told(argv)
        try:
            talk = super().converse(argv, env=env)
        except OSError as error:
            told.ended(None, error=str(error))
            raise
        return _WatchedDialogue(talk, told)

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """See ``System.become``; where nobody stays to see it, the end of the program is not told."""
        if self._stays:
            self.end_as(self.attend(argv, env).returncode)
        told = _Told(argv, becomes=True)
        try:
            super().become(argv, env)
        except OSError as error:
            told.ended(None, error=str(error))
            raise

    def attend(self, argv: Sequence[str], env: Mapping[str, str]) -> Ended:
        """See ``System.attend``."""
        told = _Told(argv)
        try:
            ended = super().attend(argv, env)
        except OSError as error:
            told.ended(None, error=str(error))
            raise
        told.ended(ended.returncode)
        return ended


class _Told:
    """One process: told when it starts and when it has ended."""

    def __init__(self, argv: Sequence[str], *, becomes: bool = False) -> None:
        self._argv, self._started = list(argv), time.monotonic()
        tell("info", "process-start", argv=self._argv, **({"becomes": True} if becomes else {}))

    def ended(self, code: int | None, *, timed_out: bool = False, error: str = "") -> None:
        """Tell how: ``code`` is negative for a signal, None where it never ran or was given up."""
        tell(
            "info" if code == 0 and not timed_out else "warning",
            "process-end",
            argv=self._argv,
            seconds=round(time.monotonic() - self._started, 6),
            exit_code=code,
            **({"timed_out": True} if timed_out else {}),
            **({"error": error} if error else {}),
        )


class _WatchedDialogue:
    """A conversation whose end is told."""

    def __init__(self, talk: Dialogue, told: _Told) -> None:
        self._talk, self._told = talk, told

    def send(self, data: bytes) -> None:
        """See ``Dialogue.send``."""
        self._talk.send(data)

    def receive(self, mark: bytes, count: int, timeout_seconds: float) -> bytes | None:
        """See ``Dialogue.receive``."""
        return self._talk.receive(mark, count, timeout_seconds)

    def ended(self) -> int | None:
        """See ``Dialogue.ended``."""
        return self._talk.ended()

    def errors(self) -> str:
        """See ``Dialogue.errors``."""
        return self._talk.errors()

    def close(self, grace_seconds: float = 2.0) -> int:
        """See ``Dialogue.close``."""
        code = self._talk.close(grace_seconds)
        self._told.ended(code)
        return code


class WatchedProgress:
    """Hands each step on, and tells it, and how long the one before took."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._step: tuple[str, float] | None = None

    def step(self, index: int, total: int, title: str) -> None:
        """See ``Progress.step``."""
        self._end()
        self._step = (title, time.perf_counter())
        tell("info", "step", index=index, total=total, title=title)
        self._progress.step(index, total, title)

    def detail(self, text: str) -> None:
        """See ``Progress.detail``."""
        tell("debug", "detail", text=text)
        self._progress.detail(text)

    def share(self, part: float) -> None:
        """See ``Progress.share``."""
        self._progress.share(part)

    def note(self, text: str) -> None:
        """See ``Progress.note``."""
        tell("info", "note", text=text)
        self._progress.note(text)

    def close(self) -> None:
        """See ``Progress.close``."""
        self._end()
        self._progress.close()

    def _end(self) -> None:
        if self._step is not None:
            title, started = self._step
            self._step = None
            tell("debug", "stage", name=title, seconds=round(time.perf_counter() - started, 6))
