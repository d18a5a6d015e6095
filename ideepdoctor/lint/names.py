"""What a name means: imports, aliases and scopes, resolved to dotted paths such as ``chainer.links.Linear``. Pure.

Nothing is guessed: a name that is bound twice to different things, or by anything but an import, has no path.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SAME = {
    "chainer.configuration.": "chainer.",
    "chainer.backends.cuda": "chainer.cuda",
    "chainer.backends.intel64": "chainer.intel64",
    "chainer.training.updater.": "chainer.training.updaters.",
    "chainer.training.trainer.Trainer": "chainer.training.Trainer",
    "six.moves.cPickle": "pickle",
    "cPickle": "pickle",
    "_pickle": "pickle",
}
_FLAT = ("chainer.links.", "chainer.functions.", "chainer.optimizers.", "chainer.serializers.")
"""Packages whose public names lie flat in them, whatever module defines them."""
_STARRED = {
    "chainer": ("Chain", "ChainList", "Link", "Variable", "Parameter", "Sequential", "functions", "links"),
    "chainer.links": (
        "Convolution1D",
        "Convolution2D",
        "Convolution3D",
        "ConvolutionND",
        "Deconvolution2D",
        "DilatedConvolution2D",
        "DepthwiseConvolution2D",
        "Linear",
        "Classifier",
        "BatchNormalization",
        "LocalResponseNormalization",
    ),
    "chainer.functions": (
        "relu",
        "sigmoid",
        "tanh",
        "concat",
        "split_axis",
        "max_pooling_2d",
        "average_pooling_2d",
        "local_response_normalization",
        "fixed_batch_normalization",
        "convolution_2d",
        "depthwise_convolution_2d",
    ),
    "chainer.serializers": ("load_npz", "load_hdf5", "save_npz", "save_hdf5"),
    "chainer.optimizers": ("SGD", "MomentumSGD", "CorrectedMomentumSGD", "Adam", "AdaGrad", "MSVAG", "RMSprop"),
}
"""Names that ``from X import *`` is trusted with."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One way in which a scope binds a name.

    Attributes:
        kind: import, value (an assignment of one expression), class, function, or other (parameter, loop, ...).
        path: of an import.
        value: the expression of a value, the definition of a class or function.
    """

    kind: str
    path: str = ""
    value: ast.AST | None = None


@dataclass(slots=True)
class Scope:
    """A module, class or function and the names that it binds."""

    node: ast.AST
    parent: Scope | None
    bound: dict[str, list[Binding]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    """Names declared global or nonlocal."""


def canonical(path: str) -> str:
    """One path for a thing that has several: ``chainer.links.connection.linear.Linear`` is chainer.links.Linear."""
    for old, new in _SAME.items():
        if path == old or (path.startswith(old) and (old.endswith(".") or path[len(old)] == ".")):
            path = new + path[len(old) :]
    for package in _FLAT:
        if path.startswith(package) and ".caffe" not in path:
            return package + path.rsplit(".", 1)[1]
    return path


class Names:
    """The names of one module.

    Args:
        tree: of the module.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self._scopes: dict[ast.AST, Scope] = {}
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes: list[ast.AST] = []
        """Every node, parents before children, in the order of the source."""
        self._starred: list[str] = []
        self._build(tree)

    def scope(self, node: ast.AST) -> Scope:
        """The scope in which a node's names are looked up."""
        return self._scopes[node]

    def path(self, node: ast.AST | None) -> str | None:
        """The dotted path of a name or attribute; None where it is not certain."""
        return self._path(node, 0)

    def called(self, node: ast.AST | None) -> str | None:
        """The path of what a call calls; None for anything else."""
        return self._path(node.func, 0) if isinstance(node, ast.Call) else None

    def class_of(self, node: ast.AST | None) -> ast.ClassDef | None:
        """The class of this module that a name is; None where it is another thing, or not certain."""
        if not isinstance(node, ast.Name):
            return None
        found = self._find(node)
        if found is None or len(found) != 1:
            return None
        if isinstance(found[0].value, ast.ClassDef):
            return found[0].value
        return None

    def constant(self, node: ast.AST | None) -> ast.Constant | None:
        """The constant that an expression is, directly or by a name that is bound once, to it."""
        if isinstance(node, ast.Constant):
            return node
        if not isinstance(node, ast.Name):
            return None
        found = self._find(node)
        if found is not None and len(found) == 1 and isinstance(found[0].value, ast.Constant):
            return found[0].value
        return None

    def bindings(self, node: ast.Name) -> list[Binding]:
        """How the scope that knows a name binds it; empty where none does."""
        return self._find(node) or []

    def calls(self) -> Iterator[ast.Call]:
        """Every call, in the order of the source."""
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def imports(self) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
        """Every import statement with each path that it imports."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name
            elif isinstance(node, ast.ImportFrom):
                start = "." * node.level + (node.module or "")
                for alias in node.names:
                    yield node, f"{start}.{alias.name}"

    def function_of(self, node: ast.AST) -> ast.AST:
        """The function, or the module, whose run reaches a node."""
        scope: Scope | None = self._scopes[node]
        while scope is not None and isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return self.module.node if scope is None else scope.node

    def class_around(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class in which a node stands."""
        scope: Scope | None = self._scopes[node]
        while scope is not None and not isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return scope.node if scope is not None and isinstance(scope.node, ast.ClassDef) else None

    def _path(self, node: ast.AST | None, depth: int) -> str | None:
        if isinstance(node, ast.Attribute):
            base = self._path(node.value, depth)
            return None if base is None else canonical(f"{base}.{node.attr}")
        if not isinstance(node, ast.Name) or depth > 8:
            return None
        found = self._find(node)
        if found is None:
            return self._by_star(node.id)
        imports = {canonical(item.path) for item in found if item.kind == "import"}
        others = [item for item in found if item.kind != "import"]
        if len(imports) == 1 and all(_is_none(item.value) for item in others):
            return imports.pop()
        if len(found) == 1 and found[0].kind == "value":
            return self._path(found[0].value, depth + 1)  # conv = L.Convolution2D
        return None

    def _by_star(self, name: str) -> str | None:
        fitting = [module for module in self._starred if name in _STARRED.get(module, ())]
        return f"{fitting[-1]}.{name}" if fitting else None

    def _find(self, node: ast.Name) -> list[Binding] | None:
        """The bindings of the innermost scope that knows the name; None where only a star or a builtin can."""
        first = self._scopes[node]
        scope: Scope | None = first
        while scope is not None:
            visible = scope is first or not isinstance(scope.node, ast.ClassDef)
            if visible and node.id in scope.bound and node.id not in scope.shared:
                return scope.bound[node.id]
            scope = scope.parent
        return None

    def _build(self, tree: ast.Module) -> None:
        self._scopes[tree] = self.module
        stack: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        while stack:
            node, scope = stack.pop()
            self.nodes.append(node)
            self._bind(node, scope)
            inner = scope
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                inner = Scope(node, scope)
            outside = _outside(node)
            todo: list[tuple[ast.AST, Scope]] = []
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                where = scope if child in outside else inner
                self._scopes[child] = where
                todo.append((child, where))
            stack += reversed(todo)

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        for name, binding in _bindings(node):
            home = self.module if name in scope.shared else scope
            home.bound.setdefault(name, []).append(binding)
        if isinstance(node, ast.Global | ast.Nonlocal):
            scope.shared.update(node.names)
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and not node.level:
            self._starred.append(canonical(node.module or ""))


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, False)


def _outside(node: ast.AST) -> set[ast.AST]:
    """The children of a definition that are evaluated outside of it."""
    if isinstance(node, ast.ClassDef):
        return {*node.decorator_list, *node.bases, *node.keywords}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {*node.decorator_list, *([node.returns] if node.returns else [])}
    return set()


def _bindings(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            whole = alias.asname or alias.name.split(".")[0]
            yield whole, Binding("import", alias.name if alias.asname else whole)
    elif isinstance(node, ast.ImportFrom):
        start = "." * node.level + (node.module or "")
        for alias in node.names:
            yield alias.asname or alias.name, Binding("import", f"{start}.{alias.name}")
    elif isinstance(node, ast.ClassDef):
        yield node.name, Binding("class", value=node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, Binding("function", value=node)
    elif isinstance(node, ast.arg):
        yield node.arg, Binding("other")
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, Binding("other")
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, Binding("value", value=node.value)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, Binding("value", value=node.value)
    elif isinstance(node, ast.Tuple | ast.List | ast.Starred | ast.Delete):
        for item in getattr(node, "elts", None) or getattr(node, "targets", None) or [getattr(node, "value", None)]:
            if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Load):
                yield item.id, Binding("other")
    else:
        for name in ("target", "optional_vars"):  # for, with, +=, :=, comprehensions
            item = getattr(node, name, None)
            if isinstance(item, ast.Name):
                yield item.id, Binding("other")
