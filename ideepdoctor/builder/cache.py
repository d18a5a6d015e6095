"""Finished pieces of builds (source, tools, library, wheel), kept by everything that went into them.

A piece is a folder and, written last, a list of its files with their digests: without the list it is not there. A piece
that differs from its list is made anew. A lock for each keeps two builds from making it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.system import System

_FORMAT = 1
"""Of the pieces; part of every key."""
_KEY_LENGTH = 20

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A finished piece.

    Attributes:
        folder: what it holds; not to be changed.
        note: what its maker wanted to be remembered, JSON-ready.
        kept: whether it was there before this run.
    """

    folder: str
    note: Mapping[str, Any] = field(default_factory=dict)
    kept: bool = False


def key_of(**parts: Any) -> str:
    """The name of a piece: a digest of what goes into it (JSON-ready values)."""
    text = json.dumps({"format": _FORMAT, **parts}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:_KEY_LENGTH]


def listing(folder: str) -> dict[str, str]:
    """Every file under a folder with its SHA-256 digest, every link with what it points to; compiled Python aside.

    Raises:
        OSError: a file cannot be read.
    """
    found: dict[str, str] = {}
    for top, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        linked = [name for name in folders if (Path(top) / name).is_symlink()]
        for name in [*names, *linked]:
            path = Path(top) / name
            found[str(path.relative_to(folder))] = _digest(path)
    return found


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class Store:
    """The pieces under one folder.

    Args:
        system: makes, writes and removes.
        root: ``build`` in the doctor's cache folder; made when needed.
        tell: told what is made anew and what is waited for.
    """

    def __init__(self, system: System, root: str, tell: Tell) -> None:
        self._system, self.root, self._tell = system, root, tell

    def find(self, kind: str, key: str) -> Piece | None:
        """The piece, if it is there and as it was made. A damaged one is removed."""
        with self._locked(kind, key):
            return self._whole(kind, key)

    def provide(self, kind: str, key: str, make: Callable[[str], Mapping[str, Any]], *, fresh: bool = False) -> Piece:
        """The piece that is kept, or a new one.

        Args:
            kind: ``source``, ``tools``, ``library`` or ``wheel``.
            key: see ``key_of``.
            make: fills the empty folder that it is given and returns the note; what it raises is passed on, and
                nothing of its work stays.
            fresh: make it anew in any case.

        Raises:
            OSError: the cache cannot be written.
        """
        with self._locked(kind, key):
            if not fresh and (piece := self._whole(kind, key)) is not None:
                return piece
            folder = self._folder(kind, key)
            self._forget(kind, key)
            self._system.make_folder(folder)
            try:
                note = dict(make(folder))
                text = json.dumps({"note": note, "files": listing(folder)}, sort_keys=True)
                self._system.write_file(self._list(kind, key), text.encode("utf-8"))
            except BaseException:
                with contextlib.suppress(OSError):
                    self._forget(kind, key)
                raise
            return Piece(folder, note)

    def _whole(self, kind: str, key: str) -> Piece | None:
        folder = self._folder(kind, key)
        try:
            told = json.loads(Path(self._list(kind, key)).read_bytes())
            files, note = dict(told["files"]), dict(told["note"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            files, note = {"its list": ""}, {}
        try:
            there = listing(folder)
        except OSError as error:
            there = {str(error.filename): str(error.strerror)}
        if there == files:
            return Piece(folder, note, kept=True)
        different = sorted(name for name in files.keys() | there.keys() if files.get(name) != there.get(name))
        self._tell(f"the {kind} that was kept is damaged ({different[0]}): it is made anew")
        self._forget(kind, key)
        return None

    def _forget(self, kind: str, key: str) -> None:
        # The list first: what has no list does not count.
        self._system.remove_file(self._list(kind, key))
        self._system.remove_tree(self._folder(kind, key))

    def _folder(self, kind: str, key: str) -> str:
        return f"{self.root}/{kind}/{key}"

    def _list(self, kind: str, key: str) -> str:
        return f"{self.root}/{kind}/{key}.json"

    @contextlib.contextmanager
    def _locked(self, kind: str, key: str) -> Iterator[None]:
        from filelock import FileLock, Timeout

        try:
            self._system.make_folder(f"{self.root}/{kind}")
            lock = FileLock(f"{self.root}/{kind}/{key}.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                self._tell(f"waiting for another build that makes the same {kind}")
                lock.acquire()
        except OSError as error:
            raise CouldNotCheck(
                f"cannot write to the doctor's cache {self.root}: {error.strerror or error}",
                hint="make room or set IDEEPDOCTOR_CACHE_DIR to a folder that you can write",
            ) from error
        try:
            yield
        finally:
            lock.release()
