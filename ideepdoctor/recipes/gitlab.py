"""The recipe ``gitlab``: a pipeline with cache, code quality and test reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ideepdoctor.recipes.base import Recipe, RecipeFile, Settings
from ideepdoctor.recipes.ci import lock_digest

_BOTH = "3.7"
"""The only Python with an ideep4py wheel whose official image is of a Debian that has a Python for the doctor, too."""
_CONDA_IMAGE = "condaforge/miniforge3:24.11.3-2"


def _variables(settings: Settings) -> Mapping[str, Any]:
    by_conda = settings.python != _BOTH
    image = _CONDA_IMAGE if by_conda else f"python:{settings.python}-bookworm"
    return {"image": image, "by_conda": by_conda, "digest": lock_digest(settings.lock)}


RECIPE = Recipe(
    name="gitlab",
    title="GitLab CI",
    files=(RecipeFile(".gitlab-ci.yml", "gitlab-ci.yml"),),
    uses="a pipeline that provisions Chainer with iDeep or fails with the reason, shown in the merge request",
    start="git add .gitlab-ci.yml && git commit -m 'CI: Chainer with iDeep' && git push",
    variables=_variables,
)
