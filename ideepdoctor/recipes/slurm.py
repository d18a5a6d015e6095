"""The recipe ``slurm``: a batch job that checks iDeep on each of its nodes before it trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ideepdoctor.recipes.base import Recipe, RecipeFile, Settings
from ideepdoctor.recipes.ci import lock_digest


def _variables(settings: Settings) -> Mapping[str, Any]:
    return {"digest": lock_digest(settings.lock)}


RECIPE = Recipe(
    name="slurm",
    title="Slurm job",
    files=(RecipeFile("ideep.sbatch", "slurm.sbatch", executable=True),),
    uses="a batch job that provisions or checks iDeep on each node, then trains with the right threads and binding",
    start="sbatch ideep.sbatch python train.py",
    variables=_variables,
)
