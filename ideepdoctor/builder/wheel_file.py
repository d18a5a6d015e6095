"""A wheel of ideep4py as it is read for inspection: names, sums, headers and symbols, not the contents."""

from __future__ import annotations

import hashlib
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ideepdoctor.builder.wheel_metadata import NAME, Tag, tag_of
from ideepdoctor.treatment.elfpaths import Headers, NotElf, Symbols, headers_of, symbols_of

NAMES = (
    "intVector",
    "mdarray",
    "mdarrayVector",
    "batchNormalization",
    "concat",
    "convolution2D",
    "convolution2DParam",
    "dropout",
    "linear",
    "localResponseNormalization",
    "localResponseNormalizationParam",
    "pooling2D",
    "pooling2DParam",
    "relu",
    "tanh",
    "basic_acc_sum",
    "basic_copyto",
)
"""What Chainer 4 to 7 uses of the extension."""


class NoWheel(Exception):
    """The file cannot be looked at; the text is the problem."""


@dataclass
class WheelFile:
    """What was read of a wheel: the names of its libraries are those of the files, without folder."""

    tag: Tag
    version: Version
    names: list[str] = field(default_factory=list)
    headers: dict[str, Headers] = field(default_factory=dict)
    symbols: dict[str, Symbols] = field(default_factory=dict)
    texts: dict[str, bytes] = field(default_factory=dict)
    digests: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()
    problems: list[str] = field(default_factory=list)

    @property
    def extensions(self) -> list[str]:
        """Names of the files that are, or are meant to be, the extension."""
        return [name for name in self.names if re.fullmatch(rf"{NAME}/_ideep4py\b.*\.so", name)]


def opened(path: str) -> WheelFile:
    """Read it. Raises NoWheel."""
    name = Path(path).name
    try:
        project, version, _build, tags = parse_wheel_filename(name)
        [one] = {(tag.interpreter, tag.abi) for tag in tags}
        tag = Tag(one[0], one[1], ".".join(sorted(tag.platform for tag in tags)))
        if tag_of(tag.abi).python != tag.python:
            raise ValueError(f"the ABI {tag.abi} is not one of {tag.python}")
    except (InvalidWheelFilename, InvalidVersion, ValueError) as error:
        raise NoWheel(f"{name} is no wheel for one Python: {error}") from error
    if project != NAME:
        raise NoWheel(f"{name} is a wheel of {project}, not of {NAME}")
    wheel = WheelFile(tag, version)
    try:
        with zipfile.ZipFile(path) as whole:
            for entry in whole.infolist():
                if not entry.is_dir():
                    _take(wheel, entry.filename, whole.read(entry))
    except OSError as error:
        raise NoWheel(f"{name} cannot be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise NoWheel(f"{name} is a damaged zip: {error}") from error
    return wheel


def _take(wheel: WheelFile, name: str, data: bytes) -> None:
    """Note what matters of a file. Its bytes are not kept: one of them has 150 MB."""
    if name.startswith("/") or ".." in name.split("/") or "\\" in name:
        wheel.problems.append(f"{name} would be written outside of the environment")
    if name in wheel.names:
        wheel.problems.append(f"{name} is in it twice")
    wheel.names.append(name)
    wheel.digests[name] = (hashlib.sha256(data).digest(), len(data))
    if re.search(r"\.so(\.|$)", name):
        own = name.rpartition("/")[2]
        try:
            wheel.headers[own], wheel.symbols[own] = headers_of(data), symbols_of(data)
        except NotElf as error:
            wheel.problems.append(f"{name} is no shared library: {error}")
        if name in wheel.extensions:
            wheel.offered |= {word for word in NAMES if _is_offered(word, data)}
    elif len(data) < 1 << 20:
        wheel.texts[name] = data


def _is_offered(name: str, data: bytes) -> bool:
    """Whether SWIG made a class or function of this name: a string of the extension, alone or after a module's.

    Linkers keep a string that is another one's end only once, so more may stand before it.
    """
    return re.search(rb"(?<![A-Za-z0-9])" + name.encode("ascii") + rb"\0", data) is not None
