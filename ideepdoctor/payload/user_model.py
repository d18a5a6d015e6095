"""The user's own model, FILE:FUNCTION; a part.

The function takes nothing and returns (link or callable, inputs...): what is called, and the arrays or Variables that
it is called with. What the call returns is a Variable, or a tuple, list or dict of them.
"""

import os
import sys


def in_one_line(error):
    """An exception as one line."""
    return " ".join(("%s: %s" % (type(error).__name__, error)).split())


class Refused(Exception):
    """The user's function is not what it must be; its text says why."""


def load_function(path, name):
    """The user's function. Raises Refused."""
    if str is bytes:
        path, name = path.encode("utf-8"), name.encode("utf-8")
    if not os.path.isfile(path):
        raise Refused("there is no file %s" % path)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.argv = [path]
    try:
        # Not runpy: on 2.7 the names that a function uses are gone when run_path has returned.
        module = sys.modules["ideepdoctor_model"] = type(sys)("ideepdoctor_model")
        module.__file__, names = path, module.__dict__
        with open(path, "rb") as stream:
            exec(compile(stream.read(), path, "exec", 0, True), names)
    except SystemExit as error:
        raise Refused("%s ended the program (%s) when it was loaded" % (path, in_one_line(error)))
    except Exception as error:
        raise Refused("%s could not be loaded: %s" % (path, in_one_line(error)))
    if name not in names:
        known = sorted(key for key, value in names.items() if callable(value) and not key.startswith("_"))
        raise Refused("%s has no function %s; it has: %s" % (path, name, ", ".join(known) or "none"))
    if not callable(names[name]):
        raise Refused("%s in %s is no function" % (name, path))
    return names[name]


def call_function(function, name):
    """What the user's function returns: the model and its inputs. Raises Refused."""
    try:
        made = function()
    except Exception as error:
        raise Refused("%s() raised %s" % (name, in_one_line(error)))
    if isinstance(made, (tuple, list)) and made:
        if callable(made[0]):
            return made[0], list(made[1:])
        found = "a %s that begins with %s" % (type(made).__name__, type(made[0]).__name__)
    else:
        found = "an empty %s" % type(made).__name__ if isinstance(made, (tuple, list)) else type(made).__name__
    raise Refused("%s() returned %s; it must return (link or callable, inputs...)" % (name, found))


def variables_of(chainer, value):
    """The Variables with floating-point numbers in what a model returned. Raises Refused where there are none."""
    values = list(value.values()) if isinstance(value, dict) else value
    values = list(values) if isinstance(values, (tuple, list)) else [values]
    found = [item for item in values if isinstance(item, chainer.Variable) and item.dtype.kind == "f"]
    if not found:
        raise Refused("the model returned %s, and no Variable that could be differentiated" % type(value).__name__)
    return found
