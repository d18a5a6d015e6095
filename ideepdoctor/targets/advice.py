"""How a person gets an interpreter that can hold iDeep, with the tools that this machine has, or does without one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Way:
    """A tool on PATH that gets a Python, for ``setup --get-python``.

    Attributes:
        kind: ``conda`` or ``pyenv``, as the option says it.
        tool: micromamba, mamba, conda or pyenv.
        program: its absolute path.
        release: what it is asked for: 3.7 or 3.7.17.
        cost: time and sizes in words; measured of pyenv, of the others what their packages weigh.
    """

    kind: str
    tool: str
    program: str
    release: str
    cost: str


def ways_here(environ: Mapping[str, str], minor: str) -> tuple[Way, ...]:
    """The tools on PATH that get a Python of this minor version, least effort first."""
    found = []
    for tool in _CONDA_TOOLS:
        program = program_on_path(environ, tool)
        if program is not None:
            cost = "a ready one: about 2 min, 60 MB to download, 250 MB on disk"
            found.append(Way("conda", tool, program, minor, cost))
            break
    program = program_on_path(environ, "pyenv")
    if program is not None:
        cost = "compiles it: about 5 min, 20 MB to download, 200 MB on disk"
        found.append(Way("pyenv", "pyenv", program, _pyenv_release(environ, program, minor), cost))
    return tuple(found)


def pyenv_root(environ: Mapping[str, str], program: str) -> Path:
    """The folder whose ``versions`` pyenv fills."""
    return Path(environ["PYENV_ROOT"]) if environ.get("PYENV_ROOT") else _above_pyenv(program)


def _above_pyenv(program: str) -> Path:
    above = Path(program).resolve().parent.parent
    return above if (above / "libexec").is_dir() or (above / "versions").is_dir() else Path.home() / ".pyenv"


def ways_to_get(environ: Mapping[str, str], minor: str, *, glibc: bool) -> list[str]:
    """Ways to a Python of this minor version, least effort first, as lines of text.

    Commands are given for tools that are on PATH; what else would do is named without one. uv does not offer these
    versions (``uv python list --all-versions``: CPython from 3.8).

    Args:
        environ: for PATH and PYENV_ROOT.
        minor: such as ``3.7``.
        glibc: whether programs for glibc run here; where they do not (Alpine), only a container helps.
    """
    named = "" if minor == next(iter(WHEEL_ABIS.values())) else f" --python {minor}"
    ours = ways_here(environ, minor) if glibc else ()
    ready = [f"ideepdoctor setup{named} --get-python {way.kind}   ({_does(way)} {way.cost})" for way in ours]
    container = next((tool for tool in _CONTAINER_TOOLS if program_on_path(environ, tool)), None)
    if container is not None:
        ready.append(
            f"{container} run -it python:{minor} bash   (about 5 min, 350 MB to download, 1 GB on disk; and the doctor "
            "in it, which needs a Python 3.11 or later too)"
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
    return lines if ours else [*lines, f"then: ideepdoctor setup --python {minor}"]


def _does(way: Way) -> str:
    return f"pyenv install {way.release}" if way.tool == "pyenv" else f"{way.tool} create python={way.release},"


def way_to_build(minor: str) -> list[str]:
    """The way without another Python, as lines of text: ideep4py built for one that is here."""
    from ideepdoctor.builder.progress import seconds_of, shown_time
    from ideepdoctor.model.build import Stage

    jobs = len(os.sched_getaffinity(0))
    spent = shown_time(sum(seconds_of(stage, jobs) for stage in Stage))
    return [
        "or without another Python, ideep4py built for one that is here:",
        f"  ideepdoctor setup --build --python {minor}   (about {spent} with {jobs} compiler{'s' if jobs > 1 else ''}, "
        "150 MB to download, 1.5 GB while it builds, 300 MB on disk after)",
    ]


def _pyenv_release(environ: Mapping[str, str], program: str, minor: str) -> str:
    """The newest release of this minor version that the installed pyenv can build."""
    roots = [pyenv_root(environ, program), Path(program).resolve().parent.parent]
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
