"""The search of glibc's dynamic loader (x86-64) for one name, over data: which files it meets, in which order.

As ``man ld.so`` has it, and where that is silent as glibc 2.36 does; tests/facts/test_loader.py compares with the real
one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ideepdoctor.model.native import ElfFile

X86_64 = 62
_GOES_ON = ("broken link", "no permission", "link loop")
"""Problems of a file that a loader does not get to open: for it there is no such file, and the search goes on."""
_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
_HWCAPS_OF_CACHE = re.compile(r"/(glibc-hwcaps/[^/]+)/[^/]+$")


@dataclass(frozen=True, slots=True)
class World:
    """All that the loader of one process can see.

    Attributes:
        files: by absolute path as a loader opens it, without ``//`` and ``/./``. A path with ``..`` is looked up as it
            is and then with ``..`` taken out of the text, so that a folder behind a link needs an entry with ``..``.
            What is not in it does not exist.
        executable: real path of the program; ``$ORIGIN`` of a program is the folder of its real path.
        library_path: LD_LIBRARY_PATH.
        preload: LD_PRELOAD.
        preload_file: text of /etc/ld.so.preload.
        cache: names and paths of /etc/ld.so.cache, in its order.
        default_folders: those built into the loader, in order.
        hwcaps: subfolders that are searched first in every folder, in order, such as ``glibc-hwcaps/x86-64-v3``.
        lib: what ``$LIB`` stands for.
        platform: what ``$PLATFORM`` stands for.
        cwd: current folder; None: relative paths do not exist.
    """

    files: Mapping[str, ElfFile]
    executable: str
    library_path: str | None = None
    preload: str | None = None
    preload_file: str | None = None
    cache: tuple[tuple[str, str], ...] = ()
    default_folders: tuple[str, ...] = ()
    hwcaps: tuple[str, ...] = ()
    lib: str = "lib/x86_64-linux-gnu"
    platform: str = "x86_64"
    cwd: str | None = None

    def absolute(self, path: str) -> str | None:
        """The path without ``//`` and ``/./``, from the root; None where it is relative to an unknown folder."""
        if not path.startswith("/"):
            if self.cwd is None:
                return None
            path = f"{self.cwd}/{path}"
        return "/" + "/".join(part for part in path.split("/") if part not in ("", "."))

    def file(self, path: str) -> ElfFile | None:
        """The file that a loader meets at this path; None: there is none."""
        wanted = self.absolute(path)
        if wanted is None:
            return None
        found = self.files.get(wanted)
        return self.files.get(posixpath.normpath(wanted)) if found is None and "/.." in wanted else found


@dataclass(slots=True, eq=False)
class Mapped:
    """An object of the process.

    Attributes:
        file: its headers.
        origin: what ``$ORIGIN`` stands for in it.
        loader: the object whose need brought it; None: the program, or what the program opened itself.
        names: all names by which it has been asked for, its path and its SONAME.
    """

    file: ElfFile
    origin: str
    loader: Mapped | None = None
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Met:
    """A file that ends a search: it is mapped, or it stops the loader (``stop_reason``)."""

    file: ElfFile
    step: str


def expand(world: World, text: str, origin: str) -> str:
    """Put ``$ORIGIN``, ``$LIB`` and ``$PLATFORM`` in, with and without braces; other dollar signs stay."""
    values = {"ORIGIN": origin, "LIB": world.lib, "PLATFORM": world.platform}
    return _TOKEN.sub(lambda match: values[match.group(1) or match.group(2)], text)


def stop_reason(file: ElfFile) -> str | None:
    """Why a loader that met this file in a search gives up; None: it can map it."""
    return "not little-endian" if file.little_endian is False else file.problem


def ends_search(file: ElfFile) -> bool:
    """Whether a loader that meets this file looks no further, be it good or damaged.

    The order of the tests is the loader's: opening, class, byte order, machine.
    """
    if file.problem in _GOES_ON or file.bits not in (None, 64):
        return False
    return file.little_endian is False or file.machine in (None, X86_64)


def search(world: World, name: str, asker: Mapped, program: Mapped) -> Iterator[Met]:
    """Every file that would end the search for a name if those before it did not exist; the first one is taken.

    Args:
        world: where to search.
        name: as asked for, tokens expanded; one with a slash is a path.
        asker: the object that asks.
        program: the program.
    """
    if "/" in name:
        file = world.file(name)
        if file is not None and ends_search(file):
            yield Met(file, "named by path")
        return
    for step, folders in _path_lists(world, asker, program):
        yield from _in_folders(world, name, step, folders)
    cached = _cached(world, name, asker)
    if cached is not None and ends_search(cached):
        yield Met(cached, "ld.so cache")
    if not asker.file.no_default_folders:
        yield from _in_folders(world, name, "default folder", world.default_folders)


def _path_lists(world: World, asker: Mapped, program: Mapped) -> Iterator[tuple[str, list[str]]]:
    """The steps before the cache: names and folders. An empty text is no list, an empty item the current folder."""
    if asker.file.runpath is None:
        chain = [asker]
        while chain[-1].loader is not None:
            chain.append(chain[-1].loader)
        # What dlopen brought has no loader, yet the program's DT_RPATH counts for it.
        for owner in dict.fromkeys([*chain, program]):
            if owner.file.rpath and owner.file.runpath is None:
                yield f"DT_RPATH of {owner.file.path}", _folders(world, owner.file.rpath.split(":"), owner)
    if world.library_path:
        yield "LD_LIBRARY_PATH", _folders(world, re.split("[:;]", world.library_path), program)
    if asker.file.runpath:
        yield f"DT_RUNPATH of {asker.file.path}", _folders(world, asker.file.runpath.split(":"), asker)


def _folders(world: World, items: list[str], owner: Mapped) -> list[str]:
    return [expand(world, item, owner.origin) or "." for item in items]


def _in_folders(world: World, name: str, step: str, folders: list[str] | tuple[str, ...]) -> Iterator[Met]:
    for folder in folders:
        for subfolder in (*world.hwcaps, "."):
            file = world.file(f"{folder}/{subfolder}/{name}")
            if file is not None and ends_search(file):
                yield Met(file, step)
        # An error other than "no such file" and "no permission" ends this list of folders, but not the search.
        if file is not None and file.problem == "link loop":
            return


def _cached(world: World, name: str, asker: Mapped) -> ElfFile | None:
    """The one entry that the cache gives: the best subfolder for this CPU, else the first."""
    ranked = []
    for place, (entry, path) in enumerate(world.cache):
        subfolder = _HWCAPS_OF_CACHE.search(path)
        if entry == name and (subfolder is None or subfolder.group(1) in world.hwcaps):
            rank = world.hwcaps.index(subfolder.group(1)) if subfolder else len(world.hwcaps)
            ranked.append((rank, place, path))
    if not ranked:
        return None
    path = min(ranked)[2]
    if asker.file.no_default_folders and path.startswith(tuple(f"{folder}/" for folder in world.default_folders)):
        return None
    return world.file(path)
