"""The import law of the package, read from the syntax trees of its modules: imports inside functions count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "ideepdoctor"
MODULES = sorted(
    path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.parent.name != "payload"
)

PURE_FOLDERS = ("rules/", "model/", "stacks/", "render/", "lint/", "recipes/", "locale/", "symptoms/")
PURE_FILES = (
    "builder/environment.py",
    "builder/jobs.py",
    "options.py",
    "builder/levels.py",
    "builder/recipe.py",
    "facts/loader.py",
    "fleet/groups.py",
    "fleet/merge_features.py",
    "fleet/merge_pages.py",
    "fleet/names.py",
    "fleet/outliers.py",
    "fleet/remote.py",
    "fleet/setup.py",
    "fleet/tasks.py",
    "facts/loader_search.py",
    "proof/statistics.py",
    "proof/regression.py",
    "proof/bench_bars.py",
    "proof/bench_compare.py",
    "proof/bench_limits.py",
    "proof/tune_data.py",
    "proof/tune_search.py",
    "proof/tune_space.py",
    "treatment/plan.py",
    "treatment/variables.py",
    "treatment/startup.py",
    "treatment/exports.py",
    "treatment/leftover.py",
    "treatment/merge.py",
    "treatment/move.py",
    "treatment/order.py",
    "treatment/profile.py",
    "treatment/shellrc.py",
    "masks.py",
    "selftest/base.py",
    "selftest/files.py",
    "selftest/judge.py",
    "selftest/works.py",
    "trail.py",
    "wheelhouse/wanted.py",
)
TOUCHES_THE_WORLD = frozenset({"os", "subprocess", "rich", "typer", "shutil", "multiprocessing", "socket", "pathlib"})
COMMAND_LINE = (
    "answering.py",
    "cli.py",
    "cli_bench.py",
    "cli_build.py",
    "cli_common.py",
    "cli_documents.py",
    "cli_examine.py",
    "cli_help.py",
    "cli_fleet.py",
    "cli_fleet_run.py",
    "cli_habits.py",
    "cli_manual.py",
    "cli_narrow.py",
    "cli_options.py",
    "cli_shells.py",
    "cli_packages.py",
    "cli_recipe.py",
    "cli_reports.py",
    "terminal.py",
)
STARTS_PROCESSES = frozenset({"subprocess", "multiprocessing", "pty", "asyncio.subprocess"})
STARTING_CALLS = ("system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile")

PURE_SOURCES = ("ideepdoctor.__date__", "ideepdoctor.__version__", "ideepdoctor.targets.target.payload_source")
"""What a pure module may take of ours beside errors and other pure modules: the text of a payload is data."""


def is_pure(module: str) -> bool:
    return module != "render/text.py" and (module in PURE_FILES or module.startswith(PURE_FOLDERS))


def imported(tree: ast.AST, module: str) -> Iterator[str]:
    """Absolute dotted names of everything that is imported anywhere in a module (``from a import b`` is a.b)."""
    package = ["ideepdoctor", *module.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in ("__import__", "import_module"):
            first = node.args[0] if node.args else None
            yield first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else "any"


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def within(name: str, packages: frozenset[str] | tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def breaches(module: str, source: str) -> list[str]:
    """Every breach of the law in a module, as ``rule: name``."""
    tree = ast.parse(source)
    names = sorted(set(imported(tree, module)))
    found = [f"dynamic import: {name}" for name in names if name == "any"]
    found += [f"payload is never imported: {name}" for name in names if within(name, ("ideepdoctor.payload",))]
    if module != "system.py":
        found += [f"only system.py starts processes: {name}" for name in names if within(name, STARTS_PROCESSES)]
        found += [
            f"only system.py starts processes: os.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "os"
            and (node.attr in STARTING_CALLS or node.attr.startswith(("exec", "spawn")))
        ]
    if module not in COMMAND_LINE:
        found += [f"only the command line imports typer: {name}" for name in names if within(name, ("typer",))]
    if module != "render/text.py":
        found += [f"only render/text.py imports rich: {name}" for name in names if within(name, ("rich",))]
    if is_pure(module):
        found += [f"pure: {name}" for name in names if within(name, TOUCHES_THE_WORLD)]
        found += [f"pure: {name}" for name in names if within(name, ("ideepdoctor",)) and not pure_source(name)]
    return found


def pure_source(name: str) -> bool:
    """Whether a name of ours comes out of a pure module (or is one)."""
    if name in PURE_SOURCES:
        return True
    parts = name.split(".")[1:]
    files = [f"{'/'.join(part)}{end}" for part in (parts, parts[:-1]) if part for end in (".py", "/__init__.py")]
    holder = next((file for file in files if file in MODULES), None)
    return holder == "errors.py" or (holder is not None and is_pure(holder))


@pytest.mark.parametrize("module", MODULES)
def test_the_law_holds(module: str):
    assert breaches(module, (PACKAGE / module).read_text("utf-8")) == []


def test_the_modules_that_the_law_names_exist():
    assert {*PURE_FILES, *COMMAND_LINE, "system.py", "render/text.py"} <= set(MODULES)
    for folder in PURE_FOLDERS:
        assert sum(module.startswith(folder) for module in MODULES) >= 2
    assert "import subprocess" in (PACKAGE / "system.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("rules/idp101.py", "import os"),
        ("rules/idp101.py", "def check():\n    import os.path as p"),
        ("rules/idp101.py", "from pathlib import Path"),
        ("rules/idp101.py", "from ideepdoctor.system import RealSystem"),
        ("rules/idp101.py", "from ..system import RealSystem"),
        ("rules/idp101.py", "from .. import system"),
        ("rules/idp101.py", "from ideepdoctor.treatment import apply"),
        ("rules/idp101.py", "from ideepdoctor.targets.target import run_payload"),
        ("model/facts.py", "import rich"),
        ("stacks/catalog.py", "from shutil import which"),
        ("treatment/plan.py", "if True:\n    import subprocess"),
        ("treatment/shellrc.py", "from os import path"),
        ("render/json.py", "import typer"),
        ("render/json.py", "from ideepdoctor.render.text import TextReport"),
        ("treatment/apply.py", "import subprocess"),
        ("treatment/apply.py", "import os\nos.system('true')"),
        ("treatment/apply.py", "import os\nos.execv('/bin/true', [])"),
        ("treatment/apply.py", "import rich.table"),
        ("commands/fix.py", "class C:\n    def f(self):\n        from typer import echo"),
        ("terminal.py", "from rich.console import Console"),
        ("terminal.py", "from ideepdoctor.payload import probe"),
        ("targets/target.py", "import ideepdoctor.payload.probe"),
        ("targets/target.py", "from ideepdoctor import payload"),
        ("targets/target.py", "__import__('ideepdoctor.payload.probe')"),
        ("targets/target.py", "import importlib\nimportlib.import_module('subprocess')"),
        ("targets/target.py", "import importlib\nimportlib.import_module(name)"),
    ],
)
def test_a_planted_violation_is_caught(module: str, source: str):
    assert breaches(module, source)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("rules/idp101.py", "from ideepdoctor.model.facts import Facts"),
        ("rules/idp101.py", "from ideepdoctor.stacks.catalog import nearest"),
        ("rules/idp101.py", "from .base import Rule"),
        ("treatment/startup.py", "from ideepdoctor.targets.target import payload_source"),
        ("stacks/catalog.py", "from importlib.resources import files"),
        ("system.py", "import subprocess, os\nos.execv"),
        ("render/text.py", "from rich.console import Console"),
        ("cli.py", "import typer"),
        ("rules/idp101.py", "'''import os'''\nsubprocess = 'a word'"),
    ],
)
def test_what_the_law_allows_is_let_through(module: str, source: str):
    assert breaches(module, source) == []
