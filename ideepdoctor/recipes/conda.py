"""The recipe ``conda``: an environment file, and what pip installs into it by hash."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile

RECIPE = Recipe(
    name="conda",
    title="conda environment",
    files=(RecipeFile("environment.yml", "conda-environment.yml"), RecipeFile("requirements.txt", "requirements.txt")),
    uses="an environment of conda, mamba or micromamba with Chainer and ideep4py, pinned by hash",
    start="conda env create --file environment.yml",
)
