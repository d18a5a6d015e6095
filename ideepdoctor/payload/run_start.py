"""The sitecustomize of programs that `ideepdoctor run` starts. Removed from nothing: it is in the doctor's cache.

Loads the guard and the automatic to_intel64() that lie beside it, then the sitecustomize that the user's environment
has itself, if it has one. Python 2.7 and 3.5 to 3.14; nothing here may stop a program.
"""

import os
import sys


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


def _start(folder):
    for name in os.environ.get("IDEEPDOCTOR_RUN", "").split(","):
        if name in ("_ideepdoctor_trace", "_ideepdoctor_guard", "_ideepdoctor_auto"):
            _load(name)
    # The folder has done its part: what the program imports comes from where it came without us.
    own = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) not in (None, "sitecustomize") or (
            str(error) and "sitecustomize" not in str(error)
        ):
            sys.stderr.write("sitecustomize: %s\n" % error)
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


_start(_beside())
