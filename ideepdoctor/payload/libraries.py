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

import errno
import json
import os
import re
import stat
import struct
import time

from common import (
    CHILD,
    Child,
    answer_with,
    begin,
    python_child,
    text,
    with_paths,
)
from surroundings import PY2, inherited_environment, native

PREAD = getattr(os, "pread", None)
SCANDIR = getattr(os, "scandir", None)
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
    "ideepdoctor_mkl_stub",  # builder/stub.py: the library of a build without MKL
)
OPENMP = SYMBOLS[4:7]
ENGINES = SYMBOLS[:4]  # a file that defines one of them contains MKL-DNN or its successors
INTERESTING = re.compile(
    r"lib(?:mkldnn|dnnl|onednn|mklml|mkl_|iomp5|omp(?=[-.])|gomp(?=[-.])(?!-plugin)|(?:scipy_)?openblas).*\.so"
)
ALGEBRA = re.compile(r"lib(?:[cf]?blas|lapack|[cf]?lapacke|satlas|tatlas|atlas|blis|flame|mkl_rt)")
SHARED = re.compile(r"\.so(?:\.|$)")
KINDS_LEFT_OUT = re.compile(
    "(nfs|cifs|smb|9p|afs|ceph|gluster|lustre|gpfs|beegfs|ocfs|gfs|pvfs|orangefs|fuse($|[.])|autofs|proc|sysfs|cgroup|"
    "dev|mqueue|debugfs|tracefs|securityfs|pstore|bpf|configfs|efivarfs|hugetlbfs|nsfs|binfmt|ramfs|rpc_pipefs|virtiofs|"
    "overlay|aufs)"
)  # file systems of other machines, those that hold no files, and views of folders that are walked anyway
CONTAINER_BYTES = 1 << 20  # no file with MKL-DNN inside is smaller

LOOK = (
    CHILD
    + r"""
tell("look", ([""] if first else []) + sys.path)
"""
)

# What the process has mapped, and which file a symbol comes from: the one whose mapping holds its address.
MAPPED = r"""
def mapped():
    data = b""
    descriptor = os.open("/proc/self/maps", os.O_RDONLY)
    while True:
        part = os.read(descriptor, 65536)
        if not part:
            break
        data += part
    os.close(descriptor)
    if sys.version_info[0] > 2:
        data = data.decode(sys.getfilesystemencoding(), "surrogateescape")
    found = []
    for line in data.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5].startswith("/"):
            low, _, high = fields[0].partition("-")
            found.append((int(low, 16), int(high, 16), "x" in fields[1], fields[5]))
    return found
def shared(program=os.path.realpath(sys.executable)):
    # An emulator shows no mapping as executable.
    return sorted(set(one[3] for one in mapped() if (one[2] or ".so" in one[3]) and one[3] != program))
def holder(library, name):
    try:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None
    for low, high, _, path in mapped():
        if low <= address < high:
            return path
def located(libraries, names):
    found = {}
    for name in names:
        for library in libraries:
            path = holder(library, name)
            if path:
                found[name] = path
                break
    return found
"""

# The import and the first operation, as the user's Python would. Every answer is given before the next step can kill.
START = (
    CHILD
    + MAPPED
    + r"""
limit = 4000
def text(value):
    try:
        value = str(value)
    except Exception:
        value = repr(value)
    return value[:limit]
def stage(name, action):
    started = time.time()
    answer = {"ok": False}
    try:
        answer.update(action() or {})
        answer["ok"] = not answer.get("error_type")
    except BaseException as error:
        answer.update(error_type=type(error).__name__, error_text=text(error))
        sys.__excepthook__(*sys.exc_info())
    answer["seconds"] = time.time() - started
    try:
        sys.stderr.flush()
    except Exception:
        pass
    os.write(err, cookie.encode("ascii"))
    tell(name, answer)
    return answer["ok"]
def load():
    import ideep4py
    path = getattr(ideep4py, "__file__", None)
    return {"version": text(getattr(ideep4py, "__version__", "")) or None, "path": path and os.path.abspath(path)}
def first_op():
    import numpy
    import ideep4py
    given = numpy.linspace(-1, 1, 64).astype("float32").reshape(8, 8)
    made = numpy.array(ideep4py.relu.Forward(ideep4py.array(given)))
    if not (made == numpy.maximum(given, 0)).all():
        return {"error_type": "WrongNumbers", "error_text": "relu differs from NumPy's"}
def algebra(config):
    names = ("blas_opt_info", "blas_ilp64_opt_info")
    known = [getattr(config, name) for name in names if isinstance(getattr(config, name, None), dict)]
    if not known:
        blas = config.CONFIG["Build Dependencies"]["blas"]  # NumPy 1.26 and later
        return [text(blas["name"])] if blas["found"] else []
    return [text(one) for info in known for one in info.get("libraries") or info]
tell("at_start", shared())
try:
    import ctypes
    tell("visible", located([ctypes.CDLL(None)], arguments[0].split(",")))
except Exception:
    ctypes = None
if first:
    sys.path.insert(0, "")
try:
    import numpy  # as ideep4py does first; what it opens by itself (MKL's OpenMP) is there before ideep4py's libraries
    tell("numpy_blas", algebra(numpy.__config__))
except BaseException:
    pass
tell("with_numpy", shared())
fine = stage("import", load)
tell("after", shared())
if ctypes:
    libraries = [ctypes.CDLL(None)]
    names = [path for path in shared() if os.path.basename(path).startswith(("libmkldnn", "libdnnl", "libonednn"))]
    for name in ["libmkldnn.so.0"] + names:
        try:
            libraries.append(ctypes.CDLL(name, mode=4))  # RTLD_NOLOAD: only what is there already
        except OSError:
            pass
    tell("bound", located(libraries, arguments[1].split(",")) if len(libraries) > 1 else {})
if fine:
    stage("first_op", first_op)
    tell("after", shared())
"""
)

MKL = (
    CHILD
    + r"""
import ctypes
words = ctypes.create_string_buffer(256)
ctypes.CDLL(arguments[0]).MKL_Get_Version_String(words, 255)
tell("mkl", words.value.decode("ascii", "replace").strip())
"""
)


def raw(path):
    """Return a path as bytes."""
    return path if PY2 else path.encode(sys.getfilesystemencoding(), "surrogateescape")


class Unusable(Exception):
    """A file that no loader can use; its text says why."""


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
        if PREAD:
            return PREAD(self.descriptor, count, offset)
        os.lseek(self.descriptor, offset, 0)
        return os.read(self.descriptor, count)

    def unpack(self, form, offset):
        """Return the numbers there."""
        form = self.order + form
        size = struct.calcsize(form)
        number, start = divmod(offset, BLOCK)
        if start + size <= len(self.blocks.get(number, b"")):
            return struct.unpack_from(form, self.blocks[number], start)
        data = self.at(offset, size)
        if len(data) < size:
            raise Unusable("truncated" if offset + size > self.size else "damaged")
        return struct.unpack(form, data)

    def read_segments(self, offset, entry_size, count):
        """Read the program headers and what they point to."""
        fields = self.fields
        dynamic = None
        notes = []
        cut = False
        stack = True  # what the kernel and the loader assume where nothing is said
        for index in range(count):
            if self.wide:
                kind, flags, start, address, _, length, memory, align = self.unpack("IIQQQQQQ", offset + index * 56)
            else:
                kind, start, address, _, length, memory, flags, align = self.unpack("IIIIIIII", offset + index * 32)
            if kind == 1:
                self.segments.append((address, start, start + length, flags & 2))
                cut = cut or start + length > self.size
            elif kind == 2:
                dynamic = (start, length)
            elif kind == 3:
                words = self.at(start, min(length, 4096)).split(b"\0")[0]
                fields["interpreter"] = native(words) or None
            elif kind == 4:
                notes.append((start, min(length, 1 << 16), 8 if align == 8 else 4))
            elif kind == 0x6474E551:
                stack = bool(flags & 1)
        if cut:
            raise Unusable("truncated")
        fields["executable_stack"] = stack
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
        if 5 not in self.tags:
            self.tags = {}
            return
        self.strings = self.offset_of(self.tags[5])
        self.fields["needed"] = [self.string(one) for one in needed[:1000]]
        for tag, name in ((14, "soname"), (15, "rpath"), (29, "runpath")):
            if tag in self.tags:
                self.fields[name] = self.string(self.tags[tag])
        self.fields["no_default_folders"] = bool(self.tags.get(0x6FFFFFFB, 0) & 0x800)

    def offset_of(self, address):
        """Return where in the file an address of the running library comes from."""
        for base, first, last, _ in self.segments:
            if base <= address < base + last - first:
                return address - base + first
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
        if 6 not in self.tags:
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

    def own_version(self):
        """Return the version that the file itself tells without being loaded, None where it does not."""
        exports = self.fields["exports"]
        for symbol in ("mkldnn_version", "dnnl_version"):
            if symbol in exports:
                return self.engine_version(symbol)
        if "__kmpc_fork_call" in exports:
            return self.searched(b" OMP version: ", b"[0-9.]+")
        if "cblas_sgemm" in exports and "openblas" in self.fields.get("soname", ""):
            return self.searched(b"OpenBLAS ", b"[0-9]+[.][0-9]+[.][0-9]+(?:[.]dev)?")
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

    def searched(self, words, pattern):
        """Return what stands after these words, in the last 4 MiB of a segment that is not written: constants."""
        for _, first, last, writable in reversed(self.segments):
            for end in range(last, max(first, last - (1 << 22)), -(1 << 20)) if not writable else ():
                start = max(first, end - (1 << 20))
                data = self.pread(end - start + 100, start)
                place = data.find(words)
                while place >= 0:
                    found = re.match(pattern, data[place + len(words) : place + len(words) + 40])
                    if found:
                        return native(found.group(0)).rstrip(".")
                    place = data.find(words, place + 1)
        return None


def opened(path, found):
    """Return a descriptor of a regular file that is not empty, and note its identity. Raises Unusable, OSError."""
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
        found["version"] = image.own_version()
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
        if os.stat(path).st_size < CONTAINER_BYTES:
            return False
        descriptor = opened(path, found)
        image = Image(descriptor, found["size_bytes"], found)
        return any(image.symbol(name) is not None for name in ENGINES)
    except (Unusable, IOError, OSError, struct.error, ValueError, OverflowError):
        return False
    finally:
        if descriptor is not None:
            os.close(descriptor)


def read(path, limit=1 << 20):
    """Return the bytes of a file, None where it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            return stream.read(limit)
    except (IOError, OSError):
        return None


def plain(path):
    """Return an absolute path without ``//`` and ``/./``; ``..`` stays, for a folder may be a link."""
    if not path.startswith("/"):
        path = os.path.join(current_folder(), path)
    return "/" + "/".join([part for part in path.split("/") if part not in ("", ".")])


def current_folder():
    """Return the current folder, "/" where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def listing(folder):
    """Return the names in a folder, none where it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def split_folder(folder):
    """Return how many entries a folder has, the paths of its folders, and the names with ``.so`` in them that are none.

    Links to folders are no folders here. Raises OSError.
    """
    count, folders, names = 0, [], []
    if SCANDIR:
        for entry in SCANDIR(folder):
            count += 1
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif ".so" in entry.name:
                names.append(entry.name)
        return count, folders, names
    # Names without a dot first: a folder with links of its own counts them, and few folders have a dot in their names.
    every = os.listdir(folder)
    left = os.lstat(folder).st_nlink - 2
    if left < 0:
        left = len(every)  # a file system that does not count
    for name in sorted(every, key=lambda name: "." in name):
        path = os.path.join(folder, name)
        if left and stat.S_ISDIR(os.lstat(path).st_mode):
            left -= 1
            folders.append(path)
        elif ".so" in name:
            names.append(name)
    return len(every), folders, names


class Collection(object):
    """All that was met: the headers of files by path, and in which places each library of interest was."""

    def __init__(self):
        self.objects = {}
        self.twins = {}  # path of the first name of a file, by its identity
        self.places = {}
        self.package = None  # folder of ideep4py
        self.visited = set()
        self.entries = self.unreadable = 0
        self.complete = True

    def load(self, path):
        """Return the headers of a file, read once; None where there is none."""
        path = plain(path)
        if path not in self.objects:
            if not os.path.lexists(path):
                return None
            try:
                state = os.stat(path)
                twin = self.twins.setdefault((state.st_dev, state.st_ino), path)
            except OSError:
                twin = path
            found = dict(self.objects[twin], real_path=os.path.realpath(path)) if twin in self.objects else None
            found = found or read_elf(path)
            if found is None:
                return None  # it went away meanwhile
            self.objects[path] = found
        return self.objects[path]

    def meet(self, path, place):
        """Note a library of interest."""
        path = plain(path)
        if self.load(path) is None:
            return
        places = self.places.setdefault(path, [])
        own = self.package and path.startswith(self.package + "/")
        if own and "ideep4py" not in places:
            places.append("ideep4py")
        if place not in places and not (own and place == "site-packages") and not (places and place == "disk"):
            places.append(place)

    def meet_if_interesting(self, path, place):
        """Note a file if it is a library of interest, by its name or by its symbols."""
        found = self.load(path)
        if found and (INTERESTING.match(os.path.basename(path)) or found.get("exports")):
            self.meet(path, place)

    def look_into(self, folder, place):
        """Note the libraries of interest that lie in a folder itself."""
        for name in listing(folder):
            if INTERESTING.match(name):
                self.meet(os.path.join(folder, name), place)

    def walk(self, root, place, deadline, most=None, depth=1000, contained=True, shut=None):
        """Note the libraries of interest under a folder; every real folder is visited once, links are not followed.

        Args:
            most: entries after which the walk is cut short.
            depth: how many levels of folders are entered.
            contained: look for MKL-DNN in other libraries too.
            shut: paths of folders that are not entered (deep walk: there folders are not even asked who they are).
        """
        stack = [plain(root)]
        begun, depth = self.entries, depth + stack[0].count("/")
        while stack:
            folder = stack.pop()
            if shut is not None and folder in shut and folder != root:
                continue
            if time.time() > deadline or most and self.entries - begun > most:
                self.complete = False
                return
            try:
                if shut is None:
                    state = os.stat(folder)
                    if (state.st_dev, state.st_ino) in self.visited:
                        continue
                    self.visited.add((state.st_dev, state.st_ino))
                folders = self.visit(folder, place, contained)
            except OSError:
                self.unreadable += 1
                continue
            if folders and folder.count("/") < depth:
                stack.extend(folders)

    def visit(self, folder, place, contained=True):
        """Note the libraries of interest in a folder itself and return the folders in it. Raises OSError."""
        count, folders, names = split_folder(folder)
        self.entries += count
        for name in names:
            path = os.path.join(folder, name)
            if INTERESTING.match(name):
                self.meet(path, place)
            elif contained and SHARED.search(name) and path not in self.places and contains_engine(path):
                self.meet(path, place)
        return folders


class Scouts(object):
    """Processes that walk a share of a disk each: only where they met libraries comes back, the headers are read here.

    One process cannot walk as fast as ``find``; two can.
    """

    SHARES = 200  # folders to deal out: enough that no process has all of the large ones
    MOST = 4

    def __init__(self, root, deadline, shut):
        """Start to look under a folder."""
        self.deadline, self.shut, self.first = deadline, shut, Scout()
        waiting = self.first_folders(root)
        count = min(self.MOST, processors())
        shares = [waiting[number::count] for number in range(count)]
        self.started = [self.start(share) if count > 1 else (share, None) for share in shares]

    def finish(self, state):
        """Note what was met."""
        self.note(state, self.first)
        for share, process in self.started:
            if process is not None:
                self.take(state, process)
                continue
            for folder in share:  # no process could be started
                state.walk(folder, "disk", self.deadline, shut=self.shut)

    def first_folders(self, root):
        """Look into the folders nearest to the root, and return those below them."""
        waiting = [plain(root)]
        while waiting and len(waiting) < self.SHARES:
            folder = waiting.pop(0)
            try:
                waiting += [one for one in self.first.visit(folder, "disk") if one not in self.shut]
            except OSError:
                self.first.unreadable += 1
        return waiting

    def note(self, state, scout):
        """Note what a scout of this process met."""
        state.entries += scout.entries
        state.unreadable += scout.unreadable
        for path in sorted(scout.places):
            state.meet(path, "disk")

    def start(self, share):
        """Start a process that walks these folders; return them and where it tells of them, or None."""
        try:
            out, into = os.pipe()
            child = os.fork()
        except OSError:
            return share, None
        if child == 0:
            try:
                os.close(out)
                scout = Scout()
                for folder in share:
                    scout.walk(folder, "disk", self.deadline, shut=self.shut)
                told = [str(int(one)) for one in (scout.entries, scout.unreadable, scout.complete)]
                data = "\0".join(told + sorted(scout.places) + [""])
                data = data if PY2 else data.encode(sys.getfilesystemencoding(), "surrogateescape")
                while data:
                    data = data[os.write(into, data) :]
            finally:
                os._exit(0)
        os.close(into)
        return share, (child, out)

    def take(self, state, process):
        """Note what a process tells; one that died has left the walk incomplete."""
        child, out = process
        data = b""
        while True:
            more = os.read(out, 1 << 16)
            if not more:
                break
            data += more
        os.close(out)
        os.waitpid(child, 0)
        parts = native(data).split("\0")[:-1]
        if len(parts) < 3:
            state.complete = False
            return
        state.entries += int(parts[0])
        state.unreadable += int(parts[1])
        state.complete = state.complete and parts[2] == "1"
        for path in parts[3:]:
            state.meet(path, "disk")


class Scout(Collection):
    """Notes where libraries are and does not read them."""

    def meet(self, path, place):
        self.places.setdefault(plain(path), [place])


def processors():
    """Return how many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))  # novm: on 2.7 the AttributeError is caught
    except AttributeError:
        pass
    found = re.search(r"(?m)^Cpus_allowed:\s*([0-9a-f,]+)", text(read("/proc/self/status")) or "")
    return bin(int(found.group(1).replace(",", ""), 16)).count("1") if found else 1


def local_disks(mounts):
    """Return the mount points of local file systems, each file system once, and all mount points, of mountinfo."""
    kept, every = [], set()
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds:
            continue
        root, point = [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), one) for one in fields[3:5]]
        every.add(point)
        kept = [one for one in kept if one[2] != point]  # what is mounted over another hides it
        if point == "/" or not (KINDS_LEFT_OUT.match(kinds[0]) or re.match("/(proc|sys|dev)(/|$)", point)):
            kept.append((fields[2], root.rstrip("/") + "/", point))
    chosen = []
    for device, root, point in sorted(kept, key=lambda one: (one[2] != "/", len(one[1]), one[2])):
        inside = [one for one in chosen if one[0] == device and root.startswith(one[1])]
        if not inside and os.path.isdir(point):
            chosen.append((device, root, point))
    return [point for _, _, point in chosen], every


def disk_scouts(roots, deadline):
    """Start to look on the disks, or under ``roots``; return what is to be finished."""
    if roots:
        points, every = [plain(root) for root in roots], set()
    else:
        points, every = local_disks(text(read("/proc/self/mountinfo", 1 << 24)) or "")
    return [Scouts(point, deadline, every | set(["/proc", "/sys", "/dev"])) for point in points or ["/"]]


class Owners(object):
    """Who brought a file: a distribution by its RECORD, conda, or dpkg."""

    def __init__(self):
        self.recorded, self.conda, self.folders = {}, {}, set()

    def read_records(self, folder):
        """Read which libraries the distributions of a folder list; returns those of interest outside of it."""
        base, outside = os.path.realpath(folder), []
        if base in self.folders:
            return outside
        self.folders.add(base)
        for name in listing(base):
            info = os.path.join(base, name)
            if name.endswith(".dist-info"):
                start, words = base, read(os.path.join(info, "RECORD"), 1 << 26)
            elif name.endswith(".egg-info"):
                start, words = info, read(os.path.join(info, "installed-files.txt"), 1 << 26)
            else:
                continue
            for line in (words or b"").split(b"\n"):
                if b".so" in line:
                    path = line[1:].split(b'"')[0] if line.startswith(b'"') else line.split(b",")[0].strip()
                    path = os.path.join(start, native(path))
                    if "/.." in path:
                        path = os.path.normpath(path)
                        if not path.startswith(base + "/") and INTERESTING.match(os.path.basename(path)):
                            outside.append(path)
                    self.recorded[path] = info
        return outside

    def of(self, paths):
        """Return who brought each path, as far as anybody did."""
        found, left = {}, {}
        for path in paths:
            where = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            packages = re.match("/.*?/(?:site|dist)-packages(?=/)", where)
            if packages:
                self.read_records(packages.group(0))
            owner = self.distribution(where) or self.of_conda(where)
            if owner:
                found[path] = owner
            else:
                left[path] = (where, os.path.realpath(path))
        found.update(of_dpkg(left))
        return found

    def distribution(self, path):
        """Return name and version of the distribution that lists a path."""
        info = self.recorded.get(path)
        egg = re.search(r"/([^/]+?)-([^/-]+)(?:-py[^/]*)?\.egg/", path)
        if info is None:
            return "%s %s" % egg.groups() if egg else None
        head = read(os.path.join(info, "METADATA")) or read(os.path.join(info, "PKG-INFO"))
        head = (text(head) or "").replace("\r", "").split("\n\n")[0]
        names = [re.search("(?m)^%s:[ \t]*(.*?)[ \t]*$" % name, head) for name in ("Name", "Version")]
        return " ".join(one.group(1) for one in names if one) or None

    def of_conda(self, path):
        """Return ``conda NAME VERSION`` for a path in a conda environment."""
        prefix = os.path.dirname(path)
        while prefix not in ("/", ""):
            if prefix not in self.conda:
                folder = os.path.join(prefix, "conda-meta")
                self.conda[prefix] = [os.path.join(folder, one) for one in listing(folder) if one.endswith(".json")]
            if self.conda[prefix]:
                wanted = json.dumps(path[len(prefix) + 1 :]).encode("ascii")
                for one in self.conda[prefix]:
                    if wanted in (read(one, 1 << 26) or b""):
                        return "conda " + " ".join(os.path.basename(one)[: -len(".json")].rsplit("-", 2)[:2])
                return None
            prefix = os.path.dirname(prefix)
        return None


def of_dpkg(paths, folder="/var/lib/dpkg/info"):
    """Return ``dpkg NAME`` for those of the paths that a package lists; each has the names that it goes by."""
    wanted = []
    for path, names in paths.items():
        for name in names:
            # A list may say /lib where /lib is a link to /usr/lib by now.
            for one in (name, "/usr" + name, name[4:] if name.startswith("/usr/") else name):
                wanted.append((raw(one), path))
    stems = set(b"/" + os.path.basename(one)[:8] for one, _ in wanted)
    found = {}
    for name in listing(folder) if wanted else []:
        if name.endswith(".list"):
            data = read(os.path.join(folder, name), 1 << 26) or b""
            if any(stem in data for stem in stems):
                for one, path in wanted:
                    if b"\n" + one + b"\n" in data:
                        found.setdefault(path, "dpkg " + name[: -len(".list")].split(":")[0])
    return found


def loader_cache(data):
    """Return the name and path of every x86-64 entry of a /etc/ld.so.cache, in its order; none where it is damaged."""
    start = 0
    if data.startswith(b"ld.so-1.7.0"):
        count = struct.unpack_from("<I", data, 12)[0] if len(data) >= 16 else 0
        start = 16 + count * 12 + 7 & ~7
    if data[start : start + 20] != b"glibc-ld.so.cache1.1" or len(data) < start + 48:
        return []
    found = []
    count = struct.unpack_from("<I", data, start + 20)[0]
    for place in range(start + 48, min(start + 48 + count * 24, len(data) - 23), 24):
        flags, name, path = struct.unpack_from("<iII", data, place)
        if flags & 0xFFFF == 0x0303:
            words = []
            for one in (start + name, start + path):
                end = data.find(b"\0", one, one + 4097)
                words.append(data[one:end] if end > 0 else b"")
            if all(words):
                found.append([native(words[0]), native(words[1])])
    return found


NOTHING = "libideepdoctor-nothing.so"


def loader_child(loader, request, cookie, executable):
    """Let the dynamic loader tell where it searches, by a search for a library that is nowhere."""
    variables = dict(os.environ, LD_DEBUG="libs", LD_PRELOAD=NOTHING)
    variables["LD_LIBRARY_PATH"] = "/proc:/proc/LIB=$LIB:/proc/PLATFORM=$PLATFORM"
    variables.pop("LD_DEBUG_OUTPUT", None)
    return Child(request["emulator"] + [loader, "--list", executable], cookie, variables)


def loader_folders(words):
    """Return (default folders, subfolders searched first, tokens) of what the loader told; its first search counts."""
    block = words.split("find library=" + NOTHING)[-1].split("find library=")[0]
    paths = dict((source, one.split(":")) for one, source in re.findall(r"search path=(\S*)\s+\(([^)]*)\)", block))
    given = paths.get("LD_LIBRARY_PATH", [])
    first, tokens = [], {}
    for one in given:
        one = one.rstrip("/")
        if one.startswith("/proc/") and "=" not in one and one[6:] not in first:
            first.append(one[6:])
        for name in ("LIB", "PLATFORM"):
            if one.startswith("/proc/%s=" % name):
                tokens[name] = one.partition("=")[2]  # the folder itself comes after its subfolders
    every = [one.rstrip("/") or "/" for one in paths.get("system search path", [])]
    default = [one for one in every if not any(one.endswith("/" + sub) for sub in first)]
    if not default:
        usual = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
        default = [one for one in usual if os.path.isdir(one)]
    return default, first, tokens


class Closure(object):
    """Every file that a search of the loader could meet: for each name that is needed, in each folder of any search."""

    def __init__(self, state, executable, default, first, tokens, cache):
        self.state, self.executable, self.first, self.tokens = state, executable, first, tokens
        self.cache = {}
        for name, path in cache:
            self.cache.setdefault(name, []).append(path)
        self.names, self.folders, self.done = set(), [], set()
        self.machine = state.load(executable) or {}
        for folder in default:
            self.add_folder(folder)
        self.add(executable)
        if self.machine.get("interpreter"):
            self.add(self.machine["interpreter"])

    def expand(self, words, path):
        """Return the words with the tokens of a file at this path in place of ``$ORIGIN``, ``$LIB``, ``$PLATFORM``."""
        tokens = dict(self.tokens, ORIGIN=os.path.dirname(path))
        return re.sub(
            r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))",
            lambda one: tokens.get(one.group(1) or one.group(2), one.group(0)),
            words,
        )

    def add(self, path):
        """Take in a file with all that it needs."""
        path = plain(path)
        found = self.state.load(path)
        if found is None or path in self.done:
            return
        self.done.add(path)
        if found["problem"] or any(found.get(one) != self.machine.get(one) for one in ("bits", "machine")):
            return
        for words in (found.get("rpath"), found.get("runpath")):
            for folder in (words or "").split(":") if words else []:
                self.add_folder(self.expand(folder, path))
        for name in found.get("needed") or []:
            self.need(name, path)

    def need(self, name, path):
        """Take in every file that this name may stand for when the file at ``path`` needs it."""
        if "/" in name:
            self.add(self.expand(name, path))
        elif name and name not in self.names:
            self.names.add(name)
            for one in self.cache.get(name, []):
                self.add(one)
            for folder in list(self.folders):
                self.add(folder + "/" + name)

    def add_folder(self, folder):
        """Take in every file in a folder, and in those that are searched before it, that has a name that is needed."""
        folder = plain(folder).rstrip("/")
        for one in [folder + "/" + sub for sub in self.first] + [folder]:
            if one not in self.folders and os.path.isdir(one or "/"):
                self.folders.append(one)
                for name in sorted(self.names):
                    self.add(one + "/" + name)


def preloaded(variables, preload_file):
    """Return what LD_PRELOAD and /etc/ld.so.preload ask for."""
    lines = [line.partition("#")[0] for line in (preload_file or "").splitlines()]
    words = " ".join([variables.get("LD_PRELOAD") or ""] + lines)
    return [one for one in re.split(r"[\s:]+", words) if one]


SHELL = re.compile(
    r"""(?:^|[\s;&|({])(?P<name>LD_PRELOAD|LD_LIBRARY_PATH)=(?P<value>(?:"[^"]*"|'[^']*'|[^\s;&|)"'])+)(?=(?P<rest>[^;&|)]*))"""
)
CSH = re.compile(r"(?:^|[\s;&|])setenv\s+(?P<name>LD_PRELOAD|LD_LIBRARY_PATH)\s+(?P<value>\"[^\"]*\"|'[^']*'|[^\s;]+)")
FISH = re.compile(r"(?:^|[\s;])set\s+(?:-\S+\s+)*(?P<name>LD_PRELOAD|LD_LIBRARY_PATH)\s+(?P<value>[^;#]+)")


def variable_sources(paths):
    """Return the lines of shell files that set a variable of the loader for later programs; paths come with a kind."""
    found = []
    for path, kind in paths:
        for number, line in enumerate((text(read(path)) or "").splitlines(), 1):
            if "LD_" not in line or line.lstrip().startswith("#"):
                continue
            pattern = FISH if path.endswith(".fish") else CSH if re.search(r"csh(rc)?$", path) else SHELL
            for match in pattern.finditer(line):
                rest = match.groupdict().get("rest", "").strip()
                exported = re.search(r"\b(export|declare|typeset)\b", line[: match.start("name")])
                if rest and not exported and not re.match(r"#|[A-Za-z_]\w*=|export\b", rest):
                    continue  # set for one command
                value = re.sub("[\"']", "", match.group("value")).strip()
                if value:
                    told = {"name": match.group("name"), "value": value, "path": path, "line_number": number}
                    found.append(dict(told, line=line, kind=kind))
    return found


def shell_files(prefix, home):
    """Return the files that shells read, each with its kind."""
    paths = [(os.path.join(prefix, "bin", one), "activation") for one in ("activate", "activate.csh", "activate.fish")]
    hooks = os.path.join(prefix, "etc/conda/activate.d")
    paths += [(os.path.join(hooks, one), "activation") for one in sorted(listing(hooks))]
    names = ".bashrc .bash_profile .profile .zshrc .zshenv .cshrc .tcshrc .config/fish/config.fish"
    paths += [(os.path.join(home, one), "rc") for one in names.split() if home]
    paths.append(("/etc/environment", "system"))
    paths += [("/etc/profile.d/" + one, "system") for one in sorted(listing("/etc/profile.d")) if one.endswith(".sh")]
    return paths


def package_folder(path, name):
    """Return the folder of the package that an import would take."""
    for entry in path:
        folder = os.path.join(plain(entry), name)
        if any(os.path.exists(os.path.join(folder, "__init__" + end)) for end in (".py", ".pyc")):
            return folder
    return None


def extension_suffixes():
    """Return how the names of extension modules end that this interpreter imports, the preferred first."""
    if PY2:
        return [suffix for suffix, _, kind in __import__("imp").get_suffixes() if kind == 3]
    return __import__("_imp").extension_suffixes()


def binding_of(folder):
    """Return the path of ideep4py's extension module, of another Python's where there is none for this one."""
    names = [name for name in sorted(listing(folder)) if name.startswith("_ideep4py") and SHARED.search(name)]
    wanted = ["_ideep4py" + suffix for suffix in extension_suffixes()]
    best = [name for name in wanted if name in names] + names
    return os.path.join(folder, best[0]) if best else None


def numpy_modules(folder):
    """Return the extension modules of NumPy that need libraries of interest, or a linear algebra that may be one."""
    found = []
    for inner in ("core", "_core", "linalg"):
        for name in sorted(listing(os.path.join(folder, inner))):
            if re.match(r"(_multiarray_umath|multiarray|umath|_dotblas|lapack_lite|_umath_linalg)\..*so$", name):
                path = os.path.join(folder, inner, name)
                elf = read_elf(path) or {}
                if any(INTERESTING.match(one) or ALGEBRA.match(one) for one in elf.get("needed") or []):
                    found.append(path)
    return found


def prefixes_of_conda(environment):
    """Return the conda environments that this process is in or beside."""
    found = []
    here = environment.get("CONDA_PREFIX")
    if here:
        parent = os.path.dirname(here)
        envs = parent if os.path.basename(parent) == "envs" else os.path.join(here, "envs")
        found = [here, os.path.dirname(envs)] + [os.path.join(envs, one) for one in sorted(listing(envs))]
    bases = [sys.prefix, getattr(sys, "base_prefix", sys.prefix)]
    found += [one for one in bases if os.path.isdir(os.path.join(one, "conda-meta"))]
    return [one for number, one in enumerate(found) if one not in found[:number] and os.path.isdir(one)]


def look_around(state, owners, path, environment, others, deadline):
    """Note the libraries of interest of this environment and of where the loader is sent."""
    stdlib = os.path.realpath(os.path.dirname(os.__file__))
    for entry in path:
        for one in owners.read_records(entry):
            state.meet(one, "prefix")
    for entry in path:
        real = os.path.realpath(entry)
        if os.path.isdir(entry) and real != stdlib and real != os.path.join(stdlib, "lib-dynload"):
            packaged = os.path.basename(real) in ("site-packages", "dist-packages")
            state.walk(entry, "site-packages", deadline, most=None if packaged else 50000)
    done = set()
    bases = [sys.prefix, sys.exec_prefix, getattr(sys, "base_prefix", None), getattr(sys, "real_prefix", None)]
    for place, prefixes in (("prefix", bases), ("conda", prefixes_of_conda(environment))):
        for prefix in prefixes:
            for inner in ("lib", "lib64"):
                real = (place, os.path.realpath(os.path.join(prefix or "/nonexistent", inner)))
                if real not in done:
                    done.add(real)
                    state.look_into(os.path.join(prefix or "/nonexistent", inner), place)
    for prefix in others:
        state.look_into(os.path.join(prefix, "lib"), "other environment")
        for name in listing(os.path.join(prefix, "lib")):
            inner = os.path.join(prefix, "lib", name, "site-packages")
            if name.startswith("python") and os.path.isdir(inner):
                owners.read_records(inner)
                state.walk(inner, "other environment", deadline)
    if os.path.isdir("/opt/intel"):
        state.walk("/opt/intel", "/opt/intel", deadline, most=100000, depth=7, contained=False)


def started_answer(child, cookie, timeout):
    """Return what became of the child that imported ideep4py."""
    told = with_paths(child.wait(timeout).told())
    answer = dict((name, told.pop(name, [])) for name in ("at_start", "with_numpy", "after"))
    answer.update((name, told.pop(name, {})) for name in ("visible", "bound"))
    answer["numpy_blas"] = told.pop("numpy_blas", None)
    errors = [text(part)[-TEXT_LIMIT:] for part in child.output[2].split(cookie.encode("ascii"))]
    return dict(answer, told=told, stderr=errors, ended=child.ended())


def mkl_children(state, request, cookie):
    """Load at most four files in children that may die and tell their version; return pairs of path and child."""
    rank = ["ideep4py", "LD_PRELOAD", "LD_LIBRARY_PATH", "prefix", "conda", "site-packages"]
    order = sorted(state.places, key=lambda path: min((rank + state.places[path]).index(p) for p in state.places[path]))
    chosen = {}
    for path in order:
        elf = state.objects[path]
        if state.package and path.startswith(state.package + "/"):
            continue  # what the wheels bring is known by its size
        if re.match("libmklml|libmkl_rt", os.path.basename(path)) and "MKL_Get_Version_String" in elf["exports"]:
            if not elf["problem"] and len(chosen) < 4:
                chosen.setdefault(elf["identity"], path)
    children = []
    for path in chosen.values():
        variables = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(path))  # it may need its neighbours
        children.append((path, python_child(MKL, request, cookie, variables, [path], ("-B", "-E", "-s"))))
    return children


def mkl_versions(children, timeout):
    """Return what these children say of the version of their file, by path."""
    told = [(path, child.wait(min(timeout, 20)).told().get("mkl")) for path, child in children]
    return dict((path, words) for path, words in told if words)


def main():
    """Answer the request."""
    cookie, request = begin()
    timeout = float(request.get("timeout_seconds") or 30)
    begun = time.time()
    environment = inherited_environment(request.get("loader_variables") or {})
    look = python_child(LOOK, request, cookie, environment)
    state, owners = Collection(), Owners()
    executable = os.path.realpath(sys.executable or "/proc/self/exe")
    loader = (state.load(executable) or {}).get("interpreter")
    asked = loader_child(loader, request, cookie, executable) if loader else None
    started = None
    if request.get("start"):
        arguments = [",".join(ENGINES), ",".join(OPENMP)]
        started = python_child(START, request, cookie, environment, arguments)
    path = with_paths(look.wait(timeout).told()).get("look", sys.path)
    if asked:
        asked.wait(timeout)
    search = loader_folders(native(asked.output[1] + asked.output[2]) if asked else "")
    scouts = []
    if request.get("deep"):
        seconds = float(request.get("walk_seconds") or 10 * timeout)
        scouts = disk_scouts(request.get("roots"), time.time() + seconds)
    answer = static_answer(state, owners, request, environment, executable, path, search, begun + timeout)
    for scout in scouts:
        scout.finish(state)
    answer["walk"] = {
        "entries": state.entries,
        "seconds": time.time() - begun,
        "complete": state.complete,
        "unreadable": state.unreadable,
    }
    loading = mkl_children(state, request, cookie) if request.get("deep") or request.get("start") else []
    answer["started"] = started_answer(started, cookie, timeout) if started else None
    if started:
        for one in sorted(set(sum((answer["started"][name] for name in ("at_start", "with_numpy", "after")), []))):
            state.meet_if_interesting(one, "process")
    for source in with_paths(answer["sources"]):
        for one in re.split("[ :]", source["value"] if source["name"] == "LD_PRELOAD" else ""):
            if one.startswith("/"):
                state.meet_if_interesting(one, "start-up file")
    brought = owners.of(list(state.places))
    answer["found"] = [
        {"path": path, "places": places, "owner": brought.get(path)} for path, places in sorted(state.places.items())
    ]
    answer["objects"] = state.objects
    answer["mkl_versions"] = mkl_versions(loading, timeout)
    answer_with(cookie, answer)


def static_answer(state, owners, request, environment, executable, path, search, deadline):
    """Return all of the answer that files alone tell, but for what was found."""
    default, first, tokens = search
    variables = dict((name, environment.get(name)) for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"))
    preload_file = with_paths(text(read("/etc/ld.so.preload")))
    cache = loader_cache(read("/etc/ld.so.cache", 1 << 26) or b"")
    state.package = package_folder(path, "ideep4py")
    binding = binding_of(state.package) if state.package else None
    numpy = package_folder(path, "numpy")
    modules = numpy_modules(numpy) if numpy else []
    closure = Closure(state, executable, default, first, tokens, cache)
    given = variables["LD_LIBRARY_PATH"]
    library_path = [closure.expand(one or ".", executable) for one in re.split("[:;]", given)] if given else []
    for folder in library_path:
        closure.add_folder(folder)
    for name in preloaded(variables, preload_file):
        closure.need(name, executable)
    for one in [binding] + modules:
        if one:
            closure.add(one)
    if state.package:
        state.look_into(os.path.join(state.package, "lib"), "ideep4py")
    entries = [entry for entry in path if entry not in ("", ".")]
    look_around(state, owners, entries, environment, request.get("others") or [], deadline)
    for folder in library_path:
        state.look_into(folder, "LD_LIBRARY_PATH")
    for name in preloaded(variables, preload_file):
        for one in [closure.expand(name, executable)] if "/" in name else [f + "/" + name for f in closure.folders]:
            state.meet_if_interesting(one, "LD_PRELOAD")
    for name, one in cache:
        if INTERESTING.match(name):
            state.meet(one, "ld.so cache")
    return {
        "libraries": 1,
        "executable": executable,
        "binding": binding and plain(binding),
        "numpy": [plain(one) for one in modules],
        "variables": variables,
        "preload_file": preload_file,
        "cache": cache,
        "default_folders": default,
        "hwcaps": first,
        "tokens": tokens,
        "sources": variable_sources(shell_files(sys.prefix, request.get("home") or "")),
    }


if __name__ == "__main__":
    main()
