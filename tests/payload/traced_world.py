"""Stand-ins for Chainer and NumPy, enough for payload/trace.py: they run on every Python, also where neither exists."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

from ideepdoctor.proof.trace_records import Records, Row, read_folder
from ideepdoctor.targets.target import payload_source

NUMPY = """
__version__ = "1.0"

class dtype(object):
    def __init__(self, name):
        self.name, self.char = name, {"float32": "f", "float64": "d", "int32": "i"}[name]
        self.kind = "i" if name == "int32" else "f"
    def __str__(self):
        return self.name

class ndarray(object):
    def __init__(self, shape, kind="float32", base=None):
        self.shape, self.dtype, self.base, self.ndim, self.size = tuple(shape), dtype(kind), base, len(shape), 1
        for one in shape:
            self.size *= one
"""

CONFIGURATION = """
import threading

class GlobalConfig(object):
    pass

class LocalConfig(object):
    def __init__(self, everywhere):
        object.__setattr__(self, "_global", everywhere)
        object.__setattr__(self, "_local", threading.local())
    def __delattr__(self, name):
        delattr(self._local, name)
    def __getattr__(self, name):
        known = self._local.__dict__
        return known[name] if name in known else getattr(self._global, name)
    def __setattr__(self, name, value):
        setattr(self._local, name, value)

global_config = GlobalConfig()
config = LocalConfig(global_config)

class using_config(object):
    def __init__(self, name, value):
        self.name, self.value = name, value
    def __enter__(self):
        self.was = config._local.__dict__.get(self.name)
        setattr(config, self.name, self.value)
    def __exit__(self, *error):
        if self.was is None:
            delattr(config, self.name)
        else:
            setattr(config, self.name, self.was)
"""

CHAINER = """
import collections, os, threading
import numpy
from chainer.configuration import config, global_config, using_config
from chainer import backends

__version__ = "7.8.1"
_here = threading.local()
global_config.use_ideep = os.environ.get("CHAINER_USE_IDEEP", "never")
global_config.dtype = "float32"

def get_function_hooks():
    if not hasattr(_here, "hooks"):
        _here.hooks = collections.OrderedDict()
    return _here.hooks

class Variable(object):
    def __init__(self, array, creator=None):
        self.array, self.creator, self.grad = array, creator, None
    def backward(self):
        from chainer import _backprop
        _backprop._backprop_to_all(self)

class Parameter(Variable):
    pass

class Link(object):
    def __init__(self, *parameters):
        self.parameters = parameters
    def params(self):
        return iter(self.parameters)

from chainer.function_node import FunctionNode
from chainer.optimizer import Optimizer, GradientMethod, SGD
"""

FUNCTION = """
import chainer, numpy

class FunctionNode(object):
    label = "stand-in"
    def apply(self, inputs):
        in_data = tuple([x.array if isinstance(x, chainer.Variable) else x for x in inputs])
        hooks = chainer.get_function_hooks().values()
        for hook in hooks:
            hook.forward_preprocess(self, in_data)
        outputs = self.forward(in_data)
        for hook in hooks:
            hook.forward_postprocess(self, in_data)
        self.inputs = [x for x in inputs if isinstance(x, chainer.Variable)]
        return tuple([chainer.Variable(y, self) for y in outputs])
    def forward(self, inputs):
        return numpy.ndarray(inputs[0].shape, inputs[0].dtype.name),
    def backward(self):
        pass

class ReLUGrad2(FunctionNode):
    pass

class ReLU(FunctionNode):
    def backward(self):
        return ReLUGrad2().apply((self.inputs[0],))

class Convolution2DFunction(FunctionNode):
    groups = dy = dx = 1

def relu(x):
    return ReLU().apply((x,))[0]
"""

BACKPROP = """
import chainer

def backprop_step(function):
    function.backward()

def _backprop_to_all(variable):
    hooks = chainer.get_function_hooks().values()
    function = variable.creator
    while function is not None:
        for hook in hooks:
            hook.backward_preprocess(function, (), ())
        backprop_step(function)
        for hook in hooks:
            hook.backward_postprocess(function, (), ())
        function = function.inputs[0].creator if function.inputs else None
"""

OPTIMIZER = """
class Optimizer(object):
    target = None
    def setup(self, link):
        self.target = link
        return self
    def call_hooks(self, timing="pre"):
        pass

class GradientMethod(Optimizer):
    def update(self):
        self.call_hooks("pre")
        for parameter in self.target.params():
            self.one(parameter)
        self.call_hooks("post")
    def one(self, parameter):
        pass

class SGD(GradientMethod):
    pass
"""

INTEL64 = """
class mdarray(object):
    pass

_error = ImportError("No module named ideep4py")

def is_ideep_available():
    return False
"""


class World:
    """A folder with the stand-ins and what ``trace`` has a program load, and a Python that sees them."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder, self.python, self.records = folder, python, folder / "records"
        self.records.mkdir()
        self.program = folder / "user" / "program.py"
        for name, text in (
            ("lib/numpy.py", NUMPY),
            ("lib/chainer/__init__.py", CHAINER),
            ("lib/chainer/configuration.py", CONFIGURATION),
            ("lib/chainer/function_node.py", FUNCTION),
            ("lib/chainer/_backprop.py", BACKPROP),
            ("lib/chainer/optimizer.py", OPTIMIZER),
            ("lib/chainer/backends/__init__.py", "from chainer.backends import intel64\n"),
            ("lib/chainer/backends/intel64.py", INTEL64),
            ("start/sitecustomize.py", payload_source("run_start").decode("ascii")),
            ("start/_ideepdoctor_trace.py", payload_source("trace").decode("ascii")),
        ):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def start(self, code: str, *words: str, traced: bool = True, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run a program; line 1 of the code is line 1 of program.py."""
        self.program.parent.mkdir(exist_ok=True)
        self.program.write_text(textwrap.dedent(code).lstrip("\n"))
        given = {"PATH": os.defpath, "PYTHONPATH": f"{self.folder}/start:{self.folder}/lib", **environ}
        if traced:
            given.update(IDEEPDOCTOR_RUN="_ideepdoctor_trace", IDEEPDOCTOR_TRACE=str(self.records))
        command = [self.python, "-B", *words, str(self.program)]
        return subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)

    def run(self, code: str, *words: str, **environ: str) -> Records:
        """Run a program that must end well and say nothing, and read what the process recorded."""
        done = self.start(code, *words, **environ)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        [records] = self.read()
        return records

    def read(self) -> tuple[Records, ...]:
        """What was recorded."""
        return read_folder(str(self.records))


def places(records: Records) -> list[tuple[str, int]]:
    """Function and line of each row that no other one holds."""
    return [(row.text("function"), row.count("line")) for row in records.rows if "inside" not in row.facts]


def only(records: Records, function: str) -> Row:
    """The one row of a function."""
    [row] = [row for row in records.rows if row.text("function") == function]
    return row
