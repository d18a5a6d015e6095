"""The recipe ``pre-commit``: the hooks that this repository offers, and a project's configuration that uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ideepdoctor.recipes.base import Recipe, RecipeFile, Settings

_GIT = re.compile(r"(?:[\w.-]+ *@ *)?git\+(?P<url>[a-z+]+://.+?)(?:@(?P<ref>[^@/:]+(?:/[^@/:]+)*))?(?:#.*)?")
"""A requirement that is a repository: ``git+https://HOST/NAME.git@REF``."""


def _variables(settings: Settings) -> Mapping[str, Any]:
    """``url`` and ``ref`` of the repository that the requirement names; None where it names none, or no ref."""
    match = _GIT.fullmatch(settings.requirement)
    url, ref = (match["url"], match["ref"]) if match else (None, None)
    return {"url": url if ref else None, "ref": ref}


RECIPE = Recipe(
    name="pre-commit",
    title="pre-commit hook",
    files=(
        RecipeFile(".pre-commit-config.yaml", "pre-commit-config.yaml"),
        RecipeFile(".pre-commit-hooks.yaml", "pre-commit-hooks.yaml"),
    ),
    uses="lint of Chainer programs before each commit",
    start="pre-commit install && pre-commit run --all-files",
    variables=_variables,
)
