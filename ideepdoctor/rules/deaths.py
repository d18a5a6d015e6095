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


_AGAIN = "make a new environment: ideepdoctor setup"
_ALONE = "start Python without LD_PRELOAD and LD_LIBRARY_PATH"
_FIRST = "import ideep4py before torch, mxnet and other packages with libraries of their own"
_NUMPY = "NumPy does not fit the wheel"
_FITS = "install a NumPy that fits: ideepdoctor fix"
_STDCXX = "an older libstdc++ is loaded first"
_CPU = "an instruction that this CPU does not have"

CAUSES = (
    Cause("Xbyak::Error", "MKL-DNN's code generator refuses this CPU", "use ideep4py 1.0.4 or 2.0.0.post3"),
    Cause(
        "mkldnn::error",
        "a MKL-DNN that is not ideep4py's own computes, or one that another package loaded first",
        f"start Python without LD_PRELOAD, and {_FIRST}",
    ),
    Cause("OMP: Error #15", "a second Intel OpenMP runtime was loaded", f"{_ALONE}, and remove the other libiomp5"),
    Cause("MKL_THREADING_LAYER=INTEL", "MKL of another package refuses libgomp", "export MKL_THREADING_LAYER=GNU"),
    Cause("LLVM OpenMP", "the OpenMP runtimes of Intel and LLVM clash in one process", _FIRST),
    Cause("MKL FATAL ERROR", "parts of two MKLs are mixed", f"{_ALONE}; do not mix MKL of conda and pip"),
    Cause("_mklinit", "the NumPys of conda and pip are mixed", _AGAIN),
    Cause(
        "Not a valid numpy version string",
        "CuPy 10 and later break Chainer before 7.8.1",
        "install Chainer 7.8.1, or uninstall CuPy",
    ),
    Cause("code is too big", "MKL-DNN generates no code for a convolution of this size", "keep that layer on NumPy"),
    Cause("file too short", "a library was truncated", _AGAIN),
    Cause("invalid ELF header", "a library is damaged", _AGAIN),
    Cause(
        "cannot enable executable stack",
        "glibc 2.41 and later refuse this library",
        "patchelf --clear-execstack FILE, with the file that the message names",
    ),
    Cause("static TLS block", "thread-local memory is used up by libraries loaded before", _FIRST),
    Cause("failed to map segment", "its folder does not allow to run code (noexec)", "move the environment elsewhere"),
    Cause("GLIBCXX_", _STDCXX, "unset LD_LIBRARY_PATH, or update libstdc++ there"),
    Cause("CXXABI_", _STDCXX, "unset LD_LIBRARY_PATH, or update libstdc++ there"),
    Cause("GLIBC_", "glibc is too old for this library", "use a newer system or a container"),
    Cause("libpython", "the wheel was linked with libpython, which this Python does not ship", "use 2.0.0.post3"),
    Cause("PyUnicodeUCS", "the wheel is for the other width of Unicode", "install the wheel with the right ABI tag"),
    Cause("undefined symbol", "a library of another version is loaded", _ALONE),
    Cause("cannot open shared object file", "a library that it needs is not found", _AGAIN),
    Cause("numpy.core.multiarray", _NUMPY, _FITS),
    Cause("numpy.core._multiarray_umath", _NUMPY, _FITS),
    Cause("compiled against API version", _NUMPY, _FITS),
    Cause("cannot import name intVector", _NUMPY, _FITS),
    Cause("SIGILL", _CPU, "see what it has: ideepdoctor cpu"),
    Cause("llegal instruction", _CPU, "see what it has: ideepdoctor cpu"),
    Cause("illegal hardware instruction", _CPU, "see what it has: ideepdoctor cpu"),
    Cause("SIGBUS", "a library file is shorter than it says (truncated)", _AGAIN),
    Cause("SIGSEGV", "two libraries clash in one process", _ALONE),
    Cause("SIGABRT", "a library gave up", _ALONE),
    Cause("SIGFPE", "a library divided by zero", "report it with: ideepdoctor diagnose --save-facts FILE"),
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
