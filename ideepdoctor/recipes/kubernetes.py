"""The recipe ``kubernetes``: a job that refuses a node on which iDeep is not used or not right."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile

RECIPE = Recipe(
    name="kubernetes",
    title="Kubernetes job",
    files=(RecipeFile("job.yaml", "kubernetes-job.yaml"),),
    uses="a job that proves each node before your program starts on it, with the images of the recipe docker",
    start="kubectl create --filename job.yaml",
)
