"""The doctor as the recipes' tests install it: a wheel of this clone."""

from __future__ import annotations

import subprocess
from pathlib import Path

from uv import find_uv_bin

ROOT = Path(__file__).parents[2]


def wheel_of_this_clone(folder: Path) -> Path:
    """Build it (its build system comes from the package index)."""
    subprocess.run(
        [find_uv_bin(), "build", "--wheel", "--quiet", "--out-dir", str(folder), str(ROOT)], check=True, timeout=300
    )
    [wheel] = folder.glob("ideepdoctor-*.whl")
    return wheel
