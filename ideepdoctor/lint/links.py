"""Links: which class a layer is made of, its channels, and whether a model has convolutions. Pure."""

from __future__ import annotations

import ast

from ideepdoctor.lint.flow import Step, dotted
from ideepdoctor.lint.module import Module, argument
from ideepdoctor.lint.objects import Objects

CONVOLUTIONS = ("chainer.links.Convolution2D", "chainer.links.DilatedConvolution2D")
"""Links whose output can lie in blocked memory."""
_BLOCKED_WEIGHTS = (*CONVOLUTIONS, "chainer.links.Deconvolution2D")
_WITHOUT = (
    "Linear",
    "Bias",
    "Scale",
    "Classifier",
    "BatchNormalization",
    "EmbedID",
    "LSTM",
    "StatelessLSTM",
    "GRU",
    "NStepLSTM",
    "NStepBiLSTM",
    "NStepGRU",
    "NStepBiGRU",
    "LayerNormalization",
    "NegativeSampling",
    "Maxout",
    "Highway",
    "Parameter",
)
"""Links of Chainer that have no convolution of their own."""
_MAKING = ("chainer.Sequential", "chainer.ChainList", "chainer.Chain", "chainer.Link")
_PLAIN = frozenset(
    (
        "__init__",
        "add_link",
        "add_param",
        "add_persistent",
        "append",
        "dict",
        "enumerate",
        "extend",
        "float",
        "format",
        "getattr",
        "init_scope",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "print",
        "range",
        "register_persistent",
        "set",
        "setattr",
        "str",
        "sum",
        "super",
        "tuple",
        "xrange",
        "zip",
    )
)
"""Calls that make no link."""


class Links:
    """The links of one module.

    Args:
        module: the program.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._attributes: dict[ast.ClassDef, dict[str, list[ast.Call | None]]] = {}

    def is_chain(self, maker: ast.ClassDef, depth: int = 0) -> bool:
        """Whether a class of this module derives from one of Chainer's links."""
        for base in maker.bases:
            path = self.module.path(base)
            if path in _MAKING or path.startswith("chainer.links."):
                return True
            inner = self.module.names.class_of(base)
            if inner is not None and inner is not maker and depth < 8 and self.is_chain(inner, depth + 1):
                return True
        return False

    def makes_model(self, call: ast.Call) -> bool:
        """Whether a call certainly makes a link: Chainer's own, or a class of this module."""
        path = self.module.path(call)
        if path.startswith("chainer.links.") or path in _MAKING:
            return True
        maker = self.module.names.class_of(call.func)
        return maker is not None and self.is_chain(maker)

    def has_convolution(self, call: ast.Call, depth: int = 0) -> bool | None:
        """Whether what a call makes has weights that ``to_intel64`` puts into blocks; None: not certain."""
        path = self.module.path(call)
        if path in _BLOCKED_WEIGHTS:
            return possibly_blocked(*channels(call))
        inner = [item for item in ast.walk(call) if isinstance(item, ast.Call) and item is not call]
        answers: list[bool | None] = [self.has_convolution(item, depth + 1) for item in inner] if depth < 8 else [None]
        maker = self.module.names.class_of(call.func)
        if maker is not None:
            answers.append(self._class_has(maker, depth))
        elif path.startswith("chainer.links."):
            answers.append(None if path.rsplit(".", 1)[1] not in _WITHOUT else False)
        elif not path.startswith(("chainer.functions.", "chainer.initializers.", "numpy.", "math.")):
            short = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
            answers.append(False if path in _MAKING or short in _PLAIN else None)
        if path in ("chainer.links.Classifier", "chainer.Sequential") and any(
            isinstance(item, ast.Name | ast.Starred) for item in call.args
        ):
            answers.append(self._arguments(call, depth))
        return True if True in answers else None if None in answers else False

    def _arguments(self, call: ast.Call, depth: int) -> bool | None:
        objects = self.module.objects(call)
        step = objects.flow.at.get(call)
        if step is None or depth > 8:
            return None
        answers: list[bool | None] = []
        for item in call.args:
            for place in objects.places(item, step):
                known = isinstance(place.root, ast.Call) and not place.way
                answers.append(self.has_convolution(place.root, depth + 1) if known else None)  # type: ignore[arg-type]
        return True if True in answers else None if None in answers else False

    def _class_has(self, maker: ast.ClassDef, depth: int) -> bool | None:
        if not self.is_chain(maker):
            return None
        answers: list[bool | None] = []
        for base in maker.bases:
            inner = self.module.names.class_of(base)
            if inner is not None and inner is not maker:
                answers.append(self._class_has(inner, depth + 1) if depth < 8 else None)
            elif self.module.path(base) not in _MAKING:
                answers.append(None)
        for method in maker.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                calls = [item for item in ast.walk(method) if isinstance(item, ast.Call)]
                answers += [self.has_convolution(item, depth + 1) for item in calls]
        return True if True in answers else None if None in answers else False

    def made_by(self, call: ast.Call, objects: Objects, step: Step) -> list[ast.Call]:
        """The calls that can have made the link that is called here; empty where that is not certain."""
        found: list[ast.Call | None] = []
        name = dotted(call.func)
        around = self.module.names.class_around(call)
        if name.startswith("self.") and name.count(".") == 1 and around is not None:
            found = self.attributes(around).get(name[5:], [])
        else:
            for place in objects.places(call.func, step):
                root = place.root if isinstance(place.root, ast.Call) else None
                if root is not None and place.way:
                    maker = self.module.names.class_of(root.func)
                    inner = self.attributes(maker).get(place.way[0], []) if maker and len(place.way) == 1 else []
                    found += inner or [None]
                else:
                    found.append(root)
        return [] if None in found else [item for item in found if item is not None]

    def attributes(self, maker: ast.ClassDef) -> dict[str, list[ast.Call | None]]:
        """What each attribute of a class's instances is made by; None among them: by something that is no call."""
        if maker not in self._attributes:
            found: dict[str, list[ast.Call | None]] = {}
            self._attributes[maker] = found
            for base in maker.bases:
                inner = self.module.names.class_of(base)
                if inner is not None and inner is not maker:
                    found.update(self.attributes(inner))
            for node in ast.walk(maker):
                for name, value in _made(node):
                    found.setdefault(name, []).append(value if isinstance(value, ast.Call) else None)
        return self._attributes[maker]


def _made(node: ast.AST) -> list[tuple[str, ast.expr | None]]:
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        plain = node.value if not isinstance(node, ast.AugAssign) else None
        names = [(dotted(target), plain) for target in targets]
        for target in targets:
            if isinstance(target, ast.Tuple | ast.List):
                names += [(dotted(item), None) for item in target.elts]
        return [(name[5:], value) for name, value in names if name.startswith("self.") and name.count(".") == 1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "__init__":  # Chainer 1: super().__init__(conv1=L.Convolution2D(...))
            return [(item.arg, item.value) for item in node.keywords if item.arg and isinstance(item.value, ast.Call)]
        if node.func.attr == "add_link" and len(node.args) == 2 and isinstance(node.args[0], ast.Constant):
            return [(str(node.args[0].value), node.args[1])]
    return []


def channels(call: ast.Call) -> tuple[int | None, int | None]:
    """Channels in and out of a convolution link as it is made; None where the source does not say."""
    given = [item for item in call.args if not isinstance(item, ast.Starred)]
    named = {item.arg: item.value for item in call.keywords}
    if len(given) != len(call.args) or None in named:
        return None, None
    if len(given) == 2 and "ksize" not in named and not {"in_channels", "out_channels"} & set(named):
        return None, _integer(given[0])  # Convolution2D(out_channels, ksize)
    return _integer(argument(call, 0, "in_channels")), _integer(argument(call, 1, "out_channels"))


def possibly_blocked(inputs: int | None, outputs: int | None) -> bool:
    """Whether a convolution of so many channels can take MKL-DNN's blocked kernels; None counts as any number.

    Measured with 2.0.0.post3 on AVX-512, kernels of 1, 3 and 5: inputs 1, 3 or a multiple of 8, outputs a multiple of
    8 (of 16 where the input is one channel); all others took the plain kernel.
    """
    if outputs is not None and outputs % (16 if inputs == 1 else 8):
        return False
    return inputs is None or inputs in (1, 3) or inputs % 8 == 0


def _integer(node: ast.AST | None) -> int | None:
    found = node.value if isinstance(node, ast.Constant) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
