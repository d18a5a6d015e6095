"""SARIF 2.1.0: for code scanning and whatever else reads static analysis results."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from ideepdoctor import __version__
from ideepdoctor.model.findings import Suppressed
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.render.problems import Level, Problem, file_of, problems, subject
from ideepdoctor.rules.explain import EVERYTHING, document

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
"""Stands for the top of the project, which another checkout has elsewhere."""
_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """One SARIF log with one run.

    Findings are results; rules that could not be decided, and an error that ended the command, are notifications of
    the invocation, which ``executionSuccessful`` and ``exitCode`` sum up.
    """
    found = problems(report)
    results = [item for item in found if item.level in _LEVELS]
    known = [item for item in report.judgement.suppressed if item.severity] if report.judgement else []
    codes = [item.code for item in found if item.level is not Level.FAILED]
    order = list(dict.fromkeys([*codes, *(item.code for item in known)]))
    summary = summarize(report, fail_on)
    invocation: dict[str, Any] = {
        "executionSuccessful": report.failure is None,
        "exitCode": summary.exit_code,
        "toolExecutionNotifications": [_notification(item) for item in found if item.level not in _LEVELS],
        "properties": {"command": report.command, "status": str(summary.status)},
    }
    run = {
        "tool": {"driver": {"name": "ideepdoctor", "version": __version__, "rules": [_rule(code) for code in order]}},
        "invocations": [invocation],
        "results": [
            *(_result(item, order.index(item.code), report) for item in results),
            *(_accepted(item, order.index(item.code)) for item in known),
        ],
        "columnKind": "unicodeCodePoints",
    }
    if report.project is not None and report.project.root:
        run["originalUriBaseIds"] = {ROOT: {"uri": f"{uri(report.project.root)}/"}}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, sort_keys=True, indent=2, ensure_ascii=False)


def uri(path: str) -> str:
    """A path as a URI reference: absolute ones as ``file:``, relative ones as they are."""
    quoted = quote(path.encode("utf-8", "surrogateescape"))
    return f"file://{quoted}" if path.startswith("/") else quoted


def _rule(code: str) -> dict[str, Any]:
    rule = next((item for item in EVERYTHING if item.code() == code), None)
    if rule is None:
        return {"id": code}
    text = document(rule)
    summary = next(line for line in (rule.__doc__ or rule.title).splitlines() if line.strip())
    return {
        "id": code,
        "name": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": summary.strip()},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": _LEVELS[Level(rule.severity)]},
    }


def _result(item: Problem, index: int, report: Report) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": subject(report), "kind": "module"}]}
    file = file_of(item, report)
    if file is not None:
        path, ours = file
        physical: dict[str, Any] = {"artifactLocation": {"uri": uri(path), **({"uriBaseId": ROOT} if ours else {})}}
        if item.line is not None:
            physical["region"] = {"startLine": item.line, **({"startColumn": item.column} if item.column else {})}
        location["physicalLocation"] = physical
    return {
        "ruleId": item.code,
        "ruleIndex": index,
        "level": _LEVELS[item.level],
        "message": {"text": f"{item.message} Next: {item.do}" if item.do else item.message},
        "locations": [location],
        "partialFingerprints": {"ideepdoctor/v1": item.fingerprint},
    }


def _accepted(item: Suppressed, index: int) -> dict[str, Any]:
    return {
        "ruleId": item.code,
        "ruleIndex": index,
        "level": _LEVELS[Level(item.severity or "info")],
        "message": {"text": f"{item.title}: {item.found}"},
        "partialFingerprints": {"ideepdoctor/v1": item.fingerprint},
        "suppressions": [{"kind": "external", "status": "accepted", "justification": item.reason}],
    }


def _notification(item: Problem) -> dict[str, Any]:
    text = f"{item.message}\n{item.do}".strip()
    about = {} if item.level is Level.FAILED else {"associatedRule": {"id": item.code}}
    level = "error" if item.level is Level.FAILED else "warning"
    return {"level": level, "message": {"text": text}, "descriptor": {"id": item.code}, **about}
