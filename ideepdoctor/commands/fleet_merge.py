"""``fleet merge``: what the reports of many hosts come to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted


def merge(session: Session, paths: tuple[str, ...]) -> Report:
    """Count the reports that the paths name by their status.

    Raises:
        UsageError: nothing that was named is a report.
    """
    counts: Counter[str] = Counter()
    for path in paths:
        whole = Path(session.cwd, path)
        files = sorted(whole.rglob("*.json")) if whole.is_dir() else [whole]
        for file in files:
            try:
                data = json.loads(file.read_bytes())
                counts[str(data["summary"]["status"])] += 1
            except (OSError, ValueError, KeyError, TypeError):
                counts["skipped"] += 1
    if not counts:
        raise UsageError("there is no report in what was named", hint="ideepdoctor fleet merge FILE... or FOLDER")
    lines = [f"{counted(number, 'file')}: {status}" for status, number in sorted(counts.items())]
    return Report("fleet merge", text="\n".join(lines) + "\n", extra={"fleet": {"counts": dict(counts)}})
