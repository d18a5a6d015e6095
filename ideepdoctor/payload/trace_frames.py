"""A part of trace.py: the user's lines on the stack, and the names that an array has there."""

import os
import sys

from trace_records import STATE

USER, CHAINER, LIBRARY, OTHER, GUARD = range(5)  # where a frame of the stack belongs
# Functions of Chainer that drive a backward pass: what is applied below them belongs to the outer function.
DRIVERS = frozenset(("backprop_step", "_backprop_to_all", "_backward_main", "_grad", "grad"))


def _classify(filename):
    """Where the code of a file belongs; remembered."""
    if filename.startswith("<"):
        named = filename in ("<stdin>", "<string>") or filename.startswith(("<ipython", "<doctest"))
        kind = USER if named else OTHER
    else:
        path = os.path.normpath(os.path.join(STATE.cwd, filename))
        kinds = [belongs for start, belongs in STATE.places if path.startswith(start)]
        name = os.path.basename(path)
        if name.startswith("_ideepdoctor_"):  # the guard, auto, and we
            kind = GUARD if name.startswith("_ideepdoctor_guard") else OTHER
        elif kinds:
            kind = kinds[0]
        else:
            kind = LIBRARY if "/site-packages/" in path or "/dist-packages/" in path else USER
    STATE.kinds[filename] = kind
    return kind


def _places(chainer):
    """Folders that are not the user's: Chainer's, and Python's own."""
    stdlib = os.path.dirname(os.__file__)
    folders = [(os.path.dirname(os.path.abspath(chainer.__file__)), CHAINER)]
    for path in (stdlib, os.path.realpath(stdlib), os.path.dirname(os.path.realpath(os.__file__))):
        # Packages that were installed stand in the same folder.
        folders += [(path + "/site-packages", LIBRARY), (path + "/dist-packages", LIBRARY), (path, OTHER)]
    return [(folder + "/", kind) for folder, kind in folders]


def _belongs(code):
    kind = STATE.kinds.get(code.co_filename)
    return _classify(code.co_filename) if kind is None else kind


def _walk(frame):
    """Go up from a frame to the user's line.

    Returns the user's frame, or a library's where there is none, or None; and what was met before it: CHAINER for one
    of its backward passes, GUARD for the guard, which computes within a function; else None.
    """
    kinds, library = STATE.kinds, None
    while frame is not None:
        code = frame.f_code
        kind = kinds.get(code.co_filename)
        if kind is None:
            kind = _classify(code.co_filename)
        if kind == USER:
            return frame, None
        if kind == CHAINER:
            if code.co_name in DRIVERS:
                return frame, CHAINER
        elif kind == GUARD:
            return frame, GUARD
        elif kind == LIBRARY and library is None:
            library = frame
        frame = frame.f_back
    return library, None


def _user_frame(frame):
    """The first frame from here up that is the user's, or a library's where there is none."""
    found, met = _walk(frame)
    while met is not None:
        found, met = _walk(found.f_back)
    return found


def _is_within(frame):
    """Whether a function of Chainer is being computed above this frame, forward or backward."""
    while frame is not None:
        if frame.f_code.co_name in ("apply", "backprop_step") and _belongs(frame.f_code) == CHAINER:
            return True
        frame = frame.f_back
    return False


def _path(filename):
    return filename if filename.startswith("<") else os.path.normpath(os.path.join(STATE.cwd, filename))


def _place(frame):
    """File and line of a frame, as facts."""
    if frame is None:
        return {"file": "", "line": 0, "in": ""}
    code = frame.f_code
    return {"file": _path(code.co_filename), "line": frame.f_lineno, "in": code.co_name}


def _stack(frame):
    """The user's frames from here up, inner first: file, line, name and first line of the function."""
    found = []
    while frame is not None and len(found) < 12:
        code = frame.f_code
        if _belongs(code) == USER:
            found.append([_path(code.co_filename), frame.f_lineno, code.co_name, code.co_firstlineno])
        frame = frame.f_back
    return found


def _locals(frame, names=None):
    """Names and values in a frame. Python keeps them in a dict until the function ends: it is emptied again."""
    known = frame.f_locals
    if names is None:
        found = list(known.items())[:500]
    else:
        found = [(name, known.get(name)) for name in names]
    if frame.f_code.co_flags & 1 and sys.version_info < (3, 13):  # a function's; others' are the variables themselves
        known.clear()
    return found


def _array_of(value):
    """The array of a variable, else the value itself."""
    if isinstance(value, STATE.chainer.Variable):
        try:
            return value.array
        except Exception:
            return None
    return value


def _names(frame, array):
    """Where the user's frames have this array, or the one that it is a part of: [depth, name]; inner frames first.

    The second answer is whether Chainer's training loop, a dataset's user, was met first.
    """
    whole = getattr(array, "base", None)
    wanted = [one for one in (array, whole) if isinstance(one, STATE.numpy.ndarray)]

    def holds(value):
        value = _array_of(value)
        if isinstance(value, (tuple, list)) and len(value) <= 16:
            return any(_array_of(one) is each for one in value for each in wanted)
        return any(value is each for each in wanted)

    found, depth = [], 0
    while frame is not None and depth < 12:
        code = frame.f_code
        kind = _belongs(code)
        if kind == USER:
            found += [[depth, name] for name, value in _locals(frame) if not name.startswith("__") and holds(value)]
            depth += 1
        elif kind == CHAINER and not found and "/training/" in code.co_filename:
            return found, True
        frame = frame.f_back
    return found, False
