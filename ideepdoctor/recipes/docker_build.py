"""The recipe ``docker-build``: an image whose ideep4py was built from source in it."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile
from ideepdoctor.recipes.images import image_variables

RECIPE = Recipe(
    name="docker-build",
    title="Docker image, ideep4py from source",
    files=(
        RecipeFile("Dockerfile", "docker-build.Dockerfile"),
        RecipeFile("entrypoint.sh", "entrypoint.sh", executable=True),
        RecipeFile(".dockerignore", "dockerignore"),
    ),
    uses="the same for a Python that no index has an ideep4py for: built from source, proved, then installed",
    start="docker build --tag ideep .",
    python="3.11",
    built=True,
    variables=image_variables,
)
