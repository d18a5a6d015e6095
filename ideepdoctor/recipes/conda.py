"""The recipe ``conda``: an environment, what pip installs into it by hash, and the doctor in one beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ideepdoctor.recipes.base import Recipe, RecipeFile, Settings
from ideepdoctor.stacks.data import Lock

_CONDAS_OWN = ("pip", "setuptools", "wheel")
"""What conda brings with Python and keeps book of: pip would overwrite its files."""


def _variables(settings: Settings) -> Mapping[str, Any]:
    """``pinned``: what pip installs."""
    return {"pinned": _pinned(settings.lock)}


def _pinned(lock: Lock) -> list[str]:
    return [item.line() for item in lock.requirements if item.name not in _CONDAS_OWN]


RECIPE = Recipe(
    name="conda",
    title="conda environment",
    files=(
        RecipeFile("create.sh", "conda-create.sh", executable=True),
        RecipeFile("environment.yml", "conda-environment.yml"),
        RecipeFile("requirements.txt", "conda-requirements.txt"),
        RecipeFile("doctor.yml", "conda-doctor.yml"),
    ),
    uses="an environment of conda or mamba, Chainer and ideep4py in it by hash, and the doctor in one beside it",
    start="sh create.sh",
    variables=_variables,
)
