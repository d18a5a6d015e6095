"""What the doctor itself runs on: for ``--version -v``, ``-vv`` and the log."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from ideepdoctor import __version__


def about() -> dict[str, Any]:
    """Version, Python, machine, folder, and the versions of the libraries that the doctor needs."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "folder": str(Path(__file__).parent),
        "libraries": libraries(),
    }


def libraries() -> dict[str, str | None]:
    """The version of each library that the doctor needs, as it is installed; None: it is missing."""
    from packaging.requirements import Requirement

    found: dict[str, str | None] = {}
    try:
        wanted = [Requirement(text) for text in requires("ideepdoctor") or ()]
    except PackageNotFoundError:  # run from a folder of sources
        wanted = []
    for requirement in wanted:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            try:
                found[requirement.name] = version(requirement.name)
            except PackageNotFoundError:
                found[requirement.name] = None
    return found
