"""How a child died, and what that means: exception texts and signals of imports and operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ideepdoctor.model.facts import Outcome


@dataclass(frozen=True, slots=True)
class Cause:
    """What an ending means.

    Attributes:
        mark: text that must be in the exception, in standard error, or the name of the signal.
        consequence: what happened, one sentence.
        next_step: what to do.
    """

    mark: str
    consequence: str
    next_step: str


_AGAIN = "install it again: ideepdoctor setup makes a new environment"

CAUSES = (
    Cause("Xbyak::Error", "MKL-DNN's code generator refuses this CPU", "use ideep4py 1.0.4 or 2.0.0.post3"),
    Cause(
        "mkldnn::error",
        "a MKL-DNN that is not ideep4py's own computes, or one that another package loaded first",
        "start Python without LD_PRELOAD, and import ideep4py before torch, mxnet and other packages with MKL-DNN",
    ),
    Cause(
        "Not a valid numpy version string",
        "this Chainer cannot read the version of the installed CuPy",
        "use Chainer 7.8.1, or uninstall CuPy",
    ),
    Cause("file too short", "a library was truncated", _AGAIN),
    Cause("invalid ELF header", "a library is damaged", _AGAIN),
    Cause("cannot enable executable stack", "glibc 2.41 and later refuse this library", "patchelf --clear-execstack"),
    Cause("GLIBCXX_", "an older libstdc++ is loaded first", "unset LD_LIBRARY_PATH, or update libstdc++ there"),
    Cause("CXXABI_", "an older libstdc++ is loaded first", "unset LD_LIBRARY_PATH, or update libstdc++ there"),
    Cause("GLIBC_", "glibc is too old for this library", "use a newer system or a container"),
    Cause("libpython", "the wheel was linked with libpython, which this Python does not ship", "use 2.0.0.post3"),
    Cause("PyUnicodeUCS", "the wheel is for the other width of Unicode", "install the wheel with the right ABI tag"),
    Cause("undefined symbol", "a library of another version is loaded", "start Python without LD_LIBRARY_PATH"),
    Cause("cannot open shared object file", "a library that it needs is not found", _AGAIN),
    Cause("numpy.core.multiarray", "NumPy does not fit the wheel", "install a NumPy that fits: ideepdoctor fix"),
    Cause("compiled against API version", "NumPy does not fit the wheel", "install a NumPy that fits: ideepdoctor fix"),
    Cause("SIGILL", "an instruction that this CPU does not have", "see what it has: ideepdoctor cpu"),
    Cause("SIGBUS", "a library file is shorter than it says (truncated)", _AGAIN),
    Cause("SIGSEGV", "two libraries clash in one process", "start Python without LD_PRELOAD and LD_LIBRARY_PATH"),
    Cause("SIGABRT", "a library gave up", "start Python without LD_PRELOAD and LD_LIBRARY_PATH"),
    Cause("SIGFPE", "a library divided by zero", "report it with ideepdoctor diagnose --save-facts FILE"),
)
"""The first that matches counts. Signatures as users report them and as they were measured."""

_UNKNOWN = Cause("", "the cause is not known", "report it with: ideepdoctor diagnose --save-facts FILE")
_HANGS = Cause(
    "", "it hangs", "look for a lock or a network folder; report it with ideepdoctor diagnose --save-facts FILE"
)


def classify(result: Outcome) -> Cause:
    """Find the cause of a bad ending."""
    if result.timed_out:
        return _HANGS
    text = "\n".join(part for part in (result.error_text, result.stderr_tail, result.signal) if part)
    return next((cause for cause in CAUSES if cause.mark in text), _UNKNOWN)


def how_it_ended(result: Outcome) -> str:
    """The ending in a few words: the signal, the exception with its text, the exit code, or that it hung."""
    if result.timed_out:
        return f"no end within {result.seconds:.0f} s"
    if result.signal:
        return f"the process ended with {result.signal}"
    if result.error_type:
        lines = (result.error_text or "").strip().splitlines() or [""]
        return f"{result.error_type}: {lines[0]}"
    return f"the process ended with exit code {result.exit_code}"


def last_line(result: Outcome) -> str:
    """The last line of standard error, or how it ended."""
    lines = [line for line in result.stderr_tail.strip().splitlines() if line.strip()]
    return lines[-1] if lines else how_it_ended(result)


def failed(kind: str, text: str) -> dict[str, Any]:
    """An outcome for an example: an exception."""
    return {"ok": False, "error_type": kind, "error_text": text}


def killed(signal: str, stderr: str = "") -> dict[str, Any]:
    """An outcome for an example: a signal."""
    return {"ok": False, "signal": signal, "stderr_tail": stderr}
