"""A source with its names, flows and objects: what a check is given. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ideepdoctor.lint.flow import Flow
from ideepdoctor.lint.names import Names
from ideepdoctor.lint.objects import Objects
from ideepdoctor.lint.source import Source

_RUNS = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Module:
    """One program, looked into as far as a check asks.

    Args:
        source: what was read.
        converting: modules, by the last part of their name, that call ``to_intel64`` and were given with it.
    """

    def __init__(self, source: Source, converting: frozenset[str] = frozenset()) -> None:
        self.source = source
        self.names = Names(source.tree)
        self.converting = converting
        self._objects: dict[ast.AST, Objects] = {}
        self._functions = [node for node in self.names.nodes if isinstance(node, _RUNS)]
        self.imported = {path.split(".")[0] for _, path in self.names.imports()}
        """First parts of the names of all modules that are imported."""

    def objects(self, node: ast.AST) -> Objects:
        """The objects of the function (or module level) in which a node runs."""
        return self._of(self.names.function_of(node))

    def functions(self) -> Iterator[Objects]:
        """The module's own level, then every function."""
        return (self._of(node) for node in self._functions)

    def _of(self, function: ast.AST) -> Objects:
        if function not in self._objects:
            self._objects[function] = Objects(self.names, Flow(function))
        return self._objects[function]

    def path(self, node: ast.AST | None) -> str:
        """The dotted path of a name, attribute or of what a call calls; empty where it is not certain."""
        return (self.names.called(node) if isinstance(node, ast.Call) else self.names.path(node)) or ""

    def word(self, node: ast.AST | None) -> object:
        """The value of a constant, directly or by name; Ellipsis where it is none."""
        found = self.names.constant(node)
        return ... if found is None else found.value

    def mentions(self, word: str) -> bool:
        """Whether a word stands anywhere in the code: as a name, an attribute or within a string."""
        for node in self.names.nodes:
            if isinstance(node, ast.Attribute) and word in node.attr:
                return True
            if isinstance(node, ast.Name) and word in node.id:
                return True
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and word in node.value:
                return True
        return False

    def around(self, node: ast.AST, name: str) -> object:
        """What the innermost ``with chainer.using_config(NAME, value)`` around a node sets; Ellipsis: there is none."""
        at: ast.AST | None = node
        while at is not None:
            for item in at.items if isinstance(at, ast.With | ast.AsyncWith) else ():
                call = item.context_expr
                if not isinstance(call, ast.Call):
                    continue
                path = self.path(call)
                if path == "chainer.no_backprop_mode" and name == "enable_backprop":
                    return False
                if path == "chainer.using_config" and self.word(argument(call, 0, "name")) == name:
                    return self.word(argument(call, 1, "value"))
            at = self.names.parents.get(at)
        return ...

    def never(self) -> bool:
        """Whether the program turns iDeep off for all of it (``chainer.config.use_ideep = 'never'``)."""
        return any(
            isinstance(node, ast.Assign)
            and self.path(node.targets[0]) in ("chainer.config.use_ideep", "chainer.global_config.use_ideep")
            and self.word(node.value) == "never"
            for node in self.names.nodes
        )


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument by its position or its name; None where it is not given, or a ``*`` hides it."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if len(call.args) <= position or any(isinstance(item, ast.Starred) for item in call.args[: position + 1]):
        return None
    return call.args[position]
