"""What a folder holds, as data that can be compared, and copies of folders that can be put back byte for byte."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ideepdoctor.errors import NeedsAttention
from ideepdoctor.system import System

Item = dict[str, Any]
Manifest = dict[str, Item]


def manifest(path: str) -> Manifest:
    """List everything at a path, contents included.

    Args:
        path: a folder, a file or a link; it may be absent.

    Returns:
        Relative path (``.`` for the path itself) to an item: ``kind`` (folder, file, link, other), ``mode``
        (permission bits), for files ``size`` (bytes), ``mtime_ns`` and ``sha256``, for links ``target``. Empty where
        there is nothing. Times of folders are left out: any use of a folder changes them.
    """
    found = quick_manifest(path)
    files = [name for name, item in found.items() if item["kind"] == "file"]
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for name, digest in zip(files, pool.map(lambda name: sha256_of(os.path.join(path, name)), files), strict=True):  # noqa: PTH118
            found[name]["sha256"] = digest
    return found


def quick_manifest(path: str) -> Manifest:
    """List everything at a path without reading files: as ``manifest``, but without ``sha256``.

    A file that was changed has another size or another time of change.
    """
    found: Manifest = {}
    if not os.path.lexists(path):
        return found
    root = os.lstat(path)
    found["."] = _item(path, root)
    if stat.S_ISDIR(root.st_mode):
        found.update(_walk(path, ""))
    return found


def _walk(folder: str, prefix: str) -> Iterator[tuple[str, Item]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            status = entry.stat(follow_symlinks=False)
            name = prefix + entry.name
            yield name, _item(entry.path, status)
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(entry.path, f"{name}/")


def _item(path: str, status: os.stat_result) -> Item:
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return {"kind": "link", "target": os.readlink(path)}  # noqa: PTH115 - the text of the link, byte for byte
    if stat.S_ISDIR(status.st_mode):
        return {"kind": "folder", "mode": mode}
    if stat.S_ISREG(status.st_mode):
        return {"kind": "file", "mode": mode, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    return {"kind": "other", "mode": mode}


def sha256_of(path: str) -> str:
    """SHA-256 of a file's bytes in hexadecimal. Raises OSError."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Change:
    """One path that is not as it was."""

    path: str
    """Relative, as in the manifest."""
    what: str
    """added, changed or missing."""


def is_bytecode(path: str) -> bool:
    """Whether a path is what Python leaves by being used: .pyc files and the folders that hold them."""
    return path.endswith((".pyc", ".pyo")) or "__pycache__" in path.split("/")


def changes(before: Mapping[str, Item], after: Mapping[str, Item]) -> tuple[Change, ...]:
    """Compare two manifests of the same kind. Bytecode and added folders do not count: what they hold does.

    Items are compared by the keys that both have, so that a quick manifest can be held against a full one.
    """
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if is_bytecode(name) or (old is None and new is not None and new["kind"] == "folder"):
            continue
        if new is None:
            found.append(Change(name, "missing"))
        elif old is None:
            found.append(Change(name, "added"))
        elif any(old[key] != new[key] for key in old.keys() & new.keys()) or old["kind"] != new["kind"]:
            found.append(Change(name, "changed"))
    return tuple(found)


def tree_size(path: str) -> int:
    """Bytes of all files at a path; 0 where there is nothing. Files that vanish meanwhile do not count."""
    return sum(item.get("size", 0) for item in quick_manifest(path).values())


def take(system: System, source: str, copy: str) -> Manifest:
    """Copy a folder with its links, modes and times, and make sure that the copy is exact.

    Args:
        system: copies.
        source: the folder; where it does not exist nothing is copied and the manifest is empty.
        copy: where to; must not exist.

    Raises:
        OSError: the copy failed, or differs from the source (which changed meanwhile).
    """
    before = manifest(source)
    if before:
        system.copy_tree(source, copy)
        if manifest(copy) != before:
            raise OSError(f"{source} changed while it was copied")
    return before


def is_being_restored(destination: str, now: Manifest, before: Manifest) -> bool:
    """Whether ``restore`` was killed after it had taken the folder away, or put it back already.

    Args:
        destination: the folder.
        now: what it holds, as a quick manifest.
        before: the manifest that ``take`` returned.
    """
    return not changes(before, now) or (not now and os.path.lexists(_moved_away(destination)))


def _moved_away(destination: str) -> str:
    return f"{destination}.ideepdoctor-old"


def restore(system: System, copy: str, destination: str, before: Manifest, tell: Callable[[str], None]) -> None:
    """Put a folder back as it was when ``take`` copied it.

    May be killed at any point and called again. The folder is replaced by renaming, so that it is never half old.

    Args:
        system: copies, renames, removes.
        copy: made by ``take``.
        destination: the folder to be put back.
        before: the manifest that ``take`` returned; empty: there was no folder.
        tell: told what happens.

    Raises:
        NeedsAttention: afterwards the folder is not what it was.
        OSError: a file operation failed.
    """
    fresh, old = f"{destination}.ideepdoctor-new", _moved_away(destination)
    system.remove_tree(fresh)
    if manifest(destination) != before:
        tell(f"putting back {destination}")
        if before:
            system.copy_tree(copy, fresh)
        if os.path.lexists(destination):
            system.remove_tree(old)
            system.rename(destination, old)
        if before:
            system.rename(fresh, destination)
    system.remove_tree(old)
    if manifest(destination) != before:
        raise NeedsAttention(
            f"{destination} is not what it was, although it was put back from a copy",
            hint=f"the copy is in {copy}: compare the two folders",
        )
