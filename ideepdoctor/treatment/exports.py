"""Variables as text for shells, container files and CI. Pure.

Every shell form sets a variable only where the user has not, checks a variable's condition when it runs (a home folder
may be shared by several machines), and survives ``eval`` without quotes: statements end in ``;``, no comments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from ideepdoctor.errors import UsageError
from ideepdoctor.treatment.variables import ON_AMD_AVX2, ON_CPUS, Variable

_CPUINFO = "/proc/cpuinfo"


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
        match _condition(item):
            case ("amd", _):
                line = f"if grep -qs AuthenticAMD {_CPUINFO} && grep -qsw avx2 {_CPUINFO}; then {line} fi;"
            case ("cpus", count):
                line = f'if [ "$(nproc)" = {count} ]; then {line} fi;'
        lines.append(line + "\n")
    return "".join(lines)


def _fish(variables: Sequence[Variable]) -> str:
    lines = []
    for item in variables:
        value = item.value.replace("\\", "\\\\").replace("'", "\\'")
        when = f"not set -q {item.name}"
        match _condition(item):
            case ("amd", _):
                when += f"; and grep -qs AuthenticAMD {_CPUINFO}; and grep -qsw avx2 {_CPUINFO}"
            case ("cpus", count):
                when += f"; and test (nproc) = {count}"
        lines.append(f"if {when}; set -gx {item.name} '{value}'; end;\n")
    return "".join(lines)


def _csh(variables: Sequence[Variable]) -> str:
    """For csh and tcsh, which substitute history (``!``) even between single quotes."""
    lines = []
    for item in variables:
        value = item.value.replace("'", "'\\''").replace("!", "\\!")
        when = f"! $?{item.name}"
        match _condition(item):
            case ("amd", _):
                when += f" && {{ grep -qs AuthenticAMD {_CPUINFO} }} && {{ grep -qsw avx2 {_CPUINFO} }}"
            case ("cpus", count):
                when += f" && `nproc` == {count}"
        lines.append(f"if ({when}) setenv {item.name} '{value}';\n")
    return "".join(lines)


def _docker(variables: Sequence[Variable]) -> str:
    """Instructions of a Dockerfile. What depends on the machine is a comment: an image runs anywhere."""
    lines = []
    for item in variables:
        value = item.value
        if re.fullmatch(r"[A-Za-z0-9_.,:/+-]+", value) is None:
            value = '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'
        match _condition(item):
            case ("amd", _):
                lines.append(f"# only where the container runs on AMD with AVX2: ENV {item.name}={value}\n")
            case ("cpus", count):
                lines.append(f"# only where the container runs on {count} CPUs: ENV {item.name}={value}\n")
            case _:
                lines.append(f"ENV {item.name}={value}\n")
    return "".join(lines)


def _github(variables: Sequence[Variable]) -> str:
    """Lines for the file that $GITHUB_ENV names, which takes values as they are."""
    return "".join(f"{item.name}={item.value}\n" for item in variables)


def _json(variables: Sequence[Variable]) -> str:
    data = [{"name": item.name, "only_on": item.only_on, "value": item.value, "why": item.why} for item in variables]
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def _condition(variable: Variable) -> tuple[str, int] | None:
    """The kind of a variable's condition and its number (0 where it has none). None: always."""
    if variable.only_on == ON_AMD_AVX2:
        return "amd", 0
    if variable.only_on.startswith(ON_CPUS):
        return "cpus", int(variable.only_on.removeprefix(ON_CPUS))
    return None


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
