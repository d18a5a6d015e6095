"""Errors that a person sees: what happened, the likely cause, what to do, and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    COULD_NOT_CHECK = 3
    ROLLED_BACK = 4
    NEEDS_ATTENTION = 5
    BUSY = 6
    INTERRUPTED = 130


class DoctorError(Exception):
    """An error with everything that its reader needs.

    Args:
        message: what happened, one sentence without a trailing newline.
        hint: what to do about it; a command where there is one.
        context: names and values that explain it (paths, versions); shown with ``-v`` and in JSON.
    """

    code = "doctor-error"
    exit_code = Exit.COULD_NOT_CHECK

    def __init__(self, message: str, *, hint: str = "", context: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = dict(context or {})


class UsageError(DoctorError):
    """The command line asks for something that cannot be: a wrong option value, a target that is no Python."""

    code = "usage"
    exit_code = Exit.USAGE


class NotPossibleHere(DoctorError):
    """Nothing on this machine can hold iDeep, or the chosen stack cannot be right here; nothing was changed."""

    code = "not-possible-here"
    exit_code = Exit.FINDINGS


class CouldNotCheck(DoctorError):
    """The target does not answer, or the network is needed and not there; nothing was changed."""

    code = "could-not-check"
    exit_code = Exit.COULD_NOT_CHECK


class ApplyFailed(DoctorError):
    """A step failed; everything done before it was rolled back."""

    code = "apply-failed"
    exit_code = Exit.ROLLED_BACK


class BuildFailed(ApplyFailed):
    """A stage of a build from source failed: what it had made is gone, its log is kept."""

    code = "build-failed"


class NeedsAttention(DoctorError):
    """A step failed and so did its reversal, or an undo was refused: a person must look."""

    code = "needs-attention"
    exit_code = Exit.NEEDS_ATTENTION


class Busy(DoctorError):
    """Another doctor holds the lock."""

    code = "busy"
    exit_code = Exit.BUSY


class Interrupted(DoctorError):
    """Ctrl-C, or a signal that ends a job: what was done until then is kept."""

    code = "interrupted"
    exit_code = Exit.INTERRUPTED
