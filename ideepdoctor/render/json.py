"""The JSON envelope that every command prints with ``--format json``; its schema is report.schema.json."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.model.accept import fingerprints
from ideepdoctor.model.findings import Finding, Judgement
from ideepdoctor.model.plan import Plan
from ideepdoctor.model.report import REPORT_SCHEMA, REPORT_SCHEMA_VERSION, Report
from ideepdoctor.model.summary import FailOn, summarize

TARGET_PACKAGES = ("chainer", "ideep4py", "numpy")


def envelope(report: Report, fail_on: FailOn = FailOn.ERROR) -> dict[str, Any]:
    """Turn a report into the envelope, JSON-ready.

    Args:
        report: what a command found, planned, did and proved.
        fail_on: decides ``summary.exit_code``.
    """
    judgement = report.judgement or Judgement()
    return {
        "schema": REPORT_SCHEMA,
        "schema_version": REPORT_SCHEMA_VERSION,
        "tool": {"name": "ideepdoctor", "version": __version__, "command": report.command},
        "target": _target(report),
        "summary": asdict(summarize(report, fail_on)),
        "findings": [
            {**_finding(item), "fingerprint": digest}
            for item, digest in zip(judgement.findings, fingerprints(judgement.findings, report.project), strict=True)
        ],
        "skipped": [asdict(item) for item in judgement.skipped],
        "unknown": [
            {**asdict(item), "fingerprint": digest}
            for item, digest in zip(judgement.unknown, fingerprints(judgement.unknown, report.project), strict=True)
        ],
        "suppressed": [asdict(item) for item in judgement.suppressed],
        "plan": None if report.plan is None else plan_as_data(report.plan),
        "proof": None if report.smoke is None else asdict(report.smoke),
        "error": None if report.failure is None else asdict(report.failure),
        **report.extra,
    }


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """One JSON document: sorted keys, two spaces, no trailing newline."""
    return document(envelope(report, fail_on))


def document(data: Any) -> str:
    """JSON text of JSON-ready data: sorted keys, two spaces; numbers that JSON lacks (inf, nan) become null."""
    return json.dumps(_finite(data), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def plan_as_data(plan: Plan) -> dict[str, Any]:
    """A plan as JSON-ready data: every step with its kind, title and reversibility."""
    steps = [{**asdict(step), "title": step.title, "reversible": str(step.reversible)} for step in plan.steps]
    return {"title": plan.title, "treats": list(plan.treats), "steps": steps}


def _finding(item: Finding) -> dict[str, Any]:
    return {
        "code": item.code,
        "severity": str(item.severity),
        "title": item.title,
        "found": item.found,
        "needed": item.needed,
        "consequence": item.consequence,
        "evidence": [asdict(seen) for seen in item.evidence],
        "treatment": {"safety": str(item.fix), "next_step": item.next_step, "explain": item.explain},
    }


def _target(report: Report) -> dict[str, Any] | None:
    facts = report.facts
    if facts is None:
        return None
    versions = {name: None if (found := facts.package(name)) is None else found.version for name in TARGET_PACKAGES}
    return {
        **asdict(facts.target),
        "version": facts.python.version,
        "abi": facts.python.abi,
        "kind": facts.python.kind,
        "packages": versions,
        "collected_at": facts.collected_at,
        "mode": facts.mode,
    }
