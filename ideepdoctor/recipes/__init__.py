"""Recipes: files for containers, CI services, clusters. ``RECIPES`` is the registry, in the order of the list."""

from ideepdoctor.recipes import (
    ansible,
    conda,
    cron,
    devcontainer,
    docker,
    docker_build,
    github,
    gitlab,
    kubernetes,
    mpi,
    pre_commit,
    slurm,
    systemd,
)
from ideepdoctor.recipes.base import Recipe

RECIPES: tuple[Recipe, ...] = (
    docker.RECIPE,
    docker_build.RECIPE,
    devcontainer.RECIPE,
    conda.RECIPE,
    kubernetes.RECIPE,
    github.RECIPE,
    gitlab.RECIPE,
    pre_commit.RECIPE,
    systemd.RECIPE,
    cron.RECIPE,
    slurm.RECIPE,
    mpi.RECIPE,
    ansible.RECIPE,
)
