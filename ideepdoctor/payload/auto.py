"""Calls to_intel64() for a program that does not: written by ideepdoctor, for `ideepdoctor run`.

Imported at the start of Python, it only asks the guard, which lies beside it, to be told when `chainer` has been
imported. Then a model is moved to iDeep's layout where a person would have done it: when an optimizer is set up with
it, or, where an updater has brought it to the CPU since (device=-1), makes its first step; and when it is called for
inference (without backprop, or not in training). What stays as it is: models on a GPU,
programs for which Chainer would not use iDeep, models that the program has brought back to NumPy, persistent values of
links that are not Chainer's, and models whose arrays somebody else holds, too: moving makes new arrays, and what the
program would write into the old ones, or read from them, would be lost. A pickle of a moved model is what it would be
without this: it needs no ideep4py. Nothing here may stop a program. Python 2.7 and 3.5 to 3.14.

    IDEEPDOCTOR_AUTO=off               nothing is moved

    import _ideepdoctor_auto; _ideepdoctor_auto.status()
"""

import sys

from hook import tell_once

SWITCH = "IDEEPDOCTOR_AUTO"
LOGGER = "ideepdoctor.auto"
FIRST = (5, 0)  # Chainer 4 has no Link.__call__ to watch, and its pairs with ideep4py differ
NO_EMPTY = (6, 0)  # before it, to_intel64() of an array of no elements ends the process
TRIES = 8  # so often a model is looked at in vain
HINT = (
    "ideepdoctor: 'run' had moved the model to iDeep, whose arrays are no numpy.ndarray; if that is what fails here: "
    "ideepdoctor run --no-auto"
)


class _State(object):
    """What was done in this process; one object, which outlives a reload of this module."""

    def __init__(self):
        self.active = False
        self.why = "chainer was not imported"
        self.moved = {"optimizer": 0, "inference": 0}
        self.left = {}  # why a model was left as it is -> how often
        self.told = set()
        self.following = False
        self.done, self.tried, self.begun = _Numbers(), _Numbers(), _Numbers()  # of links, links, optimizers
        self.hook = None


class _Numbers(object):
    """A number for an object, which need not be hashable; nothing is written into it, and it is not kept alive."""

    def __init__(self):
        self.rows = {}

    def get(self, thing):
        return self.rows[id(thing)][1] if id(thing) in self.rows else 0

    def set(self, thing, number):
        import weakref

        key, rows = id(thing), self.rows
        rows[key] = weakref.ref(thing, lambda _: rows.pop(key, None)), number


STATE = getattr(sys, "_ideepdoctor_auto_state", None)
if STATE is None:
    STATE = sys._ideepdoctor_auto_state = _State()


def _tell(key, level, text):
    """Send a line to the logger, once per process for each key."""
    tell_once(STATE.told, LOGGER, key, level, text)


def _problem(where, error):
    _tell("problem", 30, "%s: %s: %s: %s" % (LOGGER, where, type(error).__name__, error))


def status():
    """What was done in this process, as plain data."""
    moved = {"moved": dict(STATE.moved), "left": dict(STATE.left)}
    return dict(moved, auto=1, active=STATE.active, why_not=STATE.why)


def _version(chainer):
    numbers = []
    for part in chainer.__version__.split(".")[:2]:
        digits = "".join(one for one in part if one.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def _not_corrected():
    """What a model that was moved would do wrong, because the guard does not correct it here; "" for nothing."""
    guard = sys.modules.get("_ideepdoctor_guard")
    rows = guard.status()["corrections"] if guard is not None else {}
    active = set(name for name in rows if rows[name].get("active"))
    if "load" not in active:
        return "weights that are loaded later would be wrong"
    if not active.intersection(("product", "optimizer")):
        return "AdaGrad, MSVAG and Adam would be wrong"
    return "" if "pickle" in active else "it could not be pickled"


class _Arrays(object):
    """Which arrays of a model somebody else holds, too: those with more references than the arrays of a fresh one."""

    def __init__(self, chainer, numpy):
        self.numpy = numpy
        self.fresh = self.of_parameter(chainer.Parameter(0, (2, 2)))
        values = {"value": numpy.zeros(2, numpy.float32)}
        self.fresh_value = self.of_value(values, "value")
        values["value"] = numpy.zeros(4, numpy.float32).reshape(2, 2)
        self.fresh_base = self.of_base(values["value"])

    def moves(self, array):
        """Whether to_intel64() makes another array of it."""
        known = isinstance(array, self.numpy.ndarray) and array.dtype == self.numpy.float32
        return known and array.ndim in (1, 2, 4) and array.size > 0

    def of_parameter(self, param):
        """References to the parameter's list, and to the array in it, Chainer's other ones left out."""
        box, count = param._data, sys.getrefcount
        array = box[0]
        if array is None:
            return count(box), 0
        held = count(array)
        for own in (getattr(param._node, "_data", None), param.initializer):
            held -= own is array
        return count(box), held

    def of_value(self, values, name):
        value = values[name]
        return sys.getrefcount(value)

    def of_base(self, array):
        base = array.base
        return sys.getrefcount(base)

    def is_shared_view(self, array):
        """Whether it is a view of memory that has another holder."""
        if array.base is None:
            return False
        if type(array.base) is not self.numpy.ndarray and not _is_of_ideep(array.base):
            return True
        return self.of_base(array) > self.fresh_base

    def shared(self, link):
        """Whether moving the model would part an array from somebody who holds it."""
        for param in link.params():
            boxes, arrays = self.of_parameter(param)
            if boxes > self.fresh[0]:  # a copy of the parameter, as Link.copy() makes it
                return True
            if self.moves(param._data[0]) and (arrays > self.fresh[1] or self.is_shared_view(param._data[0])):
                return True
        for values, name in self.values(link, True):
            if self.of_value(values, name) > self.fresh_value or self.is_shared_view(values[name]):
                return True
        return False

    def values(self, link, of_chainer):
        """Where the persistent arrays are that would be moved: of Chainer's own links, or of the others."""
        for one in link.links():
            if type(one).__module__.startswith(("chainer.", "chainermn.")) == of_chainer:
                values = one.__dict__
                for name in list(one._persistent):
                    if self.moves(values.get(name)):
                        yield values, name

    def empty(self, link):
        """Whether a parameter or a persistent array has no elements."""
        arrays = [param._data[0] for param in link.params()]
        for one in link.links():
            arrays += [one.__dict__.get(name) for name in one._persistent]
        return any(isinstance(array, self.numpy.ndarray) and array.size == 0 for array in arrays)

    def waiting(self, link):
        """Whether there is an array to be moved, or a parameter that will get one."""
        for param in link.params():
            if param._data[0] is None:
                if "Intel64Device" != type(getattr(param, "_initial_device", None)).__name__ and (
                    getattr(param, "_initial_backend", None) != "intel64"
                ):
                    return True
            elif self.moves(param._data[0]):
                return True
        return any(True for _ in self.values(link, True))


def _is_of_ideep(view):
    """Whether this is a view of an array of iDeep, as Chainer makes it where it brings one back to NumPy."""
    import gc

    objects = [getattr(view, "obj", None)] + gc.get_referents(view)  # Python 2 has no memoryview.obj
    return type(view) is memoryview and any(type(one).__module__ == "ideep4py" for one in objects)


class _Mover(object):
    """Moves models to iDeep's layout."""

    def __init__(self, chainer, intel64, numpy):
        import threading

        self.chainer, self.intel64, self.numpy = chainer, intel64, numpy
        self.arrays, self.lock = _Arrays(chainer, numpy), threading.Lock()
        self.no_empty = _version(chainer) < NO_EMPTY

    def move(self, link, where, again=False):
        """Move a model if Chainer would use iDeep for it now, and nobody would notice but by the time it takes.

        One that was moved once, or never will be, is left alone, unless this is to be done ``again``.
        """
        if (STATE.done.get(link) and not again) or not self.intel64.should_use_ideep(">=auto"):
            return
        if not self.lock.acquire(False):
            return  # another thread is at it
        try:
            why, for_good = self.reason(link)
            if why is None:
                self.carry_out(link)
                STATE.moved[where] += 1
                _tell(where, 20, "to_intel64() was called for %s, for %s" % (type(link).__name__, where))
            elif why:
                STATE.left[why] = STATE.left.get(why, 0) + 1
                _tell(why, 20, "%s stays as it is: %s" % (type(link).__name__, why))
            STATE.tried.set(link, STATE.tried.get(link) + 1)
            if for_good or STATE.tried.get(link) >= TRIES:
                STATE.done.set(link, 1)
        finally:
            self.lock.release()

    def reason(self, link):
        """Why a model is not moved (None: it is, "": there is nothing to move), and whether that will not change."""
        if any(one.xp is not self.numpy for one in link.links()):
            return "it is on a GPU, or in ChainerX", False
        if not self.arrays.waiting(link):
            return "", True
        wrong = _not_corrected()
        if wrong:
            STATE.why = wrong + ": the guard does not correct that here"
            return STATE.why, True
        if self.no_empty and self.arrays.empty(link):
            return "it has arrays of no elements", True
        if self.arrays.shared(link):
            return "something else holds its arrays, too", False
        return None, True

    def carry_out(self, link):
        kept = [(values, name, values[name]) for values, name in self.arrays.values(link, False)]
        if hasattr(link, "to_device"):
            link.to_device("@intel64")  # Chainer 7 warns of to_intel64()
        else:
            link.to_intel64()
        for values, name, value in kept:
            values[name] = value
        for one in link.links():
            STATE.done.set(one, 1)
        _watch_end()


def _watch_end():
    """Where the program ends with an error that seems to come of iDeep's arrays, tell how to run it without them."""
    if STATE.hook is not None:
        return
    previous = sys.excepthook

    def hook(kind, value, trace):
        previous(kind, value, trace)
        try:
            text = str(value)
            if issubclass(kind, (TypeError, AttributeError)) and any(
                word in text for word in ("mdarray", "ndarray", "ArrayType", "must be array", "not writable")
            ):
                sys.stderr.write(HINT + "\n")
        except Exception:
            pass

    STATE.hook = sys.excepthook = hook


def apply(chainer):
    """Watch optimizers and models of this Chainer."""
    import os

    if os.environ.get(SWITCH, "").strip().lower() in ("off", "0", "no", "false"):
        STATE.why = "switched off by " + SWITCH
        return
    if _version(chainer) < FIRST:
        STATE.why = "Chainer %s is not supported" % chainer.__version__
        return
    import numpy
    from chainer.backends import intel64

    if not intel64.is_ideep_available():
        STATE.why = "iDeep is not available"
        return
    mover = _Mover(chainer, intel64, numpy)
    _watch_optimizers(chainer, mover)
    _watch_models(chainer, mover)
    _plain_pickles(chainer, intel64)
    STATE.active, STATE.why = True, ""


def _watch_optimizers(chainer, mover):
    original = chainer.Optimizer.setup
    if getattr(original, "_ideepdoctor", False):
        return

    def setup(self, link, *args, **options):
        made = original(self, link, *args, **options)
        try:
            if isinstance(link, chainer.Link):
                mover.move(link, "optimizer")
        except Exception as error:
            _problem("optimizer.setup", error)
        return made

    setup._ideepdoctor = True
    setup.__doc__ = original.__doc__
    chainer.Optimizer.setup = setup
    first_update, begun = chainer.GradientMethod.update, STATE.begun.rows

    def update(self, *args, **options):
        if id(self) not in begun:
            try:
                STATE.begun.set(self, 1)
                if isinstance(getattr(self, "target", None), chainer.Link):
                    mover.move(self.target, "optimizer", True)
            except Exception as error:
                _problem("optimizer.update", error)
        return first_update(self, *args, **options)

    update.__doc__ = first_update.__doc__
    chainer.GradientMethod.update = update


def _watch_models(chainer, mover):
    import threading

    original = chainer.Link.__call__
    if getattr(original, "_ideepdoctor", False):
        return
    here, config, done = threading.local(), chainer.config, STATE.done.rows

    def call(self, *args, **options):
        if config.train and config.enable_backprop or id(self) in done or getattr(here, "inside", False):
            return original(self, *args, **options)
        here.inside = True
        try:
            try:
                mover.move(self, "inference")
            except Exception as error:
                _problem("inference", error)
            return original(self, *args, **options)
        finally:
            here.inside = False

    call._ideepdoctor = True
    call.__doc__ = original.__doc__
    chainer.Link.__call__ = call


def _plain_pickles(chainer, intel64):
    """Pickle what was moved as if it had not been: another machine may have no ideep4py."""
    registry = __import__("copyreg" if sys.version_info[0] > 2 else "copy_reg")
    of_guard = registry.dispatch_table.get(intel64.mdarray)
    if of_guard is not None and not getattr(of_guard, "_ideepdoctor", False):

        def reduce_array(array):
            return of_guard(array)[1][0].__reduce__()

        reduce_array._ideepdoctor = True
        registry.pickle(intel64.mdarray, reduce_array)
    device = getattr(intel64, "Intel64Device", None)
    if device is not None:  # Chainer 6 and later
        registry.pickle(device, lambda _: (chainer.backend.CpuDevice, ()))
        # A copy in this process stays where it is.
        device.__copy__ = lambda self: self
        device.__deepcopy__ = lambda self, memo: self


def _apply_quietly(chainer):
    try:
        apply(chainer)
    except Exception as error:
        STATE.why = "%s: %s" % (type(error).__name__, error)
        _problem("start", error)


def _register():
    import _ideepdoctor_guard

    if not STATE.following:
        STATE.following = True
        _ideepdoctor_guard.follow(_apply_quietly)


try:
    _register()
except Exception as failure:
    STATE.why = "%s: %s" % (type(failure).__name__, failure)
    _problem("start", failure)
