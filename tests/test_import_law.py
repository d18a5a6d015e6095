"""The import law: who may touch the world is decided by module, and an AST reading keeps it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ideepdoctor"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent.name != "payload")
PURE_FOLDERS = ("rules", "model", "stacks")
PURE_FILES = tuple(
    f"treatment/{name}.py" for name in ("plan", "plandata", "variables", "startup", "exports", "shellrc", "progress")
)


def imported(source: str) -> set[str]:
    """Every module that a source imports, also within functions; ``a.b`` counts as ``a`` and ``a.b``."""
    return {part for name in _names(ast.parse(source)) for part in _prefixes(name)}


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _prefixes(name: str) -> Iterator[str]:
    words = name.split(".")
    yield from (".".join(words[: count + 1]) for count in range(len(words)))


def forbidden(where: str) -> set[str]:
    """What a module of the package must not import; ``where`` is its path within the package."""
    banned = {"ideepdoctor.payload"}
    if where != "system.py":
        banned.add("subprocess")
    if where not in ("cli.py", "terminal.py"):
        banned.add("typer")
    if where not in ("cli.py", "render/text.py"):
        banned.add("rich")
    render = where.startswith("render/") and where != "render/text.py"
    if where.split("/")[0] in PURE_FOLDERS or where in PURE_FILES or render:
        banned |= {"os", "shutil", "socket"}
    return banned


def violations(where: str, source: str) -> set[str]:
    return imported(source) & forbidden(where)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_law_holds(path: Path):
    assert violations(str(path.relative_to(PACKAGE)), path.read_text("utf-8")) == set()


@pytest.mark.parametrize(
    ("where", "source", "caught"),
    [
        ("rules/idp999.py", "def f():\n    import os.path\n", {"os"}),
        ("facts/x.py", "from subprocess import run\n", {"subprocess"}),
        ("model/x.py", "import typer\n", {"typer"}),
        ("render/html.py", "from rich.text import Text\n", {"rich"}),
        ("facts/x.py", "from ideepdoctor.payload import probe\n", {"ideepdoctor.payload"}),
        ("facts/x.py", "import os\n", set()),
        ("system.py", "import subprocess\n", set()),
    ],
)
def test_a_violation_is_caught(where: str, source: str, caught: set[str]):
    assert violations(where, source) == caught


@pytest.mark.parametrize("path", sorted((PACKAGE / "payload").glob("*.py")), ids=lambda path: path.name)
def test_payloads_are_ascii_and_import_nothing_of_ours(path: Path):
    source = path.read_text("ascii")
    assert "ideepdoctor" not in imported(source)
