"""Calls to_intel64() for a program that does not: written by ideepdoctor, for `ideepdoctor run`.

Imported at the start of Python, it only asks the guard, which lies beside it, to be told when `chainer` has been
imported. Then a model is moved to iDeep's layout where a person would have done it: when an optimizer is set up with
it, and when it is called for inference (without backprop, or not in training) and no optimizer has had it. Models on a
GPU, and programs for which Chainer would not use iDeep, stay as they are. Nothing here may stop a program. Python 2.7
and 3.5 to 3.14.

    IDEEPDOCTOR_AUTO=off               nothing is moved

    import _ideepdoctor_auto; _ideepdoctor_auto.status()
"""

import sys

SWITCH = "IDEEPDOCTOR_AUTO"
LOGGER = "ideepdoctor.auto"
FIRST = (5, 0)  # Chainer 4 has no Link.__call__ to watch, and its pairs with ideep4py differ


class _State(object):
    """What was done in this process; one object, which outlives a reload of this module."""

    def __init__(self):
        self.active = False
        self.why = "chainer was not imported"
        self.moved = {"optimizer": 0, "inference": 0}
        self.told = set()
        self.following = False


STATE = getattr(sys, "_ideepdoctor_auto_state", None)
if STATE is None:
    STATE = sys._ideepdoctor_auto_state = _State()


def _tell(key, level, text):
    """A line for the logger, once per process for each key; never raises."""
    if key in STATE.told:
        return
    STATE.told.add(key)
    try:
        import logging

        logging.getLogger(LOGGER).log(level, text)
    except Exception:
        pass


def status():
    """What was done in this process, as plain data."""
    return {"auto": 1, "active": STATE.active, "why_not": STATE.why, "moved": dict(STATE.moved)}


def _version(chainer):
    numbers = []
    for part in chainer.__version__.split(".")[:2]:
        digits = "".join(one for one in part if one.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def _loads_right():
    """Whether weights that are loaded later arrive in a model that was moved: the guard sees to it."""
    guard = sys.modules.get("_ideepdoctor_guard")
    return guard is not None and bool(guard.status()["corrections"].get("load", {}).get("active"))


def _move(chainer, intel64, link, where):
    """Move a model to iDeep's layout if Chainer would use iDeep for it now."""
    if not intel64.should_use_ideep(">=auto") or not _on_cpu(link):
        return
    if not _loads_right():
        STATE.why = "weights loaded later would be corrupted: the guard does not correct that here"
        _tell("load", 20, STATE.why)
        return
    link.to_intel64()
    STATE.moved[where] += 1
    _tell(where, 20, "to_intel64() was called for %s, for %s" % (type(link).__name__, where))


def _on_cpu(link):
    """Whether a model's arrays are NumPy's, not yet iDeep's and not a GPU's."""
    import numpy

    if link.xp is not numpy:
        return False
    device = getattr(link, "device", None)
    if device is not None:  # Chainer 6 and later
        return type(device).__name__ == "CpuDevice"
    ideep = sys.modules.get("ideep4py")
    arrays = [param.array for param in link.params() if param.array is not None]
    return not (ideep and any(isinstance(array, ideep.mdarray) for array in arrays))


def apply(chainer):
    """Watch optimizers and models of this Chainer."""
    import os

    if os.environ.get(SWITCH, "").strip().lower() in ("off", "0", "no", "false"):
        STATE.why = "switched off by " + SWITCH
        return
    if _version(chainer) < FIRST:
        STATE.why = "Chainer %s is not supported" % chainer.__version__
        return
    from chainer.backends import intel64

    if not intel64.is_ideep_available():
        STATE.why = "iDeep is not available"
        return
    _watch_optimizers(chainer, intel64)
    _watch_models(chainer, intel64)
    STATE.active, STATE.why = True, ""


def _watch_optimizers(chainer, intel64):
    original = chainer.Optimizer.setup
    if getattr(original, "_ideepdoctor", False):
        return

    def setup(self, link, *args, **options):
        made = original(self, link, *args, **options)
        try:
            if isinstance(link, chainer.Link):
                _move(chainer, intel64, link, "optimizer")
        except Exception as error:
            _tell("problem", 30, "optimizer.setup: %s: %s" % (type(error).__name__, error))
        return made

    setup._ideepdoctor = True
    setup.__doc__ = original.__doc__
    chainer.Optimizer.setup = setup


def _watch_models(chainer, intel64):
    import threading

    original = chainer.Link.__call__
    if getattr(original, "_ideepdoctor", False):
        return
    here = threading.local()
    mark = "_ideepdoctor_seen"

    def call(self, *args, **options):
        if getattr(here, "inside", False) or mark in self.__dict__:
            return original(self, *args, **options)
        config = chainer.config
        if config.train and config.enable_backprop:
            return original(self, *args, **options)
        here.inside = True
        try:
            try:
                self.__dict__[mark] = True
                _move(chainer, intel64, self, "inference")
            except Exception as error:
                _tell("problem", 30, "inference: %s: %s" % (type(error).__name__, error))
            return original(self, *args, **options)
        finally:
            here.inside = False

    call._ideepdoctor = True
    call.__doc__ = original.__doc__
    chainer.Link.__call__ = call


def _apply_quietly(chainer):
    try:
        apply(chainer)
    except Exception as error:
        STATE.why = "%s: %s" % (type(error).__name__, error)
        _tell("problem", 30, STATE.why)


def _register():
    import _ideepdoctor_guard

    if not STATE.following:
        STATE.following = True
        _ideepdoctor_guard.follow(_apply_quietly)


try:
    _register()
except Exception as failure:
    STATE.why = "%s: %s" % (type(failure).__name__, failure)
    _tell("problem", 30, "auto: " + STATE.why)
