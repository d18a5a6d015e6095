"""Recipes as text: templates of this package, filled with settings. Pure.

Delimiters are ``[= value =]``, ``[% block %]`` and ``[# comment #]``, since ``{{ }}`` is a word of several of the
formats themselves. A block or comment alone in its line leaves no line behind. Templates know ``requirement``,
``local``, ``stack``, ``lock``, ``python``, ``doctor_version``, ``recipe`` and the recipe's own variables; a name that
nobody defined is an error.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from ideepdoctor.recipes.base import Recipe, Settings


def render(recipe: Recipe, settings: Settings) -> dict[str, str]:
    """The files of a recipe: path to text, in the recipe's order. Raises jinja2.TemplateError: a faulty template."""
    names = {
        "requirement": settings.requirement,
        "local": settings.local,
        "stack": settings.stack,
        "lock": settings.lock,
        "python": settings.python,
        "doctor_version": settings.doctor_version,
        "recipe": recipe,
        **recipe.variables(settings),
    }
    environment = _environment()
    return {file.path: environment.get_template(file.template).render(names) for file in recipe.files}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_template),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 (files for programs, no HTML)
        variable_start_string="[=",
        variable_end_string="=]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _template(name: str) -> str | None:
    file = files("ideepdoctor") / "recipes" / "templates" / name
    return file.read_text("utf-8") if file.is_file() else None
