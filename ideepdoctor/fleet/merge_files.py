"""The files that ``fleet merge`` was given: named, in folders, or in lists of names; one after the other."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.names import printable
from ideepdoctor.fleet.read import Unreadable

LARGEST_BYTES = 64_000_000
"""Of a file; the report of a host takes some 50,000."""
LONGEST_NAME = 1 << 16
"""Bytes of a file's name in a list; what is longer is no list of names."""
_CHUNK = 1 << 16
_PART_OF_NAME = re.compile(r"[._-](?:facts|report|diagnose|ideepdoctor)$")
_NO_NAMES = frozenset({"facts", "report", "diagnose", "ideepdoctor", "stdout"})
"""Files that are called after what they hold: the host is then their folder."""


@dataclass(frozen=True, slots=True)
class File:
    """One file to read, or a reason why there is none.

    Attributes:
        shown: as the user named it, printable.
        path: where it is.
        real: the same without links: no file is read twice.
        problem: why it (or the folder of this name) cannot be looked into; empty: it can.
    """

    shown: str
    path: Path
    real: str
    problem: str = ""


def files_of(words: Sequence[str], cwd: str) -> Iterator[File]:
    """Find the files that were named, as they come: nothing of the lists is kept.

    Args:
        words: files, folders (every ``.json`` below them), ``-``: standard input has the names, a line each or, as
            ``find -print0`` writes them, with NUL between; ``@FILE``: that file has them.
        cwd: where relative paths begin.

    Raises:
        UsageError: a list cannot be read, or is none.
    """
    for word in words:
        if word == "-":
            if sys.stdin is None:
                raise UsageError("standard input is closed: there are no names to read", hint="@LIST: a file of names")
            yield from (file for name in _names(sys.stdin.buffer, "standard input") for file in _found(name, cwd))
        elif word.startswith("@"):
            with _opened(Path(cwd, word[1:])) as stream:
                yield from (file for name in _names(stream, word[1:]) for file in _found(name, cwd))
        else:
            yield from _found(word, cwd)


def read_file(path: Path) -> tuple[bytes, str]:
    """What a file holds, and when it was written, UTC, ISO 8601. Raises Unreadable."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise Unreadable("is no regular file")
        if state.st_size > LARGEST_BYTES:
            raise Unreadable(f"is larger than {LARGEST_BYTES // 1_000_000} MB")
        data = path.read_bytes()
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from None
    return data, datetime.fromtimestamp(state.st_mtime, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def host_of(path: Path) -> str:
    """The host that a file is about where it does not say so itself: its name without ``.json``, ``.facts``...

    A file that is called after what it holds (``report.json``) is about the host that its folder is called after.
    """
    stem = path.name.removesuffix(".json") or path.name
    if stem.lower() in _NO_NAMES and path.parent.name:
        stem = path.parent.name
    return printable(_PART_OF_NAME.sub("", stem) or stem)


def _found(word: str, cwd: str) -> Iterator[File]:
    place = Path(cwd, word)
    try:
        folder = stat.S_ISDIR(place.stat().st_mode)
    except OSError as error:
        yield _file(word, place, f"cannot be read: {error.strerror or error}")
        return
    except ValueError:
        yield _file(word, Path(cwd), "cannot be read: no file can have this name")
        return
    if folder:
        yield from _below(word, place)
    else:
        yield _file(word, place)


def _below(word: str, folder: Path) -> Iterator[File]:
    problems: list[File] = []

    def complain(error: OSError) -> None:
        at = str(error.filename)
        problems.append(_file(at, Path(at), f"cannot be read: {error.strerror or error}"))

    for at, folders, names in os.walk(folder, onerror=complain):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".json") and not name.startswith("."):
                path = Path(at, name)
                yield _file(os.path.normpath(str(Path(word) / path.relative_to(folder))), path)
    yield from problems


def _file(shown: str, path: Path, problem: str = "") -> File:
    clean = shown.encode("utf-8", "backslashreplace").decode("utf-8")
    return File("".join(c if c.isprintable() else "?" for c in clean), path, os.path.realpath(path), problem)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        stream = path.open("rb")
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot read the list {path}: {words}", hint="@LIST is a file with a name of a file in each line"
        ) from None
    with stream:
        yield stream


def _names(stream: BinaryIO, origin: str) -> Iterator[str]:
    """The names in a list, as they come; NUL parts them where the list has one in its first 64 KB."""
    rest, end = b"", b""
    try:
        while chunk := stream.read(_CHUNK):
            end = end or (b"\0" if b"\0" in chunk else b"\n")
            *whole, rest = (rest + chunk).split(end)
            if len(rest) > LONGEST_NAME:
                raise UsageError(
                    f"{origin} is no list of names: it has no end of a line", hint="find DIR -name '*.json' | ... -"
                )
            yield from (os.fsdecode(name) for name in (_clean(item, end) for item in whole) if name)
    except OSError as error:
        raise UsageError(
            f"cannot read {origin}: {error.strerror or error}", hint="-, or @LIST: names of files"
        ) from None
    if last := _clean(rest, end):
        yield os.fsdecode(last)


def _clean(name: bytes, end: bytes) -> bytes:
    """A line without what Windows ends it with; between NULs a name is what it is."""
    return name if end == b"\0" else name.rstrip(b"\r")
