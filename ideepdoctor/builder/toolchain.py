"""The isolated toolchain of a build: pinned cmake, swig, numpy and setuptools, and what stands before the compilers."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ideepdoctor.builder import environment
from ideepdoctor.builder.cache import Piece, Store, Tell, key_of
from ideepdoctor.builder.pins import MINORS, program_pins, python_pins, version_of
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.build import BuildRequest, SourceTree, Tools
from ideepdoctor.model.plan import Install, PackageSource, Requirement
from ideepdoctor.system import System
from ideepdoctor.treatment.installers import create_environment, install

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a build may write what belongs to it alone.

    Attributes:
        folder: of the tools of this build: ``bin``, ``site``, ``home``, ``temporary``.
        cache: the doctor's cache folder, for the tool that makes environments of Python 2.7.
        path: the machine's PATH.
    """

    folder: str
    cache: str
    path: str


@dataclass(frozen=True, slots=True)
class Compilers:
    """The compilers and make of this machine.

    Attributes:
        real: their paths.
        version: first line of what the C++ compiler says of itself.
    """

    real: environment.Real
    version: str


def find_compilers(system: System, path: str) -> Compilers:
    """The compilers on a PATH.

    Raises:
        CouldNotCheck: one is missing, or does not say what it is.
    """

    def first(*names: str) -> str:
        return next((found for name in names if (found := shutil.which(name, path=path))), "")

    real = environment.Real(first("cc", "gcc"), first("c++", "g++"), first("make", "gmake"), first("git"))
    missing = [name for name, found in (("cc", real.cc), ("c++", real.cxx), ("make", real.make)) if not found]
    if missing:
        raise CouldNotCheck(f"no {' and no '.join(missing)} on PATH", hint="install a C++ compiler and make")
    told = system.run([real.cxx, "--version"], timeout_seconds=_SECONDS)
    if not told.ok or not told.text().strip():
        raise CouldNotCheck(f"{real.cxx} --version fails: {told.error_text()[:300]}", hint="install a C++ compiler")
    return Compilers(real, told.text().splitlines()[0])


def make_tools(
    system: System,
    request: BuildRequest,
    abi: str,
    tree: SourceTree,
    store: Store,
    place: Place,
    tell: Tell,
    more_flags: Sequence[str] = (),
    source: PackageSource | None = None,
) -> Tools:
    """Make the toolchain, from kept pieces where there are any.

    Args:
        system: starts the installers.
        request: for which interpreter, with what -march, with how many jobs.
        abi: of the interpreter, such as cp311.
        tree: what will be built.
        store: keeps the pieces.
        place: for what belongs to this build alone.
        tell: told each step.
        more_flags: of the compilers, that the release needs.
        source: where the pinned packages come from; None: the index that the machine is set to.

    Raises:
        NotPossibleHere: there is no toolchain for this interpreter.
        CouldNotCheck: no compiler, or the network is needed and not there.
        HashMismatch, ApplyFailed: a file is not the pinned one; an installer failed.
    """
    pins, programs = python_pins(abi), program_pins()
    compilers = find_compilers(system, place.path)
    given = source or PackageSource()
    installed = _programs(system, store, place, programs, tell, given, fresh=request.fresh)
    python = _python(system, request, abi, store, place, pins, tell, given)
    texts = environment.wrappers(compilers.real) | _links(installed)
    _write(system, place.folder, texts)
    version = _minor(abi)
    variables = environment.variables(
        bin_folder=f"{place.folder}/bin",
        site_folder=f"{place.folder}/site",
        swig_library=_under(installed, "swig/data/share/swig/*"),
        home=f"{place.folder}/home",
        temporary=f"{place.folder}/temporary",
        path=place.path,
        compiler_flags=environment.flags(version, tree.layout, more_flags),
        march=request.march,
        jobs=request.jobs or 1,
    )
    return Tools(
        python=python,
        bin_folder=f"{place.folder}/bin",
        numpy=version_of(pins, "numpy"),
        identity=identity(abi, pins, compilers, variables),
        environ=variables,
    )


def identity(abi: str, pins: Sequence[Requirement], compilers: Compilers, variables: Mapping[str, str]) -> str:
    """A digest of all that decides what the tools make; not of where they are, nor of how many run at once."""
    flags = {name: variables[name] for name in ("CFLAGS", "CXXFLAGS", "LDFLAGS", environment.MARCH)}
    return key_of(
        abi=abi,
        python=[asdict(item) for item in pins],
        compilers=compilers_identity(compilers),
        flags=flags,
        site=environment.SITECUSTOMIZE,
    )


def compilers_identity(compilers: Compilers) -> str:
    """A digest of the compilers and of the pinned programs: what decides a library that no Python goes into."""
    nowhere = environment.Real("cc", "c++", "make", "git")
    return key_of(
        compiler=compilers.version,
        programs=[asdict(item) for item in program_pins()],
        wrappers=environment.wrappers(nowhere),
    )


def _programs(
    system: System,
    store: Store,
    place: Place,
    pins: tuple[Requirement, ...],
    tell: Tell,
    source: PackageSource,
    *,
    fresh: bool,
) -> str:
    """Folder of the packages that bring cmake and swig, which run by themselves."""

    def make(folder: str) -> Mapping[str, Any]:
        tell("installing cmake and swig by hash")
        create_environment(system, f"{folder}/env", sys.executable, "uv", place.cache, tell, source)
        step = Install(f"{folder}/env/bin/python", pins, "uv", source=source)
        install(system, step, f"{folder}/requirements", tell)
        return {}

    key = key_of(programs=[asdict(item) for item in pins], doctor=sys.version)
    piece = store.provide("tools", key, make, fresh=fresh)
    return _under(piece.folder, "env/lib/python*/site-packages")


def _python(
    system: System,
    request: BuildRequest,
    abi: str,
    store: Store,
    place: Place,
    pins: tuple[Requirement, ...],
    tell: Tell,
    source: PackageSource,
) -> str:
    """The interpreter of an environment that has what setup.py imports."""
    tool = "virtualenv" if MINORS[abi] in ("2.7", "3.5") else "uv"

    def make(folder: str) -> Mapping[str, Any]:
        names = ", ".join(f"{item.name} {item.version}" for item in pins)
        tell(f"installing by hash: {names}")
        create_environment(system, f"{folder}/env", request.python, tool, place.cache, tell, source)
        step = Install(f"{folder}/env/bin/python", pins, "uv" if tool == "uv" else "pip", source=source)
        install(system, step, f"{folder}/requirements", tell)
        return {}

    real = Path(request.python).resolve()
    key = key_of(abi=abi, python=str(real), size=real.stat().st_size, pins=[asdict(item) for item in pins])
    piece: Piece = store.provide("python", key, make, fresh=request.fresh)
    return f"{piece.folder}/env/bin/python"


def _links(installed: str) -> dict[str, str]:
    """Programs of the pinned packages under the names that upstream calls them by (CentOS: cmake3)."""
    cmake, swig = f"{installed}/cmake/data/bin/cmake", f"{installed}/swig/data/bin/swig"
    start = '#!/bin/sh\nexec {} "$@"\n'.format
    return {name: start(environment.quoted(cmake)) for name in ("cmake", "cmake3")} | {
        name: start(environment.quoted(swig)) for name in ("swig", "swig3.0", "swig2.0")
    }


def _write(system: System, folder: str, texts: Mapping[str, str]) -> None:
    for name in ("bin", "site", "home", "temporary"):
        system.make_folder(f"{folder}/{name}")
    for name, text in texts.items():
        _write_new(system, f"{folder}/bin/{name}", text.encode("utf-8"), 0o755)
    _write_new(system, f"{folder}/site/sitecustomize.py", environment.SITECUSTOMIZE.encode("utf-8"), 0o644)


def _write_new(system: System, path: str, data: bytes, mode: int) -> None:
    """A file that is there already keeps its time: make must not think that everything changed."""
    if not Path(path).is_file() or Path(path).read_bytes() != data:
        system.write_file(path, data, mode)


def _under(folder: str, pattern: str) -> str:
    found = sorted(Path(folder).glob(pattern))
    if not found:
        raise CouldNotCheck(f"{folder} holds no {pattern}", hint="make it anew: ideepdoctor build --fresh")
    return str(found[0])


def _minor(abi: str) -> tuple[int, int]:
    major, minor = MINORS[abi].split(".")
    return int(major), int(minor)
