"""The members of tar and zip files, one like the other, and what is wrong with a file that is neither."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ideepdoctor.errors import UsageError

_BLOCK = 512
"""Of a tar file; a block of zeros is its end."""
_MOST_AT_ONCE = 16 << 20
"""Bytes that one read may ask for: the long names of a tar file are read into memory whole, whatever their size."""
_CHUNK = 1 << 20
_MAGIC: tuple[tuple[bytes, int, str], ...] = (
    (b"\x1f\x8b", 0, "gz"),
    (b"BZh", 0, "bz2"),
    (b"\xfd7zXZ\0", 0, "xz"),
    (b"PK\x03\x04", 0, "zip"),
    (b"PK\x05\x06", 0, "zip"),
    (b"ustar", 257, "tar"),
)
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,  # of zipfile: encrypted; NotImplementedError: an unknown compression
    ValueError,
    OverflowError,
)


class BadArchive(UsageError):
    """The file is no archive that can be unpacked safely, or it is damaged; nothing of it was kept."""

    code = "bad-archive"


@dataclass(frozen=True, slots=True)
class Member:
    """One member as its header tells it.

    Attributes:
        path: as it is written there: it may lead anywhere.
        is_folder: it is one.
        is_special: a device, a pipe, or of no known kind.
        mode: 0o755 for a program, else 0o644.
        size: bytes, unpacked.
        link: target of a symbolic link.
        same_as: of a hard link: the member that it is the same file as.
        read: gives the content; raises as broken files make it.
    """

    path: PurePosixPath
    is_folder: bool = False
    is_special: bool = False
    mode: int = 0o644
    size: int = 0
    link: str | None = None
    same_as: PurePosixPath | None = None
    read: Callable[[], bytes] | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file with content of its own."""
        return self.read is not None

    def data(self) -> bytes:
        """Its content; empty where it has none. Raises BadArchive."""
        return b"" if self.read is None else self.read()


@contextlib.contextmanager
def members_of(archive: str) -> Iterator[Iterator[Member]]:
    """Open an archive; the members come as their headers are read, and can be read until this context ends.

    Raises:
        BadArchive: here, from the iterator and from ``Member.data``.
    """
    kind = _kind(archive)
    with contextlib.ExitStack() as stack:
        if kind == "zip":
            with _reading(archive, kind):
                opened_zip = stack.enter_context(zipfile.ZipFile(archive))
            yield _guarded(archive, kind, _zip_members(archive, opened_zip))
        else:
            with _reading(archive, kind):
                stream = _Bounded(cast(IO[bytes], stack.enter_context(_decompressed(archive, kind))))
                opened_tar = stack.enter_context(tarfile.TarFile.taropen(archive, fileobj=cast(IO[bytes], stream)))
            yield _guarded(archive, kind, _tar_members(archive, kind, opened_tar, stream))


def _kind(archive: str) -> str:
    """``gz``, ``bz2``, ``xz``, ``zip``, ``tar``, or empty for a file that does not look like any."""
    try:
        with Path(archive).open("rb") as stream:
            start = stream.read(_BLOCK)
    except OSError as error:
        raise BadArchive(f"cannot read {archive}: {error.strerror or error}") from error
    return next((kind for magic, offset, kind in _MAGIC if start[offset:].startswith(magic)), "")


@contextlib.contextmanager
def _reading(archive: str, kind: str) -> Iterator[None]:
    try:
        yield
    except BadArchive:
        raise
    except _BROKEN as error:
        if not kind:
            raise BadArchive(
                f"{archive} is no archive that can be read",
                hint="--source takes .tar, .tar.gz, .tar.bz2, .tar.xz and .zip files, folders and git addresses",
            ) from error
        raise BadArchive(
            f"{archive} is damaged or cut off ({str(error) or type(error).__name__}); nothing of it was unpacked",
            hint="get the archive again",
        ) from error


def _guarded(archive: str, kind: str, members: Iterator[Member]) -> Iterator[Member]:
    while True:
        with _reading(archive, kind):
            member = next(members, None)
        if member is None:
            return
        yield member


class _Bounded(io.RawIOBase):
    """A stream that refuses to be read into memory in one piece."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _MOST_AT_ONCE:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()


def _decompressed(archive: str, kind: str) -> contextlib.AbstractContextManager[object]:
    if kind == "gz":
        return gzip.open(archive, "rb")
    if kind == "bz2":
        return bz2.open(archive, "rb")
    if kind == "xz":
        return lzma.open(archive, "rb")
    return Path(archive).open("rb")


def _tar_members(archive: str, kind: str, opened: tarfile.TarFile, stream: _Bounded) -> Iterator[Member]:
    for info in opened:
        path = PurePosixPath(info.name)
        if info.isdir():
            yield Member(path, is_folder=True)
        elif info.issym():
            yield Member(path, link=info.linkname)
        elif info.islnk():
            yield Member(path, same_as=PurePosixPath(info.linkname))
        elif info.isfile():
            yield Member(path, mode=_mode(info.mode), size=info.size, read=_tar_reader(archive, kind, opened, info))
        else:
            yield Member(path, is_special=True)
    stream.seek(opened.offset)
    if stream.read(_BLOCK) != bytes(_BLOCK):
        raise tarfile.ReadError("its end is missing")
    while stream.read(_CHUNK):  # a compressed file has its checksum at its end
        pass


def _tar_reader(archive: str, kind: str, opened: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        with _reading(archive, kind):
            content = opened.extractfile(info)
            data = b"" if content is None else b"".join(iter(lambda: content.read(_CHUNK), b""))
            if len(data) != info.size:
                raise tarfile.ReadError(f"{info.name} is cut off")
            return data

    return read


def _zip_members(archive: str, opened: zipfile.ZipFile) -> Iterator[Member]:
    for info in opened.infolist():
        path, mode = PurePosixPath(info.filename), info.external_attr >> 16
        if info.is_dir():
            yield Member(path, is_folder=True)
        elif stat.S_ISLNK(mode):
            yield Member(
                path, link=opened.read(info).decode("utf-8", "surrogateescape") if info.file_size < _CHUNK else ""
            )
        elif stat.S_IFMT(mode) in (0, stat.S_IFREG):
            yield Member(path, mode=_mode(mode), size=info.file_size, read=_zip_reader(archive, opened, info))
        else:
            yield Member(path, is_special=True)


def _zip_reader(archive: str, opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        with _reading(archive, "zip"):
            return opened.read(info)

    return read


def _mode(mode: int) -> int:
    return 0o755 if mode & stat.S_IXUSR else 0o644
