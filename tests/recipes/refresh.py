"""The folder ``recipes/``: every recipe as it is rendered where nothing is asked for.

    python tests/recipes/refresh.py     # writes them; test_rendered.py compares

Of a folder ``recipes/NAME`` nothing is kept that the recipe does not render.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from ideepdoctor import __version__  # noqa: E402 (of this clone)
from ideepdoctor.recipes import RECIPES  # noqa: E402
from ideepdoctor.recipes.base import Recipe, settings_for  # noqa: E402
from ideepdoctor.recipes.render import render  # noqa: E402


def rendered(recipe: Recipe) -> dict[str, tuple[str, bool]]:
    """Path to text, and whether it is executable, with every default."""
    executable = {file.path for file in recipe.files if file.executable}
    texts = render(recipe, settings_for(recipe, doctor_version=__version__))
    return {path: (text, path in executable) for path, text in texts.items()}


def kept(folder: Path) -> dict[str, tuple[str, bool]]:
    """The same of a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): (path.read_text("utf-8"), path.stat().st_mode & 0o111 != 0)
        for path in files
    }


def refresh(recipe: Recipe) -> None:
    """Write one recipe's folder anew."""
    folder = ROOT / "recipes" / recipe.name
    shutil.rmtree(folder, ignore_errors=True)
    for path, (text, executable) in rendered(recipe).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        place.chmod(0o755 if executable else 0o644)


if __name__ == "__main__":
    wanted = sys.argv[1:]
    for recipe in RECIPES:
        if not wanted or recipe.name in wanted:
            refresh(recipe)
