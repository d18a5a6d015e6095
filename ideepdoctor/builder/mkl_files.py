"""Headers and libraries of MKL for a build, unpacked from wheels of the index by hash; nothing is installed."""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ideepdoctor.builder.cache import Piece, Store, Tell, key_of
from ideepdoctor.errors import ApplyFailed
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.system import System

LIBRARIES = ("libmklml_intel.so", "libiomp5.so")
_SECONDS = 1200.0
"""For a download of 35 MB over a slow line."""
_PLATFORM = "x86_64-manylinux_2_17"


@lru_cache(maxsize=1)
def pins() -> Mapping[str, Any]:
    """``mkl.toml``: headers by the version of their wheel, libraries by the release of ideep4py."""
    return tomllib.loads((files("ideepdoctor") / "builder" / "mkl.toml").read_text("utf-8"))


def headers(system: System, version: str, store: Store, tell: Tell, source: PackageSource) -> tuple[str, str]:
    """MKL's headers.

    Args:
        system: starts uv.
        version: of mkl-include, one that is pinned.
        store: where they are kept.
        tell: told what is fetched.
        source: where wheels come from.

    Returns:
        The folder of the headers, and the digest of all of them.

    Raises:
        CouldNotCheck: the network is needed and not there.
        ApplyFailed: the wheel, or what it holds, is not what was pinned.
    """
    pin = pins()["headers"][version]
    line = f"{pin['project']}=={version} --hash=sha256:{pin['wheel']}"

    def make(folder: str) -> Mapping[str, Any]:
        tell(f"fetching MKL's headers ({pin['project']} {version}, 1 MB)")
        _unpack(system, folder, line, None, tell, source)
        found = folder_digest(f"{folder}/include")
        if found != pin["digest"]:
            raise ApplyFailed(f"the headers in {pin['project']} {version} are not the pinned ones", hint=_LOOK)
        return {}

    piece = store.provide("mkl", key_of(line=line), make)
    return f"{piece.folder}/include", pin["digest"]


def libraries(system: System, release: str, store: Store, tell: Tell, source: PackageSource) -> tuple[str, str]:
    """The folder of libmklml_intel.so and libiomp5.so of a release of ideep4py, and the digest of both.

    Args and errors as ``headers``; ``release`` is one that is pinned.
    """
    pin = pins()["libraries"][release]
    line = f"ideep4py=={release} --hash=sha256:{wheel_digest(release, pin['python'])}"

    def make(folder: str) -> Mapping[str, Any]:
        tell(f"fetching MKL's libraries (the wheel of ideep4py {release}, 35 MB)")
        unpacked = f"{folder}.unpacked"
        try:
            _unpack(system, unpacked, line, pin["python"], tell, source)
            for name in LIBRARIES:
                system.rename(f"{unpacked}/ideep4py/lib/{name}", f"{folder}/{name}")
        finally:
            system.remove_tree(unpacked)
        wrong = [name for name in LIBRARIES if file_digest(f"{folder}/{name}") != pin[name]]
        if wrong:
            raise ApplyFailed(f"{wrong[0]} in the wheel of ideep4py {release} is not the pinned one", hint=_LOOK)
        return {}

    piece: Piece = store.provide("mkl", key_of(line=line), make)
    return piece.folder, hashlib.sha256("".join(pin[name] for name in LIBRARIES).encode("ascii")).hexdigest()


_LOOK = "look at the index or mirror that it came from; nothing of it was kept"


def wheel_digest(release: str, python: str) -> str:
    """SHA-256 of ideep4py's wheel for a Python, as the stacks have it. Raises KeyError: no stack has it."""
    for stack in all_stacks():
        for lock in stack.locks:
            for item in lock.requirements:
                if lock.python == python and item.name == "ideep4py" and item.version == release:
                    return item.sha256[0]
    raise KeyError(f"ideep4py {release} for Python {python}")


def _unpack(system: System, folder: str, line: str, python: str | None, tell: Tell, source: PackageSource) -> None:
    """Have uv put a wheel's files into a folder: from its cache, or from where the source says."""
    from ideepdoctor.treatment import installers, sources

    listed = f"{folder}.txt"
    system.write_file(listed, f"{line}\n".encode("ascii"))
    argv = [installers.uv_program(), "pip", "install", "--target", folder, "--python", sys.executable, "--no-deps"]
    argv += ["--require-hashes", "--link-mode=copy", "--only-binary=:all:", "-r", listed]
    if python is not None:
        argv += ["--python-version", python, "--python-platform", _PLATFORM]
    environ = {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}
    environ = {**sources.variables(source, os.environ), **environ}
    words = sources.uv_words(source)
    try:
        quiet = [*argv, *[word for word in words if word != "--offline"], "--offline"]
        done = system.run(quiet, timeout_seconds=_SECONDS, env=environ)
        if not done.ok:
            done = system.run([*argv, *words], timeout_seconds=_SECONDS, env=environ, on_line=tell)
        if not done.ok:
            raise installers.failure(done, f"fetching {line.partition(' ')[0]}", source)
        system.remove_file(f"{folder}/.lock")
    finally:
        system.remove_file(listed)


def file_digest(path: str) -> str:
    """SHA-256 of a file; empty where it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def folder_digest(folder: str) -> str:
    """SHA-256 of the lines ``DIGEST  NAME`` of every file under a folder, by name; of nothing where there is none."""
    top = Path(folder)
    names = sorted(path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file())
    lines = [f"{file_digest(f'{folder}/{name}')}  {name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode("utf-8")).hexdigest()
