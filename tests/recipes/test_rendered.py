"""The folder ``recipes/`` is what the recipes render; every recipe renders with every stack that it can have."""

from __future__ import annotations

import importlib
import re

import pytest

from ideepdoctor import recipes
from ideepdoctor.recipes import RECIPES
from ideepdoctor.recipes.base import Recipe, settings_for
from ideepdoctor.recipes.render import render
from ideepdoctor.stacks.catalog import all_stacks
from tests.recipes.refresh import ROOT, kept, rendered

EVERY = [pytest.param(recipe, id=recipe.name) for recipe in RECIPES]
REQUIREMENTS = (
    "ideepdoctor",
    "ideepdoctor==0.1.0",
    "wheels/ideepdoctor-0.1.0-py3-none-any.whl",
    "git+https://example.org/ideepdoctor.git@main",
)


@pytest.mark.parametrize("recipe", EVERY)
def test_the_folder_of_recipes_is_what_is_rendered(recipe: Recipe):
    folder = ROOT / "recipes" / recipe.name
    assert kept(folder) == rendered(recipe), f"python tests/recipes/refresh.py {recipe.name}"


def test_there_is_no_folder_without_a_recipe():
    folders = {path.name for path in (ROOT / "recipes").iterdir() if path.is_dir()}
    assert folders - {recipe.name for recipe in RECIPES} <= {"__pycache__"}


@pytest.mark.parametrize("recipe", EVERY)
def test_a_recipe_is_its_module(recipe: Recipe):
    module = importlib.import_module(f"{recipes.__name__}.{recipe.name.replace('-', '_')}")
    assert module.RECIPE is recipe
    assert recipe.start.splitlines() == [recipe.start]


@pytest.mark.parametrize("requirement", REQUIREMENTS)
@pytest.mark.parametrize("recipe", EVERY)
def test_it_renders_with_every_stack(recipe: Recipe, requirement: str):
    seen = 0
    for stack in all_stacks():
        for lock in stack.locks:
            if not recipe.built and (lock.built or not lock.tried):
                continue
            settings = settings_for(
                recipe, doctor_version="0.1.0", stack=stack.name, python=lock.python, requirement=requirement
            )
            texts = render(recipe, settings)
            seen += 1
            whole = "".join(texts.values())
            assert requirement.rpartition("/")[2] in whole
            for path, text in texts.items():
                assert text.endswith("\n") and not text.endswith("\n\n"), path
                assert not re.search(r"[ \t]$|\t ", text, re.MULTILINE), f"{path}: blanks at the end of a line"
                assert not re.search(r"\[[=%#] | [=%#]\]", text), f"{path}: a delimiter was left"
    assert seen
