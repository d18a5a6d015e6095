"""Where Python interpreters may be: paths, in the order of their claim, without starting any of them.

Everything is read from the environment and from folders; the one program that may be started is ``pyenv root``, and
only where nothing else tells where pyenv keeps its versions.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.system import System, is_executable_file

ON_PATH = "PATH"
ACTIVE_VIRTUAL = "active virtual environment"
ACTIVE_CONDA = "active conda environment"

PYENV_TIMEOUT_SECONDS = 5.0

_NAME = re.compile(r"(python|pypy)(\d+(\.\d+)?)?t?")
# What an environment's interpreter may be called, best first; pyenv's PyPy has bin/python, conda's and uv's too.
_ENVIRONMENT_NAMES = ("python", "python3", "python2", "pypy3", "pypy")
# Default folders of the installers of conda and its relatives; Intel's Python is a conda installation too.
_CONDA_HOMES = (
    "miniconda3",
    "anaconda3",
    "miniforge3",
    "mambaforge",
    "micromamba",
    "miniconda2",
    "anaconda2",
    ".conda",
)
_CONDA_SYSTEM = (
    "/opt/conda",
    "/opt/miniconda3",
    "/opt/anaconda3",
    "/opt/miniforge3",
    "/opt/mambaforge",
    "/opt/intel/intelpython2",
    "/opt/intel/intelpython3",
    "/opt/intel/oneapi/intelpython/latest",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be an interpreter, and where it was seen."""

    path: str
    source: str


def candidates(system: System, environ: Mapping[str, str], *, extra: Sequence[str] = ()) -> Iterator[Candidate]:
    """All executable files that may be Python interpreters, those with the better claim first; may repeat itself.

    Args:
        system: starts ``pyenv root`` where that is needed.
        environ: PATH, HOME, VIRTUAL_ENV, CONDA_PREFIX, PYENV_ROOT... are taken from here.
        extra: interpreters or environment folders to look at besides.
    """
    yield from _in_environment(environ.get("VIRTUAL_ENV"), ACTIVE_VIRTUAL)
    yield from _in_environment(environ.get("CONDA_PREFIX"), ACTIVE_CONDA)
    for name in extra:
        yield from _in_environment(name, "given") if is_folder(Path(name)) else _checked([Path(name)], "given")
    here = current_folder()
    if here is not None:
        for folder in (".ideep", ".venv"):
            yield from _in_environment(str(here / folder), "current folder")
    yield from _on_path(environ)
    for source, prefixes in (
        ("pyenv", _pyenv_prefixes(system, environ)),
        ("version manager", _managed_prefixes(environ)),
        ("conda", conda_prefixes(environ)),
        ("uv", _uv_prefixes(environ)),
        # The folder of the images in which manylinux wheels are built.
        ("/opt/python", _children(Path("/opt/python"))),
    ):
        for prefix in prefixes:
            yield from _in_environment(str(prefix), source)


def python_of(environment: str) -> str | None:
    """The interpreter in an environment's ``bin`` folder, or None where it has none that can be executed."""
    folder = Path(environment) / "bin"
    return next((str(folder / name) for name in _ENVIRONMENT_NAMES if is_executable_file(folder / name)), None)


def is_folder(path: Path) -> bool:
    """Whether the path is a folder or a link to one; False where that cannot be seen."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def is_script(path: str) -> bool:
    """Whether the file starts with ``#!``; False where it cannot be read."""
    return _head(path, 2) == b"#!"


def is_shim(path: str) -> bool:
    """Whether this is a version manager's stand-in, which chooses an interpreter at every start (pyenv, asdf, mise).

    They lie in a folder called ``shims`` or are scripts that call ``pyenv exec``. The interpreters behind them are
    found in the manager's own folders, faster, and also where the shim is broken.
    """
    if Path(path).parent.name == "shims":
        return True
    head = _head(path, 2048)
    return head.startswith(b"#!") and b"pyenv" in head and b" exec " in head


def environment_of(path: str) -> str | None:
    """The folder of the virtual environment that this interpreter belongs to, or None.

    As Python itself decides (PEP 405): by a pyvenv.cfg beside the interpreter or one level up, links not followed.
    """
    folder = Path(path).parent
    for place in (folder.parent, folder):
        if (place / "pyvenv.cfg").is_file():
            return str(place)
    return None


def current_folder() -> Path | None:
    """The working folder, or None where it has been deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def path_folders(environ: Mapping[str, str]) -> Iterator[Path]:
    """The folders of PATH. Relative ones are left out: what lies in the working folder is not to be started unasked."""
    for name in dict.fromkeys(environ.get("PATH", "").split(os.pathsep)):
        if name.startswith("/"):
            yield Path(name)


def program_on_path(environ: Mapping[str, str], name: str) -> str | None:
    """Path of a program, as the shell would find it."""
    return next((str(folder / name) for folder in path_folders(environ) if is_executable_file(folder / name)), None)


def _head(path: str, count: int) -> bytes:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(count)
    except OSError:
        return b""


def _in_environment(environment: str | None, source: str) -> Iterator[Candidate]:
    if environment and (python := python_of(environment)) is not None:
        yield Candidate(str(Path(python).absolute()), source)


def _checked(paths: Iterable[Path], source: str) -> Iterator[Candidate]:
    for path in paths:
        if is_executable_file(path):
            yield Candidate(str(path.absolute()), source)


def _on_path(environ: Mapping[str, str]) -> Iterator[Candidate]:
    for folder in path_folders(environ):
        # ``python`` before ``python3`` before ``python3.11``: the plain name is the one that people use.
        names = sorted((name for name in _names(folder) if _NAME.fullmatch(name)), key=lambda name: (len(name), name))
        for found in _checked((folder / name for name in names), ON_PATH):
            if not is_shim(found.path):
                yield found


def _pyenv_prefixes(system: System, environ: Mapping[str, str]) -> Iterator[Path]:
    for root in _pyenv_roots(system, environ):
        for version in _children(root / "versions"):
            yield version
            yield from _children(version / "envs")


def _pyenv_roots(system: System, environ: Mapping[str, str]) -> list[Path]:
    roots = [Path(environ["PYENV_ROOT"])] if environ.get("PYENV_ROOT") else []
    roots += [folder.parent for folder in path_folders(environ) if folder.name == "shims"]
    program = program_on_path(environ, "pyenv")
    if program is not None:
        # A checkout of pyenv is its own root: ROOT/bin/pyenv, a link to ROOT/libexec/pyenv.
        roots.append(Path(os.path.realpath(program)).parent.parent)
    if environ.get("HOME"):
        roots.append(Path(environ["HOME"]) / ".pyenv")
    known = [root for root in dict.fromkeys(roots) if is_folder(root / "versions")]
    if program is not None and not known:
        done = system.run([program, "root"], timeout_seconds=PYENV_TIMEOUT_SECONDS, env=environ)
        if done.ok and done.text().strip():
            known.append(Path(done.text().strip()))
    return known


def _managed_prefixes(environ: Mapping[str, str]) -> Iterator[Path]:
    """The installations behind the shims of asdf and mise."""
    roots = [folder.parent for folder in path_folders(environ) if folder.name == "shims"]
    roots += [Path(environ[name]) for name in ("ASDF_DATA_DIR", "MISE_DATA_DIR") if environ.get(name)]
    if environ.get("HOME"):
        roots += [Path(environ["HOME"]) / ".asdf", Path(environ["HOME"]) / ".local/share/mise"]
    for root in dict.fromkeys(roots):
        yield from _children(root / "installs" / "python")


def conda_prefixes(environ: Mapping[str, str]) -> Iterator[Path]:
    """Folders that may be environments of conda, the installations themselves included; may repeat itself."""
    for root in dict.fromkeys(_conda_roots(environ)):
        yield root
        yield from _children(root / "envs")
    for name in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for folder in filter(None, environ.get(name, "").split(os.pathsep)):
            yield from _children(Path(folder))
    if environ.get("HOME"):
        for line in _lines(Path(environ["HOME"]) / ".conda" / "environments.txt"):
            yield Path(line)


def _conda_roots(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("MAMBA_ROOT_PREFIX"):
        yield Path(environ["MAMBA_ROOT_PREFIX"])
    programs = [environ.get("CONDA_EXE"), program_on_path(environ, "conda"), program_on_path(environ, "mamba")]
    for program in filter(None, programs):
        # PREFIX/bin/conda or PREFIX/condabin/conda, perhaps through a link from elsewhere.
        yield Path(program).parent.parent
        yield Path(os.path.realpath(program)).parent.parent
    if environ.get("HOME"):
        yield from (Path(environ["HOME"]) / name for name in _CONDA_HOMES)
    yield from map(Path, _CONDA_SYSTEM)


def _uv_prefixes(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("UV_PYTHON_INSTALL_DIR"):
        yield from _children(Path(environ["UV_PYTHON_INSTALL_DIR"]))
    if environ.get("XDG_DATA_HOME"):
        yield from _children(Path(environ["XDG_DATA_HOME"]) / "uv" / "python")
    if environ.get("HOME"):
        yield from _children(Path(environ["HOME"]) / ".local" / "share" / "uv" / "python")


def _names(folder: Path) -> list[str]:
    """What a folder holds; nothing where it is none or may not be read."""
    try:
        return os.listdir(folder)  # noqa: PTH208 (names are wanted, and PATH folders are large)
    except OSError:
        return []


def _children(folder: Path) -> list[Path]:
    """The folders (and links to some) in a folder, by name."""
    return [folder / name for name in sorted(_names(folder)) if is_folder(folder / name)]


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip().startswith("/")]
