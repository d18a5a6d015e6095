"""The files of the installed package against the list that came with it. Nothing but the standard library."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

NAME = "ideepdoctor"
PACKAGE = Path(__file__).parents[1]
AGAIN = "pip install --force-reinstall ideepdoctor"
"""What makes a broken installation whole."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What became of the files.

    Attributes:
        listed: how many the list names; 0: this is a folder of sources, which has no list.
        missing: names of those that are gone.
        altered: names of those that hold something else.
    """

    listed: int
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()


def file_state(package: Path = PACKAGE) -> FileState:
    """Compare the package's files with RECORD, which the installer wrote.

    Args:
        package: the folder that the doctor runs from.
    """
    missing, altered, count = [], [], 0
    for name, digest in _listed(package):
        count += 1
        try:
            data = (package.parent / name).read_bytes()
        except OSError:
            missing.append(name)
            continue
        if digest and digest != base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode():
            altered.append(name)
    return FileState(count, tuple(missing), tuple(altered))


def _listed(package: Path) -> Iterator[tuple[str, str]]:
    """Names and SHA-256 digests of the files of the package, where RECORD is about this very folder."""
    try:
        held: Distribution = distribution(NAME)
    except PackageNotFoundError:
        return
    if Path(str(held.locate_file(NAME))).resolve() != package.resolve():
        return
    for file in held.files or ():
        name = file.as_posix()
        if name.startswith(f"{NAME}/") and "__pycache__" not in name:
            yield name, file.hash.value if file.hash is not None and file.hash.mode == "sha256" else ""
