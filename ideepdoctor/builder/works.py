"""Work folders of builds that were interrupted: who is still at work in them, and which nobody will come back to."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ideepdoctor.system import System
from ideepdoctor.treatment.state import is_locked

DAYS = 86400.0
FORGOTTEN_SECONDS = 14 * DAYS
"""After that an interrupted build is not gone on with; its folder takes up to a gigabyte."""


def at_work(folder: str) -> tuple[int, ...]:
    """Processes whose folder is in this one: compilers whose doctor was killed, and could not end them."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            where = str((entry / "cwd").readlink())
        except OSError:  # it has ended, or is another user's
            continue
        if where == folder or where.startswith(f"{folder}/"):
            found.append(int(entry.name))
    return tuple(sorted(found))


def sweep(system: System, root: str, now: float | None = None) -> tuple[str, ...]:
    """Remove work folders that have been left for two weeks and that no build holds; which these were.

    Args:
        system: removes.
        root: ``build`` in the doctor's cache folder.
        now: seconds since the epoch; for tests.
    """
    gone = []
    for folder in sorted(Path(root, "work").glob("*")):
        try:
            age = (time.time() if now is None else now) - folder.stat().st_mtime
        except OSError:
            continue
        if age > FORGOTTEN_SECONDS and not is_locked(f"{root}/locks/{folder.name}") and not at_work(str(folder)):
            system.remove_tree(str(folder))
            gone.append(str(folder))
    return tuple(gone)
