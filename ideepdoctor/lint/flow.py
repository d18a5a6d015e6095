"""The order in which a function runs: steps, the conditions that they stand under, and what a name holds. Pure.

Everything is told as far as it is certain from one function's text: two steps under contradicting conditions never
follow each other, and a block that leaves the function leads nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_OPPOSITE = {
    ast.NotEq: ast.Eq,
    ast.GtE: ast.Lt,
    ast.LtE: ast.Gt,
    ast.IsNot: ast.Is,
    ast.NotIn: ast.In,
}
_LEAVING = ("exit", "quit", "_exit", "abort")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

Guard = tuple[str, object]
Arm = tuple[tuple[Guard, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Step:
    """A moment of a function's run: a call, or the binding of a name.

    Attributes:
        order: from 0, in the order of evaluation as written.
        node: the call, or the statement that binds.
        guards: (condition, its value) for each branch around it.
        blocks: the blocks around it, outermost first; every branch and loop body is one.
        name: what is bound, "model" or "self.model"; empty for a call.
        value: the expression that is bound; None where there is none (a loop variable, a parameter).
    """

    order: int
    node: ast.AST
    guards: tuple[Guard, ...]
    blocks: tuple[int, ...]
    name: str = ""
    value: ast.expr | None = None


def dotted(node: ast.AST | None) -> str:
    """``self.model`` for the expression of that name; empty for anything but names and attributes."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


class Flow:
    """The steps of one function, or of the module's own level.

    Args:
        root: the function or module; functions and classes defined in it are not part of it.
    """

    def __init__(self, root: ast.AST) -> None:
        self.root = root
        self.steps: list[Step] = []
        self.at: dict[ast.AST, Step] = {}
        """The moment of each call, of each operation on two values, and of each ``+=`` and its like."""
        self._binding: dict[str, list[Step]] = {}
        self._ends: set[int] = set()
        self._left: list[tuple[int, tuple[Guard, ...], tuple[int, ...]]] = []
        self._loops: set[int] = set()
        self._blocks = 0
        if isinstance(root, ast.Lambda):
            self._expression(root.body, (), ())
        else:
            self._statements(getattr(root, "body", []), (), ())

    def calls(self) -> Iterator[Step]:
        """The steps that are calls, in order."""
        return (step for step in self.steps if isinstance(step.node, ast.Call) and not step.name)

    def bindings(self, name: str) -> list[Step]:
        """Every step that binds this name."""
        return self._binding.get(name, [])

    def reaches(self, first: Step, second: Step) -> bool:
        """Whether a run can come from the first step to the second, read downwards once."""
        if first.order >= second.order or contradict(first, second):
            return False
        own = first.blocks[_shared(first.blocks, second.blocks) :]
        return not any(block in self._ends for block in own)

    def held(self, name: str, step: Step) -> list[Step] | None:
        """The bindings whose value a name can hold at a step; None: (also) what it held when the function began."""
        found: list[Step] = []
        for binding in reversed(self.bindings(name)):
            if self.reaches(binding, step):
                found.append(binding)
                if self._all_ways(found, step):
                    return found
        return None

    def _all_ways(self, found: list[Step], step: Step) -> bool:
        """Whether every run that comes to a step passed one of these: both branches of an if count as its whole."""
        arms = {(item.guards, item.blocks) for item in found}
        if any(_around(arm, step) for arm in arms):
            return True
        arms |= {(guards, blocks) for order, guards, blocks in self._left if order <= step.order}
        grown = True
        while grown:
            values: dict[tuple[tuple[Guard, ...], tuple[int, ...], str], set[object]] = {}
            for guards, blocks in arms:
                if guards and blocks:
                    values.setdefault((guards[:-1], blocks[:-1], guards[-1][0]), set()).add(guards[-1][1])
            whole = {key[:2] for key, taken in values.items() if taken >= {True, False}} - arms
            if any(_around(arm, step) for arm in whole):
                return True
            arms |= whole
            grown = bool(whole)
        return False

    def rebound_in_loop(self, name: str, step: Step) -> list[Step]:
        """Later bindings of a name in a loop that a step stands in: it may hold them in the next round."""
        return [
            binding
            for binding in self.bindings(name)
            if binding.order > step.order and any(b in self._loops and b in step.blocks for b in binding.blocks)
        ]

    def _add(self, node: ast.AST, guards: tuple[Guard, ...], blocks: tuple[int, ...]) -> None:
        step = Step(len(self.steps), node, guards, blocks)
        self.steps.append(step)
        self.at[node] = step

    def _bind(
        self,
        target: ast.expr | None,
        value: ast.expr | None,
        node: ast.AST,
        guards: tuple[Guard, ...],
        blocks: tuple[int, ...],
    ) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                values = list(value.elts)
            for item, part in zip(target.elts, values, strict=True):
                self._bind(item, part, node, guards, blocks)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, None, node, guards, blocks)
        elif name := dotted(target):
            step = Step(len(self.steps), node, guards, blocks, name, value)
            self.steps.append(step)
            self._binding.setdefault(name, []).append(step)

    def _block(
        self, body: list[ast.stmt], guards: tuple[Guard, ...], blocks: tuple[int, ...], *, loop: bool = False
    ) -> None:
        self._blocks += 1
        number = self._blocks
        if loop:
            self._loops.add(number)
        elif body and _leaves(body[-1]):
            self._ends.add(number)
        self._statements(body, guards, (*blocks, number))
        if number in self._ends:
            self._left.append((len(self.steps), guards, (*blocks, number)))

    def _statements(self, body: list[ast.stmt], guards: tuple[Guard, ...], blocks: tuple[int, ...]) -> None:
        for statement in body:
            self._statement(statement, guards, blocks)

    def _statement(self, node: ast.stmt, guards: tuple[Guard, ...], blocks: tuple[int, ...]) -> None:
        if isinstance(node, ast.If):
            self._expression(node.test, guards, blocks)
            key, value = condition(node.test)
            self._block(node.body, (*guards, (key, value)), blocks)
            self._block(node.orelse, (*guards, (key, not value)), blocks)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While):
            self._expression(node.test if isinstance(node, ast.While) else node.iter, guards, blocks)
            if not isinstance(node, ast.While):
                self._bind(node.target, None, node, guards, blocks)
            self._block(node.body, guards, blocks, loop=True)
            self._block(node.orelse, guards, blocks)
        elif isinstance(node, ast.Try | ast.TryStar):
            key = f"try {id(node)}"
            self._block(node.body, (*guards, (key, "body")), blocks)
            self._block(node.orelse, (*guards, (key, "body")), blocks)
            for number, handler in enumerate(node.handlers, 1):
                self._block(handler.body, (*guards, (key, f"handler {number}")), blocks)
            self._statements(node.finalbody, guards, blocks)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self._expression(item.context_expr, guards, blocks)
                self._bind(item.optional_vars, None, node, guards, blocks)
            self._statements(node.body, guards, blocks)
        elif isinstance(node, ast.Match):
            self._expression(node.subject, guards, blocks)
            for number, case in enumerate(node.cases):
                self._block(case.body, (*guards, (f"match {id(node)}", f"case {number}")), blocks)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._bind(ast.Name(node.name), None, node, guards, blocks)
        else:
            self._simple(node, guards, blocks)

    def _simple(self, node: ast.stmt, guards: tuple[Guard, ...], blocks: tuple[int, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            self._expression(child, guards, blocks)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value, node, guards, blocks)
        elif isinstance(node, ast.AnnAssign):
            self._bind(node.target, node.value, node, guards, blocks)
        elif isinstance(node, ast.AugAssign):
            self.at[node] = Step(len(self.steps), node, guards, blocks)
            self._bind(node.target, None, node, guards, blocks)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                self._bind(ast.Name(alias.asname or alias.name.split(".")[0]), None, node, guards, blocks)

    def _expression(self, node: ast.AST, guards: tuple[Guard, ...], blocks: tuple[int, ...]) -> None:
        """Calls within an expression, the inner ones first."""
        if isinstance(node, _DEFINITIONS):
            return
        if isinstance(node, ast.IfExp):
            self._expression(node.test, guards, blocks)
            key, value = condition(node.test)
            self._expression(node.body, (*guards, (key, value)), blocks)
            self._expression(node.orelse, (*guards, (key, not value)), blocks)
            return
        if isinstance(node, ast.BoolOp):
            self._expression(node.values[0], guards, blocks)
            key, value = condition(node.values[0])
            taken = value if isinstance(node.op, ast.And) else not value
            for part in node.values[1:]:
                self._expression(part, (*guards, (key, taken)), blocks)
            return
        for child in ast.iter_child_nodes(node):
            self._expression(child, guards, blocks)
        if isinstance(node, ast.Call):
            self._add(node, guards, blocks)
        elif isinstance(node, ast.BinOp):
            self.at[node] = Step(len(self.steps), node, guards, blocks)
        elif isinstance(node, ast.NamedExpr):
            self._bind(node.target, node.value, node, guards, blocks)


def _around(arm: Arm, step: Step) -> bool:
    """Whether a step stands in a branch, or below the whole of it."""
    guards, blocks = arm
    return set(guards) <= set(step.guards) and blocks == step.blocks[: len(blocks)]


def contradict(first: Step, second: Step) -> bool:
    """Whether no single run does both, because of their conditions."""
    other = dict(second.guards)
    return any(key in other and other[key] != value for key, value in first.guards)


def _shared(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def condition(test: ast.expr) -> Guard:
    """A condition and its value, the same for ``a < 0`` and ``not a >= 0`` but for the value."""
    value = True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, value = test.operand, not value
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        turned = _OPPOSITE[type(test.ops[0])]()
        test, value = ast.Compare(test.left, [turned], test.comparators), not value
    return ast.dump(test), value


def _leaves(node: ast.stmt) -> bool:
    """Whether nothing after this statement runs in its block, or after the block in that round."""
    if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return dotted(node.value.func).rsplit(".", 1)[-1] in _LEAVING
    if isinstance(node, ast.If):
        return bool(node.body and node.orelse) and _leaves(node.body[-1]) and _leaves(node.orelse[-1])
    return isinstance(node, ast.With) and _leaves(node.body[-1])
