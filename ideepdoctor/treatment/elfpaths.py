"""The names in a shared library's dynamic section, read without loading it: enough to see what patchelf has done."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC = 1, 2
_NULL, _NEEDED, _STRTAB, _SONAME, _RPATH, _RUNPATH = 0, 1, 5, 14, 15, 29


class NotElf(ValueError):
    """The file is no ELF library for 64 bits and little-endian, or is damaged; the text says how."""


@dataclass(frozen=True, slots=True)
class Headers:
    """What a library says of itself and of its needs. A healthy one has at most one RPATH and one RUNPATH."""

    soname: str | None
    needed: tuple[str, ...]
    rpaths: tuple[str, ...]
    runpaths: tuple[str, ...]
    misaligned: bool
    """A segment that a loader refuses (ELF load command address/offset not properly aligned)."""


@dataclass(frozen=True, slots=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size_bytes: int
    alignment: int


def read_headers(path: str) -> Headers:
    """Read them. Links are followed.

    Raises:
        NotElf: see there.
        OSError: it cannot be read.
    """
    data = Path(path).read_bytes()
    if data[:4] != b"\x7fELF":
        raise NotElf("it is not ELF")
    if data[4:6] != b"\x02\x01":
        raise NotElf("it is not for 64 bits, little-endian")
    try:
        return _headers(data)
    except (struct.error, ValueError, IndexError) as error:
        raise error if isinstance(error, NotElf) else NotElf(f"it is damaged ({error})") from error


def _headers(data: bytes) -> Headers:
    segments = _segments(data)
    dynamic = next((item for item in segments if item.kind == _PT_DYNAMIC), None)
    if dynamic is None:
        raise NotElf("it has no dynamic section")
    tags: list[tuple[int, int]] = []
    for tag, value in struct.iter_unpack("<qQ", data[dynamic.offset : dynamic.offset + dynamic.size_bytes // 16 * 16]):
        if tag == _NULL:
            break
        tags.append((tag, value))
    loads = [item for item in segments if item.kind == _PT_LOAD]
    start = _offset(loads, next((value for tag, value in tags if tag == _STRTAB), 0))

    def texts(wanted: int) -> tuple[str, ...]:
        return tuple(_text(data, start + value) for tag, value in tags if tag == wanted)

    return Headers(
        soname=next(iter(texts(_SONAME)), None),
        needed=texts(_NEEDED),
        rpaths=texts(_RPATH),
        runpaths=texts(_RUNPATH),
        misaligned=any(item.alignment > 1 and (item.offset - item.address) % item.alignment for item in loads),
    )


def _segments(data: bytes) -> list[_Segment]:
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for number in range(count):
        kind, _flags, where, address, _physical, in_file, _in_memory, alignment = struct.unpack_from(
            "<IIQQQQQQ", data, offset + number * size
        )
        found.append(_Segment(kind, where, address, in_file, alignment))
    return found


def _offset(loads: list[_Segment], address: int) -> int:
    """Where in the file the bytes of an address are."""
    for item in loads:
        if item.address <= address < item.address + item.size_bytes:
            return address - item.address + item.offset
    raise NotElf("its names are in no segment")


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode("utf-8", "surrogateescape")
