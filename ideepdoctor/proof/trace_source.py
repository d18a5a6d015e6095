"""What the user's source says of a line that was traced: where a name was given its value, and what to write there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ideepdoctor.lint.source import Source, Unreadable, read

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LONGEST = 100
"""Characters of an expression that is shown."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Where a name was given its value.

    Attributes:
        name: the name.
        line: of the statement.
        value: the expression, where the statement gives it to this name alone; None: to several, or by a loop.
        mentions: names in what it was made from.
    """

    name: str
    line: int
    value: ast.expr | None
    mentions: frozenset[str]

    def narrowed(self) -> str:
        """The statement to write there, so that the array is float32."""
        again = f"{self.name} = {self.name}.astype('float32')"
        if self.value is None:
            return again
        text = f"{self.name} = {_narrow(self.value)}"
        return text if len(text) <= _LONGEST else again


def _narrow(value: ast.expr) -> str:
    """An expression with a cast; one of a Variable, which has no astype, with the cast within."""
    if isinstance(value, ast.Call) and value.args and ast.unparse(value.func).split(".")[-1] == "Variable":
        rest = [*(ast.unparse(arg) for arg in value.args[1:]), *(ast.unparse(item) for item in value.keywords)]
        return f"{ast.unparse(value.func)}({', '.join([_narrow(value.args[0]), *rest])})"
    text = ast.unparse(value)
    simple = isinstance(value, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
    return f"{text}.astype('float32')" if simple else f"({text}).astype('float32')"


class Sources:
    """Source files, read when they are asked for.

    Args:
        content: gives the bytes of a file, None where it cannot be read.
    """

    def __init__(self, content: Callable[[str], bytes | None]) -> None:
        self._content = content
        self._known: dict[str, Source | None] = {}

    def assigned(self, file: str, function: str, first_line: int, name: str, line: int) -> Assigned | None:
        """Where a name got the value that it has at a line.

        Args:
            file: path of the source.
            function: name of the code there, ``<module>`` outside functions.
            first_line: of that code, decorators included.
            name: of the variable.
            line: where it is used; of several statements above it the last counts, else (a loop) the last of all. What
                stands in another branch of an ``if`` counts only where there is nothing else.
        """
        scope = self._scope(file, function, first_line)
        if scope is None:
            return None
        found = [item for node in _statements(scope) for item in _given(node, name)]
        others = _other_branches(scope, line)
        reached = [item for item in found if not any(first <= item.line <= last for first, last in others)]
        above = [item for item in reached if item.line <= line]
        return max(above or reached or found, key=lambda item: item.line, default=None)

    def argument(self, file: str, line: int, method: str) -> str | None:
        """The first argument of a method's call at a line: ``model`` of ``optimizer.setup(model)``."""
        source = self._source(file)
        for node in ast.walk(source.tree) if source else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                last = node.end_lineno or node.lineno
                if node.lineno <= line <= last and node.args:
                    text = ast.unparse(node.args[0])
                    return text if len(text) <= 40 else None
        return None

    def _source(self, file: str) -> Source | None:
        if file not in self._known:
            self._known[file] = self._parsed(file)
        return self._known[file]

    def _parsed(self, file: str) -> Source | None:
        data = None if not file or file.startswith("<") else self._content(file)
        if data is None:
            return None
        try:
            return read(file, data)
        except Unreadable:
            return None

    def _scope(self, file: str, function: str, first_line: int) -> ast.AST | None:
        source = self._source(file)
        if source is None:
            return None
        if function == "<module>":
            return source.tree
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function:
                starts = {node.lineno, *(decorator.lineno for decorator in node.decorator_list)}
                if first_line in starts:
                    return node
        return None


def _statements(scope: ast.AST) -> Iterator[ast.AST]:
    """What is executed in a scope itself, not in functions within it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _SCOPES):
            yield node
            yield from _statements(node)


def _other_branches(scope: ast.AST, line: int) -> list[tuple[int, int]]:
    """First and last lines of the branches that are not taken where a line is reached."""
    others = []
    for node in _statements(scope):
        if isinstance(node, ast.If) and node.orelse:
            spans = [(block[0].lineno, block[-1].end_lineno or block[-1].lineno) for block in (node.body, node.orelse)]
            if any(first <= line <= last for first, last in spans):
                others += [(first, last) for first, last in spans if not first <= line <= last]
    return others


def _given(node: ast.AST, name: str) -> Iterator[Assigned]:
    """What a statement gives to a name."""
    if isinstance(node, ast.Assign):
        targets, value = node.targets, node.value
    elif isinstance(node, ast.AnnAssign | ast.AugAssign) and node.value is not None:
        targets, value = [node.target], node.value
    elif isinstance(node, ast.For | ast.AsyncFor):
        targets, value = [node.target], node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        targets, value = [node.optional_vars], node.context_expr
    else:
        return
    for target in targets:
        names = {item.id for item in ast.walk(target) if isinstance(item, ast.Name)}
        if name not in names or isinstance(target, ast.Subscript | ast.Attribute):
            continue
        alone = isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name)
        mentions = frozenset(item.id for item in ast.walk(value) if isinstance(item, ast.Name))
        yield Assigned(name, getattr(node, "lineno", value.lineno), value if alone else None, mentions - {name})
