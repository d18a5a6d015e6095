"""Variables as text for shells, container files and CI. Pure.

Every shell form sets a variable only where the user has not, checks a variable's condition when it runs (a home folder
may be shared by several machines), and survives ``eval`` without quotes: statements end in ``;``, no comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from ideepdoctor.errors import UsageError
from ideepdoctor.treatment.variables import (
    AVX512_OF_MKL,
    ON_AMD_AVX2,
    ON_AMD_AVX512,
    ON_CPU,
    ON_CPUS,
    Variable,
)

_CPUINFO = "/proc/cpuinfo"
_NPROC = "env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc"
"""nproc believes OMP_NUM_THREADS, which a line before may have set."""
_MODALIAS = "/sys/devices/system/cpu/modalias"


def render(variables: Sequence[Variable], fmt: str) -> str:
    """The variables in one of FORMATS, ending in a newline (empty where there are none, but for json).

    Raises:
        UsageError: no such format, or a variable that cannot be written: a strange name, or a value with a line break.
    """
    if fmt not in _RENDERERS:
        raise UsageError(f"no such format: {fmt}", hint=f"one of {', '.join(FORMATS)}")
    for variable in variables:
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable.name) is None or not variable.value.isprintable():
            raise UsageError(f"cannot be written as a variable: {variable.name!r}={variable.value!r}")
    return _RENDERERS[fmt](variables)


def _sh(variables: Sequence[Variable]) -> str:
    """For sh, dash, bash, zsh and ksh."""
    lines = []
    for item in variables:
        value = re.sub(r'([\\"$`}])', r"\\\1", item.value)
        line = f': "${{{item.name}:={value}}}"; export {item.name};'
        greps, cpus = _conditions(item)
        tests = greps + [f'[ "$({_NPROC})" = {count} ]' for count in cpus]
        if tests:
            line = f"if {' && '.join(tests)}; then {line} fi;"
        lines.append(line + "\n")
    return "".join(lines)


def _fish(variables: Sequence[Variable]) -> str:
    lines = []
    for item in variables:
        value = item.value.replace("\\", "\\\\").replace("'", "\\'")
        greps, cpus = _conditions(item)
        tests = [f"not set -q {item.name}", *greps, *(f"test ({_NPROC}) = {count}" for count in cpus)]
        lines.append(f"if {'; and '.join(tests)}; set -gx {item.name} '{value}'; end;\n")
    return "".join(lines)


def _csh(variables: Sequence[Variable]) -> str:
    """For csh and tcsh, which substitute history (``!``) even between single quotes."""
    lines = []
    for item in variables:
        value = item.value.replace("'", "'\\''").replace("!", "\\!")
        greps, cpus = _conditions(item)
        tests = [
            f"! $?{item.name}",
            *(f"{{ {grep} }}" for grep in greps),
            *(f"`{_NPROC}` == {count}" for count in cpus),
        ]
        lines.append(f"if ({' && '.join(tests)}) setenv {item.name} '{value}';\n")
    return "".join(lines)


def _docker(variables: Sequence[Variable]) -> str:
    """Instructions of a Dockerfile. What depends on the machine is a comment: an image runs anywhere."""
    lines = []
    for item in variables:
        value = item.value
        if re.fullmatch(r"[A-Za-z0-9_.,:/+-]+", value) is None:
            value = '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'
        where = " and ".join(_in_words(word) for word in item.only_on.split("&") if word)
        lines.append(f"# only where the container runs on {where}: " if where else "")
        lines.append(f"ENV {item.name}={value}\n")
    return "".join(lines)


def _github(variables: Sequence[Variable]) -> str:
    """Lines for the file that $GITHUB_ENV names, which takes values as they are."""
    return "".join(f"{item.name}={item.value}\n" for item in variables)


def _json(variables: Sequence[Variable]) -> str:
    data = [{"name": item.name, "only_on": item.only_on, "value": item.value, "why": item.why} for item in variables]
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def _conditions(variable: Variable) -> tuple[list[str], list[int]]:
    """Commands that succeed where a variable's condition holds, and numbers of CPUs that there must be."""
    greps, cpus = [], []
    for word in variable.only_on.split("&"):
        if word in _WORDS:
            greps += [f"grep -qsw {flag} {_CPUINFO}" for flag in _WORDS[word]]
        elif word.startswith(ON_CPUS):
            cpus.append(int(word.removeprefix(ON_CPUS)))
        elif word.startswith(ON_CPU) and word.isascii() and word.removeprefix(ON_CPU).isalnum():
            greps.append(f"grep -qs {word.removeprefix(ON_CPU)}: {_MODALIAS}")
        elif word:
            greps.append("false")  # a condition of a later release: what cannot be told is not so
    return greps, cpus


def _in_words(word: str) -> str:
    if word.startswith(ON_CPUS):
        return f"{word.removeprefix(ON_CPUS)} CPUs"
    return {ON_AMD_AVX2: "AMD with AVX2", ON_AMD_AVX512: "AMD with AVX-512"}.get(word, word)


_WORDS = {ON_AMD_AVX2: ("AuthenticAMD", "avx2"), ON_AMD_AVX512: ("AuthenticAMD", *sorted(AVX512_OF_MKL))}
_RENDERERS: dict[str, Callable[[Sequence[Variable]], str]] = {
    "sh": _sh,
    "fish": _fish,
    "csh": _csh,
    "docker": _docker,
    "github": _github,
    "json": _json,
}
FORMATS = tuple(_RENDERERS)
"""What render knows."""
