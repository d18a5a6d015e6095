"""A folder of source as entries to be written elsewhere: without what a build, git or an editor left in it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ideepdoctor.system import TreeEntry

_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".tox", ".eggs", ".DS_Store"}
)
_PRODUCTS = frozenset(
    {
        "build",
        "mkl-dnn/build",
        "mkl-dnn/external",
        "python/build",
        "python/dist",
        "python/lib",
        "python/share",
        "python/include/mklml",
        "python/external/lib",
        "python/external/include",
        "python/external/share",
        "python/external/mkldnn/source",
        "python/ideep4py/lib",
        "python/ideep4py/share",
        "python/ideep4py/include/mklml",
    }
)
"""Folders that upstream's build makes, relative to the top."""
_PRODUCT_NAME = re.compile(r".+\.(?:pyc|pyo|o|egg-info)|_ideep4py[.\w-]*\.so|\w+_wrap\.cpp|CMakeCache\.txt")


def entries_of(folder: str, *, products: frozenset[str] = _PRODUCTS) -> Iterator[TreeEntry]:
    """The files of a folder, sorted by path.

    A link to a place within the folder stays a link; of any other link what it leads to is taken, so that nothing
    that is done to the copy reaches the original. Environments (folders with pyvenv.cfg) are left out.

    Args:
        folder: its path.
        products: folders to leave out, relative to it.

    Raises:
        OSError: something in it cannot be read.
    """
    top = Path(folder).resolve()
    yield from _below(top, top, "", products, frozenset({top}))


@dataclass(slots=True)
class Seen:
    """What went by.

    Attributes:
        digest: SHA-256 of all of it: names, whether it is a program, content.
        names: of the files and links.
    """

    digest: str = ""
    names: list[str] = field(default_factory=list)


def watched(entries: Iterator[TreeEntry], seen: Seen) -> Iterator[TreeEntry]:
    """Hand the entries on; when all have gone by, ``seen`` is complete."""
    digest = hashlib.sha256()
    for entry in entries:
        if entry.data is not None or entry.link is not None:
            seen.names.append(entry.path)
        content = entry.link if entry.data is None else hashlib.sha256(entry.data).hexdigest()
        line = f"{entry.path}\0{entry.mode & 0o111:o}\0{content}\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
        yield entry
    seen.digest = digest.hexdigest()


def _below(
    top: Path, folder: Path, prefix: str, products: frozenset[str], above: frozenset[Path]
) -> Iterator[TreeEntry]:
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 (names, not paths)
        path, relative = folder / name, f"{prefix}{name}"
        if name in _LEFT_OUT or relative in products or _PRODUCT_NAME.fullmatch(name):
            continue
        if path.is_symlink() and (link := _inner_link(top, path)) is not None:
            yield TreeEntry(relative, link=link)
        elif path.is_dir():
            real = path.resolve()
            if real not in above and not (path / "pyvenv.cfg").exists():
                yield TreeEntry(relative)
                yield from _below(top, path, f"{relative}/", products, above | {real})
        elif path.is_file():
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            yield TreeEntry(relative, mode, path.read_bytes())


def _inner_link(top: Path, path: Path) -> str | None:
    """The target of a link that is relative and stays within ``top``, lexically and in truth; else None."""
    target = str(path.readlink())
    if target.startswith("/"):
        return None
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):  # it leads nowhere, or in a circle
        return None
    lexical = Path(os.path.normpath(path.parent / target))
    return target if real.is_relative_to(top) and lexical.is_relative_to(top) else None
