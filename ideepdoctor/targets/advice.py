"""How a person gets an interpreter that can hold iDeep, with the tools that this machine has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ideepdoctor.targets.sources import program_on_path

# The interpreters that ideep4py wheels exist for, best first. 3.7 first: newest Chainer, newest NumPy. 2.7 is built
# with 4-byte (mu) or 2-byte characters (m); nearly all Linux builds are mu. 3.5 last: hardly anyone can try it.
WHEEL_ABIS = {"cp37m": "3.7", "cp36m": "3.6", "cp27mu": "2.7", "cp27m": "2.7", "cp35m": "3.5"}

# The last releases (python.org), for a pyenv whose build definitions cannot be read.
_LAST_RELEASES = {"2.7": "2.7.18", "3.5": "3.5.10", "3.6": "3.6.15", "3.7": "3.7.17"}
_CONDA_TOOLS = ("micromamba", "mamba", "conda")
_CONTAINER_TOOLS = ("docker", "podman")


def needed(abis: Sequence[str]) -> str:
    """``CPython 2.7, 3.5, 3.6 or 3.7, 64-bit, with glibc, on Linux x86_64`` for these ABI tags."""
    minors = sorted({WHEEL_ABIS.get(abi, abi) for abi in abis})
    names = ", ".join(minors[:-1]) + (" or " if minors[:-1] else "") + minors[-1]
    return f"CPython {names}, 64-bit, with glibc, on Linux x86_64"


def ways_to_get(environ: Mapping[str, str], minor: str, *, glibc: bool) -> list[str]:
    """Ways to a Python of this minor version, least effort first, as lines of text.

    Commands are given for tools that are on PATH; what else would do is named without one. uv does not offer these
    versions (``uv python list --all-versions``: CPython from 3.8).

    Args:
        environ: for PATH and PYENV_ROOT.
        minor: such as ``3.7``.
        glibc: whether programs for glibc run here; where they do not (Alpine), only a container helps.
    """
    ready: list[str] = []
    if glibc:
        conda = next((tool for tool in _CONDA_TOOLS if program_on_path(environ, tool)), None)
        if conda is not None:
            channel = " -c conda-forge" if conda == "micromamba" else ""  # it has no channel of its own
            ready.append(f"{conda} create -n ideep{channel} python={minor}   (downloads a ready one)")
        pyenv = program_on_path(environ, "pyenv")
        if pyenv is not None:
            ready.append(f"pyenv install {_pyenv_release(environ, pyenv, minor)}   (compiles it: some minutes)")
    container = next((tool for tool in _CONTAINER_TOOLS if program_on_path(environ, tool)), None)
    if container is not None:
        ready.append(
            f"{container} run -it python:{minor} bash   (and the doctor in it, which needs a Python 3.11 or later too)"
        )
    missing = [
        text
        for tools, text, possible in (
            (_CONDA_TOOLS, f"micromamba, mamba or conda (python={minor}; needs no root)", glibc),
            (("pyenv",), f"pyenv (install {_LAST_RELEASES[minor]})", glibc),
            (_CONTAINER_TOOLS, f"docker or podman (image python:{minor})", True),
        )
        if possible and not any(program_on_path(environ, tool) for tool in tools)
    ]
    lines = [f"ways to get Python {minor}, least effort first:", *(f"  {way}" for way in ready)] if ready else []
    if missing:
        lines.append(
            ("also possible, not on PATH here: " if ready else f"to get Python {minor}, install one of these: ")
            + "; ".join(missing)
        )
    if glibc:
        lines.append("(uv cannot help: the oldest CPython that it offers is 3.8)")
    return lines


def _pyenv_release(environ: Mapping[str, str], program: str, minor: str) -> str:
    """The newest release of this minor version that the installed pyenv can build."""
    roots = [Path(program).resolve().parent.parent]
    if environ.get("PYENV_ROOT"):
        roots.insert(0, Path(environ["PYENV_ROOT"]))
    pattern = re.compile(re.escape(minor) + r"\.(\d+)")
    for root in roots:
        try:
            names = [path.name for path in (root / "plugins/python-build/share/python-build").iterdir()]
        except OSError:
            continue
        patches = [int(match[1]) for name in names if (match := pattern.fullmatch(name))]
        if patches:
            return f"{minor}.{max(patches)}"
    return _LAST_RELEASES[minor]
