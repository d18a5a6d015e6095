"""IDP904: arrays of float64 go into a network."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.base import Check, Note, Sample
from ideepdoctor.lint.flow import Step, dotted
from ideepdoctor.lint.layout import KEEPING
from ideepdoctor.lint.links import Links
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.lint.objects import Objects
from ideepdoctor.model.findings import Severity

DOUBLES = ("numpy.float64", "numpy.double", "numpy.float_", "numpy.longdouble")
_RANDOM = ("rand", "randn", "uniform", "normal", "random", "random_sample", "standard_normal", "ranf", "sample")
_FILLED = ("zeros", "ones", "empty", "linspace", "eye", "identity")
_SAME_TYPE = ("reshape", "transpose", "copy", "clip", "swapaxes", "squeeze", "repeat")
_FUNCTIONS = (*KEEPING, "convolution_2d", "deconvolution_2d", "linear", "batch_normalization")
_CASTS = ("astype", "asarray", "array", "float32", "cast")

_START = """\
import chainer.functions as F
import chainer.links as L
import numpy as np

conv = L.Convolution2D(3, 64, 3)
"""


class IDP904(Check):
    """An array of float64 goes into a link or into a function that iDeep would compute.

    What it checks
        Arrays that are float64 by the text: ``dtype=np.float64``, ``astype('d')``, and NumPy's default in
        ``np.random.rand``, ``np.zeros`` and their like, as the input of Chainer's links and functions in the same
        function. A model of one's own that casts its input is left alone.

    Why it matters
        iDeep takes float32 alone. A function without weights computes with NumPy, silently; a link whose weights are
        float32 raises ``InvalidType``.

    How to fix
        ``x.astype(np.float32)``, or ``dtype=np.float32`` where the array is made.

    References
        Measured with Chainer 7.8.1.
    """

    title = "An array of float64 goes into the network"
    severity = Severity.WARNING
    needed = "float32"
    ok = (
        Sample("cast", _START + "y = conv(np.random.rand(1, 3, 8, 8).astype(np.float32))\n"),
        Sample("made so", _START + "x = np.zeros((1, 3, 8, 8), dtype='f')\ny = F.relu(conv(x))\n"),
        Sample("not known", _START + "def predict(x):\n    return conv(x)\n"),
        Sample("float64 for something else", _START + "mean = np.zeros(3)\nnp.save('mean.npy', mean)\n"),
    )
    bad = (
        Sample("NumPy's default", _START + "y = conv(np.random.rand(1, 3, 8, 8))\n"),
        Sample("by name", _START + "x = np.array(images, dtype=np.float64)\ny = F.max_pooling_2d(x, 2)\n"),
        Sample("scaled", _START + "x = np.random.uniform(-1, 1, (1, 3, 8, 8)) * 2\ny = conv(x)\n"),
    )

    def check(self, module: Module) -> Iterator[Note]:
        """Report each call that is given such an array."""
        if module.imported & {"unittest", "pytest"} or "chainer.testing" in _modules(module):
            return  # tests compare with float64 on purpose
        links = Links(module)
        for objects in module.functions():
            for step in objects.flow.calls():
                call = step.node
                assert isinstance(call, ast.Call)
                if not call.args or not takes_arrays(module, links, objects, call, step):
                    continue
                if is_double(module, objects, call.args[0], step):
                    what = dotted(call.args[0]) or "the input"
                    name = dotted(call.func) or "the link"
                    yield Note(
                        call,
                        found=f"{what} of {name} is float64",
                        consequence="iDeep is not used (a link with float32 weights raises InvalidType)",
                        next_step=f"{what if what != 'the input' else 'x'}.astype(np.float32)",
                    )


def _modules(module: Module) -> set[str]:
    return {path for _, path in module.names.imports()} | {path.rsplit(".", 1)[0] for _, path in module.names.imports()}


def takes_arrays(module: Module, links: Links, objects: Objects, call: ast.Call, step: Step) -> bool:
    """Whether a call hands its first argument, as it is, to a layer that iDeep would compute in float32."""
    path = module.path(call)
    if path.startswith("chainer.functions."):
        return path.rsplit(".", 1)[1] in _FUNCTIONS
    made = links.made_by(call, objects, step)
    return bool(made) and all(_is_link(module, links, item) for item in made)


def _is_link(module: Module, links: Links, maker: ast.Call) -> bool:
    path = module.path(maker)
    if path.startswith("chainer.links."):
        inner = [item for item in ast.walk(maker) if isinstance(item, ast.Call) and item is not maker]
        return "Classifier" not in path or all(_is_link(module, links, item) for item in inner[:1])
    own = module.names.class_of(maker.func)
    if own is None or not links.is_chain(own):
        return False
    called = {node.attr for node in ast.walk(own) if isinstance(node, ast.Attribute)}
    return not called & set(_CASTS)


def is_double(module: Module, objects: Objects, node: ast.expr | None, step: Step, depth: int = 0) -> bool:
    """Whether an expression is an array of float64 at a step, by the text alone."""
    if depth > 12:
        return False
    if isinstance(node, ast.Name):
        held = objects.flow.held(node.id, step)
        if not held or objects.flow.rebound_in_loop(node.id, step):
            return False
        return all(is_double(module, objects, item.value, item, depth + 1) for item in held)
    if isinstance(node, ast.BinOp):
        pair = (node.left, node.right)
        doubles = [is_double(module, objects, item, step, depth + 1) for item in pair]
        return any(doubles) and all(
            double or isinstance(module.word(item), int | float) for double, item in zip(doubles, pair, strict=True)
        )
    if not isinstance(node, ast.Call):
        return False
    dtype = next((item.value for item in node.keywords if item.arg == "dtype"), None)
    path = module.path(node)
    if isinstance(node.func, ast.Attribute) and not path:
        if node.func.attr == "astype":
            return names_double(module, argument(node, 0, "dtype"))
        return node.func.attr in _SAME_TYPE and is_double(module, objects, node.func.value, step, depth + 1)
    if path in ("chainer.Variable", "chainer.as_variable"):
        return is_double(module, objects, argument(node, 0, "data"), step, depth + 1)
    if not path.startswith("numpy."):
        return False
    if dtype is not None:
        return names_double(module, dtype)
    name = path.rsplit(".", 1)[1]
    if path.startswith("numpy.random."):
        return name in _RANDOM and len(path.split(".")) == 3 and bool(node.args or node.keywords)
    return len(path.split(".")) == 2 and name in _FILLED and len(node.args) < 2 + 2 * (name == "linspace")


def names_double(module: Module, node: ast.AST | None) -> bool:
    """Whether an expression names float64 as a dtype."""
    if isinstance(node, ast.Call) and module.path(node) == "numpy.dtype":
        node = argument(node, 0, "dtype")
    path = module.path(node)
    if path in DOUBLES or module.word(node) in ("float64", "d", "double", "f8", "<f8"):
        return True
    return isinstance(node, ast.Name) and node.id == "float" and not module.names.bindings(node)
