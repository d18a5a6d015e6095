"""Recipes: files for containers, CI services, clusters. ``RECIPES`` is the registry, in the order of the list."""

from ideepdoctor.recipes import conda
from ideepdoctor.recipes.base import Recipe

RECIPES: tuple[Recipe, ...] = (conda.RECIPE,)
