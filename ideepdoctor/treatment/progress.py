"""Where a run tells how far it is: a protocol, and a sink that says nothing."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of each step as it happens; shows it or not."""

    def step(self, index: int, total: int, title: str) -> None:
        """A step begins; ``index`` counts from 1."""
        ...

    def detail(self, text: str) -> None:
        """Something happened within the step: one line, often an installer's own."""
        ...

    def share(self, part: float) -> None:
        """How much of the step is done, 0 to 1."""
        ...

    def note(self, text: str) -> None:
        """One line that stays to be read."""
        ...

    def close(self) -> None:
        """Take away what must not stand in the way of the result."""
        ...


class Quiet:
    """Says nothing."""

    def step(self, index: int, total: int, title: str) -> None:
        """See ``Progress.step``."""

    def detail(self, text: str) -> None:
        """See ``Progress.detail``."""

    def share(self, part: float) -> None:
        """See ``Progress.share``."""

    def note(self, text: str) -> None:
        """See ``Progress.note``."""

    def close(self) -> None:
        """See ``Progress.close``."""
