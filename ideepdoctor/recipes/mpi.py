"""The recipe ``mpi``: ChainerMN over mpiexec, and a small program for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from ideepdoctor.recipes.base import Recipe, RecipeFile, Settings
from ideepdoctor.recipes.ci import lock_digest

_MPI4PY = "mpi4py==3.1.6"
"""The last one for Python 2.7, 3.5 and later."""
_CHAINERMN = "chainermn==1.3.1"
"""The last one before it became part of Chainer 5."""


def _variables(settings: Settings) -> Mapping[str, Any]:
    packages = _MPI4PY if Version(settings.stack.chainer) >= Version("5") else f"{_MPI4PY} {_CHAINERMN}"
    return {"digest": lock_digest(settings.lock), "mpi_packages": packages}


RECIPE = Recipe(
    name="mpi",
    title="MPI job (ChainerMN)",
    files=(
        RecipeFile("ideep-mpi.sh", "mpi.sh", executable=True),
        RecipeFile("train_chainermn.py", "mpi-train.py"),
    ),
    uses="ChainerMN over mpiexec (MPICH, Intel MPI, Open MPI): each rank checked, threads and cores shared out",
    start="./ideep-mpi.sh -n 2 python train_chainermn.py",
    variables=_variables,
)
