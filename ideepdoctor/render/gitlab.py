"""GitLab's code quality report: a list of issues, for the widget of a merge request."""

from __future__ import annotations

import json
from typing import Any

from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.render.problems import Level, Problem, file_of, problems

_SEVERITIES = {
    Level.FAILED: "blocker",
    Level.ERROR: "critical",
    Level.UNKNOWN: "major",
    Level.WARNING: "major",
    Level.INFO: "info",
}
NOWHERE = "ideepdoctor"
"""Stands for the file where a problem is about none, or about one elsewhere: the format demands one of the project."""


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """A JSON list; empty where nothing is to be said. ``fail_on`` changes nothing in this format."""
    return json.dumps(
        [_issue(item, file_of(item, report)) for item in problems(report)], sort_keys=True, indent=2, ensure_ascii=False
    )


def _issue(item: Problem, file: tuple[str, bool] | None) -> dict[str, Any]:
    text = f"{item.code}: {item.message} Next: {item.do}" if item.do else f"{item.code}: {item.message}"
    ours = file is not None and not file[0].startswith(("/", "../"))
    if file is not None and not ours and file[0] not in text:
        text = f"{text} ({file[0]})"
    return {
        "type": "issue",
        "check_name": item.code,
        "description": text,
        "categories": ["Compatibility"],
        "severity": _SEVERITIES[item.level],
        "fingerprint": item.fingerprint,
        "location": {
            "path": file[0].removeprefix("./") if file is not None and ours else NOWHERE,
            "lines": {"begin": (item.line or 1) if ours else 1},
        },
    }
