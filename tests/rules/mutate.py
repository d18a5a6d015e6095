"""Mutate the rules one condition at a time, and see whether the tests of the rules notice.

    python tests/rules/mutate.py [NAME ...]

runs the tests of tests/rules (without those that draw random machines) once for each mutant of the modules
ideepdoctor/rules/NAME.py (``idp305``, ``compat``; none: every module of that folder), and prints the mutants that no
test notices, with their lines, and the score. It takes about 4 s for each mutant (15 minutes for all), writes nothing,
and is no part of the test run.

A mutant is the module with one change in a function: a comparison is turned round (``<`` to ``>=``, ``in`` to
``not in``, ``is None`` to ``is not None``), the test of an ``if`` or of a conditional expression is negated, or ``and``
becomes ``or``. A few survivors cannot be noticed, because the mutant does the same as the module: whoever runs it
judges them.
"""

from __future__ import annotations

import ast
import copy
import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import hypothesis  # noqa: F401 - loaded once here, so that no child has to
import packaging.requirements  # noqa: F401
import pydantic  # noqa: F401
import pytest
import typer.main  # noqa: F401

HERE = Path(__file__).parent
RULES = HERE.parents[1] / "ideepdoctor" / "rules"
TESTS = ("test_examples.py", "test_measured_edges.py", "test_faults.py")
"""The tests that notice most come first: a child ends at its first failure."""
LEFT_OUT = "not whatever_else and not same_machines"
TIMEOUT_SECONDS = 120

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
    line: int
    change: str
    tree: ast.Module


def mutants(name: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a module's functions."""
    tree = ast.parse(source)
    count = len(list(places(tree)))
    for number in range(count):
        changed = copy.deepcopy(tree)
        node = list(places(changed))[number]
        before = ast.unparse(node)
        line = node.lineno
        after = turn(node)
        yield Mutant(name, line, f"{shown(before)}  ->  {shown(after)}", ast.fix_missing_locations(changed))


def places(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions that can be turned, in functions alone: conditions of ``if``, comparisons, ``and`` and ``or``."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp):
                yield node.test
            elif isinstance(node, ast.Compare | ast.BoolOp):
                yield node


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
    return text if len(text) <= 70 else text[:67] + "..."


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant instead of the module."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = f"ideepdoctor.rules.{mutant.module}"
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        origin = str(RULES / f"{self.mutant.module}.py")
        spec = importlib.util.spec_from_loader(fullname, self, origin=origin)
        if spec is not None:
            spec.has_location = True
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.tree, str(RULES / f"{self.mutant.module}.py"), "exec"), module.__dict__)


def survives(mutant: Mutant | None) -> bool:
    """Run the tests in a child with the mutant (None: with the module as it is); whether they pass."""
    child = os.fork()
    if child == 0:
        signal.alarm(TIMEOUT_SECONDS)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        if mutant is not None:
            sys.meta_path.insert(0, Mutated(mutant))
        first = [str(HERE / name) for name in TESTS]
        others = [str(path) for path in sorted(HERE.glob("test_*.py")) if path.name not in TESTS]
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-k", LEFT_OUT, *first, *others]))
    _, status = os.waitpid(child, 0)
    return status == 0


def main(names: list[str]) -> int:
    """Print the survivors and the score; 1 where the tests fail without any mutant."""
    os.chdir(HERE.parents[1])
    if not survives(None):
        print("the tests fail as it is")
        return 1
    modules = names or sorted(path.stem for path in RULES.glob("*.py") if path.stem not in ("__init__", "base"))
    tried = noticed = 0
    for name in modules:
        for mutant in mutants(name, (RULES / f"{name}.py").read_text("utf-8")):
            tried += 1
            if survives(mutant):
                print(f"{mutant.module}.py:{mutant.line}: {mutant.change}", flush=True)
            else:
                noticed += 1
    print(f"{noticed} of {tried} mutants noticed ({100 * noticed / max(tried, 1):.0f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
