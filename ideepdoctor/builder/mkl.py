"""What stands for MKL in a build: the libraries of ideep4py's wheel, a folder of the user's, or a library of our own.

``provide`` gets it, ``place`` puts it where upstream's CMake looks for it, ``finish`` adds what upstream's own install
leaves out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ideepdoctor.builder import mkl_files, stub
from ideepdoctor.builder.cache import Store, Tell
from ideepdoctor.errors import BuildFailed, UsageError
from ideepdoctor.model.build import BuildRequest, Layout, Mkl, SourceTree
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import System

if TYPE_CHECKING:
    from ideepdoctor.builder.recipe import SourceRelease

WHEEL, NONE, FOLDER, AUTO = "wheel", "none", "folder", "auto"
HEADERS = ("mkl_cblas.h", "mkl_vsl.h", "mkl_vml_functions.h")
"""Without one of them nothing can be compiled; they include others."""
_FULL = ("libmkl_rt.so", "libmkl_core.so")


def provide(
    system: System,
    request: BuildRequest,
    release: SourceRelease,
    folder: str,
    store: Store,
    tell: Tell,
    *,
    source: PackageSource | None = None,
    environ: Mapping[str, str] | None = None,
) -> Mkl:
    """Get what ``request.mkl`` names (``wheel``, ``none`` or a folder; ``auto`` is two builds, see ``compare``).

    Args:
        system: starts uv and the compiler.
        request: ``mkl`` and, for a library of our own, ``march``.
        release: which headers and libraries it takes.
        folder: of this build, where the library of our own is compiled; made where it is not there.
        store: pieces that are kept; of the folders that are returned nothing may be changed.
        tell: told what is fetched.
        source: where wheels come from; None: the index that the machine is set to.
        environ: variables of the compiler; None: the doctor's own.

    Raises:
        UsageError: the folder lacks files, or is a full MKL.
        CouldNotCheck: the network is needed and not there.
        ApplyFailed: a file is not the pinned one, or (BuildFailed) our own library could not be compiled.
    """
    given = source or PackageSource()
    if request.mkl == WHEEL:
        include, one = mkl_files.headers(system, release.mkl_include, store, tell, given)
        there, other = mkl_files.libraries(system, release.wheel, store, tell, given)
        libraries = tuple(f"{there}/{name}" for name in mkl_files.LIBRARIES)
        return Mkl(WHEEL, include, libraries, _digest(WHEEL, one, other))
    if request.mkl == NONE:
        include, one = mkl_files.headers(system, release.mkl_include, store, tell, given)
        used = os.environ if environ is None else environ
        compiler = stub.find_compiler(used)
        tell("compiling a library of our own in place of MKL")
        system.make_folder(folder)
        library = stub.compile_stub(system, compiler, request.march, folder, used)
        made_of = stub.identity(request.march, stub.compiler_line(system, compiler, used))
        return Mkl(NONE, include, (library,), _digest(NONE, one, made_of))
    if request.mkl == AUTO:
        raise ValueError("auto is two builds")
    return _of_folder(request.mkl)


def _of_folder(path: str) -> Mkl:
    """MKL of the user's own. Raises UsageError."""
    found, missing = look(path)
    if missing:
        full = full_mkl(path)
        if full and "libmklml_intel.so" in " ".join(missing):
            raise UsageError(
                f"{path} is a full MKL ({full}); ideep4py links the small one, libmklml_intel.so",
                hint="leave --mkl away (the wheel's is taken), or --mkl none, which needs no MKL",
            )
        raise UsageError(
            f"{path} lacks {', '.join(missing)}",
            hint="--mkl PATH has include/mkl_cblas.h, lib/libmklml_intel.so and lib/libiomp5.so; or --mkl wheel",
        )
    libraries = tuple(found[name] for name in mkl_files.LIBRARIES)
    include = str(Path(found[HEADERS[0]]).parent)
    digests = [mkl_files.folder_digest(include), *(mkl_files.file_digest(name) for name in libraries)]
    return Mkl(FOLDER, include, libraries, _digest(FOLDER, *digests))


def look(path: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """Where the files of ``--mkl PATH`` are, by name, and which are missing (``include/NAME``, ``lib/NAME``).

    Headers are in include/ there or one level up; libraries in lib/ or lib/intel64/.
    """
    top = Path(path).expanduser().absolute()
    heads = (top / "include", top.parent / "include")
    include = next((place for place in heads if (place / HEADERS[0]).is_file()), heads[0])
    found, missing = {}, []
    for name, folder, places in (
        *((name, "include", (include,)) for name in HEADERS),
        *((name, "lib", (top / "lib", top / "lib" / "intel64")) for name in mkl_files.LIBRARIES),
    ):
        there = next((place / name for place in places if (place / name).is_file()), None)
        if there is None:
            missing.append(f"{folder}/{name}")
        else:
            found[name] = str(there)
    return found, tuple(missing)


def full_mkl(path: str) -> str:
    """The library by which a folder is known as a full MKL (libmkl_rt.so...); empty where it is none."""
    top = Path(path).expanduser().absolute()
    for place in (top / "lib", top / "lib" / "intel64"):
        for name in _FULL:
            if any(place.glob(f"{name}*")):
                return name
    return ""


def place(system: System, mkl: Mkl, tree: SourceTree, release: SourceRelease) -> None:
    """Put it into the source where upstream looks: ``external/NAME/{include,lib}`` beside MKL-DNN's files.

    Without MKL that folder is empty: it is there, so nothing is downloaded, and MKL-DNN is built without MKL. What an
    earlier run put there is replaced.

    Raises:
        OSError: it cannot be written.
    """
    external = f"{tree.mkldnn_folder}/external"
    system.remove_tree(external)
    system.make_folder(external)
    if mkl.kind == NONE:
        return
    _copy_folder(system, mkl.include, f"{external}/{release.mklml}/include")
    _copy_files(system, mkl.libraries, f"{external}/{release.mklml}/lib")


def finish(system: System, mkl: Mkl, prefix: str, layout: Layout = Layout.CMAKE) -> None:
    """After MKL-DNN was built and installed, before the extension: what is not there of the headers and libraries.

    Args:
        system: copies.
        mkl: as provided.
        prefix: gets ``lib`` and the headers, which go to ``include/mklml``, of ``PREPARE`` to ``include``.
        layout: how the source is built.

    Raises:
        BuildFailed: upstream's install found another MKL although there was to be none.
        OSError: it cannot be written.
    """
    others = [name for name in mkl_files.LIBRARIES if Path(prefix, "lib", name).exists() and not _is_ours(prefix, name)]
    if mkl.kind == NONE and others:
        raise BuildFailed(
            f"upstream's install found an MKL of its own: {prefix}/lib/{others[0]}",
            hint="unset MKLROOT and build again with --fresh",
        )
    include = f"{prefix}/include/mklml" if layout is Layout.CMAKE else f"{prefix}/include"
    if not Path(include, HEADERS[0]).is_file():
        _copy_folder(system, mkl.include, include)
    wanted = [path for path in mkl.libraries if mkl.kind == NONE or not Path(prefix, "lib", Path(path).name).is_file()]
    _copy_files(system, wanted, f"{prefix}/lib")


def _is_ours(prefix: str, name: str) -> bool:
    """Whether a library is the one that ``finish`` put there, in a run before this."""
    return stub.MARK.encode("ascii") in Path(prefix, "lib", name).read_bytes()[: 1 << 20]


def _copy_folder(system: System, source: str, target: str) -> None:
    """Copy files, of links what they point to."""
    for top, _, names in os.walk(source, followlinks=True):
        folder = os.path.normpath(f"{target}/{os.path.relpath(top, source)}")
        _copy_files(system, [f"{top}/{name}" for name in sorted(names)], folder)


def _copy_files(system: System, paths: Sequence[str], folder: str) -> None:
    system.make_folder(folder)
    for path in paths:
        system.copy_file(os.path.realpath(path), f"{folder}/{Path(path).name}")


def _digest(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode("utf-8")).hexdigest()
