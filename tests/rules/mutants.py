"""Mutants of a module: one change in a function each, as syntax trees, and putting one in the place of the module.

A mutant is the module with one change in a function: a comparison is turned round (``<`` to ``>=``, ``in`` to
``not in``, ``is None`` to ``is not None``), the test of an ``if`` or of a conditional expression is negated, or ``and``
becomes ``or``.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

RULES = Path(__file__).parents[2] / "ideepdoctor" / "rules"
PACKAGE = "ideepdoctor.rules"

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change."""

    module: str
    number: int
    """Which of the module's mutants."""
    line: int
    change: str
    tree: ast.Module
    function: tuple[str, int]
    """Module and first line of the function that holds the change, as its code object tells it."""

    @property
    def path(self) -> str:
        """The module's file."""
        return str(RULES / f"{self.module}.py")

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line}: {self.change}"


def modules() -> list[str]:
    """The modules that judge: every file of rules/ but the registry and the base class."""
    return sorted(path.stem for path in RULES.glob("*.py") if path.stem not in ("__init__", "base"))


def mutants(module: str) -> Iterator[Mutant]:
    """Every mutant of a module's functions."""
    tree = ast.parse((RULES / f"{module}.py").read_text("utf-8"))
    for number in range(len(list(places(tree)))):
        changed = copy.deepcopy(tree)
        node = list(places(changed))[number]
        before, line = ast.unparse(node), node.lineno
        after = turn(node)
        change = f"{shown(before)}  ->  {shown(after)}"
        function = (module, first_line(changed, node))
        yield Mutant(module, number, line, change, ast.fix_missing_locations(changed), function)


def places(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that can be turned, in functions alone: conditions of ``if``, comparisons, ``and`` and ``or``."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp):
                yield node.test
            elif isinstance(node, ast.Compare | ast.BoolOp):
                yield node


def first_line(tree: ast.Module, node: ast.expr) -> int:
    """The line on which the innermost function around an expression begins, decorators included."""
    around = [item for item in ast.walk(tree) if isinstance(item, ast.FunctionDef) and node in ast.walk(item)]
    inner = max(around, key=lambda item: item.lineno)
    return min([inner.lineno, *(item.lineno for item in inner.decorator_list)])


def turn(node: ast.expr) -> str:
    """Change an expression in place; return its new text."""
    if isinstance(node, ast.Compare):
        node.ops[0] = OPPOSITE[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    else:
        # The node becomes the truth of its own negation without its parent's being touched.
        inner = copy.copy(node)
        node.__class__ = ast.UnaryOp  # type: ignore[assignment]
        node.__dict__.update(op=ast.Not(), operand=inner)
    return ast.unparse(node)


def shown(text: str) -> str:
    """At most 70 characters."""
    return text if len(text) <= 70 else text[:67] + "..."


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant instead of the module, to a process that has not imported it yet."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = f"{PACKAGE}.{mutant.module}"
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = importlib.util.spec_from_loader(fullname, self, origin=self.mutant.path)
        if spec is not None:
            spec.has_location = True
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.tree, self.mutant.path, "exec"), module.__dict__)


def graft(mutant: Mutant) -> bool:
    """Give the functions of the module, which is imported already, the code of the mutant's.

    Returns:
        Whether that is all: False where the mutant also changes what the module makes while it is imported (its
        examples, its tables), which others have taken by now.
    """
    name = f"{PACKAGE}.{mutant.module}"
    living = importlib.import_module(name)
    changed = ModuleType(name)
    changed.__file__ = mutant.path
    exec(compile(mutant.tree, mutant.path, "exec"), changed.__dict__)
    return _graft(vars(living), vars(changed), name)


_OF_THE_IMPORT = frozenset(
    (
        "__builtins__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__file__",
        "__loader__",
        "__package__",
        "__spec__",
        "_abc_impl",
    )
)


def _graft(living: Mapping[str, Any], changed: Mapping[str, Any], name: str) -> bool:
    same = True
    for key, value in changed.items():
        if key in _OF_THE_IMPORT or inspect.ismodule(value):
            continue
        mine = living[key]
        if inspect.isclass(value) and value.__module__ == name:
            same &= _graft(vars(mine), vars(value), name)
        elif (code := _code(value)) is not None:
            function = _function(mine)
            if function is not None and function.__module__ == name and function.__code__ != code:
                function.__code__ = code
            if hasattr(mine, "cache_clear"):
                mine.cache_clear()
        else:
            same &= mine is value or mine == value or repr(mine) == repr(value)
    return same


def _function(value: Any) -> FunctionType | None:
    """The function inside a method, a property or a cache; None where there is none."""
    inner = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
    return inner if isinstance(inner, FunctionType) else None


def _code(value: Any) -> CodeType | None:
    found = _function(value)
    return None if found is None else found.__code__
