"""Records what Chainer computes, from which line, how long and with what. Written by ideepdoctor, for its `trace`.

Imported at the start of Python, it waits for the import of `chainer`. Then it takes part in every thread's function
hooks, stands beside the updates of optimizers, and gives MKL-DNN's verbose lines a place in memory instead of standard
output. Nothing here may stop or change a program: nothing is printed, no file stays open, what fails is recorded and
left out. Python 2.7 and 3.5 to 3.14; Chainer 4 to 7; Linux on x86-64.

    IDEEPDOCTOR_TRACE=FOLDER           where the records go; without it nothing is recorded
    IDEEPDOCTOR_TRACE_EVENTS=N         the first N calls of each process are recorded one by one, too

Each process has files of its own there, a forked one begins new ones. BASE is its number, a dash and eight digits:

    BASE.txt       facts, a literal of Python in each line: (kind, what...)
    BASE.rows0...  numbers, as doubles in memory that outlives the process: ROWS rows of ROW numbers. The row 0 has
                   STARTED and what follows, the rows up to FIRST - 1 have what each thread is just computing: a row's
                   number, negative for backward, 0 for nothing
    BASE.events    a call in each line: row, 0 or 1 (backward), start since the process's own in us, duration in us

A row is a function at a line with one kind of input, in one thread: see the line ("row", number, facts) in BASE.txt.
Backward passes count at the line of the forward pass. What is applied within a backward pass has rows of its own, which
say so ("inside"): their time is part of the outer one's.
"""

import os
import sys
import time

from hook import ChainerFinder
from trace_frames import (
    CHAINER,
    GUARD,
    _belongs,
    _is_within,
    _locals,
    _names,
    _place,
    _places,
    _stack,
    _user_frame,
    _walk,
)
from trace_lines import _Tap
from trace_records import (
    BACKWARD,
    CALLS,
    IS_FIRST,
    LAST,
    OWN,
    SECONDS,
    STATE,
    _Call,
    _Memory,
    _problem,
    _Records,
    _records,
    clock,
    get_ident,
)

MARK = "_ideepdoctor_row"  # a function's attribute: the row of its forward pass
# What else than its inputs decides whether a function uses iDeep.
DECISIVE = {
    "Convolution2DFunction": ("groups", "dy", "dx"),
    "Deconvolution2DFunction": ("groups", "dy", "dx"),
    "Convolution2DGradW": ("groups",),
    "ConvolutionND": ("ndim", "groups"),
    "DeconvolutionND": ("ndim", "groups"),
    "MaxPoolingND": ("ndim",),
    "AveragePoolingND": ("ndim",),
    "SplitAxis": ("axis",),
    "Concat": ("axis",),
}


def _set_by(name, value):
    """Who made a setting what it is now: facts."""
    config = STATE.chainer.config
    scope = get_ident() if name in config._local.__dict__ else "global"
    places = STATE.setters.get((name, scope))
    facts = {"scope": "global" if scope == "global" else "thread", "value": "%s" % (value,)}
    if places and places[-1] is not None:
        facts.update(places[-1])
    return facts


def _describe(row, thread, known, function, in_data, use, frame, parent):
    """Facts of a new row; ``known`` is the function's name and the names that decide."""
    name, decisive = known
    facts = {"thread": thread.number, "function": name, "module": type(function).__module__, "use": "%s" % (use,)}
    facts["label"] = "%s" % (getattr(function, "label", name),)
    facts["decisive"] = dict((key, _plain(getattr(function, key, None))) for key in decisive)
    inputs = dict(_locals(frame, ["inputs"])).get("inputs") or ()
    told, wide = [], []
    for index, array in enumerate(in_data):
        given = inputs[index] if len(inputs) == len(in_data) else None
        parameter = isinstance(given, STATE.parameter)
        kind = _kind(array)
        shape = [int(size) for size in array.shape] if kind else []
        dtype = "%s" % (array.dtype,) if kind == "n" else "float32" if kind else type(array).__name__
        told.append([kind, dtype, shape, parameter])
        if kind == "n" and array.dtype.kind == "f" and array.dtype.char != "f" and not parameter:
            wide.append(array)
    facts["inputs"] = told
    if use == "never":
        facts["set"] = _set_by("use_ideep", use)
    if any(one[3] and one[1] in ("float64", "float16") for one in told):
        facts["dtype"] = _set_by("dtype", STATE.chainer.config.dtype if hasattr(STATE.chainer.config, "dtype") else "")
    if parent is not None:
        facts["inside"] = parent.number
        return facts
    where = _user_frame(frame.f_back)
    facts.update(_place(where), stack=_stack(where))
    if wide:
        _origin(facts, row, where, wide)
    return facts


def _kind(array):
    """n for NumPy's, m for iDeep's, g for another array, empty for what is none."""
    if type(array) is STATE.numpy.ndarray:
        return "n"
    if type(array) is STATE.mdarray:
        return "m"
    return "g" if hasattr(type(array), "shape") and hasattr(type(array), "dtype") else ""


def _plain(value):
    return value if isinstance(value, (int, float)) else "%s" % (value,)


def _origin(facts, row, where, wide):
    """Whence arrays came that are not float32: from the row of an earlier function, or from the user's hands."""
    for array in wide:
        known = row.records.wide.get(id(array))
        if known is not None and known[0]() is array:
            row.origin = facts["origin"] = known[1]
            return
    row.origin = facts["origin"] = row.number
    facts["names"], facts["dataset"] = _names(where, wide[0])


def _remember(row, frame):
    """Note the outputs of a function that did not get float32: what gets them has the same origin."""
    import weakref

    wide = row.records.wide
    if len(wide) > 4096:
        for key in [key for key, known in list(wide.items()) if known[0]() is None]:
            wide.pop(key, None)
    outputs = dict(_locals(frame, ["outputs"])).get("outputs")
    for array in outputs if isinstance(outputs, tuple) else ():
        if _kind(array) == "n" and array.dtype.kind == "f" and array.dtype.char != "f" and len(wide) < 8192:
            wide[id(array)] = weakref.ref(array), row.origin


def _row_of(records, thread, ident, function, in_data, frame):
    """The row of a function that is about to be applied, and the call in whose backward pass that happens, if any.

    What the guard computes has no row: it is a part of the function that the guard corrects.
    """
    cls = type(function)
    if cls not in STATE.classes:
        adapted = getattr(function, "function", None) if cls.__name__ == "FunctionAdapter" else None
        name = (cls if adapted is None else type(adapted)).__name__
        STATE.classes[cls] = (name, DECISIVE.get(name, ())) if adapted is None else None
    known = STATE.classes[cls]
    if known is None:  # functions of the old kind have one class of adapters
        known = type(function.function).__name__, ()
    above, met = _walk(frame.f_back)
    parent = None
    if thread.calls and (met == GUARD or met == CHAINER and not thread.calls[-1].counts):
        return None, thread.calls[-1]
    if met == CHAINER and thread.calls and thread.calls[-1].backward:
        parent = thread.calls[-1]
    elif met is not None:
        above = _user_frame(above.f_back)
    if parent is None and thread.calls and met is None and not _is_within(above):
        del thread.calls[:]  # what raised an exception never came to its end
    ndarray, mdarray, specs = STATE.numpy.ndarray, STATE.mdarray, []
    for array in in_data:
        kind = type(array)
        if kind is ndarray:
            specs.append((array.dtype.char, array.ndim, array.size == 0))
        elif kind is mdarray:
            specs.append(array.ndim)
        else:
            specs.append(kind)
    use = STATE.chainer.config.use_ideep
    where = parent.row.number if parent else (above.f_code.co_filename, above.f_lineno) if above else None
    decisive = tuple([getattr(function, key, None) for key in known[1]])
    key = ident, where, known[0], use, tuple(specs), decisive

    def describe(row):
        return _describe(row, thread, known, function, in_data, use, frame, parent and parent.row)

    row = records.row(key, describe)
    try:
        setattr(function, MARK, row)
    except AttributeError:
        pass
    return row, parent


def _row_again(records, function, thread, ident):
    """The row of a function whose backward pass begins."""
    row = getattr(function, MARK, None)
    if row is None:  # it was applied before anyone looked
        name = type(function).__name__

        def describe(row):
            return {"thread": thread.number, "function": name, "module": type(function).__module__}

        return records.row((ident, "?", name), describe)
    if row.records is not records or row.key[0] != ident:  # a forked process; another thread
        facts = dict(row.facts, thread=thread.number)
        facts.pop("inside", None)
        return records.row((ident,) + row.key[1:], lambda new: facts)
    return row


def _begin(function, in_data, backward):
    """A function is about to be computed."""
    entered = clock()
    records, ident = _records(), get_ident()
    thread = records.thread(ident)
    if STATE.tap is not None:
        STATE.tap.drain(records)
    call = _Call()
    # Of the function its id: what an exception leaves here keeps no graph alive.
    call.function, call.backward, call.way, call.inner, call.within = id(function), backward, backward, 0.0, None
    if backward and thread.calls and _walk(sys._getframe(2).f_back)[1] == GUARD:
        call.row, call.within = None, thread.calls[-1]
    elif backward:
        if thread.calls and not _is_within(sys._getframe(2)):
            del thread.calls[:]
        call.row = _row_again(records, function, thread, ident)
    else:
        call.row, call.within = _row_of(records, thread, ident, function, in_data, sys._getframe(2))
    call.counts = call.row is not None
    if not call.counts:
        call.row, call.way = call.within.row, call.within.way
    thread.calls.append(call)
    records.busy(thread, call)
    call.start = clock()
    records.files[0][OWN] += call.start - entered


def _end(function, backward):
    """A function has been computed."""
    now = clock()
    records = _records()
    thread = records.thread(get_ident())
    calls = thread.calls
    while calls and (calls[-1].function != id(function) or calls[-1].backward != backward):
        calls.pop()
    if not calls:
        return
    if STATE.tap is not None:
        STATE.tap.drain(records)
    call = calls.pop()
    row, duration = call.row, now - call.start
    if row.records is records and call.counts:
        place = row.offset + BACKWARD * backward
        row.values[place + CALLS] += 1
        row.values[place + SECONDS] += duration - call.inner
        if row.origin and not backward and row.values[place] < 4:
            _remember(row, sys._getframe(2))
    if calls and call.within is None:
        calls[-1].inner += duration
    records.busy(thread, calls[-1] if calls else None)
    if call.counts:
        records.event(call, duration, now)
    header = records.files[0]
    left = clock()
    header[LAST] = left - records.zero
    header[OWN] += left - now


class _Hook(object):
    """A function hook of Chainer's that is in every thread's set."""

    name = "_ideepdoctor_trace"

    def added(self, function=None):
        pass

    deleted = added

    def forward_preprocess(self, function, in_data):
        if STATE.failures < 50:
            try:
                _begin(function, in_data, 0)
            except Exception:
                _problem("forward")

    def forward_postprocess(self, function, in_data):
        if STATE.failures < 50:
            try:
                _end(function, 0)
            except Exception:
                _problem("after forward")

    def backward_preprocess(self, function, in_data, out_grad):
        if STATE.failures < 50:
            try:
                _begin(function, in_data, 1)
            except Exception:
                _problem("backward")

    def backward_postprocess(self, function, in_data, out_grad):
        if STATE.failures < 50:
            try:
                _end(function, 1)
            except Exception:
                _problem("after backward")


def _parameters(optimizer):
    """How many parameters iDeep's arrays hold, NumPy's that iDeep could hold, and others."""
    counts = [0, 0, 0]
    for parameter in optimizer.target.params():
        array = parameter.array
        if type(array) is STATE.mdarray:
            counts[0] += 1
        elif type(array) is STATE.numpy.ndarray and array.dtype.char == "f" and array.ndim in (1, 2, 4) and array.size:
            counts[1] += 1
        else:
            counts[2] += 1
    return tuple(counts)


def _update_begins(optimizer):
    entered = clock()
    records, ident = _records(), get_ident()
    thread = records.thread(ident)
    if STATE.tap is not None:
        STATE.tap.drain(records)
    frame = _user_frame(sys._getframe(2))
    use, name = STATE.chainer.config.use_ideep, type(optimizer).__name__
    key = ident, frame and (frame.f_code.co_filename, frame.f_lineno), name, use, _parameters(optimizer)

    def describe(row):
        facts = dict(_place(frame), thread=thread.number, function=name, module=type(optimizer).__module__)
        facts.update(optimizer=True, use="%s" % (use,), parameters=list(key[4]), stack=_stack(frame))
        if use == "never":
            facts["set"] = _set_by("use_ideep", use)
        return facts

    update = _Call()
    update.row, update.function, update.inner = records.row(key, describe), id(optimizer), 0.0
    update.backward = update.way = 0
    thread.calls[:] = [update]
    records.busy(thread, update)
    update.start = clock()
    records.files[0][OWN] += update.start - entered


def _update_ends(optimizer):
    now = clock()
    records = _records()
    thread = records.thread(get_ident())
    if not thread.calls or thread.calls[-1].function != id(optimizer):
        return
    if STATE.tap is not None:
        STATE.tap.drain(records)
    update = thread.calls.pop()
    duration = now - update.start
    if update.row.records is records:
        update.row.values[update.row.offset + CALLS] += 1
        update.row.values[update.row.offset + SECONDS] += duration
    records.busy(thread, None)
    records.event(update, duration, now)
    records.files[0][OWN] += clock() - now


def _watch_updates(chainer):
    """Stand beside the updates of optimizers: between their hooks before and their hooks after."""

    def watch(original):
        def call_hooks(self, timing="pre"):
            if timing == "post" and STATE.failures < 50:
                try:
                    _update_ends(self)
                except Exception:
                    _problem("after an update")
            original(self, timing)
            if timing == "pre" and STATE.failures < 50:
                try:
                    _update_begins(self)
                except Exception:
                    _problem("update")

        call_hooks.__doc__ = original.__doc__
        return call_hooks

    for kind in (chainer.Optimizer, chainer.GradientMethod):
        if "call_hooks" in kind.__dict__:
            kind.call_hooks = watch(kind.__dict__["call_hooks"])
    original = chainer.Optimizer.setup

    def setup(self, link, *args, **options):
        made = original(self, link, *args, **options)
        try:
            frame = _user_frame(sys._getframe(1))
            facts = dict(_place(frame), optimizer=type(self).__name__, model=type(link).__name__, stack=_stack(frame))
            _records().tell_once((facts["file"], facts["line"], facts["model"]), "setup", facts)
        except Exception:
            _problem("setup")
        return made

    setup.__doc__ = original.__doc__
    chainer.Optimizer.setup = setup


SETTINGS = ("use_ideep", "dtype")


def _setting(name, scope, frame, gone):
    """Note that a setting was made, or given back, by what runs in ``frame``."""
    places = STATE.setters.setdefault((name, scope), [])
    entering = leaving = False
    while frame is not None:  # the parts of using_config: a generator and contextlib, or a class of Chainer's
        code = frame.f_code
        kind = _belongs(code)
        own = kind == CHAINER and code.co_filename.endswith(("configuration.py", "configuration.pyc"))
        if not own and not code.co_filename.endswith(("contextlib.py", "contextlib.pyc")):
            break
        entering = entering or code.co_name == "__enter__"
        leaving = leaving or code.co_name == "__exit__"
        frame = frame.f_back
    if leaving or gone:
        del places[-1:]
        return
    if frame is not None and _belongs(frame.f_code) not in (CHAINER, GUARD):
        place = _place(_user_frame(frame))
        place["context"] = entering
    else:
        place = places[-1] if places else None  # Chainer repeats it for a backward pass; the guard means itself
    if not entering:
        del places[-1:]
    places.append(place)


def _watch_settings(chainer):
    """See where use_ideep and dtype are set, for a thread or for all."""
    local, everywhere = type(chainer.config), type(chainer.global_config)
    set_local, delete_local = local.__setattr__, local.__delattr__

    def noted(name, scope, gone=False):
        try:
            _setting(name, scope, sys._getframe(2), gone)
        except Exception:
            _problem("settings")

    def set_one(self, name, value):
        set_local(self, name, value)
        if name in SETTINGS and self is chainer.config:
            noted(name, get_ident())

    def delete_one(self, name):
        delete_local(self, name)
        if name in SETTINGS and self is chainer.config:
            noted(name, get_ident(), True)

    def set_everywhere(self, name, value):
        object.__setattr__(self, name, value)
        if name in SETTINGS and self is chainer.global_config:
            noted(name, "global")

    local.__setattr__, local.__delattr__ = set_one, delete_one
    if "__setattr__" not in everywhere.__dict__:
        everywhere.__setattr__ = set_everywhere


def _watch_functions(chainer):
    """Put the hook into every thread's hooks, when it first asks for them."""
    original, hook = chainer.get_function_hooks, _Hook()

    def get_function_hooks():
        hooks = original()
        if hook.name not in hooks:
            hooks[hook.name] = hook
        return hooks

    get_function_hooks.__doc__ = original.__doc__
    chainer.get_function_hooks = get_function_hooks


def _facts_of(chainer):
    """What decides for the whole process whether iDeep is used."""
    intel64 = getattr(getattr(chainer, "backends", None), "intel64", None) or getattr(chainer, "intel64", None)
    error = getattr(intel64, "_error", None)
    ideep = sys.modules.get("ideep4py")
    facts = {"version": chainer.__version__, "numpy": STATE.numpy.__version__, "file": chainer.__file__}
    facts["available"] = bool(intel64 is not None and intel64.is_ideep_available())
    facts["ideep"] = getattr(ideep, "__version__", "1.x") if ideep else ""
    facts["error"] = "%s: %s" % (type(error).__name__, error) if error is not None else ""
    facts["use"] = "%s" % (chainer.global_config.use_ideep,)
    facts["dtype"] = "%s" % (getattr(chainer.global_config, "dtype", ""),)
    names = ("CHAINER_USE_IDEEP", "CHAINER_DTYPE", "OMP_NUM_THREADS", "MKLDNN_VERBOSE", "IDEEPDOCTOR_GUARD")
    facts["variables"] = dict((name, os.environ[name]) for name in names if name in os.environ)
    return facts


def apply(chainer):
    """Begin to record what this Chainer computes."""
    from chainer.backends import intel64

    STATE.chainer, STATE.numpy, STATE.mdarray = chainer, sys.modules["numpy"], intel64.mdarray
    STATE.parameter, STATE.places = chainer.Parameter, _places(chainer)
    STATE.kinds.clear()
    records = _records()
    records.tell("chainer", _facts_of(chainer))
    STATE.memory = _Memory()
    records.begin()
    _watch_settings(chainer)
    _watch_updates(chainer)
    _watch_functions(chainer)
    records.tell("watching", True)
    if intel64.is_ideep_available():
        try:
            STATE.tap = _Tap(STATE.memory)
        except Exception as error:
            records.tell("no lines", "%s" % (error,))


def _apply(chainer):
    if STATE.chainer is None:
        try:
            apply(chainer)
        except Exception:
            _problem("start")


def _finish():
    """The process comes to its end in the ordinary way."""
    try:
        records = STATE.records
        if records.pid == os.getpid():
            records.flush(clock())
            guard = sys.modules.get("_ideepdoctor_guard")
            if guard is not None and STATE.chainer is not None:
                told = guard.status()
                applied = dict((name, one["applied"]) for name, one in told["corrections"].items() if one["applied"])
                records.tell("guard", {"active": bool(told["active"]), "applied": applied})
            records.tell("end", time.time())
    except Exception:
        pass


def _start():
    import atexit

    STATE.records = _Records()
    sys.meta_path.insert(0, ChainerFinder(_apply))
    # Registered before all others, it is called after them.
    atexit.register(_finish)


if IS_FIRST and os.path.isdir(STATE.folder):
    try:
        _start()
    except Exception:
        pass
