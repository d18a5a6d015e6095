"""The recipe ``devcontainer``: a development container whose environment is made on the machine that it runs on."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile
from ideepdoctor.recipes.images import image_variables

RECIPE = Recipe(
    name="devcontainer",
    title="Development container",
    files=(
        RecipeFile(".devcontainer/devcontainer.json", "devcontainer.json"),
        RecipeFile(".devcontainer/Dockerfile", "devcontainer.Dockerfile"),
        RecipeFile(".devcontainer/post-create.sh", "devcontainer-post-create.sh", executable=True),
    ),
    uses="a development container for VS Code, Codespaces and others, with the doctor as a command in it",
    start="devcontainer up --workspace-folder .",
    variables=image_variables,
)
