"""A report's status and exit code."""

from __future__ import annotations

import pytest

from ideepdoctor.errors import Exit
from ideepdoctor.model.findings import Finding, Judgement, NotKnown, Severity, Skipped
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn, Status, summarize


def finding(severity: Severity) -> Finding:
    return Finding("IDP305", severity, "title", "found", "needed", "consequence", "next")


def report(*severities: Severity, unknown: int = 0) -> Report:
    undecided = tuple(NotKnown(f"IDP10{n}", "title", "not readable") for n in range(unknown))
    judgement = Judgement(tuple(finding(item) for item in severities), (Skipped("IDP310", "IDP305"),), undecided)
    return Report("diagnose", judgement=judgement)


@pytest.mark.parametrize(
    ("severities", "unknown", "fail_on", "status", "code"),
    [
        ((), 0, FailOn.ERROR, Status.HEALTHY, Exit.OK),
        ((Severity.INFO,), 0, FailOn.WARNING, Status.HEALTHY, Exit.OK),
        ((Severity.WARNING,), 0, FailOn.ERROR, Status.FINDINGS, Exit.OK),
        ((Severity.WARNING,), 0, FailOn.WARNING, Status.FINDINGS, Exit.FINDINGS),
        ((Severity.ERROR,), 0, FailOn.ERROR, Status.FINDINGS, Exit.FINDINGS),
        ((Severity.ERROR,), 0, FailOn.NEVER, Status.FINDINGS, Exit.OK),
        ((), 1, FailOn.ERROR, Status.UNKNOWN, Exit.COULD_NOT_CHECK),
        ((), 1, FailOn.NEVER, Status.UNKNOWN, Exit.OK),
        ((Severity.ERROR,), 1, FailOn.ERROR, Status.FINDINGS, Exit.FINDINGS),
    ],
)
def test_status_and_exit_code(severities, unknown, fail_on, status, code):
    summary = summarize(report(*severities, unknown=unknown), fail_on)
    assert (summary.status, summary.exit_code) == (status, code)
    assert summary.errors == severities.count(Severity.ERROR)
    assert summary.unknown == unknown


def test_a_failure_decides_the_exit_code_whatever_was_found():
    failed = Report(
        "setup", judgement=report(Severity.ERROR).judgement, failure=Failure("busy", "busy", "", int(Exit.BUSY))
    )
    assert summarize(failed).exit_code == Exit.BUSY
    assert summarize(failed).status is Status.FAILED
