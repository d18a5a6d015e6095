"""What a report comes to: its status and the exit code that goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ideepdoctor.errors import Exit
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Judgement, Severity
from ideepdoctor.model.report import Report


class Status(StrEnum):
    """One word for a report."""

    HEALTHY = "healthy"
    FINDINGS = "findings"
    UNKNOWN = "unknown"
    FAILED = "failed"


class FailOn(StrEnum):
    """The mildest severity that makes a command end with 1."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"

    def reached_by(self, severity: Severity) -> bool:
        """Whether a finding of this severity counts."""
        counting = {FailOn.ERROR: (Severity.ERROR,), FailOn.WARNING: (Severity.ERROR, Severity.WARNING)}
        return severity in counting.get(self, ())


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts, status and exit code of a report."""

    status: Status
    errors: int
    warnings: int
    infos: int
    skipped: int
    unknown: int
    exit_code: int


def versions(facts: Facts) -> str:
    """``Python 3.7.16, Chainer 7.8.1, ideep4py 2.0.0.post3, NumPy 1.21.6``, as far as installed."""
    names = (("chainer", "Chainer"), ("ideep4py", "ideep4py"), ("numpy", "NumPy"))
    found = [(shown, facts.package(name)) for name, shown in names]
    parts = [f"{shown} {package.version}" for shown, package in found if package is not None]
    return ", ".join([f"Python {facts.python.version}", *parts])


def summarize(report: Report, fail_on: FailOn = FailOn.ERROR) -> Summary:
    """Count a report and decide its exit code.

    Args:
        report: what a command found.
        fail_on: the mildest severity that counts.

    Returns:
        The summary. Undecided rules never count as healthy: the status is then ``unknown``, and with no finding that
        counts the exit code is 3 (could not check), unless ``fail_on`` is never.
    """
    judgement = report.judgement or Judgement()
    counts = {severity: sum(1 for item in judgement.findings if item.severity is severity) for severity in Severity}
    if report.failure is not None:
        status, code = Status.FAILED, report.failure.exit_code
    elif any(fail_on.reached_by(item.severity) for item in judgement.findings):
        status, code = Status.FINDINGS, int(Exit.FINDINGS)
    elif judgement.unknown:
        status, code = Status.UNKNOWN, int(Exit.OK if fail_on is FailOn.NEVER else Exit.COULD_NOT_CHECK)
    elif counts[Severity.ERROR] or counts[Severity.WARNING]:
        status, code = Status.FINDINGS, int(Exit.OK)
    else:
        status, code = Status.HEALTHY, int(Exit.OK)
    return Summary(
        status=status,
        errors=counts[Severity.ERROR],
        warnings=counts[Severity.WARNING],
        infos=counts[Severity.INFO],
        skipped=len(judgement.skipped),
        unknown=len(judgement.unknown),
        exit_code=code,
    )
