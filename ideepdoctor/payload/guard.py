"""Corrects what Chainer with ideep4py computes wrong or dies of. Written by ideepdoctor; `ideepdoctor undo` removes it.

Loaded when a program imports Chainer (or at its start), it registers a finder. When `chainer` has been imported it
looks at the versions, and replaces those functions of ideep4py that are known to be wrong in them; Chainer stays as it
is, but for three functions that know no iDeep (plain). Nothing here may stop a program: what fails is told once, and
the original is used. Python 2.7 and 3.5 to 3.14.

    IDEEPDOCTOR_GUARD=off              nothing is corrected
    IDEEPDOCTOR_GUARD=-bn,-lrn         everything but these (names: see CORRECTIONS)

    import _ideepdoctor_guard; _ideepdoctor_guard.status()      what is corrected, and how often it was

Words: an array of iDeep (`mdarray`) is *plain* where its elements lie in the order of its shape, and *blocked* where
MKL-DNN chose another order (8 or 16 channels together), as for the output of a convolution. Reading a blocked array
through NumPy makes it plain, in place; so nothing here reads a live array, but copies of it.
"""

import os
import sys

from hook import ChainerFinder, tell_once

SWITCH = "IDEEPDOCTOR_GUARD"
LOGGER = "ideepdoctor.guard"

# Name, code of the rule that explains it, hazard, what is corrected. The order is that of installation.
CORRECTIONS = (
    ("bn", "IDP602", "H1", "gradients of BatchNormalization"),
    ("product", "IDP603", "H2", "products and quotients of blocked arrays"),
    ("optimizer", "IDP612", "H4", "the same inside AdaGrad, MSVAG and Adam, where product is switched off"),
    ("load", "IDP604", "H3", "weights that are loaded after to_intel64()"),
    ("concat", "IDP605", "H7", "concat whose inputs fill different blocks, which ended the process"),
    ("split", "IDP605", "H8", "split_axis across blocks, which ended the process"),
    ("lrn", "IDP609", "H14", "gradients of local response normalization, and an even window"),
    ("maxpool", "IDP613", "H5", "max pooling of NaN, and its gradient where its input was read in between"),
    (
        "fixedbn",
        "IDP614",
        "H9",
        "sums that raised, as in fixed_batch_normalization, or ended the process (negative axes)",
    ),
    ("pool", "IDP619", "H17", "pooling of blocked arrays with pad and stride above 1, and windows beyond the edge"),
    ("power", "IDP616", "H11", "powers of arrays of iDeep, which raised"),
    ("operand", "IDP616", "", "arithmetic with float64, or equal sizes in other shapes, which ended the process"),
    ("pickle", "IDP615", "H10", "pickling of arrays of iDeep"),
    (
        "plain",
        "IDP617",
        "H15",
        "functions that know only NumPy's arrays and raised: im2col, as_strided, slstm; huber_loss of Chainer 5",
    ),
    ("relu", "IDP618", "H16", "relu of minus infinity, which gave NaN"),
)
NAMES = tuple(row[0] for row in CORRECTIONS)

# What each pair of versions needs. Chainer before 5.0.0rc1 hands on gradients that ideep4py 2 does not fill, and
# ideep4py 1.0.4 multiplies, loads and normalizes right.
OLD = "concat split maxpool fixedbn power operand pickle plain relu"
NEEDS = (
    ("2.0.0.post3", (5, 0, 0, "rc1"), (7, 8, 1, "z"), NAMES),
    ("1.0.4", (4, 0, 0, "a"), (4, 5, 0, "z"), tuple(OLD.split())),
)

# MKL-DNN 0.14's memory formats (mkldnn_memory_format_t) that arrays of ideep4py 2.0.0.post3 have.
PLAIN = frozenset((3, 4, 5, 13, 15))  # x, nc, nchw, oi, oihw
BLOCK = {8: 8, 9: 16}  # channels in a block: nChw8c, nChw16c
FIRST_OF_WEIGHTS, NCHW16C, FLOAT32 = 13, 9, 1

# What MKL-DNN 0.14 takes for the last-level cache of one core where CPUID leaf 4 says nothing: on processors that are
# not Intel's. No processor has less than LEAST_CACHE for a core and a last-level cache at all. Bytes.
CACHE_NOT_INTEL = 1024000
LEAST_CACHE = 256 * 1024


class _State(object):
    """What is known and done in this process; one object, which outlives a reload of this module."""

    def __init__(self):
        self.why = "chainer was not imported"
        self.versions, self.active, self.not_active = {}, set(), {}  # of what; names; name -> reason
        self.applied = dict.fromkeys(NAMES, 0)
        self.problems, self.told = [], set()
        self.finder, self.followers = None, []  # followers: functions that want to see Chainer once it is corrected
        self.ideep = None  # the module that is corrected


STATE = getattr(sys, "_ideepdoctor_guard_state", None)
if STATE is None:
    STATE = sys._ideepdoctor_guard_state = _State()


def _tell(key, level, text):
    """Send a line to the logger, once per process for each key."""
    tell_once(STATE.told, LOGGER, key, level, text)


def _problem(where, error):
    """Tell once that something of ours failed; the program goes on with the original."""
    key, text = "problem " + where, "%s: %s: %s" % (where, type(error).__name__, error)
    if key not in STATE.told:
        STATE.problems.append(text)
    _tell(key, 30, "%s: failed, and was left out: %s" % (LOGGER, text))


def _count(name):
    """A correction changed something."""
    STATE.applied[name] += 1
    if name not in STATE.told:
        _tell(name, 20, " ".join(row[1] + " " + name + ": corrects " + row[3] for row in CORRECTIONS if row[0] == name))


def status():
    """What the guard does in this process, as plain data (strings, numbers, lists and dicts)."""
    corrections = {}
    for name, code, hazard, what in CORRECTIONS:
        why = "" if name in STATE.active else STATE.not_active.get(name, STATE.why)
        corrections[name] = {"rule": code, "hazard": hazard, "corrects": what, "applied": STATE.applied[name]}
        corrections[name].update(active=name in STATE.active, why_not=why)
    told = {"guard": 2, "versions": dict(STATE.versions), "python": "%d.%d.%d" % sys.version_info[:3]}
    told.update(active=bool(STATE.active), why_not="" if STATE.active else STATE.why)
    return dict(told, corrections=corrections, problems=list(STATE.problems))


def _switched_off(text):
    """Names that IDEEPDOCTOR_GUARD switches off; all of them for a word that means no."""
    off = set()
    for word in text.lower().replace(",", " ").split():
        if word in ("off", "no", "none", "never", "false", "0"):
            return frozenset(NAMES)
        if word in ("on", "yes", "all", "auto", "true", "1"):
            continue
        if word[0] == "-" and word[1:] in NAMES:
            off.add(word[1:])
        else:
            _tell("switch " + word, 30, "%s: %r is no correction; known: -%s" % (SWITCH, word, ", -".join(NAMES)))
    return frozenset(off)


def _ideep_version(ideep):
    """ideep4py's version: 1.x does not tell, but its folder of metadata does. "" if unknown.

    Of what ideepdoctor built from the same source: the version without its label.
    """
    import re

    if hasattr(ideep, "__version__"):
        return str(ideep.__version__).partition("+doctor")[0]

    folder = os.path.dirname(os.path.dirname(os.path.abspath(ideep.__file__)))
    for name in sorted(os.listdir(folder)):
        match = re.match(r"ideep4py-([^-]+)(?:-.*)?\.(?:dist|egg)-info$", name)
        if match:
            return match.group(1).partition("+doctor")[0]
    return ""


def _needs(chainer_version, ideep_version):
    """The corrections that a pair of versions needs; None where the pair is not known."""
    import re

    match = re.match(r"(\d+)\.(\d+)\.(\d+)(?:\.?post\d+)?(a\d+|b\d+|rc\d+)?$", chainer_version)
    if match is None:
        return None
    numbers = tuple(int(part) for part in match.groups()[:3]) + (match.group(4) or "z",)  # a release after its "rc1"
    for version, first, last, names in NEEDS:
        if version == ideep_version and first <= numbers <= last:
            return names
    return None


def apply(chainer):
    """Correct the ideep4py that this Chainer uses. May be called again; never raises."""
    try:
        _apply(chainer)
    except Exception as error:
        STATE.why = "%s: %s" % (type(error).__name__, error)
        _tell("guard", 30, "%s: nothing is corrected: %s" % (LOGGER, STATE.why))
    for function in STATE.followers:
        function(chainer)


def follow(function):
    """Have a function, which must not raise, called with Chainer whenever it was imported; at once where it was."""
    STATE.followers.append(function)
    _register()


def _apply(chainer):
    ideep = sys.modules.get("ideep4py")
    off = _switched_off(os.environ.get(SWITCH, ""))
    if STATE.ideep is not None and STATE.ideep is ideep:
        return
    STATE.versions = {"chainer": str(getattr(chainer, "__version__", "")), "ideep4py": ""}
    if len(off) == len(NAMES):
        STATE.why = "switched off by %s" % SWITCH
        return
    if ideep is None or not hasattr(ideep, "mdarray"):
        STATE.why = "Chainer did not import ideep4py"
        return
    STATE.versions["ideep4py"] = _ideep_version(ideep)
    needed = _needs(STATE.versions["chainer"], STATE.versions["ideep4py"])
    if needed is None:
        STATE.why = "nothing is known about Chainer %(chainer)s with ideep4py %(ideep4py)s" % STATE.versions
        _tell("versions", 30, "%s: %s: nothing is corrected" % (LOGGER, STATE.why))
        return
    STATE.ideep = ideep
    tools = _Tools(ideep, chainer)
    for name in NAMES:
        why = "" if name in needed else "these versions do not need it"
        if name in off:
            why = "switched off by %s" % SWITCH
        try:
            why = why or INSTALL[name](tools) or ""
        except Exception as error:
            why = "%s: %s" % (type(error).__name__, error)
            _problem(name, error)
        if why:
            STATE.not_active[name] = why
        else:
            STATE.active.add(name)
    STATE.why = "" if STATE.active else "no correction could be made"


class _Process(object):
    """What is mapped in this process: files, and memory that can be read."""

    def __init__(self):
        import ctypes

        self.ctypes, self.cell = ctypes, ctypes.c_size_t.from_address
        self.paths, self.ranges = [], []
        with open("/proc/self/maps") as stream:
            for line in stream:
                fields = line.rstrip("\n").split(None, 5)
                if fields[1].startswith("r"):
                    self.ranges.append([int(number, 16) for number in fields[0].split("-")])
                if len(fields) > 5 and fields[5].startswith("/") and fields[5] not in self.paths:
                    self.paths.append(fields[5])

    def named(self, start):
        """Paths of the mapped files whose name starts like this."""
        return [path for path in self.paths if path.rsplit("/", 1)[1].startswith(start)]

    def word(self, address):
        """The word at an address. Raises LookupError where nothing is mapped."""
        for start, end in self.ranges:
            if start <= address <= end - 8:
                return self.cell(address).value
        raise LookupError("no memory at %x" % address)


class _Layouts(object):
    """Tells the memory format of an array of iDeep without touching it.

    An object of SWIG points to a std::shared_ptr, that to the C++ array, whose second word points to the primitive that
    MKL-DNN made for it. MKL-DNN answers the rest.
    """

    def __init__(self, ideep, np):
        arrays = [ideep.array(np.zeros(shape, np.float32)) for shape in ((3,), (2, 3), (2, 16, 3, 5))]
        process = _Process()
        libraries = process.named("libmkldnn.")
        if len(libraries) != 1:
            raise LookupError("%d libraries libmkldnn are mapped" % len(libraries))
        self.ctypes, self.cell, pointer = process.ctypes, process.cell, process.ctypes.c_void_p
        library = process.ctypes.PyDLL(libraries[0])
        self.describe = library.mkldnn_primitive_get_primitive_desc
        self.query = library.mkldnn_primitive_desc_query_memory_d
        self.describe.argtypes = [pointer, pointer]
        self.query.argtypes, self.query.restype = [pointer], pointer
        for array, known in zip(arrays, (3, 4, 5)):
            process.word(process.word(process.word(process.word(int(array.this)) + 8)))
            told = self.read(array)
            if told[0] != 1 or tuple(told[2 : 2 + told[1]]) != array.shape or tuple(told[14:16]) != (FLOAT32, known):
                raise LookupError("arrays of this ideep4py are not built as expected")

    def read(self, array):
        """MKL-DNN's descriptor: kind, number of dimensions, 12 dimensions, type, format."""
        descriptor = self.ctypes.c_void_p()
        self.describe(self.cell(self.cell(int(array.this)).value + 8).value, self.ctypes.addressof(descriptor))
        return (self.ctypes.c_int * 16).from_address(self.query(descriptor))


MKL_FROM = 4096  # elements: below that many the call costs more than it saves


def _dot_of_mkl():
    """cblas_sdot of the MKL that ideep4py has loaded; None where there is none."""
    import ctypes

    try:
        with open("/proc/self/maps") as stream:
            paths = [line.split()[-1] for line in stream if "libmklml" in line]
        function = ctypes.CDLL(paths[0]).cblas_sdot
    except (OSError, IOError, IndexError, AttributeError):
        return None
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    return function


class _Tools(object):
    """NumPy, ideep4py and what both lack."""

    def __init__(self, ideep, chainer):
        self.ideep, self.chainer, self.np = ideep, chainer, sys.modules["numpy"]
        self.mdarray, self.new = ideep.mdarray, hasattr(ideep, "__version__")
        self.always, self.inside = False, None  # where products are corrected: everywhere; in an optimizer's rule
        self.layouts = self.dot = None
        self.type = _TypePatch(self.mdarray)

    def layout(self, array):
        """MKL-DNN's format of an array of iDeep; None where it cannot be told."""
        if self.layouts is None:
            # Not earlier: the first array of iDeep ends the process on a processor that is too old for it.
            self.layouts = False
            if self.new:
                try:
                    self.layouts = _Layouts(self.ideep, self.np)
                except Exception as error:
                    # Every correction is made without it, too, at the price of copies that it would save.
                    _problem("layout", error)
        return self.layouts.read(array)[15] if self.layouts else None

    def copy(self, array):
        """A copy in the same layout: x / 2 + x / 2, which is x for every number, infinity and NaN."""
        return array.axpby(0.5, 0.5, array)

    def plain(self, array):
        """The elements as a NumPy array; the layout of the array stays what it is."""
        if isinstance(array, self.mdarray) and array.ndim in (2, 4) and self.layout(array) not in PLAIN:
            array = self.copy(array)
        return self.np.asarray(array)

    def like(self, model, values):
        """The values in the layout of the model: a new array of iDeep."""
        result = self.copy(model)
        result.flat()[...] = 0
        result.inplace_axpby(1.0, 1.0, values)  # which returns its last argument
        return result

    def has_nan(self, array):
        """Whether there is NaN in an array of iDeep, whose layout stays what it is.

        By the sum of the squares, which is NaN where an element is, and nowhere else: no infinity meets its opposite.
        The threads that computed the array sum it, three to eight times as fast as NumPy.
        """
        flat = array.flat()
        if MKL_FROM <= flat.size < 1 << 31 and flat.dtype == self.np.float32 and flat.flags.c_contiguous:
            if self.dot is None:
                self.dot = _dot_of_mkl() or False
            if self.dot:
                place = flat.__array_interface__["data"][0]
                total = self.dot(flat.size, place, 1, place, 1)
                return total != total
        with self.np.errstate(all="ignore"):
            total = self.np.dot(flat, flat)
        return bool(total != total)

    def replace(self, owner, name, function):
        """Put a function of ours in the place of a static method of a class of ideep4py."""
        old = getattr(self.ideep, owner)
        if not getattr(old, "_ideepdoctor", False):
            # Classes of SWIG are read-only; a class with their methods takes their place.
            fields = dict((key, staticmethod(getattr(old, key))) for key in dir(old) if key in METHODS)
            setattr(self.ideep, owner, type(owner, (object,), dict(fields, _ideepdoctor=True, __doc__=old.__doc__)))
        setattr(getattr(self.ideep, owner), name, staticmethod(function))


OPERATORS = tuple("__%s%s__" % (i, name) for i in ("", "i") for name in ("mul", "truediv", "div", "add", "sub"))
OPERATORS += ("__pow__", "__hash__")
METHODS = ("Forward", "Backward", "BackwardData", "BackwardWeights", "BackwardWeightsBias")


class _TypePatch(object):
    """Puts methods into ideep4py's mdarray, which is a C type that Python does not let anyone change.

    As for a class of Python: the function goes into the type's dict, and the slot of an operator gets the function of
    CPython that looks there. Every address is checked against what Python itself tells before anything is written.
    """

    AS_NUMBER, DICT = 96, 264  # offsets in PyTypeObject: 2.7 and 3.5 to 3.7, 64 bits, no Py_TRACE_REFS

    def __init__(self, kind):
        self.kind, self.process = kind, None

    def prepare(self):
        """Find the dict and the slots. Raises LookupError where this Python is built in another way."""
        if self.process is not None:
            return
        if sys.version_info[:2] not in ((2, 7), (3, 5), (3, 6), (3, 7)) or object.__basicsize__ != 16:
            raise LookupError("no Python that has a wheel of ideep4py")
        self.probes = dict((name, type("_Probe", (object,), {name: len})) for name in OPERATORS)
        process = _Process()
        address = process.word(id(self.kind) + self.DICT)
        if process.word(address + 8) != id(dict):
            raise LookupError("the dict of the type is not where it should be")
        self.dict = process.ctypes.cast(address, process.ctypes.py_object).value
        if self.dict.get("__mul__") is not self.kind.__dict__["__mul__"]:
            raise LookupError("the dict of the type is another one")
        self.numbers = process.word(id(self.kind) + self.AS_NUMBER)
        self.process = process

    def method(self, name, function):
        """Set a method that is looked up by name."""
        self.prepare()
        self.dict[name] = function
        self.process.ctypes.pythonapi.PyType_Modified(self.process.ctypes.py_object(self.kind))

    def operator(self, name, make):
        """Set ``make(original method or None)`` as an operator's method, once."""
        self.prepare()
        old, word, found = self.dict.get(name), self.process.word, []
        if getattr(old, "_ideepdoctor", False):
            return
        # Its slot among the numbers' slots is the one that a class with the method fills, and a class without it not.
        starts = [word(id(self.probes[key]) + self.AS_NUMBER) for key in ("__hash__", name)]
        for offset in range(0, (39 if sys.version_info[0] == 2 else 36) * 8, 8):  # PyNumberMethods
            without, generic = (word(start + offset) for start in starts)
            if generic and not without:
                found.append((self.numbers + offset, generic))
        # The wrapper of an operator holds the function of its slot: PyWrapperDescrObject's d_wrapped.
        held = [0] if old is None else [word(id(old) + position) for position in range(16, 64, 8)]
        if len(found) != 1 or word(found[0][0]) not in held:
            raise LookupError("the slot of %s is not where it should be" % name)
        function = make(old)
        function._ideepdoctor = True
        self.method(name, function)
        self.process.cell(found[0][0]).value = found[0][1]


def _is_intel():
    """Whether CPUID names an Intel processor, as MKL-DNN asks; None where code of ours may not be executed.

    /proc/cpuinfo would not do: under an emulator it tells of the host.
    """
    import ctypes
    import mmap

    # push rbx; mov eax, edi; xor ecx, ecx; cpuid; mov [rsi], ecx; pop rbx; ret
    code = b"\x53\x89\xf8\x31\xc9\x0f\xa2\x89\x0e\x5b\xc3"
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except (EnvironmentError, mmap.error):
        return None
    page.write(code)
    start = ctypes.c_char.from_buffer(page)
    answer = (ctypes.c_char * 4)()
    ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_void_p)(ctypes.addressof(start))(0, ctypes.addressof(answer))
    return answer.raw == b"ntel"


class _OpenMP(object):
    """Numbers of threads that MKL-DNN may use now, in this thread of Python."""

    def __init__(self):
        process = _Process()
        # libgomp idles beside the one that MKL-DNN uses; it counts where there is no other.
        paths = process.named("libiomp5.") + process.named("libomp.") or process.named("libgomp.")
        if not paths:
            raise LookupError("no OpenMP library is mapped")
        self.libraries = [process.ctypes.PyDLL(path) for path in paths]

    def threads(self):
        """Every number that one of the libraries answers; mostly one."""
        return set(library.omp_get_max_threads() for library in self.libraries)

    def fewer(self):
        """Whether a team may have fewer threads than that."""
        limits = [(library.omp_get_thread_limit(), library.omp_get_max_threads()) for library in self.libraries]
        return any(few < many for few, many in limits) or any(library.omp_get_dynamic() for library in self.libraries)


def wrong_channels(shape, threads, cache, fewer=False):
    """How many of the last channels get wrong gradients from MKL-DNN 0.14's BatchNormalization of plain arrays.

    It takes the channels in blocks that fill half of the cache of all threads. Where the last block has fewer channels
    than there are threads, and the others have not, it adds up that last block wrongly. ``shape`` is (N, C, H, W),
    ``cache`` the bytes that it takes for one core's share (None if unknown: the answer is the most that it can be),
    ``fewer`` whether a team may have fewer threads.
    """
    count, channels, height, width = shape
    image = count * height * width
    if threads < 2 or channels < 2:
        return 0
    if cache is None:
        known = image * channels * 8 <= LEAST_CACHE * threads // 2 or channels <= threads and not fewer
        return 0 if known else min(threads, channels) - 1
    half = cache * threads // 2
    block = half // (image * 8)
    if image * channels * 4 < half // 2 or not 0 < block < channels or (block < threads and not fewer):
        return 0
    rest = channels % block
    return rest if rest < threads else 0


def _install_bn(tools):
    np, ideep = tools.np, tools.ideep
    original, original_forward = ideep.batchNormalization.Backward, ideep.batchNormalization.Forward
    openmp = _OpenMP()
    cache = CACHE_NOT_INTEL if _is_intel() is False else None

    def again(first, last, x, gy, mean, variance, gamma, eps):
        part = [np.ascontiguousarray(array[:, first:last]) for array in (x, gy)]
        part += [np.array(np.asarray(array).ravel()[first:last]) for array in (mean, variance, gamma)]
        x, gy, mean, variance, gamma = (ideep.array(array) for array in part)
        return original(x, gy, mean, variance, gamma, eps)

    def backward(x, gy, mean, variance, gamma, eps):
        layout = None
        try:
            # With unequal layouts the primitive reads one as the other. Chainer from 6 on hands over plain ones.
            layout = tools.layout(x)
            if layout not in PLAIN and max(openmp.threads()) > 1:
                layout = None
                _count("bn")
            if layout is None:
                x, gy = ideep.array(tools.plain(x)), ideep.array(tools.plain(gy))
            elif layout != tools.layout(gy):
                gy = tools.like(x, gy)
                _count("bn")
        except Exception as error:
            _problem("bn", error)
        result = original(x, gy, mean, variance, gamma, eps)
        try:
            if layout is None or layout in PLAIN:
                fewer, shape = openmp.fewer(), x.shape
                wrong = max(wrong_channels(shape, threads, cache, fewer) for threads in openmp.threads())
                if wrong:
                    end = shape[1]
                    # As many channels as that are one block; where teams may be smaller, only a single one surely is.
                    step = 1 if fewer else wrong
                    gx, weights = (np.asarray(array) for array in result)
                    plain_x, plain_gy = tools.plain(x), tools.plain(gy)
                    for first in range(end - wrong, end, step):
                        last = first + step
                        right = again(first, last, plain_x, plain_gy, mean, variance, gamma, eps)
                        gx[:, first:last], weights[:, first:last] = (np.asarray(array) for array in right)
                    _count("bn")
        except Exception as error:
            _problem("bn", error)
        return result

    def forward(x, *more):
        try:
            # Chainer before 6 hands on blocked arrays; MKL-DNN adds up their channels wrongly at several threads.
            if x.ndim == 4 and tools.layout(x) not in PLAIN and max(openmp.threads()) > 1:
                _count("bn")
                x = ideep.array(tools.plain(x))
        except Exception as error:
            _problem("bn", error)
        return original_forward(x, *more)

    tools.replace("batchNormalization", "Forward", forward)
    tools.replace("batchNormalization", "Backward", backward)


def _install_operand(tools):
    """Set the methods of + - * / once; which of the corrections they make is looked up when they are called."""
    np, mdarray, ndarray = tools.np, tools.mdarray, tools.np.ndarray
    names = [("mul", np.multiply), ("truediv", np.true_divide), ("add", np.add), ("sub", np.subtract)]
    names += [("div", np.divide)] if sys.version_info[0] == 2 else []

    def corrected(self, other, products):
        """The name of the correction that this operation needs, or None."""
        try:
            if self.size != other.size:
                return None  # left to NumPy by the original
            if self.shape != other.shape or other.dtype.kind == "f" and other.dtype.itemsize != 4:
                return "operand" if "operand" in STATE.active else None
            if products and (tools.always or getattr(tools.inside, "rule", 0)) and tools.layout(self) not in PLAIN:
                return "product" if type(other) is mdarray or other.flags.c_contiguous else None
        except Exception as error:
            _problem("product", error)
        return None

    def make(original, in_place, ufunc):
        products = ufunc not in (np.add, np.subtract)

        def method(self, other):
            if type(other) is ndarray or type(other) is mdarray:
                name = corrected(self, other, products)
                if name == "operand":
                    _count(name)
                    return ufunc(tools.plain(self), tools.plain(other))
                if name == "product":
                    _count(name if tools.always else "optimizer")
                    # In place it is right in any layout; the other way the result is taken for plain.
                    return in_place(tools.copy(self), other)
            return original(self, other)

        return method

    def make_in_place(original, ufunc):
        def method(self, other):
            if (type(other) is ndarray or type(other) is mdarray) and corrected(self, other, False):
                _count("operand")
                if self.shape == other.shape:
                    return original(self, other.astype(np.float32))
                view = np.asarray(self)
                ufunc(view, tools.plain(other), view)
                return self
            return original(self, other)

        return method

    for name, ufunc in names:
        in_place = mdarray.__dict__["__i%s__" % name]
        if not getattr(in_place, "_ideepdoctor", False):
            tools.type.operator("__%s__" % name, lambda original: make(original, in_place, ufunc))
            tools.type.operator("__i%s__" % name, lambda original: make_in_place(original, ufunc))

    def make_sum(original):
        def axpby(self, a, b, other):
            # float64 ends the process, and gaps or another order of axes, as of a weight that is transposed, raise.
            if type(other) is ndarray and (other.dtype != np.float32 or not other.flags.c_contiguous):
                if "operand" in STATE.active and other.shape == self.shape:
                    _count("operand")
                    other = np.ascontiguousarray(other, np.float32)
            return original(self, a, b, other)

        axpby._ideepdoctor = True
        return axpby

    for name in ("axpby", "inplace_axpby"):
        original = mdarray.__dict__.get(name)
        if original is not None and not getattr(original, "_ideepdoctor", False):
            tools.type.method(name, make_sum(original))


def _install_product(tools):
    _install_operand(tools)
    tools.always = True


def _install_optimizer(tools):
    import functools
    import threading

    if tools.always:
        return "product does it everywhere"
    _install_operand(tools)
    inside = tools.inside = threading.local()

    def in_rule(original):
        @functools.wraps(original)
        def update_core_cpu(self, param):
            inside.rule = getattr(inside, "rule", 0) + 1
            try:
                return original(self, param)
            finally:
                inside.rule -= 1

        return update_core_cpu

    for module, name in (("ada_grad", "AdaGradRule"), ("msvag", "MSVAGRule"), ("adam", "AdamRule")):
        rule = getattr(sys.modules.get("chainer.optimizers." + module), name, None)
        if rule is not None:
            rule.update_core_cpu = in_rule(rule.__dict__["update_core_cpu"])
    return ""


def _install_power(tools):
    def power(self, other, *modulus):
        _count("power")
        return pow(tools.plain(self), tools.plain(other) if isinstance(other, tools.mdarray) else other, *modulus)

    def right_power(self, other):
        _count("power")
        return pow(other, tools.plain(self))

    tools.type.operator("__pow__", lambda _original: power)
    tools.type.method("__rpow__", right_power)


def _install_fixedbn(tools):
    original = tools.mdarray.__dict__["sum"]
    if getattr(original, "_ideepdoctor", False):
        return

    def right(array, axis=None, dtype=None, out=None, keepdims=False):
        """Whether the original is: it ends the process for negative axes, and for all of them with keepdims."""
        axes = range(array.ndim) if axis is None else axis if type(axis) is tuple else (axis,)
        known = all(type(one) is int and 0 <= one < array.ndim for one in axes) and len(axes) > 0
        return known and dtype is None and out is None and not (keepdims and len(axes) == array.ndim)

    def total(self, *args, **options):
        if right(self, *args, **options):
            return original(self, *args, **options)
        _count("fixedbn")
        return tools.plain(self).sum(*args, **options)

    total._ideepdoctor = True
    tools.type.method("sum", total)


def _install_load(tools):
    np, ideep, mdarray = tools.np, tools.ideep, tools.mdarray
    original = ideep.basic_copyto

    def basic_copyto(destination, source):
        unfit = None
        try:
            # The original copies bytes, whatever their type and the layouts; a wrong number of them ends the process.
            if isinstance(destination, mdarray):
                shapes = source.shape, destination.shape
                if shapes[0] != shapes[1]:
                    if len(shapes[0]) > len(shapes[1]) or any(
                        one not in (1, other) for one, other in zip(shapes[0][::-1], shapes[1][::-1])
                    ):
                        unfit = "could not broadcast input array from shape %s into shape %s" % shapes
                        raise ValueError(unfit)
                    source = np.broadcast_to(tools.plain(source), shapes[1])
                here = tools.layout(destination)
                if isinstance(source, mdarray):
                    fits = here is not None and here == tools.layout(source)
                else:
                    source = np.ascontiguousarray(source, np.float32)
                    fits = here in PLAIN
                if not fits:
                    destination.flat()[...] = 0
                    destination.inplace_axpby(1.0, 1.0, source)
                    _count("load")
                    return None
        except Exception as error:
            if unfit:
                raise
            _problem("load", error)
        return original(destination, source)

    ideep.basic_copyto = basic_copyto


def _install_pickle(tools):
    registry = __import__("copyreg" if sys.version_info[0] > 2 else "copy_reg")
    ideep = tools.ideep

    def reduce_array(array):
        _count("pickle")
        kind = "w" if (tools.layout(array) or 0) >= FIRST_OF_WEIGHTS else "d"
        # ideep4py.array, by its name: a program without this guard can load it, too.
        return ideep.array, (tools.np.array(tools.plain(array)), kind)

    registry.pickle(tools.mdarray, reduce_array)


def _block(tools, array):
    """Channels in a block of this array, 0 if it is plain; the most that it can be where that cannot be told."""
    layout = tools.layout(array)
    if layout is not None:
        return BLOCK.get(layout, 0)
    channels = array.shape[1]
    return 16 if channels % 16 == 0 else 8 if channels % 8 == 0 else 0


def _install_concat(tools):
    np, ideep = tools.np, tools.ideep
    original = ideep.concat.Forward

    def forward(arrays, axis):
        try:
            if axis == 1 and len(arrays) > 1:
                parts = [arrays[index] for index in range(len(arrays))]
                block = _block(tools, parts[0])
                if block and any(part.shape[1] % block for part in parts[1:]):
                    _count("concat")
                    if not tools.new:
                        return ideep.array(np.concatenate([tools.plain(part) for part in parts], 1))
                    # MKL-DNN takes the first one's layout for all.
                    changed = ideep.mdarrayVector()
                    for part in [ideep.array(tools.plain(parts[0]))] + parts[1:]:
                        changed.push_back(part)
                    arrays = changed
        except Exception as error:
            _problem("concat", error)
        return original(arrays, axis)

    tools.replace("concat", "Forward", forward)


def _install_split(tools):
    np, ideep = tools.np, tools.ideep
    original = ideep.concat.Backward

    def backward(array, offsets, axis):
        try:
            if axis == 1:
                block = _block(tools, array)
                ends = [offsets[index] for index in range(len(offsets))]
                if block and any(end % block for end in ends + [array.shape[1]]):
                    array = ideep.array(tools.plain(array))
                    _count("split")
                    if not tools.new:
                        parts = np.split(np.asarray(array), ends, 1)
                        return tuple(ideep.array(np.ascontiguousarray(part)) for part in parts)
        except Exception as error:
            _problem("split", error)
        return original(array, offsets, axis)

    tools.replace("concat", "Backward", backward)


def lrn_gradient(np, x, gy, n, k, alpha, beta):
    """Gradient of local response normalization over channels, y = x * (k + alpha * sum of n squares) ** -beta."""

    def window(array):
        total = array.copy()
        for shift in range(1, n // 2 + 1):
            total[:, shift:] += array[:, :-shift]
            total[:, :-shift] += array[:, shift:]
        return total

    unit = window(np.square(x))
    unit *= np.float32(alpha)
    unit += np.float32(k)
    if beta == 0.75:  # powers take five times as long as roots
        scale = np.sqrt(unit)
        scale = 1 / (scale * np.sqrt(scale))
    else:
        scale = unit ** np.float32(-beta)
    gx = gy * scale
    return gx - window(gx * x / unit) * x * np.float32(2 * alpha * beta)


def _install_lrn(tools):
    np, ideep = tools.np, tools.ideep
    normalization = ideep.localResponseNormalization
    original_forward, original_backward = normalization.Forward, normalization.Backward

    def odd(parameters):
        """The window that Chainer means: n // 2 channels to each side, where MKL-DNN takes n in all."""
        p, n = parameters, parameters.n
        if n % 2 == 0:
            _count("lrn")
            p = ideep.localResponseNormalizationParam(n + 1, p.k, p.alpha / n * (n + 1), p.beta, p.algo_kind)
        return p

    def forward(x, parameters):
        try:
            parameters = odd(parameters)
        except Exception as error:
            _problem("lrn", error)
        return original_forward(x, parameters)

    def backward(x, gy, workspace, parameters):
        try:
            parameters = odd(parameters)
            # MKL-DNN is right where both are in blocks of 16. It reads unequal layouts as if they were equal, drops
            # the neighbours across blocks of 8, and takes 200 times as long as NumPy for plain ones.
            layout = tools.layout(x)
            if layout != NCHW16C or tools.layout(gy) != layout or parameters.n != 5 or parameters.beta != 0.75:
                values = parameters.n, parameters.k, parameters.alpha / parameters.n, parameters.beta
                gx = lrn_gradient(np, tools.plain(x), tools.plain(gy), *values)
                _count("lrn")
                return ideep.array(gx)
        except Exception as error:
            _problem("lrn", error)
        return original_backward(x, gy, workspace, parameters)

    tools.replace("localResponseNormalization", "Forward", forward)
    tools.replace("localResponseNormalization", "Backward", backward)


def _pooled_by_numpy(tools, x, p):
    """Variables of the input and of what NumPy makes of it; the workspace keeps them for the way back."""
    x, size = tools.chainer.Variable(tools.plain(x)), tools.chainer.utils.conv.get_conv_outsize
    cover_all = size(x.shape[2], p.kh, p.sy, p.pad_lh, True), size(x.shape[3], p.kw, p.sx, p.pad_lw, True)
    window = (p.kh, p.kw), (p.sy, p.sx), (p.pad_lh, p.pad_lw), cover_all == tuple(p.out_dims)[2:]
    with tools.chainer.using_config("use_ideep", "never"), tools.chainer.force_backprop_mode():
        return x, tools.chainer.functions.max_pooling_2d(x, *window)


def _install_maxpool(tools):
    np, ideep, chainer = tools.np, tools.ideep, tools.chainer
    original_forward, original_backward = ideep.pooling2D.Forward, ideep.pooling2D.Backward
    maximum = ideep.pooling2DParam.pooling_max

    def forward(x, p):
        result = original_forward(x, p)
        try:
            if p.algo_kind == maximum and tools.has_nan(x):
                workspace = result[1]  # a new object each time that it is asked for
                workspace._ideepdoctor = graph = _pooled_by_numpy(tools, x, p)
                result = ideep.array(graph[1].data), workspace
                _count("maxpool")
        except Exception as error:
            _problem("maxpool", error)
        return result

    def backward(*given):
        try:
            x, gy, workspace, p = given if tools.new else (None,) + given  # ideep4py 1 does not get the input
            if workspace is not None and p.algo_kind == maximum:
                # getattr would ask NumPy for what is not there, and make the workspace plain.
                graph = workspace.__dict__.get("_ideepdoctor")
                if graph is not None:
                    graph[0].cleargrad()
                    graph[1].grad = np.array(tools.plain(gy))
                    with chainer.using_config("use_ideep", "never"):
                        graph[1].backward()
                    _count("maxpool")
                    return ideep.array(graph[0].grad)
                if tools.new and (tools.layout(x) or -1) != tools.layout(workspace):
                    # x was read through NumPy since, and made plain: the places of the maxima are in the old order.
                    sizes = p.kh, p.kw, p.sy, p.sx, p.pad_lh, p.pad_lw, p.pad_rh, p.pad_rw, maximum
                    workspace = original_forward(x, ideep.pooling2DParam(gy.shape, *sizes))[1]
                    _count("maxpool")
                    given = x, gy, workspace, p
        except Exception as error:
            _problem("maxpool", error)
        return original_backward(*given)

    tools.replace("pooling2D", "Forward", forward)
    tools.replace("pooling2D", "Backward", backward)


def _install_plain(tools):
    np = tools.np

    def wrapped(original):
        def forward(self, inputs):
            ours = [isinstance(one, tools.mdarray) for one in inputs]
            if any(ours):
                _count("plain")
                inputs = tuple(
                    np.array(tools.plain(one), order="C") if mine else one for one, mine in zip(inputs, ours)
                )
            return original(self, inputs)

        forward._ideepdoctor = True
        return forward

    places = ("array.im2col", "Im2Col"), ("array.as_strided", "AsStrided")
    places += ("rnn.slstm", "SLSTM"), ("activation.slstm", "SLSTM")  # Chainer 7, and before
    old = str(tools.chainer.__version__).startswith("5.")
    if old:  # NumPy's functions were to write into arrays of iDeep
        places += (("loss.huber_loss", "HuberLoss"),)
        _clip_gradients(tools)
    for module, first in places:
        for name in (first, first + "Grad"):
            kind = getattr(sys.modules.get("chainer.functions." + module), name, None)
            original = kind and kind.__dict__.get("forward")
            if original is not None and not getattr(original, "_ideepdoctor", False):
                kind.forward = wrapped(original)


def _clip_gradients(tools):
    """Let the hook GradientHardClipping clip a copy of an array of iDeep, in the same layout."""
    hook = getattr(sys.modules.get("chainer.optimizer_hooks.gradient_hard_clipping"), "GradientHardClipping", None)
    original = hook and hook.__dict__.get("__call__")
    if original is None or getattr(original, "_ideepdoctor", False):
        return

    def clip(self, rule, param):
        grad = param.grad
        if not isinstance(grad, tools.mdarray):
            return original(self, rule, param)
        _count("plain")
        param.grad = tools.like(grad, tools.np.clip(tools.plain(grad), self.lower_bound, self.upper_bound))

    clip._ideepdoctor = True
    hook.__call__ = clip


def _install_relu(tools):
    original = tools.ideep.relu.Forward

    def forward(x, *slope):
        y = original(x, *slope)
        try:
            if not slope and isinstance(y, tools.mdarray) and tools.has_nan(y):
                values = tools.plain(x)
                if tools.np.isneginf(values).any():  # times zero in the kernel
                    y = tools.ideep.array(tools.np.maximum(values, 0))
                    _count("relu")
        except Exception as error:
            _problem("relu", error)
        return y

    tools.replace("relu", "Forward", forward)


def _install_pool(tools):
    np, ideep = tools.np, tools.ideep
    original_forward, original_backward = ideep.pooling2D.Forward, ideep.pooling2D.Backward
    maximum = ideep.pooling2DParam.pooling_max

    def beyond(x, p):
        """Whether a window begins where x has ended: MKL-DNN then reads and writes outside of its arrays."""
        sizes = tuple(p.out_dims)[2:], (p.sy, p.sx), (p.pad_lh, p.pad_lw), x.shape[2:]
        return any((out - 1) * stride - pad >= size for out, stride, pad, size in zip(*sizes))

    def awkward(x, p):
        # MKL-DNN's generated kernel of blocked arrays begins in the wrong place in each row.
        return p.pad_lw > 1 and p.sx > 1 and tools.layout(x) not in PLAIN

    def forward(x, p):
        try:
            if p.algo_kind == maximum and "maxpool" in STATE.active and beyond(x, p):
                graph = _pooled_by_numpy(tools, x, p)
                _count("pool")
                workspace = ideep.array(np.zeros(graph[1].shape, np.float32))
                workspace._ideepdoctor = graph
                return ideep.array(graph[1].data), workspace
            if awkward(x, p):
                _count("pool")
                x = ideep.array(tools.plain(x))
        except Exception as error:
            _problem("pool", error)
        return original_forward(x, p)

    def backward(x, gy, workspace, p):
        try:
            if awkward(x, p):
                _count("pool")
                x, gy = ideep.array(tools.plain(x)), ideep.array(tools.plain(gy))
        except Exception as error:
            _problem("pool", error)
        return original_backward(x, gy, workspace, p)

    tools.replace("pooling2D", "Forward", forward)
    tools.replace("pooling2D", "Backward", backward)


INSTALL = dict((name, globals()["_install_" + name]) for name in NAMES)


def _register():
    STATE.finder = STATE.finder or ChainerFinder(apply)
    if STATE.finder not in sys.meta_path:
        sys.meta_path.insert(0, STATE.finder)
    chainer = sys.modules.get("chainer")
    if chainer is not None and hasattr(chainer, "__version__"):
        apply(chainer)


try:
    _register()
except Exception as failure:
    _problem("guard", failure)
