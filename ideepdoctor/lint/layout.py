"""Which values lie in MKL-DNN's blocked memory, by the expression that makes them. Pure.

Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3: the output of a convolution is blocked where its channels allow,
and stays so through the functions in ``KEEPING``, concat and sums; BatchNormalization, sigmoid, tanh, deconvolution,
``h + 0`` and grouped convolution give plain arrays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from ideepdoctor.lint.flow import Step
from ideepdoctor.lint.links import CONVOLUTIONS, Links, channels, possibly_blocked
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.lint.objects import Objects

KEEPING = ("relu", "leaky_relu", "max_pooling_2d", "average_pooling_2d", "dropout", "local_response_normalization")
"""Functions of Chainer whose output lies as their first input does."""
_PLAIN = (
    "sigmoid",
    "tanh",
    "hard_sigmoid",
    "softplus",
    "softmax",
    "log_softmax",
    "elu",
    "selu",
    "swish",
    "clip",
    "exp",
    "clipped_relu",
    "relu6",
    "batch_normalization",
)
"""Functions of Chainer that keep the shape and give a plain array."""
_CONVOLUTION_FUNCTIONS = ("chainer.functions.convolution_2d", "chainer.functions.dilated_convolution_2d")


@dataclass(frozen=True, slots=True)
class Layout:
    """A value that comes out of a convolution.

    Attributes:
        channels: how many; None where the source does not say.
        blocked: whether it can lie in blocked memory here (True), or is a plain array of the same shape (False).
    """

    channels: int | None
    blocked: bool


class Layouts:
    """Layouts of expressions in one function.

    Args:
        module: the program.
        links: its links.
        objects: of the function.
    """

    def __init__(self, module: Module, links: Links, objects: Objects) -> None:
        self.module = module
        self.links = links
        self.objects = objects

    def of(self, node: ast.expr | None, step: Step, depth: int = 0) -> Layout | None:
        """The layout of an expression at a step; None where it is not certain to come out of a convolution."""
        if depth > 20 or node is None:
            return None
        if isinstance(node, ast.Call):
            return self._call(node, step, depth)
        if isinstance(node, ast.Name):
            return self._name(node, step, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.of(node.left, step, depth + 1), self.of(node.right, step, depth + 1)
            return left if left and right and left.blocked and right.blocked else None
        return None

    def link(self, call: ast.Call, step: Step) -> str:
        """The path of the link class that is called here; empty where it is no link, or not certain."""
        paths = {self.module.path(item) for item in self.links.made_by(call, self.objects, step)}
        return paths.pop() if len(paths) == 1 else ""

    def is_convolution(self, call: ast.Call, step: Step) -> bool:
        """Whether a call is a two-dimensional convolution that can be blocked."""
        found = self._call(call, step, 0)
        path = self.module.path(call)
        made = path in _CONVOLUTION_FUNCTIONS or self.link(call, step) in CONVOLUTIONS
        return made and found is not None and found.blocked

    def _call(self, call: ast.Call, step: Step, depth: int) -> Layout | None:
        path = self.module.path(call)
        if self.module.around(call, "use_ideep") == "never":
            return None
        if path in _CONVOLUTION_FUNCTIONS:
            return None if argument(call, 99, "groups") is not None else Layout(None, True)
        if path.startswith("chainer.functions."):
            return self._function(path.rsplit(".", 1)[1], call, step, depth)
        made = self.links.made_by(call, self.objects, step)
        kinds = {self.module.path(item) for item in made}
        if kinds and kinds <= set(CONVOLUTIONS):
            found = [_convolution(item) for item in made]
            return found[0] if len(set(found)) == 1 else Layout(None, all(item.blocked for item in found))
        if kinds == {"chainer.links.BatchNormalization"}:
            return self._plain(call, step, depth)
        return None

    def _function(self, name: str, call: ast.Call, step: Step, depth: int) -> Layout | None:
        if name in KEEPING:
            return self.of(argument(call, 0, "x"), step, depth + 1)
        if name in _PLAIN:
            return self._plain(call, step, depth)
        if name == "concat" and axis_is_channels(call):
            items = argument(call, 0, "xs")
            parts = [self.of(item, step, depth + 1) for item in getattr(items, "elts", ())]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts) and known and known[0].blocked:
                counts = [part.channels for part in known]
                return Layout(None if None in counts else sum(count or 0 for count in counts), True)
        return None

    def _plain(self, call: ast.Call, step: Step, depth: int) -> Layout | None:
        inner = self.of(call.args[0] if call.args else None, step, depth + 1)
        return None if inner is None else Layout(inner.channels, False)

    def _name(self, node: ast.Name, step: Step, depth: int) -> Layout | None:
        held = self.objects.flow.held(node.id, step)
        if held is None:
            return None
        found: list[Layout] = []
        for binding in [*held, *self.objects.flow.rebound_in_loop(node.id, step)]:
            layout = self.of(binding.value, binding, depth + 1)
            if layout is None:
                return None
            found.append(layout)
        counts = {layout.channels for layout in found}
        return Layout(counts.pop() if len(counts) == 1 else None, all(layout.blocked for layout in found))


def _convolution(call: ast.Call) -> Layout:
    inputs, outputs = channels(call)
    grouped = any(item.arg == "groups" and not _is_one(item.value) for item in call.keywords)
    return Layout(outputs, not grouped and possibly_blocked(inputs, outputs))


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def axis_is_channels(call: ast.Call, position: int = 1, *, given: bool = False) -> bool:
    """Whether the ``axis`` of a call is 1; where it is not given: no, if it must be given, else yes."""
    axis = argument(call, position, "axis")
    if axis is None:
        return not given
    return isinstance(axis, ast.Constant) and axis.value == 1


def ideep_calls(module: Module, path: str) -> Iterator[tuple[ast.Call, Step, Layouts]]:
    """Calls of a function (dotted path) where iDeep is not switched off, each with its step and the layouts there."""
    for call, step, layouts, _ in calls_with_layouts(module):
        if module.path(call) == path and module.around(call, "use_ideep") != "never":
            yield call, step, layouts


def calls_with_layouts(module: Module) -> Iterator[tuple[ast.Call, Step, Layouts, Objects]]:
    """Every call of a module that does not switch iDeep off as a whole; with what is known of the function around."""
    if module.never():
        return
    links = Links(module)
    for objects in module.functions():
        layouts = Layouts(module, links, objects)
        for step in objects.flow.calls():
            assert isinstance(step.node, ast.Call)
            yield step.node, step, layouts, objects
