"""A model of glibc's dynamic loader (x86-64): which files a program and its extension modules get. Data only.

Not modelled: relocation (undefined symbols), LD_AUDIT, secure mode, filters, dlmopen, files that change while it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from ideepdoctor.facts.loader_search import Mapped, Met, World, expand, search, stop_reason
from ideepdoctor.model.native import ElfFile, Loaded

__all__ = ["World", "disagreements", "needed_by", "predict", "search_style", "winner"]

_ALREADY = "already loaded"
_NOT_FOUND = "not found"
_PRELOAD_FILE = "/etc/ld.so.preload"


def predict(world: World, opened: Sequence[str], *, mapped: Sequence[str] = ()) -> tuple[Loaded, ...]:
    """What a loader takes for every name that is asked for, in the order of asking.

    Args:
        world: what the loader sees.
        opened: what the program opens with dlopen, in order: paths, or names that are searched as the program would.
        mapped: paths of files that are known to be mapped before that. All of them are there before any of their needs
            is looked for, and a need of theirs that the world does not have is left out: it was met, they are loaded.

    Returns:
        The start of the program (preloads, then needs breadth first), ``mapped``, then each of ``opened`` with its
        needs breadth first. A name has one entry for each file that it got, and one more where a symbol version lacks.
        An entry with a ``problem`` ends the start of the program (then nothing else follows) or this dlopen: its files
        are taken out again, and the next one is opened. A preload that is not found or damaged stops nothing: it has
        neither path nor problem.
    """
    process = _Process(world)
    if process.start():
        process.add_mapped(mapped)
        for name in opened:
            process.open(name)
    return tuple(process.told)


class _Process:
    """A process that grows object by object.

    Attributes:
        objects: what is mapped, in the loader's order.
        told: the entries so far.
        opening: how many entries there were before the start or dlopen that goes on.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        program = world.file(world.executable) or ElfFile(world.executable, world.executable)
        self.program = Mapped(program, _folder(program.real_path))
        self.objects = [self.program]
        self.told: list[Loaded] = []
        self.opening = 0
        self._pairs: set[tuple[str, str | None]] = set()
        if program.soname is not None:
            self.program.names.add(program.soname)
        if program.interpreter is not None:
            path = program.interpreter
            # An interpreter whose headers are unknown answers to its file name, which is its SONAME everywhere.
            bare = ElfFile(path, path, soname=path.rpartition("/")[2])
            self._add(path, world.file(path) or bare, None)

    def start(self) -> bool:
        """Preload, and load what the program needs; False where it does not start."""
        for name in re.split("[ :]", self.world.preload or ""):
            self._preload(name, "LD_PRELOAD")
        for line in (self.world.preload_file or "").split("\n"):
            for name in re.split("[ :\t]", line.partition("#")[0]):
                self._preload(name, _PRELOAD_FILE)
        return self._complete(0)

    def add_mapped(self, paths: Sequence[str]) -> None:
        """Add files that are mapped whatever the model says of them."""
        before, told = len(self.objects), len(self.told)
        for path in paths:
            file = self.world.file(path) or ElfFile(path, path)
            if self._same_file(file) is None:
                self._add(path, file, None)
                self._tell(Loaded(path, file.path, _ALREADY, _ALREADY))
        for _ in self._needs(self.objects[before:]):
            pass
        self.told[told:] = [entry for entry in self.told[told:] if entry.problem is None]

    def open(self, name: str) -> None:
        """What dlopen does; a new object has no loader, and all is taken out again where it fails."""
        before, self.opening = len(self.objects), len(self.told)
        self._tell(self._take(name, self.program, None))
        if not self._complete(before):
            del self.objects[before:]

    def _preload(self, name: str, where: str) -> None:
        if not name:
            return
        entry = self._take(name, self.program, self.program)
        if entry.problem is not None:
            others = entry.passed_over if entry.path is None else (entry.path, *entry.passed_over)
            entry = Loaded(name, None, where, _NOT_FOUND, passed_over=others)
        elif entry.step != _ALREADY:
            entry = replace(entry, step="LD_PRELOAD")
        self._tell(replace(entry, by=where))

    def _complete(self, first: int) -> bool:
        """Load all that the objects from this place on need, then check versions; False where something lacks."""
        whole = all(entry.problem is None for entry in self._needs(self.objects[first:]))
        return whole and all(self._versions_fit(asker) for asker in self.objects[first:])

    def _needs(self, queue: list[Mapped]) -> Iterator[Loaded]:
        """Load what these objects need, and what that needs, breadth first, one need for each entry that is taken."""
        for asker in queue:
            for name in asker.file.needed:
                before = len(self.objects)
                entry = self._take(name, asker, asker)
                self._tell(entry)
                yield entry
                queue += self.objects[before:]

    def _take(self, name: str, asker: Mapped, loader: Mapped | None) -> Loaded:
        """Find the object for a name, or map the file that the search meets first."""
        wanted = expand(self.world, name, asker.origin)
        known = self._known(wanted)
        # The search of a name that was told before would tell nothing new.
        told = known is not None and (name, known.file.path) in self._pairs
        met = () if told else tuple(search(self.world, wanted, asker, self.program))
        if known is None and met:
            known = self._same_file(met[0].file)
        if known is not None:
            known.names.add(wanted)
            return Loaded(name, known.file.path, asker.file.path, _ALREADY, None, _others(known.file, met))
        if not met:
            return Loaded(name, None, asker.file.path, _NOT_FOUND, _NOT_FOUND)
        taken, problem = met[0].file, stop_reason(met[0].file)
        if problem is None:
            self._add(wanted, taken, loader)
        return Loaded(name, taken.path, asker.file.path, met[0].step, problem, _others(taken, met))

    def _known(self, name: str) -> Mapped | None:
        return next((one for one in self.objects if name in one.names), None)

    def _same_file(self, file: ElfFile) -> Mapped | None:
        return next((one for one in self.objects if _identity(one.file) == _identity(file)), None)

    def _add(self, name: str, file: ElfFile, loader: Mapped | None) -> None:
        names = {name, file.path} if file.soname is None else {name, file.path, file.soname}
        self.objects.append(Mapped(file, _folder(file.path), loader, names))

    def _tell(self, entry: Loaded) -> None:
        """Add an entry, unless it says once more that this name is this file."""
        pair = (entry.name, entry.path)
        if entry.step != _ALREADY or pair not in self._pairs:
            self._pairs.add(pair)
            self.told.append(entry)

    def _versions_fit(self, asker: Mapped) -> bool:
        """Whether the libraries of these names define the symbol versions that an object needs of them."""
        for name, versions in asker.file.versions_needed.items():
            library = self._known(name)
            # A library that defines no version at all is taken, with a warning.
            if library is None or not library.file.versions_defined:
                continue
            lacking = [version for version in versions if version not in library.file.versions_defined]
            if lacking:
                problem = f"version `{lacking[0]}' not found in {library.file.path}"
                self._blame(Loaded(name, library.file.path, asker.file.path, _ALREADY, problem))
                return False
        return True

    def _blame(self, entry: Loaded) -> None:
        """Put the problem to the entry of this need, or add one where the file was there before."""
        for place, told in enumerate(self.told[self.opening :], self.opening):
            if (told.name, told.path, told.by) == (entry.name, entry.path, entry.by):
                self.told[place] = replace(told, problem=entry.problem)
                return
        self.told.append(entry)


def _others(taken: ElfFile, met: Sequence[Met]) -> tuple[str, ...]:
    """Paths of the other files that a search met."""
    others: dict[str, str] = {}
    for one in met:
        others.setdefault(_identity(one.file), one.file.path)
    others.pop(_identity(taken), None)
    return tuple(others.values())


def _identity(file: ElfFile) -> str:
    return file.identity or file.real_path


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def winner(predicted: Sequence[Loaded], name: str, files: Mapping[str, ElfFile] | None = None) -> Loaded | None:
    """The first entry for a name, or with ``files`` for a file of that SONAME too; None: nothing asked for it.

    A preload that was ignored is no entry for its name.
    """
    for loaded in predicted:
        file = (files or {}).get(loaded.path or "")
        if loaded.name == name and (loaded.path is not None or loaded.problem is not None):
            return loaded
        if file is not None and file.soname == name:
            return loaded
    return None


def needed_by(files: Mapping[str, ElfFile], soname: str) -> tuple[str, ...]:
    """Paths of the files that need a name, in the order of the mapping."""
    return tuple(path for path, file in files.items() if soname in file.needed)


def search_style(file: ElfFile) -> Literal["RPATH", "RUNPATH", "none"]:
    """Which of its own tags a loader searches for a file's needs. An empty DT_RUNPATH still rules DT_RPATH out."""
    if file.runpath is not None:
        return "RUNPATH"
    return "RPATH" if file.rpath else "none"


def disagreements(predicted: Sequence[Loaded], after: Sequence[str], files: Mapping[str, ElfFile]) -> tuple[str, ...]:
    """Where the prediction and a process differ whose imports all succeeded.

    Args:
        predicted: the entries to compare: all, or those of the names of interest.
        after: real paths of what was mapped then.
        files: headers by path.

    Returns:
        Texts such as ``libmkldnn.so.0: predicted /a, mapped /b``; empty where they agree. A predicted problem is a
        difference too, for nothing stopped the loader.
    """
    mapped = set(after)
    texts = []
    for loaded in predicted:
        if loaded.path is None and loaded.problem is None:
            continue
        file = files.get(loaded.path or "")
        real_path = loaded.path if file is None else file.real_path
        if loaded.problem is None and real_path in mapped:
            continue
        seen = ", ".join(_mapped_as(loaded.name.rpartition("/")[2], mapped, files)) or "none"
        texts.append(f"{loaded.name}: predicted {loaded.problem or loaded.path}, mapped {seen}")
    return tuple(texts)


def _mapped_as(name: str, mapped: set[str], files: Mapping[str, ElfFile]) -> list[str]:
    """Real paths of the mapped files that have this name or SONAME."""
    found = {file.real_path for path, file in files.items() if name in (file.soname, path.rpartition("/")[2])}
    return sorted((found & mapped) | {path for path in mapped if path.rpartition("/")[2] == name})
