"""A report in the language in use, for the formats that people read as documents (Markdown, HTML). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ideepdoctor.locale import tr, translating
from ideepdoctor.model.findings import Evidence, Finding, Judgement
from ideepdoctor.model.report import Report


def localized(report: Report) -> Report:
    """The report with what people read translated; codes, paths, commands and numbers as they are."""
    if not translating():
        return report
    failure = report.failure
    if failure is not None:
        hint = "\n".join(tr(line) for line in failure.hint.split("\n"))
        failure = replace(failure, message=tr(failure.message), hint=hint)
    judgement = None if report.judgement is None else _judgement(report.judgement)
    return replace(report, judgement=judgement, failure=failure, extra=_extra(report.extra))


def _judgement(judged: Judgement) -> Judgement:
    return replace(
        judged,
        findings=tuple(_finding(item) for item in judged.findings),
        unknown=tuple(replace(item, title=tr(item.title), reason=tr(item.reason)) for item in judged.unknown),
        suppressed=tuple(replace(item, title=tr(item.title), found=tr(item.found)) for item in judged.suppressed),
    )


def _finding(item: Finding) -> Finding:
    return replace(
        item,
        title=tr(item.title),
        found=tr(item.found),
        needed=tr(item.needed),
        consequence=tr(item.consequence),
        next_step=tr(item.next_step),
        evidence=tuple(Evidence(tr(seen.text), seen.path, seen.command) for seen in item.evidence),
    )


def _extra(extra: Mapping[str, Any]) -> dict[str, Any]:
    told = dict(extra)
    if verdict := told.get("verdict"):
        told["verdict"] = tr(str(verdict))
    if steps := told.get("next"):
        told["next"] = [tr(str(step)) for step in steps]
    return told
