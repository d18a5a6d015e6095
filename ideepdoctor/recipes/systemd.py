"""The recipe ``systemd``: a daily check of an environment against its baseline, as units."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile

RECIPE = Recipe(
    name="systemd",
    title="systemd drift check",
    files=(
        RecipeFile("ideep-drift.service", "systemd-drift.service"),
        RecipeFile("ideep-drift.timer", "systemd.timer"),
        RecipeFile("ideep-drift-baseline.service", "systemd-baseline.service"),
        RecipeFile("ideep-drift-report.service", "systemd-report.service"),
        RecipeFile("ideep-drift-report", "systemd-report.sh", executable=True),
        RecipeFile("install.sh", "systemd-install.sh", executable=True),
    ),
    uses="a daily check of an environment against its baseline; what is new is reported, and what explains it",
    start="sudo sh install.sh /opt/ideep",
)
