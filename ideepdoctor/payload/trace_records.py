"""A part of trace.py: what it knows of this process, and the files that it writes.

A part: ``from trace_records import ...`` in a payload is replaced by this text (see ``payload_source``).
"""

import os
import sys
import time

try:
    from thread import get_ident
except ImportError:
    from threading import get_ident  # noqa: F401  # novm: Python 3 alone

clock = getattr(time, "perf_counter", time.time)
FOLDER, EVENTS = "IDEEPDOCTOR_TRACE", "IDEEPDOCTOR_TRACE_EVENTS"

ROW, ROWS, FIRST, FILES = 16, 512, 8, 64
# Numbers of a row: calls and seconds; calls of MKL-DNN and ms; changes of layout and ms; those of weights and ms.
# Forward first, backward BACKWARD further on.
CALLS, SECONDS, EXECUTED, EXECUTED_MS, REORDERS, REORDERS_MS, WEIGHTS, WEIGHTS_MS, BACKWARD = 0, 1, 2, 3, 4, 5, 6, 7, 8
# Numbers of row 0: seconds that tracing took; seconds from the start of the records to the last call's end; when that
# start was (since 1970); lines of MKL-DNN that found no room; calls that were not recorded one by one.
OWN, LAST, STARTED, LOST, SKIPPED = range(5)
FACTS = 4 * 1024 * 1024  # bytes of BASE.txt; what is new after that is not told


class _State(object):
    """What is known in this process; one object, which outlives a reload of this module."""

    def __init__(self):
        self.folder = os.environ.get(FOLDER, "")
        self.cwd = os.getcwd()
        self.kinds, self.places = {}, []  # file name -> where it belongs; (start of a path, where it belongs)
        self.records = self.chainer = self.numpy = self.mdarray = self.tap = None
        self.setters = {}  # of a setting, in a scope: where it was set, innermost last
        self.classes = {}  # class of a function -> its name, and the names that decide
        self.parameter = self.memory = None
        self.failures = 0  # after many of ours, nothing more is tried


def _literal(value):
    """A value as ASCII text that Python 3 reads back."""
    if isinstance(value, bytes) and bytes is str:  # Python 2
        value = value.decode(sys.getfilesystemencoding() or "utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join([_literal(one) for one in value])
    if isinstance(value, dict):
        return "{%s}" % ", ".join(["%s: %s" % (_literal(key), _literal(value[key])) for key in sorted(value)])
    if isinstance(value, float):
        return repr(value) if value - value == 0 else "None"  # a literal has no infinity
    if value is None or value is True or value is False:
        return repr(value)
    if isinstance(value, int) or type(value).__name__ == "long":
        return "%d" % value
    if not isinstance(value, type("")):
        value = "%s" % (value,)
    text = repr(value).lstrip("u")
    return text if bytes is str else ascii(value)  # novm: Python 3 alone


def _of_a_handler():
    """Whether the exception that is being handled was raised by a signal handler of the program's: it is not ours."""
    import signal

    codes = []
    for number in range(1, 65):
        try:
            handler = signal.getsignal(number)
        except (ValueError, KeyError):
            continue
        while hasattr(handler, "func"):  # functools.partial
            handler = handler.func
        if not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
            handler = getattr(type(handler), "__call__", None)
        codes.append(getattr(getattr(handler, "__func__", handler), "__code__", None))
    step = sys.exc_info()[2]
    while step is not None:
        if any(code is not None and code is step.tb_frame.f_code for code in codes):
            return True
        step = step.tb_next
    return False


def _problem(where):
    """Record once that something of ours failed; what the program itself raised from a signal handler goes on."""
    if _of_a_handler():
        raise  # noqa: PLE0704 (within the handler of the caller)
    STATE.failures += 1
    try:
        kind, error = sys.exc_info()[:2]
        text = "%s: %s: %s" % (where, kind.__name__, error)
        STATE.records.tell_once(text, "problem", text)
    except Exception:
        pass


STATE = getattr(sys, "_ideepdoctor_trace_state", None)
IS_FIRST = STATE is None
if IS_FIRST:
    STATE = sys._ideepdoctor_trace_state = _State()


class _Memory(object):
    """Memory from the system: for numbers that outlive the process, and for the lines of MKL-DNN."""

    def __init__(self):
        import ctypes

        self.ctypes = ctypes
        self.libc = libc = ctypes.PyDLL(None)
        libc.mmap.restype, size = ctypes.c_void_p, ctypes.c_size_t
        libc.mmap.argtypes = [ctypes.c_void_p, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        libc.mprotect.argtypes = [ctypes.c_void_p, size, ctypes.c_int]

    def new(self, size, flags=0x22, descriptor=-1):
        """Address of memory that can be written: MAP_PRIVATE and MAP_ANONYMOUS, or a file."""
        address = self.libc.mmap(None, size, 3, flags, descriptor, 0)
        if address in (None, self.ctypes.c_void_p(-1).value):
            raise MemoryError("no memory of %d bytes can be mapped" % size)
        return address

    def protect(self, address, size, protection):
        if self.libc.mprotect(address, size, protection):
            raise MemoryError("the protection of a page cannot be changed")

    def of_file(self, path, count):
        """An array of doubles that a new file holds. The file is closed again: no descriptor is taken."""
        size = count * 8
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 384)  # 0600
        try:
            # Written, not only made longer: a full disk is an error here, and not the end of the process later.
            if os.write(descriptor, b"\0" * size) != size:
                raise MemoryError("the disk is full")
            return (self.ctypes.c_double * count).from_address(self.new(size, 1, descriptor))
        finally:
            os.close(descriptor)


class _Row(object):
    """A function at a line, with one kind of input, in one thread."""

    __slots__ = ("number", "values", "offset", "records", "key", "facts", "heads", "origin")


class _Call(object):
    """A call of a function that has begun."""

    __slots__ = ("row", "function", "backward", "way", "start", "inner", "within", "counts")


class _Thread(object):
    """What a thread is just doing."""

    __slots__ = ("number", "calls", "outside")


class _Records(object):
    """The files of one process."""

    def __init__(self, forked_from=None):
        self.pid = os.getpid()
        # Not os.urandom, which on Python 2.7 keeps a file open.
        digits = int(time.time() * 1e6) & 0xFFFFFFFF
        self.base = os.path.join(STATE.folder, "%d-%08x" % (self.pid, digits))
        self.rows, self.threads, self.told, self.files = {}, {}, set(), []
        self.wide = {}  # arrays that are not float32, by id: a reference, and the row that they began with
        self.free, self.size, self.zero = FIRST, 0, clock()
        self.events, self.flushed, self.left = [], self.zero, 0
        facts = {"pid": self.pid, "parent": os.getppid(), "python": "%d.%d.%d" % sys.version_info[:3]}
        facts.update(executable=sys.executable, forked_from=forked_from, time=time.time(), cwd=STATE.cwd)
        facts["command"] = _command()
        self.tell("process", facts)

    def tell(self, *fields):
        """Add a line to BASE.txt."""
        line = (_literal(fields)[1:-1] + "\n").encode("ascii")
        if self.size < FACTS:
            self.size += len(line)
            with open(self.base + ".txt", "ab") as stream:
                stream.write(line)

    def tell_once(self, key, *fields):
        if key not in self.told:
            self.told.add(key)
            self.tell(*fields)

    def begin(self):
        """Make room for numbers: not before Chainer is imported, for most programs are none of ours."""
        self._more()
        self.files[0][STARTED] = time.time() - (clock() - self.zero)
        try:
            self.left = int(os.environ.get(EVENTS, "0"))
        except ValueError:
            self.left = 0

    def _more(self):
        if len(self.files) >= FILES:
            raise MemoryError("more functions, lines and threads than trace has room for")
        self.files.append(STATE.memory.of_file("%s.rows%d" % (self.base, len(self.files)), ROW * ROWS))

    def thread(self, ident):
        """What this thread is doing; begun when it is first seen."""
        found = self.threads.get(ident)
        if found is None:
            found = self.threads[ident] = _Thread()
            found.number, found.calls, found.outside = len(self.threads) - 1, [], None
        return found

    def row(self, key, describe):
        """The row of a key; ``describe`` gives its facts where it is new."""
        found = self.rows.get(key)
        if found is None:
            if self.free // ROWS >= len(self.files):
                self._more()
            found = _Row()
            found.number, found.records, found.key, found.heads = self.free, self, key, set()
            found.values, found.offset = self.files[self.free // ROWS], self.free % ROWS * ROW
            found.origin = 0
            self.free += 1
            self.rows[key] = found
            found.facts = describe(found)
            self.tell("row", found.number, found.facts)
        return found

    def busy(self, thread, call):
        """Say what a thread is computing, for the case that it never comes back."""
        place = ROW + thread.number
        if place < FIRST * ROW:
            self.files[0][place] = 0 if call is None else -call.row.number if call.way else call.row.number

    def event(self, call, duration, now):
        """Keep a call for BASE.events."""
        if self.left <= 0:
            self.files[0][SKIPPED] += 1
            return
        self.left -= 1
        fields = (call.row.number, call.backward, (call.start - self.zero) * 1e6, duration * 1e6)
        self.events.append("%d %d %.1f %.1f\n" % fields)
        if len(self.events) >= 128 or now - self.flushed > 0.1:
            self.flush(now)

    def flush(self, now):
        lines, self.events, self.flushed = self.events, [], now
        if lines:
            with open(self.base + ".events", "ab") as stream:
                stream.write("".join(lines).encode("ascii"))


def _command():
    """The words that started this process; sys.argv is not there yet when Python starts."""
    try:
        with open("/proc/self/cmdline", "rb") as stream:
            words = stream.read(4096).split(b"\0")[:-1]
    except EnvironmentError:
        return []
    return [word[:200].decode("utf-8", "replace") for word in words[:8]]


def _records():
    """The records of this process: new ones where it was forked since."""
    records = STATE.records
    if records.pid != os.getpid():
        forked_from = records.pid
        records = STATE.records = _Records(forked_from)
        records.begin()
        if STATE.tap is not None:
            STATE.tap.forget()
    return records
