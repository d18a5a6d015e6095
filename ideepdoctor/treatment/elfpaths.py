"""The names in a shared library's dynamic section and symbol table, read without loading it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

_Found = TypeVar("_Found")

_PT_LOAD, _PT_DYNAMIC = 1, 2
_NULL, _NEEDED, _HASH, _STRTAB, _SYMTAB, _SONAME, _RPATH, _RUNPATH = 0, 1, 4, 5, 6, 14, 15, 29
_GNU_HASH, _VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
_GLOBAL, _WEAK, _UNIQUE = 1, 2, 10


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
class Symbols:
    """Names of functions and variables in a library's dynamic symbol table."""

    defined: frozenset[str]
    """What other libraries may use of it."""
    undefined: frozenset[str]
    """What another library must have for it to be loaded; weak ones, which need not be there, are left out."""
    unversioned: frozenset[str]
    """Those of the undefined that ask for no version: neither libc's nor those of other system libraries."""


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
    return headers_of(Path(path).read_bytes())


def headers_of(data: bytes) -> Headers:
    """The same of a file's bytes. Raises NotElf."""
    return _understood(data, _headers)


def symbols_of(data: bytes) -> Symbols:
    """The dynamic symbols of a library's bytes. Raises NotElf."""
    return _understood(data, _symbols)


def _understood(data: bytes, read: Callable[[bytes], _Found]) -> _Found:
    if data[:4] != b"\x7fELF":
        raise NotElf("it is not ELF")
    if data[4:6] != b"\x02\x01":
        raise NotElf("it is not for 64 bits, little-endian")
    try:
        return read(data)
    except (struct.error, ValueError, IndexError) as error:
        raise error if isinstance(error, NotElf) else NotElf(f"it is damaged ({error})") from error


def _headers(data: bytes) -> Headers:
    loads, tags = _dynamic(data)
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


def _dynamic(data: bytes) -> tuple[list[_Segment], list[tuple[int, int]]]:
    """The segments that are loaded, and the tags of the dynamic section."""
    segments = _segments(data)
    dynamic = next((item for item in segments if item.kind == _PT_DYNAMIC), None)
    if dynamic is None:
        raise NotElf("it has no dynamic section")
    tags: list[tuple[int, int]] = []
    for tag, value in struct.iter_unpack("<qQ", data[dynamic.offset : dynamic.offset + dynamic.size_bytes // 16 * 16]):
        if tag == _NULL:
            break
        tags.append((tag, value))
    return [item for item in segments if item.kind == _PT_LOAD], tags


def _symbols(data: bytes) -> Symbols:
    loads, listed = _dynamic(data)
    tags = dict(listed)
    if not tags.keys() >= {_SYMTAB, _STRTAB}:
        return Symbols(frozenset(), frozenset(), frozenset())
    table, names = _offset(loads, tags[_SYMTAB]), _offset(loads, tags[_STRTAB])
    versions = _offset(loads, tags[_VERSYM]) if _VERSYM in tags else None
    defined, undefined, unversioned = set(), set(), set()
    for number in range(1, _count(data, loads, tags)):
        name, info, _other, section = struct.unpack_from("<IBBH", data, table + 24 * number)
        if section and info >> 4 in (_GLOBAL, _WEAK, _UNIQUE):
            defined.add(_text(data, names + name))
        elif not section and info >> 4 == _GLOBAL:
            text = _text(data, names + name)
            undefined.add(text)
            if versions is None or struct.unpack_from("<H", data, versions + 2 * number)[0] & 0x7FFF < 2:
                unversioned.add(text)
    return Symbols(frozenset(defined), frozenset(undefined), frozenset(unversioned))


def _count(data: bytes, loads: list[_Segment], tags: Mapping[int, int]) -> int:
    """How many entries the symbol table has: nothing says so but the hash tables."""
    if _HASH in tags:
        return int(struct.unpack_from("<I", data, _offset(loads, tags[_HASH]) + 4)[0])
    if _GNU_HASH not in tags:
        return 0
    place = _offset(loads, tags[_GNU_HASH])
    buckets, first, blooms, _shift = struct.unpack_from("<IIII", data, place)
    place += 16 + 8 * blooms
    last = max(struct.unpack_from(f"<{buckets}I", data, place), default=0)
    if last < first:
        return int(first)  # nothing is defined: all of the table is before what is hashed
    place += 4 * buckets
    while not struct.unpack_from("<I", data, place + 4 * (last - first))[0] & 1:
        last += 1
    return int(last) + 1


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
