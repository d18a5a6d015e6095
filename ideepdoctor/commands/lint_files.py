"""Reading what ``lint`` was given: files, folders, notebooks, standard input. Nothing is judged here."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ideepdoctor.lint.engine import Unread
from ideepdoctor.lint.pins import kind_of
from ideepdoctor.lint.source import Unreadable

SOURCE_LIMIT = 4_000_000
"""Bytes of a source file; the syntax tree of more takes gigabytes."""
NOTEBOOK_LIMIT = 200_000_000
"""Bytes of a notebook, pictures included."""
STDIN = "-"
_NOT_OURS = ("__pycache__", "node_modules", "site-packages")
_MARKS_OF_AN_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")


@dataclass(frozen=True, slots=True)
class Given:
    """A file to lint.

    Attributes:
        path: as the user named it, printable.
        notebook: whether it is one, by its name.
        where: to read it from; None: standard input.
        data: what standard input held.
        demands: which kind of file of requirements it is, by its name; None: none.
    """

    path: str
    notebook: bool = False
    where: Path | None = None
    data: bytes = b""
    demands: str | None = None

    def read(self) -> bytes:
        """Its bytes. Raises Unreadable."""
        if self.where is None:
            return self.data
        limit = NOTEBOOK_LIMIT if self.notebook else SOURCE_LIMIT
        try:
            with self.where.open("rb") as stream:
                data = stream.read(limit + 1)
        except OSError as error:
            raise Unreadable(_why(error)) from error
        return _limited(data, limit)


@dataclass(slots=True)
class _Walk:
    """What was met so far, so that nothing is read twice and a link to a folder above ends."""

    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    unread: list[Unread] = field(default_factory=list)


def gather(words: Sequence[str], cwd: str) -> tuple[list[Given], list[Unread]]:
    """Find everything that was named; only standard input is read at once.

    Args:
        words: files, folders, ``-`` for standard input.
        cwd: where relative paths begin.

    Returns:
        What is there, in the order of the words and by name within a folder, each real file once; and what is not.
    """
    walk = _Walk()
    given = [item for word in words for item in _find(word, cwd, walk)]
    return given, walk.unread


def _find(word: str, cwd: str, walk: _Walk) -> Iterator[Given]:
    if word == STDIN:
        if STDIN not in walk.files:
            walk.files.add(STDIN)
            yield from _stdin(walk)
        return
    place = Path(cwd) / word
    try:
        folder = stat.S_ISDIR(place.stat().st_mode)
    except (OSError, ValueError) as error:
        walk.unread.append(Unread(printable(word), None, _why(error)))
        return
    if not folder:
        yield from _file(word, place, walk)
        return
    before = len(walk.unread)
    names = list(_files_to_read(place, walk))
    if not names and len(walk.unread) == before:
        why = "is a folder without a Python file, a notebook or a file of requirements"
        walk.unread.append(Unread(printable(word), None, why))
    for name in names:
        yield from _file(os.path.normpath(str(Path(word) / name)), place / name, walk)


def _files_to_read(folder: Path, walk: _Walk) -> Iterator[str]:
    """Python files, notebooks and files of requirements below a folder, relative to it.

    Links to folders are followed, each folder once.
    """

    def complain(error: OSError) -> None:
        walk.unread.append(Unread(printable(str(error.filename)), None, _why(error)))

    for at, folders, files in os.walk(folder, followlinks=True, onerror=complain):
        real = os.path.realpath(at)
        inner = Path(at) != folder
        if real in walk.folders or (inner and any((Path(at) / name).exists() for name in _MARKS_OF_AN_ENVIRONMENT)):
            folders.clear()
            continue
        walk.folders.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_OURS)
        for name in sorted(files):
            path = Path(at) / name
            read = name.endswith((".py", ".ipynb")) or kind_of(name, Path(at).name) is not None
            if read and not name.startswith(".") and not _is_special(path):
                yield str(path.relative_to(folder))


def _is_special(path: Path) -> bool:
    """Whether a name is no file to read: a pipe, a device; a link to nothing is left to the reading, which says so."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _file(shown: str, path: Path, walk: _Walk) -> Iterator[Given]:
    real = os.path.realpath(path)
    if real not in walk.files:
        walk.files.add(real)
        demands = None if path.suffix in (".py", ".ipynb") else kind_of(path.name, path.absolute().parent.name)
        yield Given(printable(shown), path.suffix == ".ipynb", path, demands=demands)


def _stdin(walk: _Walk) -> Iterator[Given]:
    if sys.stdin is None:
        walk.unread.append(Unread("<stdin>", None, "is closed"))
        return
    try:
        yield Given("<stdin>", data=_limited(sys.stdin.buffer.read(SOURCE_LIMIT + 1), SOURCE_LIMIT))
    except Unreadable as error:
        walk.unread.append(Unread("<stdin>", None, error.reason))


def _limited(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise Unreadable(f"is larger than {limit // 1_000_000} MB: no program that a person wrote")
    return data


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file or folder"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return "no file can have this name"  # a null character, which stat refuses with another text in each Python


def printable(path: str) -> str:
    """A path that any terminal and JSON can hold: bytes that are no UTF-8 as ``\\xff``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
