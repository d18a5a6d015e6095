"""The recipe ``docker``: an image with the environment, proved, and one with the doctor beside it."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile
from ideepdoctor.recipes.images import image_variables

RECIPE = Recipe(
    name="docker",
    title="Docker image",
    files=(
        RecipeFile("Dockerfile", "docker.Dockerfile"),
        RecipeFile("entrypoint.sh", "entrypoint.sh", executable=True),
        RecipeFile(".dockerignore", "dockerignore"),
    ),
    uses="an image with Chainer and ideep4py, proved when it is built, for any x86-64 host",
    start="docker build --tag ideep .",
    variables=image_variables,
)
