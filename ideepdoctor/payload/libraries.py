"""Which shared libraries this interpreter can meet, and what their headers say: nothing is judged here.

Runs inside the target (Python 2.7, 3.5 and later), started as ``python -B -E -s - COOKIE REQUEST`` with this file on
standard input. REQUEST is URL-safe base64 of a JSON object:
    deep             walk the whole disks too
    start            start a child that imports ideep4py and runs one operation
    emulator         words to put before the interpreter for children
    timeout_seconds  for each child, and for the walk of the environment
    walk_seconds     for the walk of the disks (optional; ten times timeout_seconds)
    cwd              folder in which the user would start Python (optional)
    loader_variables those of the user's variables that this process was started without (optional)
    home             folder whose shell files are read (optional)
    others           prefixes of other environments to look into (optional)
    roots            folders that replace the disks of ``deep`` (optional)
Answers with COOKIE json COOKIE. No library is loaded into this process: files are read, children load.
"""

# ruff: noqa: E402, I001
import sys

sys.path[:] = [entry for entry in sys.path if entry != ""]  # a json.py in the current folder must not be taken

import ast
import base64
import errno
import fcntl
import json
import os
import re
import select
import stat
import struct
import subprocess
import threading
import time

PY2 = sys.version_info[0] == 2
TEXT_LIMIT = 4000
BLOCK = 1 << 14
SYMBOLS = (
    "mkldnn_memory_set_data_handle",
    "mkldnn_version",
    "dnnl_memory_set_data_handle",
    "dnnl_version",
    "omp_get_max_threads",
    "GOMP_parallel",
    "__kmpc_fork_call",
    "cblas_sgemm",
    "MKL_Get_Version_String",
)
ENGINES = SYMBOLS[:4]  # a file that defines one of them contains MKL-DNN or its successors
INTERESTING = re.compile(
    r"lib(?:mkldnn|dnnl|onednn|mklml|mkl_|iomp5|omp(?=[-.])|gomp(?=[-.])(?!-plugin)|(?:scipy_)?openblas).*\.so"
)
ALGEBRA = re.compile(r"lib(?:[cf]?blas|lapack|[cf]?lapacke|satlas|tatlas|atlas|blis|flame|mkl_rt)")
SHARED = re.compile(r"\.so(?:\.|$)")
CONTAINER_BYTES = 1 << 20  # no file with MKL-DNN inside is smaller


class Unusable(Exception):
    """A file that no loader can use; its text says why."""


def native(data):
    """Return bytes of a file as the text type that paths have."""
    return data if PY2 else data.decode("utf-8", "surrogateescape")


class Image(object):
    """An ELF file, read piece by piece: whatever its numbers say, few bytes are read and little is kept.

    ``fields`` holds what its headers say, under the names of the answer. Raises Unusable where no loader could go on;
    what was read before stays.
    """

    def __init__(self, descriptor, size, fields):
        self.descriptor, self.size, self.fields = descriptor, size, fields
        self.blocks = {}
        self.tags = {}
        self.segments = []
        head = self.at(0, 64)
        if head[:4] != b"\x7fELF"[: len(head)]:
            raise Unusable("not ELF")
        if len(head) < 52:
            raise Unusable("truncated")
        kind, order = head[4:5], head[5:6]
        if kind not in b"\1\2" or order not in b"\1\2":
            raise Unusable("damaged")
        self.wide = kind == b"\2"
        self.order = "<" if order == b"\1" else ">"
        fields.update(bits=64 if self.wide else 32, little_endian=order == b"\1")
        file_type, fields["machine"] = self.unpack("HH", 16)
        if file_type not in (2, 3):
            raise Unusable("not a shared library")
        self.word = "Q" if self.wide else "I"
        offset = self.unpack(self.word, 32 if self.wide else 28)[0]
        entry_size, count = self.unpack("HH", 54 if self.wide else 42)
        if entry_size != (56 if self.wide else 32):
            raise Unusable("damaged")
        self.read_segments(offset, entry_size, min(count, 1170))  # more than 64 KiB of them no kernel accepts

    def at(self, offset, count):
        """Return the bytes there; fewer at the end of the file."""
        if offset < 0 or offset >= self.size or count <= 0:
            return b""
        first, last = offset // BLOCK, (min(offset + count, self.size) - 1) // BLOCK
        parts = []
        for number in range(first, min(last, first + 64) + 1):
            if number not in self.blocks:
                if len(self.blocks) >= 64:
                    self.blocks.clear()
                self.blocks[number] = self.pread(BLOCK, number * BLOCK)
            parts.append(self.blocks[number])
        start = offset - first * BLOCK
        return (parts[0] if len(parts) == 1 else b"".join(parts))[start : start + count]

    def pread(self, count, offset):
        """Return the bytes there, past all that was kept."""
        if hasattr(os, "pread"):
            return os.pread(self.descriptor, count, offset)
        os.lseek(self.descriptor, offset, 0)
        return os.read(self.descriptor, count)

    def unpack(self, form, offset):
        """Return the numbers there."""
        form = self.order + form
        data = self.at(offset, struct.calcsize(form))
        if len(data) < struct.calcsize(form):
            raise Unusable("truncated" if offset + struct.calcsize(form) > self.size else "damaged")
        return struct.unpack(form, data)

    def read_segments(self, offset, entry_size, count):
        """Read the program headers and what they point to."""
        fields = self.fields
        dynamic = None
        notes = []
        cut = False
        fields["executable_stack"] = True  # what the kernel and the loader assume where nothing is said
        for index in range(count):
            if self.wide:
                kind, flags, start, address, _, length, memory, align = self.unpack("IIQQQQQQ", offset + index * 56)
            else:
                kind, start, address, _, length, memory, flags, align = self.unpack("IIIIIIII", offset + index * 32)
            if kind == 1:
                self.segments.append((address, address + length, start))
                cut = cut or start + length > self.size
            elif kind == 2:
                dynamic = (start, length)
            elif kind == 3:
                words = self.at(start, min(length, 4096)).split(b"\0")[0]
                fields["interpreter"] = native(words) or None
            elif kind == 4:
                notes.append((start, min(length, 1 << 16), 8 if align == 8 else 4))
            elif kind == 0x6474E551:
                fields["executable_stack"] = bool(flags & 1)
        if cut:
            raise Unusable("truncated")
        for start, length, align in notes:
            fields["build_id"] = fields.get("build_id") or self.build_id(start, length, align)
        if dynamic:
            self.read_tags(*dynamic)

    def build_id(self, start, length, align):
        """Return the build-id that a note segment holds, as hexadecimal."""
        data = self.at(start, length)
        place = 0
        while place + 12 <= len(data):
            name, size, kind = struct.unpack_from(self.order + "III", data, place)
            content = place + 12 + (name + 3 & ~3)
            if align == 8:
                content = place + (12 + name + 7 & ~7)
            if kind == 3 and data[place + 12 : place + 16] == b"GNU\0" and 0 < size <= 64:
                return "".join("%02x" % one for one in bytearray(data[content : content + size]))
            place = content + (size + align - 1 & -align)
        return None

    def read_tags(self, start, length):
        """Read the dynamic section."""
        step = struct.calcsize(self.order + self.word * 2)
        data = self.at(start, min(length, 1 << 16))
        count = len(data) // step
        numbers = struct.unpack(self.order + self.word * (2 * count), data[: count * step])
        needed = []
        for tag, value in zip(numbers[::2], numbers[1::2]):
            if tag == 0:
                break
            if tag == 1:
                needed.append(value)
            else:
                self.tags[tag & 0xFFFFFFFF] = value
        if start + min(length, 1) > self.size:
            raise Unusable("truncated")
        self.strings = None
        if 5 not in self.tags:
            return
        self.strings = self.offset_of(self.tags[5])
        self.fields["needed"] = [self.string(one) for one in needed[:1000]]
        for tag, name in ((14, "soname"), (15, "rpath"), (29, "runpath")):
            if tag in self.tags:
                self.fields[name] = self.string(self.tags[tag])
        self.fields["no_default_folders"] = bool(self.tags.get(0x6FFFFFFB, 0) & 0x800)

    def offset_of(self, address):
        """Return where in the file an address of the running library comes from."""
        for first, last, start in self.segments:
            if first <= address < last:
                return address - first + start
        raise Unusable("damaged")

    def string(self, index):
        """Return an entry of the table of names."""
        if index >= self.tags.get(10, 1 << 32):
            raise Unusable("damaged")
        for count in (128, 4096):
            data = self.at(self.strings + index, count)
            end = data.find(b"\0")
            if end >= 0:
                return native(data[:end])
        raise Unusable("damaged")

    def named(self, index, name):
        """Return whether the entry of the table of names is this one."""
        return self.at(self.strings + index, len(name) + 1) == name + b"\0"

    def symbol(self, name):
        """Return the address of a symbol that is defined here, None where there is none, by the hash table alone."""
        name = name.encode("ascii")
        if self.tags.get(6) is None or self.strings is None:
            return None
        table = self.offset_of(self.tags[6])
        candidates = ()
        if 0x6FFFFEF5 in self.tags:
            candidates = self.gnu_chain(name, self.offset_of(self.tags[0x6FFFFEF5]))
        elif 4 in self.tags:
            candidates = self.old_chain(name, self.offset_of(self.tags[4]))
        for index in candidates:
            if self.wide:
                text_index, info, _, section, value = self.unpack("IBBHQ", table + index * 24)
            else:
                text_index, value, _, info, _, section = self.unpack("IIIBBH", table + index * 16)
            if section and info >> 4 and self.named(text_index, name):
                return value
        return None

    def gnu_chain(self, name, place):
        """Yield the numbers of the symbols that DT_GNU_HASH has for a name."""
        code = 5381
        for one in bytearray(name):
            code = (code * 33 + one) & 0xFFFFFFFF
        buckets, first, blooms, shift = self.unpack("IIII", place)
        size = 8 if self.wide else 4
        if not buckets or not blooms:
            return
        word = self.unpack(self.word, place + 16 + code // (size * 8) % blooms * size)[0]
        if not (word >> code % (size * 8) & 1 and word >> (code >> (shift & 31)) % (size * 8) & 1):
            return
        place += 16 + blooms * size
        index = self.unpack("I", place + code % buckets * 4)[0]
        place += buckets * 4
        if index < first:
            return
        for index in range(index, index + 10000):
            link = self.unpack("I", place + (index - first) * 4)[0]
            if link | 1 == code | 1:
                yield index
            if link & 1:
                return

    def old_chain(self, name, place):
        """Yield the numbers of the symbols that DT_HASH has for a name."""
        code = 0
        for one in bytearray(name):
            code = (code << 4) + one
            code = (code ^ (code & 0xF0000000) >> 24) & 0x0FFFFFFF
        buckets, _ = self.unpack("II", place)
        index = self.unpack("I", place + 8 + code % buckets * 4)[0] if buckets else 0
        for _ in range(10000):
            if not index:
                return
            yield index
            index = self.unpack("I", place + 8 + (buckets + index) * 4)[0]

    def read_versions(self):
        """Read which symbol versions it needs, by library (weak needs stop no loader and are left out), and defines."""
        needs, defined = {}, []
        if 0x6FFFFFFE in self.tags:
            place = self.offset_of(self.tags[0x6FFFFFFE])
            for _ in range(min(self.tags.get(0x6FFFFFFF, 0), 1000)):
                _, count, name, inner, step = self.unpack("HHIII", place)
                wanted = needs.setdefault(self.string(name), [])
                at = place + inner
                for _ in range(min(count, 1000)):
                    _, flags, _, name, further = self.unpack("IHHII", at)
                    if not flags & 2:
                        wanted.append(self.string(name))
                    if not further or len(wanted) > 1000:
                        break
                    at += further
                if not step:
                    break
                place += step
        if 0x6FFFFFFC in self.tags:
            place = self.offset_of(self.tags[0x6FFFFFFC])
            for _ in range(min(self.tags.get(0x6FFFFFFD, 0), 1000)):
                _, flags, _, count, _, inner, step = self.unpack("HHHHIII", place)
                if count and not flags & 1:  # the base is the name of the library itself
                    defined.append(self.string(self.unpack("I", place + inner)[0]))
                if not step:
                    break
                place += step
        self.fields["versions_needed"] = dict((name, wanted) for name, wanted in needs.items() if wanted)
        self.fields["versions_defined"] = defined

    def own_version(self, name):
        """Return the version that the file itself tells without being loaded, None where it does not."""
        for symbol in ("mkldnn_version", "dnnl_version"):
            if symbol in self.fields["exports"]:
                return self.engine_version(symbol)
        if re.match("libi?omp", name):
            return self.searched(b"@[(]#[)] (?:Intel[(]R[)]|LLVM) OMP version: ([0-9.]+)")
        if "openblas" in name:
            return self.searched(b"OpenBLAS ([0-9]+[.][0-9]+[.][0-9]+(?:[.]dev)?)")
        return None

    def engine_version(self, symbol):
        """Return the version of MKL-DNN: its function returns the address of three numbers by ``lea rax, [rip+N]``."""
        if self.fields["machine"] != 62:
            return None
        address = self.symbol(symbol)
        code = self.at(self.offset_of(address), 48)
        place = code.find(b"\x48\x8d\x05")
        if place < 0 or place + 7 > len(code):
            return None
        target = address + place + 7 + struct.unpack("<i", code[place + 3 : place + 7])[0]
        numbers = self.unpack("iii", self.offset_of(target))
        return "%d.%d.%d" % numbers if all(0 <= one < 10000 for one in numbers) else None

    def searched(self, pattern):
        """Return what the first group of a pattern matches in the last 16 MiB; constants stand near the end."""
        for end in range(self.size, max(0, self.size - (1 << 24)), -(1 << 20)):
            start = max(0, end - (1 << 20))
            found = re.search(pattern, self.pread(end - start + 100, start))
            if found:
                return native(found.group(1)).rstrip(".")
        return None


def opened(path, found):
    """Return a descriptor of a regular file, and note its identity in ``found``. Raises Unusable, OSError."""
    state = os.stat(path)
    found.update(size_bytes=state.st_size, identity="%d:%d" % (state.st_dev, state.st_ino))
    if stat.S_ISDIR(state.st_mode):
        raise Unusable("folder")
    if not stat.S_ISREG(state.st_mode):  # a pipe would wait for a writer, a device may act
        raise Unusable("not a regular file")
    if not state.st_size:
        raise Unusable("empty")
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)


def read_elf(path):
    """Return what the headers of a file say, None where there is no such file. Never raises."""
    found = {"real_path": os.path.realpath(path), "problem": None, "exports": []}
    descriptor = None
    try:
        descriptor = opened(path, found)
        image = Image(descriptor, found["size_bytes"], found)
        image.read_versions()
        found["exports"] = [name for name in SYMBOLS if image.symbol(name) is not None]
        found["version"] = image.own_version(os.path.basename(path))
    except Unusable as error:
        found["problem"] = str(error)
    except (IOError, OSError) as error:
        words = {errno.EACCES: "no permission", errno.ELOOP: "link loop", errno.ENOENT: "broken link"}
        if error.errno in (errno.ENOENT, errno.ENOTDIR) and not os.path.islink(path):
            return None
        found["problem"] = words.get(error.errno) or "unreadable: %s" % error.strerror
    except (struct.error, ValueError, OverflowError, MemoryError):
        found["problem"] = "damaged"
    finally:
        if descriptor is not None:
            os.close(descriptor)
    return found


def contains_engine(path):
    """Return whether a file defines one of MKL-DNN's symbols."""
    descriptor = None
    found = {}
    try:
        descriptor = opened(path, found)
        if found["size_bytes"] < CONTAINER_BYTES:
            return False
        image = Image(descriptor, found["size_bytes"], found)
        return any(image.symbol(name) is not None for name in ENGINES)
    except (Unusable, IOError, OSError, struct.error, ValueError, OverflowError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)
