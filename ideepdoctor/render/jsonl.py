"""JSON Lines: a record a line, for logs and for whoever reads many reports one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.render.problems import problems, subject


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """A line ``{"record": "problem", ...}`` for each problem, then one ``{"record": "summary", ...}``."""
    return "\n".join(json.dumps(item, sort_keys=True, ensure_ascii=False) for item in _records(report, fail_on))


def _records(report: Report, fail_on: FailOn) -> Iterator[dict[str, Any]]:
    about = {"command": report.command, "subject": subject(report)}
    for item in problems(report):
        yield {"record": "problem", **about, **asdict(item)}
    for known in () if report.judgement is None else report.judgement.suppressed:
        yield {"record": "accepted", **about, **asdict(known)}
    yield {"record": "summary", "tool_version": __version__, **about, **asdict(summarize(report, fail_on))}
