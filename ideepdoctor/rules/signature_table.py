"""The signatures of a failed build, each with the code of the rule that explains it. Pure data.

Lines are compared after ``signatures.cleaned``. Texts of a compiler are matched by what no translation changes (names
of files, identifiers, options) wherever that is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """A line that tells a cause.

    Attributes:
        code: of the rule.
        pattern: searched in the line.
        words: one of these is in every line that fits; looked for first, because that is quick.
        follows: the line comes of another error, which is the cause where the log has it.
    """

    code: str
    pattern: re.Pattern[str]
    words: tuple[str, ...]
    follows: bool = False


def _of(code: str, pattern: str, *words: str, follows: bool = False) -> Signature:
    return Signature(code, re.compile(pattern), words, follows)


def _after(code: str, pattern: str, *words: str) -> Signature:
    return _of(code, pattern, *words, follows=True)


_AT = r":\d+:(?:\d+:)? (?!.*\b(?:warning|note|Warnung|Anmerkung|attention|avertissement|remarque)\b ?:).*"
"""A place in a source and what a compiler says there, no warning and no note."""


def _missing(code: str, program: str) -> tuple[Signature, ...]:
    """A program that is not there, as shells, Python, distutils, make and env say it; ``program`` is a pattern."""
    name = rf"(?:[\w./+-]*/)?(?:{program})"
    gone = r"(?:No such file or directory|[Cc]ommand not found|Permission denied)"
    return (
        _of(code, rf"(?:^|[\s:'])'?{name}'?: (?:command )?not found\b", "not found"),
        _of(code, rf"(?:^|[\s:'])'?{name}'?: {gone}$", "No such file", "ommand not found", "Permission denied"),
        _of(code, rf"unable to execute '?{name}'?(?:: |$)", "unable to execute"),
        _of(code, rf"\[Errno (?:2|13)\] .*: '{name}'", "[Errno "),
        _of(code, rf"command '?{name}'? failed: (?:No such file|Permission denied|None)", "failed: "),
        _of(code, rf"command not found: {name}$", "command not found"),
    )


_DEATHS = (
    # A full disk, a killed compiler: they make every other message that a line may have besides.
    _of("IDP810", r"No space left on device|Disk quota exceeded|\bENOSPC\b", "No space", "quota", "ENOSPC"),
    _of("IDP811", r"signal terminated program (?:cc1plus|cc1|as|ld|lto1)\b", "signal terminated program"),
    _of("IDP811", r"\(program (?:cc1plus|cc1|as|ld)\)", "(program "),
    _of("IDP811", r"internal compiler error: Killed", "internal compiler error"),
    _of("IDP811", r"virtual memory exhausted|(?:cc1plus|cc1|ld): out of memory|Cannot allocate memory", "memory"),
    _of("IDP811", r"out of memory allocating \d+ bytes", "ut of memory"),
    _of("IDP811", r"terminated with signal 9\b|failed with exit (?:code|status):? (?:-9|137)\b", "signal 9", "failed"),
    _of("IDP811", r"exit code:? 137\b|\*\*\* .*Error 137\b", "137"),
    _of(
        "IDP811",
        r"^Killed$|line \d+: +\d+ Killed\b|\*\*\* .*\bKilled$|Killed process \d+ \((?:cc1plus|cc1|ld|as|lto1)\)",
        "Killed",
    ),
)
_PROGRAMS = (
    *_missing("IDP803", "git"),
    *_missing("IDP804", "g?make"),
    *_missing("IDP805", "cmake3?"),
    *_missing("IDP806", r"swig[\d.]*"),
    *_missing("IDP801", r"(?:[\w-]+-)?(?:g\+\+|gcc)(?:-\d+)?|cc|c\+\+|clang(?:\+\+)?|cc1plus"),
)
_TOOLS = (
    _of("IDP803", r"detected dubious ownership in repository", "dubious ownership"),
    _of(
        "IDP801", r"No CMAKE_C(?:XX)?_COMPILER could be found|compiler identification is unknown", "COMPILER", "ompiler"
    ),
    _of("IDP801", r"is not able to compile a simple test program", "simple test program"),
    _of("IDP801", r"cannot execute 'cc1plus'|exec 'cc1plus': |installation problem", "cc1plus", "installation problem"),
    _of("IDP801", r"unrecognized (?:command[ -]line )?option '?-(?:std=c\+\+1[147]|fopenmp)", "unrecognized"),
    _of(
        "IDP801", rf"{_AT}omp\.h ?: |libgomp\.spec\b|cannot find -l(?:gomp|stdc\+\+)", "omp.h", "libgomp", "cannot find"
    ),
    _of("IDP802", rf"{_AT}\bPython\.h ?: ", "Python.h"),
    _of("IDP804", r"unable to find a build program corresponding to", "build program"),
    _after("IDP804", r"CMAKE_MAKE_PROGRAM is not set", "CMAKE_MAKE_PROGRAM"),
    _of("IDP805", r"CMake Error: Unknown argument --build", "--build"),
    _of("IDP805", r"Policy CMP0048 may not be set to OLD", "CMP0048"),
    _of("IDP805", r"Compatibility with CMake < [\d.]+ has been removed", "Compatibility with CMake"),
    _of("IDP805", r"CMake [\d.]+ or higher is required", "or higher is required"),
    _of("IDP806", rf"{_AT}'struct swig_type_info'", "swig_type_info"),
    _of("IDP806", r"Unable to find '?(?:swig\.swg|python\.swg|std_\w+\.i)'?", "Unable to find"),
    _of("IDP806", r"swig error ?: Unrecognized option", "swig error"),
    _of("IDP806", r"command '?(?:\S*/)?swig[\d.]*'? failed", "swig"),
)
_SOURCES = (
    _of("IDP807", r"does not contain a CMakeLists\.txt file", "CMakeLists.txt"),
    _of("IDP807", r"add_subdirectory given source '?\S*mkl-dnn\S* which is not an existing", "add_subdirectory"),
    _after("IDP807", r"prepare_mkl\.sh'?: (?:No such file|not found|cannot open)", "prepare_mkl.sh"),
    _of("IDP808", r"Could not resolve (?:host|proxy)|Temporary failure in name resolution", "resol"),
    _of("IDP808", r"Name or service not known|Network is unreachable|No route to host", "Name or", "Network", "route"),
    _of("IDP808", r"\bcurl: \((?!23\))\d+\) ", "curl: ("),  # 23: it could not write
    _of("IDP808", r"prepare_mkl\.sh'?: Permission denied", "prepare_mkl.sh"),
    _of("IDP808", r"fatal: unable to access '|fatal: Could not read from remote repository", "fatal: "),
    _of("IDP808", r"Failed to establish a new connection|Max retries exceeded with url", "connection", "retries"),
    _of("IDP808", r"Failed to connect to \S+ port", "Failed to connect"),
    _of("IDP808", r"gzip: stdin: not in gzip format|gzip: stdin: unexpected end of file", "gzip: stdin"),
    _of("IDP808", r"No Intel mklml pkg", "mklml pkg"),
    _after("IDP808", rf"{_AT}\bmkl_(?:cblas|dnn|vsl\w*|vml\w*|service|types)\.h ?: ", "mkl_"),
    _after("IDP808", r"cannot find -lmklml\w*|'?-lmklml\w*'? (?:nicht gefunden|introuvable)", "-lmklml"),
    _of("IDP809", r"file INSTALL cannot find", "file INSTALL cannot find"),
    _of("IDP809", rf"(?:{_AT}|undefined (?:reference to|symbol:) )'?cblas_sgemm_alloc\b", "cblas_sgemm_alloc"),
    _after("IDP822", rf"{_AT}\b(?:ideep|mkldnn(?:_types|_debug)?)\.h(?:pp)? ?: ", "mkldnn", "ideep"),
    _after("IDP822", r"cannot find -lmkldnn\b", "-lmkldnn"),
)
_COMPILING = (
    _of("IDP812", r"(?:bad value|unrecognized argument) .*-march=|unknown target CPU '", "-march=", "target CPU"),
    _of("IDP812", r"CPU you selected does not support|target specific option mismatch", "CPU you", "target specific"),
    _of("IDP812", r"Error: no such instruction: ", "no such instruction"),
    _of("IDP812", r"vector (?:return|argument) without (?:AVX|SSE)\w* enabled", "vector "),
    _of("IDP812", r"\bIllegal instruction\b|\bSIGILL\b|signal 4\b", "Illegal", "SIGILL", "signal 4"),
    _of("IDP813", r"\[-Werror(?:=[\w+-]+=?)?\]", "[-Werror"),
    _after("IDP813", r"(?:all|some) warnings being treated as errors", "treated as errors"),
    _of("IDP816", r"'_PyObject_GC_UNTRACK'|undefined symbol: _PyObject_GC_UNTRACK", "_PyObject_GC_UNTRACK"),
)
_PYTHON = (
    _of("IDP814", r"No module named '?numpy'?$", "No module named"),
    _of("IDP814", rf"{_AT}\bnumpy/\w+\.h ?: ", "numpy/"),
    _of("IDP815", r"cannot import name '?dist'?(?: from 'platform'|$)", "cannot import name"),
    _of("IDP815", r"module '?'?platform'? has no attribute '(?:dist|linux_distribution)'", "has no attribute"),
    _of("IDP823", r"No module named '?(?:setuptools|distutils|pkg_resources)(?:\.\w+)*'?$", "No module named"),
    _of("IDP823", r"cannot import name '?distutils'? from 'setuptools'", "cannot import name"),
    _of("IDP817", r"lib(?:iomp5|mklml_intel|mkldnn)\.so\S*: cannot open shared object", "cannot open shared object"),
    _of("IDP819", r"Xbyak::Error", "Xbyak"),
    _of("IDP819", r"Unsupported iDeep version", "Unsupported iDeep"),
    _of("IDP819", r"'?ideep4py'? has no attribute '__version__'", "__version__"),
    _of("IDP819", r"pathspec '.*' did not match|couldn't find remote ref|reference is not a tree", "did not", "ref"),
    _of(
        "IDP819", r"Remote branch \S+ not found in upstream|unadvertised object [0-9a-f]{7}", "upstream", "unadvertised"
    ),
    _after(
        "IDP818", r"^(?!.*internal compiler error).*(?:\bSegmentation fault\b|\bSIGSEGV\b)", "Segmentation", "SIGSEGV"
    ),
)
SIGNATURES: tuple[Signature, ...] = (*_DEATHS, *_PROGRAMS, *_TOOLS, *_SOURCES, *_COMPILING, *_PYTHON)
"""The first that fits a line is its signature."""
