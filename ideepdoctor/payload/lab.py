"""What the payloads share that run operations of Chainer: children that may die, and the comparison with float64.

A part: ``from lab import ...`` in a payload is replaced by this text before it is sent (see ``payload_source``). The
payload drops '' from sys.path before that line.

A child gets the whole program, joined, as a marshalled code object on its standard input, because a program that came
over a pipe cannot be read twice and a command line has no room for it. It is started without -E and -s, with the
environment that the payload was started with, so that it meets what the user's programs meet.
"""

import base64
import json
import marshal
import os
import re
import signal
import subprocess
import sys
import threading
import time

from surroundings import inherited_environment, leave_no_core_files

PROGRAM = sys._getframe().f_code

# The first act of a child, like that of this file, is to drop '' from sys.path. sys and marshal are built in.
BOOT = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; import marshal; "
    "exec(marshal.loads(getattr(sys.stdin, 'buffer', sys.stdin).read()), {'__name__': '__main__'})"
)

# Unit roundoff of float32.
ROUNDOFF = 2.0**-24
# The error of a sum of n terms, each rounded as if at random, stays below LAMBDA * sqrt(n) * roundoff, relative to
# the largest partial sum, with probability 1 - 2 exp(-LAMBDA^2 / 2) (Higham and Mary, "A new approach to
# probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019). 5 would do; 8 leaves room for results
# whose largest element, which the errors here are relative to, happens to be smaller than the partial sums.
LAMBDA = 8.0
# Divisions, roots and powers in a kernel are a few units in the last place off however few terms there are.
LEAST_TERMS = 64

# Shapes at which BatchNormalization's gradients were seen to be wrong: the first three with 2 threads; the first two,
# the fourth and the last with 3; the fifth and sixth with 4; the fourth and the last with 8.
SEEN_WRONG = (
    (8, 16, 56, 56),
    (32, 16, 28, 28),
    (4, 3, 112, 112),
    (8, 64, 56, 56),
    (8, 32, 56, 56),
    (32, 32, 28, 28),
    (32, 64, 28, 28),
)
# What MKL-DNN 0.14 takes for the last-level cache of one core where CPUID leaf 4 says nothing (processors that are
# not Intel's), and what qemu 7.2 shows in that leaf for its Intel models; bytes.
CACHE_NOT_INTEL = 1024000
CACHE_QEMU = 16 * 1024 * 1024
# Larger shapes than this cost seconds of reference and are left out, with the reason.
MOST_ELEMENTS = 16 * 1024 * 1024
# Where so many children die before any operation has ended, all would: a processor too old, a wrong library.
DEATHS = 3


VERBOSE = re.compile("mkldnn_verbose,[^\n]*")


class NotRun(Exception):
    """An operation that cannot be tried in this environment; its text is the reason."""


class Result(object):
    """What an operation gave: (name, ours, reference) of each output and gradient."""

    def __init__(self, used, pairs, terms, note=""):
        self.used, self.pairs, self.terms, self.note = used, pairs, terms, note


def tolerance(terms):
    """Largest relative error that float32 accumulation over this many terms explains."""
    return LAMBDA * max(terms, LEAST_TERMS) ** 0.5 * ROUNDOFF


# ------------------------------------------------------------------------------------------- in a child


class Lab(object):
    """Chainer, NumPy and the two ways to compute; exists only in a child."""

    def __init__(self, emulated):
        import chainer
        import chainer.functions
        import chainer.links
        import numpy

        self.np, self.chainer, self.F, self.L = numpy, chainer, chainer.functions, chainer.links
        self.emulated = emulated
        self.ideep4py, self.mdarray, self.available, self.reason = None, (), False, ""
        try:
            from chainer.backends import intel64

            self.available = bool(intel64.is_ideep_available())
            if not self.available:
                intel64.check_ideep_available()
        except Exception as error:
            self.reason = describe(error)
        # Chainer before 5.0.0rc1 hands on a gradient that ideep4py 2 (which has a __version__) does not fill.
        self.garbage = False
        if self.available:
            import ideep4py

            self.ideep4py, self.mdarray = ideep4py, ideep4py.mdarray
            early = re.match(r"4\.|5\.0\.0[ab]", chainer.__version__)
            self.garbage = bool(early) and hasattr(ideep4py, "__version__")
        self.threads = omp_threads()

    def arrays(self, *shapes):
        """Arrays of float32 normal deviates, the same in every run."""
        random = self.np.random.RandomState(20180)
        return [random.standard_normal(shape).astype(self.np.float32) for shape in shapes]

    def ideep(self):
        """Context in which Chainer uses iDeep where it can."""
        return self.chainer.using_config("use_ideep", "auto")

    def numpy(self):
        """Context in which Chainer never uses it."""
        return self.chainer.using_config("use_ideep", "never")

    def is_ours(self, variable):
        """Whether this variable's array is one of iDeep's."""
        return isinstance(variable.data, self.mdarray) if self.mdarray else False

    def differentiate(self, function, arrays, names, dtype):
        """Run a function of Variables forward and backward; return its output Variable and the named results."""
        variables = [self.chainer.Variable(array.astype(dtype)) for array in arrays]
        output = function(*variables)
        used = self.is_ours(output)
        random = self.np.random.RandomState(4)
        output.grad = random.standard_normal(output.shape).astype(self.np.float32).astype(dtype)
        output.backward()
        named = [("output", output.data)]
        for name, variable in zip(names, variables):
            named.append(("gradient of " + name, variable.grad))
        return used, named

    def compare(self, function, shapes, names, terms, arrays=None):
        """Check a function against float64, forward and backward."""
        arrays = self.arrays(*shapes) if arrays is None else arrays
        with self.ideep():
            used, ours = self.differentiate(function, arrays, names, self.np.float32)
        with self.numpy():
            _, reference = self.differentiate(function, arrays, names, self.np.float64)
        pairs = [(name, mine, true) for (name, mine), (_, true) in zip(ours, reference)]
        return Result(used, pairs, terms)

    def need_ideep(self):
        """Stop where Chainer has no iDeep: to_intel64() then raises, which is no fault of the operation."""
        if not self.available:
            raise NotRun("iDeep is not available to this Chainer")


def describe(error):
    """An exception as one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())


def omp_threads():
    """Threads of the OpenMP runtime that ideep4py brought; None where it is not in this process."""
    import ctypes

    try:
        with open("/proc/self/maps") as stream:
            paths = [line.split()[-1] for line in stream if "libiomp5" in line]
        return int(ctypes.CDLL(paths[0]).omp_get_max_threads()) if paths else None
    except (OSError, IOError, AttributeError):
        return None


def cache_bytes(emulated):
    """The last-level cache per core as MKL-DNN sees it, in bytes."""
    if emulated:
        return CACHE_QEMU
    try:
        with open("/proc/cpuinfo") as stream:
            if "GenuineIntel" not in stream.read():
                return CACHE_NOT_INTEL
        folder = "/sys/devices/system/cpu/cpu0/cache/index3/"
        with open(folder + "size") as stream:
            size = int(stream.read().strip().rstrip("K")) * 1024
        with open(folder + "shared_cpu_list") as stream:
            ends = [part.split("-") for part in stream.read().strip().split(",")]
        return size // sum(int(part[-1]) - int(part[0]) + 1 for part in ends)
    except (OSError, IOError, ValueError):
        return CACHE_NOT_INTEL


def exposing_shape(threads, cache):
    """A shape at which the faulty BatchNormalization kernel is wrong with this many threads.

    It takes the channels in blocks that fill half of the cache of all threads (cache * threads / 2, two arrays of
    float32), and goes wrong when a first block has at least as many channels as there are threads and the last one
    has fewer. With 2 * threads - 1 channels that is so for any block of threads to 2 * threads - 2 channels; the
    image is as large as puts the block in the middle. Found by trying 93 shapes at 1 to 28 threads, on an AMD
    processor and an emulated Intel one with another cache: every one agreed.
    """
    middle = (threads * (2 * threads - 1)) ** 0.5
    side = int((cache * threads / 2.0 / middle / 8 / 4) ** 0.5)
    return (4, 2 * threads - 1, side, side)


def in_float64(lab, net):
    """Turn a model into its float64 reference, in place."""
    for link in net.links():
        for name in list(getattr(link, "_persistent", ())):
            value = getattr(link, name)
            if isinstance(value, lab.np.ndarray):
                setattr(link, name, value.astype(lab.np.float64))
    for param in net.params():
        param.cleargrad()
        param.data = param.data.astype(lab.np.float64)
    return net


def judge(np, result):
    """Compare what an operation gave with its reference; return the fields of a check."""
    worst, where = 0.0, ""
    for name, ours, reference in result.pairs:
        error = relative_error(np, ours, reference)
        if error > worst:
            worst, where = error, name
    limit = tolerance(result.terms)
    right = worst <= limit and not result.note
    finite = worst != float("inf")
    if right:
        message = ""
    elif result.note:
        message = result.note
    elif finite:
        message = "%s is off by %.2g" % (where, worst)
    else:
        message = "%s is NaN, infinite or of another shape" % where
    return {
        "status": "right" if right else "wrong",
        "used_ideep": result.used,
        "error": worst if finite else None,
        "tolerance": limit,
        "message": message,
    }


def relative_error(np, ours, reference):
    """max |a - b| / max |b|; infinity where a is not there, not finite, or of another shape."""
    if ours is None or reference is None:
        return 0.0 if ours is reference else float("inf")
    ours, reference = np.array(ours).astype(np.float64), np.array(reference).astype(np.float64)
    if ours.shape != reference.shape or not np.isfinite(ours).all() or not np.isfinite(reference).all():
        return float("inf")
    if not ours.size:
        return 0.0
    difference, scale = float(abs(ours - reference).max()), float(abs(reference).max())
    if not scale:
        return float("inf") if difference else 0.0
    return difference / scale


def begin(cookie, order):
    """Make the Lab of a child; return it and ``tell``, which sends an event to the parent. None where it fails."""
    # The default action ends a process that hangs in native code, too; an inherited "ignore" would not.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def tell(**event):
        text = "\n%s%s%s\n" % (cookie, json.dumps(event, sort_keys=True), cookie)
        os.write(1, text.encode("ascii"))

    signal.alarm(order["op_seconds"])
    try:
        lab = Lab(order["emulated"])
    except Exception as error:
        tell(event="failed", message=describe(error))
        return None, tell
    told = {"threads": lab.threads, "available": lab.available, "reason": lab.reason, "garbage": lab.garbage}
    tell(event="ready", chainer=lab.chainer.__version__, **told)
    return lab, tell


# ------------------------------------------------------------------------------------------- in the parent


class Child(object):
    """A process that runs some operations: its events, and how it ended."""

    def __init__(self, setting, order):
        self.events, self.lines, self.stderr, self.code, self.killed = [], [], "", None, False
        left = setting["deadline"] - time.time()
        if left < 1:
            self.killed = True
            return
        order = dict(
            order, emulated=bool(setting["emulator"]), op_seconds=max(1, int(min(setting["op_seconds"], left)))
        )
        words = setting["emulator"] + [sys.executable, "-B", "-c", BOOT, "child", setting["cookie"], json.dumps(order)]
        env = dict(setting["env"])
        if not order.get("quiet"):
            env["MKLDNN_VERBOSE"] = "1"
        pipe = subprocess.PIPE
        # Groups start children at the same time. On 2.7 a child may inherit the other end of another one's standard
        # input, which then does not end: both would wait for each other.
        process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=env, close_fds=True)
        timer = threading.Timer(left, self.kill, [process])
        timer.start()
        try:
            out, err = process.communicate(marshal.dumps(PROGRAM))
        finally:
            timer.cancel()
            timer.join()  # Python 2.7 says so when it ends while a thread is waking up
        self.code = process.returncode
        self.stderr = err.decode("utf-8", "replace")
        parts = out.decode("utf-8", "replace").split(setting["cookie"])
        self.events = [json.loads(part) for part in parts[1::2]]
        self.lines = VERBOSE.findall("\n".join(parts[::2]))
        for event, text in zip(self.events, parts[2::2]):
            event["lines"] = VERBOSE.findall(text)

    def kill(self, process):
        """End it, from the timer."""
        self.killed = True
        process.kill()

    def first(self, kind):
        """The first event of this kind, or None."""
        return next((event for event in self.events if event["event"] == kind), None)

    def ending(self):
        """How it ended when it should not have: a status and a text."""
        if self.killed or self.code == -signal.SIGALRM:
            return "timeout", "took too long"
        lines = [line.strip() for line in self.stderr.splitlines()]
        # What an emulator or the shell adds to the program's own last words says nothing of the cause.
        own = [line for line in lines if line and not line.startswith("qemu: ")]
        # C++ tells the type of what was thrown one line before what it says.
        words = 2 if own and own[-1].startswith("what():") else 1
        last = " ".join(own[-words:])[:300]
        if self.code is not None and self.code < 0:
            return "crashed", "%s%s" % (signal_name(-self.code), last and ": " + last)
        return "crashed", "ended with exit code %s%s" % (self.code, last and ": " + last)


def signal_name(number):
    """SIGABRT for 6."""
    names = [name for name in dir(signal) if re.match("SIG[A-Z]+$", name) and getattr(signal, name) == number]
    return min(names) if names else "signal %d" % number


class Group(object):
    """Runs operations, known by their numbers, in as many children as it takes, since some kill theirs.

    ``order`` is what a child is told beside the numbers; no child is started after its ``stop_at``, if it has one;
    ``deaths`` of it is how many children may die before any operation has ended.
    ``records`` are (number, event of its start or {}, fields), one for each operation that was tried or given up;
    ``left`` are the numbers of the others. An event that is no start and no end is in ``more`` of its start.
    """

    def __init__(self, setting, order, left):
        self.setting, self.order, self.left = setting, order, list(left)
        self.records, self.lines, self.ready, self.kernel, self.failure = [], [], None, None, ""

    def run(self):
        """Run all, and record each operation once."""
        left, deaths, lived = self.left, 0, False
        while left and time.time() < self.order.get("stop_at", float("inf")):
            if deaths == self.order.get("deaths", DEATHS) and not lived:
                self.give_up("not tried: the %d before it ended their process" % deaths)
                return
            child = Child(self.setting, dict(self.order, indexes=left))
            self.lines += child.lines
            self.ready = self.ready or child.first("ready")
            self.kernel = self.kernel or child.first("kernel")
            if child.first("ready") is None:
                failed = child.first("failed")
                status, text = ("raised", failed["message"]) if failed else child.ending()
                self.failure = "import of chainer: " + text if self.ready is None else self.failure
                self.give_up("%s: %s" % (status, text))
                return
            started = {}
            for event in child.events:
                if event["event"] == "start":
                    started[event["index"]] = event
                elif event["event"] == "done":
                    self.records.append((event["index"], started.pop(event["index"], {}), event["fields"]))
                    left.remove(event["index"])
                    lived = True
                elif event.get("index") in started:
                    started[event["index"]].setdefault("more", []).append(event)
            if not left or child.first("stopped"):
                return
            status, text = child.ending()
            if child.code == 0:
                status, text = "crashed", "its process ended early, with exit code 0"
            self.records.append((left[0], started.get(left[0], {}), {"status": status, "message": text}))
            del left[0]
            deaths += 1

    def give_up(self, reason):
        """Record the operations that could not be tried."""
        self.records += [(index, {}, {"status": "not-run", "message": reason}) for index in self.left]
        del self.left[:]


def new_setting(request):
    """What every child of this run is started with."""
    setting = {
        "emulator": [str(word) for word in request["emulator"]],
        "deadline": time.time() + request["seconds"],
        "op_seconds": request["op_seconds"],
        "cookie": base64.b16encode(os.urandom(16)).decode("ascii"),
        "env": inherited_environment(request.get("loader_variables") or {}),
    }
    if request["threads"] is not None:
        setting["env"]["OMP_NUM_THREADS"] = str(request["threads"])
    return setting


def serve(child_main, examine):
    """Be the parent, which answers a request, or the child if started as one."""
    if sys.argv[0] == "-c" and sys.argv[1] == "child":
        child_main(sys.argv[2], json.loads(sys.argv[3]))
        return
    leave_no_core_files()
    cookie, encoded = sys.argv[1:3]
    answer = examine(json.loads(base64.urlsafe_b64decode(encoded.encode("ascii")).decode("ascii")))
    sys.stdout.write("%s%s%s\n" % (cookie, json.dumps(answer, sort_keys=True), cookie))
