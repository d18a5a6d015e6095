"""The recipe ``cron``: a daily check of an environment against its baseline, with mail only where it changed."""

from __future__ import annotations

from ideepdoctor.recipes.base import Recipe, RecipeFile

RECIPE = Recipe(
    name="cron",
    title="cron drift check",
    files=(RecipeFile("ideep-drift.cron", "cron.d"), RecipeFile("ideep-drift", "cron-drift.sh", executable=True)),
    uses="a daily check of an environment against its baseline; mail where something changed, and what explains it",
    start="sudo install ideep-drift /usr/local/sbin/ && sudo install -m 644 ideep-drift.cron /etc/cron.d/ideep-drift",
)
