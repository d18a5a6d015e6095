"""How a process ended that was started to see whether something works. Data only."""

from __future__ import annotations

from dataclasses import dataclass

AT_END = "the end of Python"
"""The stack of a child that had done all it was asked, and died or hung while Python ended."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a sacrificial child ended that imported a module or ran an op."""

    ok: bool
    seconds: float
    version: str | None = None
    """``__version__`` of the module."""
    path: str | None = None
    """``__file__`` of the module."""
    error_type: str | None = None
    """Name of the Python exception; None where there was none (or the process died)."""
    error_text: str | None = None
    signal: str | None = None
    """SIGABRT, SIGILL...; None where no signal ended it."""
    exit_code: int | None = None
    timed_out: bool = False
    stderr_tail: str = ""
    """The last lines of standard error, at most 2,000 characters."""
    warnings: tuple[str, ...] = ()
    """Warnings as ``Category: text``."""
    stack: tuple[str, ...] = ()
    """Where it died, innermost call first, as ``FILE:LINE in FUNCTION``; empty where that was not caught."""
    mapped: tuple[str, ...] = ()
    """Real paths of the shared objects that were mapped when a signal ended it; empty where that is not known."""
