"""From what upstream's setup.py installed into a staging folder to a wheel."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from ideepdoctor import __version__
from ideepdoctor.builder.auditwheel import platform_of
from ideepdoctor.builder.wheel_metadata import (
    INFO_FILE,
    LINUX,
    NAME,
    Tag,
    archive,
    built_version,
    file_name,
    info_folder,
    info_text,
    metadata_text,
    tag_of,
    wheel_text,
)
from ideepdoctor.errors import BuildFailed
from ideepdoctor.model.build import BuildInfo, BuiltWheel, March, Mkl, SourceTree, Tools
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import System
from ideepdoctor.treatment.elfpaths import Headers, NotElf, read_headers

RPATH = "$ORIGIN/lib"
"""Where the extension finds its libraries, and they find one another."""

_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "COPYING")

Tell = Callable[[str], None]


def pack(
    system: System,
    staging: str,
    abi: str,
    tree: SourceTree,
    tools: Tools,
    mkl: Mkl,
    march: March,
    output: str,
    tell: Tell,
    *,
    cache: str,
    source: PackageSource | None = None,
) -> BuiltWheel:
    """Make the wheel.

    Args:
        system: writes the file and starts auditwheel.
        staging: what ``setup.py install --root`` filled.
        abi: of the interpreter that it was built for, such as cp37m.
        tree: what it was built from.
        tools: what it was built with.
        mkl: what stands for MKL.
        march: what it was compiled for.
        output: folder for the wheel; made where it is missing.
        tell: told each step.
        cache: the doctor's cache folder, for auditwheel.
        source: where auditwheel comes from; None: the index that the machine is set to.

    Returns:
        The wheel, not verified. The same input gives the same bytes.

    Raises:
        BuildFailed: the staging folder does not hold a whole ideep4py, or its extension would not find its libraries.
        OSError: a folder or file cannot be written.
    """
    package = _package(staging)
    tag = _checked_tag(abi)
    try:
        version = built_version(tree.version, march.label, mkl.kind)
    except ValueError as error:
        raise BuildFailed(
            f"{tree.version!r}, the version that the source declares, is no version of a wheel",
            hint="look at __version__ in python/ideep4py/__init__.py and at python/setup.py",
        ) from error
    paths = _contents(package)
    info = BuildInfo(
        march=march.label if march.asked == "native" else march.asked,
        cpu_flags=march.flags,
        mkl=mkl.kind,
        commit=tree.commit,
        mkldnn_commit=tree.mkldnn_commit,
        numpy=tools.numpy,
        verified=False,
        extra={"ideepdoctor": __version__, "tools": tools.identity, "mkl_identity": mkl.identity},
    )
    licences = _licences(tree)
    tell(f"packing {NAME} {version}: {len(paths)} files")
    make = partial(_bytes, paths, licences, version, info)
    made = make(tag)
    own = {path.rpartition("/")[2] for path in paths}
    platform, note = _platform(system, made, version, tag, own, cache, tell, source or PackageSource())
    if note:
        tell(note)
    if platform not in ("", LINUX):
        tag = replace(tag, platform=platform)
        made = make(tag)
    name = file_name(version, tag)
    system.make_folder(output)
    system.write_file(str(Path(output, name)), made)
    return BuiltWheel(
        path=str(Path(output, name)),
        name=name,
        version=version,
        sha256=hashlib.sha256(made).hexdigest(),
        tag=str(tag),
        cpu_flags=march.flags,
        numpy=tools.numpy,
        mkl=mkl.kind,
        commit=tree.commit,
        mkldnn_commit=tree.mkldnn_commit,
    )


def with_proof(system: System, wheel: BuiltWheel, proof: tuple[str, ...]) -> BuiltWheel:
    """The same wheel, written anew, that says of itself that it was verified. Everything else in it stays.

    Raises:
        OSError: it cannot be read or written.
        ValueError: it is no wheel of a build.
    """
    with zipfile.ZipFile(wheel.path) as whole:
        folder = info_folder(wheel.version)
        place = f"{folder}/{INFO_FILE}"
        info = whole.read(place)
        said = info.replace(b'"verified": false', b'"verified": true')
        if said.count(b'"verified": true') != 1:
            raise ValueError(f"{wheel.path}: {place} does not say whether it is verified")
        names = [name for name in whole.namelist() if name != f"{folder}/RECORD"]
        files: dict[str, Callable[[], bytes]] = {name: partial(whole.read, name) for name in names}
        made = archive({**files, place: lambda: said}, wheel.version)
    system.write_file(wheel.path, made)
    return replace(wheel, sha256=hashlib.sha256(made).hexdigest(), proof=proof)


def _package(staging: str) -> Path:
    """The folder of the package in the staging folder."""
    found = sorted(path.parent for path in Path(staging).rglob(f"{NAME}/__init__.py"))
    whole = [folder for folder in found if list(folder.glob("_ideep4py*.so"))]
    if len(whole) == 1:
        return whole[0]
    if whole:
        raise BuildFailed(
            f"the staging folder {staging} holds {NAME} {len(whole)} times", hint="build again with --fresh"
        )
    what = "its extension _ideep4py is missing" if found else "it was not installed"
    raise BuildFailed(
        f"setup.py left no whole {NAME} in the staging folder: {what}",
        hint="look for the first error in the build's log: ideepdoctor explain --log FILE",
        context={"staging": staging},
    )


def _checked_tag(abi: str) -> Tag:
    try:
        return tag_of(abi)
    except ValueError as error:
        raise BuildFailed(str(error), hint="name a CPython: --python P") from error


def _contents(package: Path) -> dict[str, Path]:
    """Name in the wheel and path of every file that belongs there: modules, the extension, libraries.

    Headers, static libraries, CMake's files and bytecode, which setup.py installs too, are of no use to Chainer.
    """
    found = {path: path for path in package.rglob("*.py")}
    extensions = sorted(package.glob("_ideep4py*.so"))
    found.update({path: path for path in extensions})
    headers = {path: _headers(path) for path in extensions}
    for path, item in headers.items():
        if item.runpaths:
            raise BuildFailed(
                f"{path.name} has a RUNPATH ({', '.join(item.runpaths)}): libiomp5.so would not be found",
                hint="link with -Wl,--disable-new-dtags, as ideepdoctor build does",
            )
        if RPATH not in ":".join(item.rpaths).split(":"):
            raise BuildFailed(
                f"{path.name} has no RPATH {RPATH}: its libraries would not be found",
                hint="look at the last link in the build's log",
                context={"RPATH": ", ".join(item.rpaths)},
            )
    needed = {name for item in headers.values() for name in item.needed}
    found.update({package / "lib" / name: path for name, path in _libraries(package / "lib", needed).items()})
    return {f"{NAME}/{place.relative_to(package).as_posix()}": path for place, path in found.items()}


def _libraries(folder: Path, needed: set[str]) -> dict[str, Path]:
    """Name in the wheel and path of each shared library.

    A wheel has no links: the three names of libmkldnn would be three copies of 7 MB. A loader asks by the name that
    NEEDED has, which is the SONAME; the name without a number is for linking, that with all numbers for people.
    """
    files = sorted(path for path in folder.glob("*.so*") if path.is_file()) if folder.is_dir() else []
    headers = {path: _headers(path) for path in files}
    needed = needed | {name for item in headers.values() for name in item.needed}
    kept: dict[str, Path] = {}
    for path in files:
        named = folder / (headers[path].soname or path.name)
        if path.name in (named.name, *needed):
            kept[path.name] = path
        elif not named.is_file():
            kept[named.name] = path
        elif named.read_bytes() != path.read_bytes():
            kept[path.name] = path  # another library under the same SONAME: not ours to drop
    return kept


def _headers(path: Path) -> Headers:
    try:
        return read_headers(str(path))
    except NotElf as error:
        raise BuildFailed(f"{path} is no shared library: {error}", hint="build again with --fresh") from error


def _licences(tree: SourceTree) -> dict[str, Path]:
    """Name beside METADATA and path of the licences of what is in the wheel."""
    found = {}
    for folder, end in ((Path(tree.folder), ""), (Path(tree.mkldnn_folder), ".mkl-dnn")):
        path = next((folder / name for name in _LICENCES if (folder / name).is_file()), None)
        if path is not None:
            found[f"LICENSE{end}"] = path
    return found


def _bytes(paths: Mapping[str, Path], licences: Mapping[str, Path], version: str, info: BuildInfo, tag: Tag) -> bytes:
    """The wheel with this tag."""
    texts = {
        "METADATA": metadata_text(version, tag, info, tuple(sorted(licences))),
        "WHEEL": wheel_text(tag),
        INFO_FILE: info_text(info),
    }
    folder = info_folder(version)
    files: dict[str, Callable[[], bytes]] = {name: path.read_bytes for name, path in paths.items()}
    files |= {f"{folder}/{name}": path.read_bytes for name, path in licences.items()}
    files |= {f"{folder}/{name}": partial(text.encode, "utf-8") for name, text in texts.items()}
    return archive(files, version)


def _platform(
    system: System, made: bytes, version: str, tag: Tag, own: set[str], cache: str, tell: Tell, source: PackageSource
) -> tuple[str, str]:
    """What auditwheel finds of a wheel that is not on the disk yet."""
    folder = system.make_temporary_folder()
    try:
        path = str(Path(folder, file_name(version, tag)))
        system.write_file(path, made)
        return platform_of(system, path, own, cache, tell, source)
    finally:
        system.remove_tree(folder)
