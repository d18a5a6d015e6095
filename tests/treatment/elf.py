"""Shared libraries for tests: tiny ones made here, whose headers can be chosen, and a real one to be patched."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import shutil
import struct
from pathlib import Path

from ideepdoctor.treatment.elfpaths import read_headers

_HEADER, _PROGRAM, _PAGE = 64, 56, 0x1000


def library(
    *,
    soname: str = "libtiny.so.1",
    needed: tuple[str, ...] = ("libc.so.6",),
    rpath: str | None = None,
    runpath: str | None = None,
    address: int = 0x200000,
    alignment: int = _PAGE,
) -> bytes:
    """An ELF file with one segment and a dynamic section: what a reader of headers needs, and no code."""
    names = bytearray(b"\0")
    tags = []
    wanted = [(14, soname), *((1, name) for name in needed), (15, rpath), (29, runpath)]
    for tag, text in wanted:
        if text is not None:
            tags.append((tag, len(names)))
            names += text.encode() + b"\0"
    start = _HEADER + 2 * _PROGRAM
    tags += [(5, address + start), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *tag) for tag in tags)
    size = start + len(names) + len(dynamic)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, 0, 0, _HEADER, _PROGRAM, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, address, address, size, size, alignment)
    where = start + len(names)
    path = struct.pack("<IIQQQQQQ", 2, 6, where, address + where, address + where, len(dynamic), len(dynamic), 8)
    return header + load + path + bytes(names) + dynamic


def as_patchelf(argv: list[str]) -> str:
    """Play patchelf on a tiny library, at once and without a process; what it prints."""
    words = iter(argv[1:])
    rpath: str | None = None
    output, path, printed, removed = "", "", False, False
    for word in words:
        if word == "--set-rpath":
            rpath = next(words)
        elif word == "--output":
            output = next(words)
        elif word == "--print-rpath":
            printed = True
        elif word == "--remove-rpath":
            removed = True
        elif not word.startswith("--"):
            path = word
    there = read_headers(path)
    if printed:
        return f"{''.join(there.rpaths or there.runpaths)}\n"
    kept = None if removed or rpath is not None else "".join(there.rpaths) or None
    Path(output).write_bytes(library(soname=there.soname or "", needed=there.needed, rpath=rpath or kept))
    return ""


def real_library(path: Path) -> Path:
    """A copy of this machine's libm: a real library, which can be patched and loaded."""
    ctypes.CDLL("libm.so.6")
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm" in line}
    shutil.copyfile(next(name for name in sorted(mapped) if Path(name).name.startswith(("libm.", "libm-"))), path)
    return path


def with_tags(path: Path, changes: dict[int, tuple[int, str]]) -> None:
    """Put other entries into a library's dynamic section in place of some that it can do without.

    Args:
        path: of the library.
        changes: kind of the entry that goes, to the kind of the one that comes and the tail of a needed library's
            name, which is its text (linkers too store a text that ends another one only once).
    """
    data = bytearray(path.read_bytes())
    where, size = _segment(data, 2)
    tags = {tag: where + number * 16 for number, (tag, _) in enumerate(struct.iter_unpack("<qQ", data[where:][:size]))}
    needed = struct.unpack_from("<Q", data, tags[1] + 8)[0]
    name = read_headers(str(path)).needed
    for gone, (kind, tail) in changes.items():
        found = next(one for one in name if one.endswith(tail))
        assert found == name[-1], "the last one's offset is the one that was read"
        struct.pack_into("<qQ", data, tags[gone], kind, needed + len(found) - len(tail))
    path.write_bytes(data)


def _segment(data: bytes, wanted: int) -> tuple[int, int]:
    """Offset and size of the first segment of a kind."""
    (offset,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    for number in range(count):
        kind, _, where, _, _, size = struct.unpack_from("<IIQQQQ", data, offset + number * _PROGRAM)
        if kind == wanted:
            return where, size
    raise ValueError("no such segment")


def loads(path: Path) -> bool:
    """Whether the copy of libm can be loaded, under a name that was not loaded before, and computes."""
    cosine = ctypes.CDLL(str(path)).cos
    cosine.restype, cosine.argtypes = ctypes.c_double, [ctypes.c_double]
    return bool(cosine(0.0) == 1.0)


def record_line(path: Path, name: str) -> str:
    """A line of a RECORD that lists the file as it is."""
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"
