"""Progress as plain lines, for logs and for terminals that cannot move the cursor."""

from __future__ import annotations

from typing import TextIO

from ideepdoctor.locale import tr


class Lines:
    """One line per step.

    Args:
        stream: where to.
        details: also what the installers say.
    """

    def __init__(self, stream: TextIO, *, details: bool) -> None:
        self._stream = stream
        self._details = details

    def step(self, index: int, total: int, title: str) -> None:
        """A step begins; ``index`` counts from 1."""
        self._stream.write(f"[{index}/{total}] {tr(title)}\n")
        self._stream.flush()

    def detail(self, text: str) -> None:
        """Something happened within the step."""
        if self._details:
            self._stream.write(f"      {tr(text)}\n")
            self._stream.flush()

    def share(self, part: float) -> None:
        """Nothing that moves here."""

    def note(self, text: str) -> None:
        """One line."""
        self._stream.write(f"{tr(text)}\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to take away."""


class Notes:
    """The lines that stay to be read, without the steps: what a log that nobody watches gets.

    Args:
        stream: where to.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def step(self, index: int, total: int, title: str) -> None:
        """Not shown."""

    def detail(self, text: str) -> None:
        """Not shown."""

    def share(self, part: float) -> None:
        """Not shown."""

    def note(self, text: str) -> None:
        """One line."""
        self._stream.write(f"{tr(text)}\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing to take away."""
