"""The recipe ``github``: a workflow, a matrix of stacks, and the composite action that both use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.version import Version

from ideepdoctor.recipes.base import Recipe, RecipeFile, Settings
from ideepdoctor.stacks.catalog import all_stacks

_SETUP_PYTHON = "3.7"
"""The oldest Python that actions/setup-python has for an image that is still offered: ubuntu-22.04."""


def _where(python: str) -> dict[str, str]:
    """What brings a Python, and the image of the runner."""
    if Version(python) >= Version(_SETUP_PYTHON):
        return {"get_python": "setup-python", "runner": "ubuntu-22.04"}
    return {"get_python": "conda", "runner": "ubuntu-24.04"}


def _matrix() -> Iterator[dict[str, str]]:
    """Each stack that runs on any vendor's processor, with each Python that an index has all of it for."""
    for stack in all_stacks():
        for lock in stack.index_locks:
            if lock.tried and stack.cpu_vendor is None:
                yield {"chainer": stack.chainer, "stack": stack.name, "python": lock.python, **_where(lock.python)}


def _variables(settings: Settings) -> Mapping[str, Any]:
    return {**_where(settings.python), "matrix": list(_matrix())}


RECIPE = Recipe(
    name="github",
    title="GitHub Actions",
    files=(
        RecipeFile(".github/workflows/ideep.yml", "github-workflow.yml"),
        RecipeFile(".github/workflows/ideep-matrix.yml", "github-matrix.yml"),
        RecipeFile(".github/actions/ideepdoctor/action.yml", "github-action.yml"),
    ),
    uses="a job that provisions Chainer with iDeep or fails with the reason; a reusable action; a matrix of stacks",
    start="git add .github && git commit -m 'CI: Chainer with iDeep' && git push",
    variables=_variables,
)
