"""Read all data that the package carries with it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from ideepdoctor import __version__
from ideepdoctor.model.own import Trouble


def read_all(package: Path) -> Iterator[Trouble]:
    """Tell each file that cannot be read.

    Args:
        package: folder of the package.
    """
    kinds: tuple[tuple[str, str, Callable[[Path], None]], ...] = (
        ("stacks", "*.toml", _stack),
        ("stacks/peers", "*.toml", _toml),
        ("render", "*.json", _schema),
        ("render", "*.j2", _template),
        ("rules/hosts", "*.json", _host),
        ("locale", "*/*.po", _catalogue),
    )
    for folder, pattern, reader in kinds:
        for path in sorted((package / folder).glob(pattern)):
            if path.is_file():
                yield from _tried(path, reader, package)
    yield from _tried(package / "stacks", _any_stack, package)
    yield from _tried(package / "recipes" / "templates", _recipes, package)


def _tried(path: Path, reader: Callable[[Path], None], package: Path) -> Iterator[Trouble]:
    try:
        reader(path)
    except Exception as error:  # noqa: BLE001 - told, whatever it is
        yield Trouble(path.relative_to(package).as_posix(), f"{type(error).__name__}: {error}", str(path))


def _any_stack(path: Path) -> None:
    from ideepdoctor.stacks.catalog import all_stacks

    if not all_stacks():
        raise ValueError("there is none")


def _recipes(path: Path) -> None:
    """Every recipe with its own settings."""
    from ideepdoctor.recipes import RECIPES
    from ideepdoctor.recipes.base import settings_for
    from ideepdoctor.recipes.render import render

    for recipe in RECIPES:
        render(recipe, settings_for(recipe, doctor_version=__version__))


def _toml(path: Path) -> None:
    if not tomllib.loads(path.read_text("utf-8")):
        raise ValueError("it is empty")


def _stack(path: Path) -> None:
    from ideepdoctor.stacks.data import stack_from_toml

    stack = stack_from_toml(tomllib.loads(path.read_text("utf-8")))
    if stack.name != path.stem or not stack.locks:
        raise ValueError("it is not the stack that its name says, or locks nothing")


def _schema(path: Path) -> None:
    """A JSON Schema that knows every key of a report that fails."""
    from ideepdoctor.model.report import REPORT_SCHEMA, Failure, Report
    from ideepdoctor.model.summary import FailOn
    from ideepdoctor.render.json import render

    schema = json.loads(path.read_text("utf-8"))
    report = json.loads(render(Report("self-test", failure=Failure("usage", "none", "", 2)), FailOn.ERROR))
    missing = [key for key in report if key not in schema["properties"]]
    if missing or report["schema"] != REPORT_SCHEMA:
        raise ValueError(f"a report has what the schema does not know: {', '.join(missing)}")


def _template(path: Path) -> None:
    from jinja2 import Environment

    Environment(autoescape=True).parse(path.read_text("utf-8"))


def _host(path: Path) -> None:
    from ideepdoctor.facts.serialize import facts_from_json

    facts_from_json(json.loads(path.read_text("utf-8")))


def _catalogue(path: Path) -> None:
    import polib

    if not len(polib.pofile(path.read_text("utf-8"))):
        raise ValueError("it has no message")
