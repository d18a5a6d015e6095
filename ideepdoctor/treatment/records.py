"""Whether the files of an installed ideep4py are those that its RECORD lists, by size."""

from __future__ import annotations

import csv
from pathlib import Path

from ideepdoctor.model.plan import Install


def record_problems(step: Install) -> str:
    """The first file of the step's ideep4py that is missing or has another size than its RECORD says; empty: none.

    Contents are compared by the check that follows every installation; sizes tell a cache that was damaged.
    """
    wanted = next((item for item in step.requirements if item.name == "ideep4py"), None)
    if wanted is None:
        return ""
    library = Path(step.python).parent.parent / "lib"
    for record in library.glob(f"python*/site-packages/ideep4py-{wanted.version}.dist-info/RECORD"):
        root = record.parent.parent
        with record.open(encoding="utf-8", newline="") as stream:
            try:
                for name, _digest, size in csv.reader(stream):
                    if size and not _has_size(root / name, int(size)):
                        return str(root / name)
            except (ValueError, csv.Error):
                # The list itself is damaged.
                return str(record)
    return ""


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
