"""A part of trace.py: the lines that MKL-DNN prints when it is verbose, without its printing them."""

import os
import sys

from trace_records import BACKWARD, EXECUTED, LOST, REORDERS, WEIGHTS


class _Tap(object):
    """Takes MKL-DNN's verbose lines, which it prints to standard output, into memory of ours.

    libmkldnn calls printf and fflush by way of addresses in a table of its own (ELF's global offset table). The entry
    of printf gets the address of a few instructions that write to memory, with the thread's number before each line;
    that of fflush a function that does nothing, since MKL-DNN flushes every stream of the program. No Python runs in
    between: an interrupt that came during the computation would be lost in it. All others still print as ever.
    """

    SIZE, LONGEST = 1 << 20, 8192  # bytes of memory; bytes that are kept free for a line

    def __init__(self, memory):
        if os.environ.get("MKLDNN_VERBOSE", "0").strip() not in ("", "0"):
            raise LookupError("MKLDNN_VERBOSE is set, and its lines are left to standard output")
        if os.uname()[4] != "x86_64" or sys.maxsize < 2**32:
            raise LookupError("this is no x86-64")
        self.memory, self.ctypes = memory, memory.ctypes
        path, base = self._library()
        self.library = self.ctypes.PyDLL(path)
        slots = self._slots(base)
        name = "__printf_chk" if "__printf_chk" in slots else "printf"
        if name not in slots or "fflush" not in slots or not hasattr(self.library, "mkldnn_verbose_set"):
            raise LookupError("this MKL-DNN has no verbose lines")
        for each in (name, "fflush"):
            # Only what is as the linker left it is changed.
            if self._word(slots[each]) != self._address(each):
                raise LookupError("%s of this MKL-DNN is another one" % each)
        space = memory.new(self.SIZE)
        cell = self.ctypes.c_size_t.from_address
        self.cursor, limit, self.lost = cell(space), cell(space + 8), cell(space + 16)
        self.start = space + 64
        self.cursor.value, limit.value = self.start, space + self.SIZE - self.LONGEST
        self.idents = {}  # eight bytes -> number of a thread
        page = memory.new(4096)
        code = self._code(space, name == "printf")
        self.ctypes.memmove(page, code, len(code))
        memory.protect(page, 4096, 5)  # to be read and executed
        self._put(slots[name], page)
        self._put(slots["fflush"], self._address("getppid"))
        self.library.mkldnn_verbose_set(1)

    def _library(self):
        """Path of the only libmkldnn that is mapped, and the address of its first byte."""
        found = {}
        with open("/proc/self/maps") as stream:
            for line in stream:
                fields = line.rstrip("\n").split(None, 5)
                if len(fields) > 5 and fields[5].rsplit("/", 1)[-1].startswith("libmkldnn."):
                    start = int(fields[0].split("-")[0], 16)
                    if int(fields[2], 16) == 0:
                        found[fields[5]] = min(start, found.get(fields[5], start))
        if len(found) != 1:
            raise LookupError("%d libraries libmkldnn are mapped" % len(found))
        return list(found.items())[0]

    def _word(self, address):
        return self.ctypes.c_uint64.from_address(address).value

    def _half(self, address):
        return self.ctypes.c_uint32.from_address(address).value

    def _address(self, name):
        return self.ctypes.cast(getattr(self.memory.libc, name), self.ctypes.c_void_p).value

    def _slots(self, base):
        """Addresses of the table's entries for printf and fflush: System V ABI, AMD64, chapters 4 and 5."""
        if self.ctypes.string_at(base, 6) != b"\x7fELF\x02\x01":
            raise LookupError("libmkldnn is not mapped as expected")
        headers = base + self._word(base + 32)
        size, count = self.ctypes.string_at(base + 54, 4)[0:2], self.ctypes.string_at(base + 56, 2)
        size, count = [bytearray(two)[0] + 256 * bytearray(two)[1] for two in (size, count)]
        starts = [headers + index * size for index in range(count)]
        dynamic = [base + self._word(at + 16) for at in starts if self._half(at) == 2]  # PT_DYNAMIC
        loads = [self._word(at + 16) for at in starts if self._half(at) == 1]  # PT_LOAD
        if len(dynamic) != 1 or min(loads) != 0:
            raise LookupError("libmkldnn is not linked as expected")
        tags, at = {}, dynamic[0]
        while self._word(at):
            tags[self._word(at)] = self._word(at + 8)
            at += 16
        # DT_PLTRELSZ, DT_JMPREL, DT_SYMTAB, DT_STRTAB: the loader has made addresses of the last three
        length, jumps, symbols, names = [tags[tag] for tag in (2, 23, 6, 5)]
        if min(jumps, symbols, names) < base:
            raise LookupError("libmkldnn is not loaded as expected")
        found = {}
        for at in range(jumps, jumps + length, 24):
            symbol = self._word(at + 8) >> 32
            name = self.ctypes.string_at(names + self._half(symbols + 24 * symbol))
            if name in (b"printf", b"__printf_chk", b"fflush"):
                found[name.decode("ascii")] = base + self._word(at)
        return found

    def _put(self, slot, address):
        """Change an entry of the table, which is read-only where all of it was bound at the start."""
        page = slot & ~4095
        with open("/proc/self/maps") as stream:
            spans = [line.split()[:2] for line in stream]
        ends = [([int(end, 16) for end in span.split("-")], rights) for span, rights in spans]
        read_only = [rights for (first, last), rights in ends if first <= slot < last][0][1] == "-"
        if read_only:
            self.memory.protect(page, 4096, 3)
        self.ctypes.c_uint64.from_address(slot).value = address
        if read_only:
            self.memory.protect(page, 4096, 1)

    def _code(self, space, plain):
        """Instructions of ``int printf(format, ...)``, or of __printf_chk(flag, format, ...), that write to memory.

        ``space`` begins with the address to write to, the last that may be, and the number of lines that were lost. A
        line is the thread's number (what pthread_self returns), the text, and a zero.
        """

        def number(value):
            return self.ctypes.string_at(self.ctypes.addressof(self.ctypes.c_uint64(value)), 8)

        write = (
            b"\x64\x4c\x8b\x14\x25\x10\0\0\0"  # mov r10, fs:[16]
            b"\x4c\x89\x17\x48\x83\xc7\x08"  # mov [rdi], r10; add rdi, 8
            b"\x49\xbb" + number(self._address("sprintf")) + b"\x41\xff\xd3"  # mov r11, sprintf; call r11
            b"\x48\x63\xc0\x48\x83\xc0\x09\x48\x01\x03"  # movsxd rax, eax; add rax, 9; add [rbx], rax
            b"\x5b\xc3"  # pop rbx; ret
        )
        # The format is sprintf's second argument: of printf it is the first, and all move on by one.
        shift = b"\x4d\x89\xc1\x49\x89\xc8\x48\x89\xd1\x48\x89\xf2\x48\x89\xfe" if plain else b""
        return (
            b"\xf3\x0f\x1e\xfa\x53" + shift + b"\x48\xbb" + number(space)  # endbr64; push rbx; mov rbx, space
            + b"\x48\x8b\x3b\x48\x3b\x7b\x08"  # mov rdi, [rbx]; cmp rdi, [rbx+8]
            + b"\x77" + bytes(bytearray([len(write)])) + write  # ja over it
            + b"\x48\xff\x43\x10\x31\xc0\x5b\xc3"  # inc qword [rbx+16]; xor eax, eax; pop rbx; ret
        )  # fmt: skip

    def forget(self):
        """Drop what is there: a forked process has its parent's lines."""
        self.cursor.value = self.start

    def drain(self, records):
        """Count the lines that came since to what each thread was doing."""
        size = self.cursor.value - self.start
        if size <= 0:
            return
        text = self.ctypes.string_at(self.start, size)
        self.cursor.value = self.start
        if self.lost.value:
            records.files[0][LOST] += self.lost.value
            self.lost.value = 0
        place = 0
        while place + 8 < size:
            end = text.index(b"\0", place + 8)
            ident = self.idents.get(text[place : place + 8])
            if ident is None:
                ident = self.ctypes.c_uint64.from_buffer_copy(text[place : place + 8]).value
                self.idents[text[place : place + 8]] = ident
            head, _, milliseconds = text[place + 8 : end].rpartition(b",")
            place = end + 1
            kind = HEADS.get(head)
            if kind is None:
                kind = _learn(head)
            if kind < 0:
                continue
            thread = records.thread(ident)
            backward = 0
            if thread.calls:
                row, backward = thread.calls[-1].row, thread.calls[-1].way
            else:
                row = thread.outside or _outside(records, thread, ident)
            place_of = row.offset + kind + BACKWARD * backward
            row.values[place_of] += 1
            row.values[place_of + 1] += float(milliseconds)
            if head not in row.heads and len(row.heads) < 24:
                row.heads.add(head)
                records.tell("line", row.number, backward, head.decode("ascii", "replace"))


HEADS = {}  # a line of MKL-DNN without its time -> the number that it counts for, negative for none


def _learn(head):
    """What a line of MKL-DNN is about: a computation, a change of layout, or one of weights."""
    fields, kind = head.split(b","), EXECUTED
    if fields[:2] != [b"mkldnn_verbose", b"exec"] or len(fields) < 6:
        kind = -1
    elif fields[2] == b"reorder":
        formats = [word.split(b":")[-1] for word in fields[5].split()]
        if len(formats) == 2 and formats[0] != formats[1]:
            # Weights have output channels, o.
            kind = WEIGHTS if b"o" in formats[1].lower() else REORDERS
    if len(HEADS) < 20000:  # shapes without end: read again each time
        HEADS[head] = kind
    return kind


def _outside(records, thread, ident):
    """The row of a thread for what it has MKL-DNN do outside functions and updates: to_intel64(), arrays of iDeep."""

    def describe(row):
        return {"thread": thread.number, "function": ""}

    thread.outside = records.row((ident, "outside"), describe)
    return thread.outside
