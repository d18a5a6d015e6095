"""The sitecustomize of programs that `ideepdoctor run` starts. Removed from nothing: it is in the doctor's cache.

Loads the guard and what else lies beside it, then the sitecustomize that the user's environment has itself, if it has
one. An environment's own guard is taken where it is newer. Python 2.7 and 3.5 to 3.14; nothing here may stop a program.
"""

import os
import sys

NAMES = ("_ideepdoctor_trace", "_ideepdoctor_guard", "_ideepdoctor_auto")
GUARD = "_ideepdoctor_guard"


def _beside():
    try:
        return os.path.dirname(os.path.abspath(__file__))
    except NameError:
        return None


def _load(name):
    try:
        __import__(name)
    except Exception:
        pass


def _version(path):
    """The number that a guard tells of itself in its status; 0 for no guard, or one that has none."""
    try:
        with open(path) as stream:
            text = stream.read()
    except Exception:
        return 0
    digits = text.partition('{"guard": ')[2].partition(",")[0]
    return int(digits) if digits.isdigit() else 0


def _load_guard(folder):
    """Load the newest guard that there is, ours where the environment's is the same."""
    places = [entry for entry in sys.path if entry != folder and os.path.isfile(os.path.join(entry, GUARD + ".py"))]
    best = max([folder] + places, key=lambda entry: _version(os.path.join(entry, GUARD + ".py")))
    sys.path.insert(0, best)
    try:
        _load(GUARD)
    finally:
        sys.path.remove(best)


def _start(folder):
    for name in os.environ.get("IDEEPDOCTOR_RUN", "").split(","):
        if name == GUARD and folder is not None:
            _load_guard(folder)
        elif name in NAMES:
            _load(name)
    # The folder has done its part: what the program imports comes from where it came without us.
    own = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        # One that fails is Python's to tell of; 2.7 says nothing, whatever was not found.
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


_start(_beside())
