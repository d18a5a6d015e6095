"""What the checks say together of what was seen."""

from __future__ import annotations

from ideepdoctor.model.findings import Finding, Judgement, NotKnown, Severity
from ideepdoctor.model.own import Own
from ideepdoctor.rules.base import Unknown
from ideepdoctor.selftest.base import SelfCheck
from ideepdoctor.selftest.files import IDP091, IDP092, IDP093, IDP094
from ideepdoctor.selftest.works import IDP095, IDP096, IDP097, IDP098, IDP099

SELF_CHECKS: tuple[type[SelfCheck], ...] = (
    IDP091,
    IDP092,
    IDP093,
    IDP094,
    IDP095,
    IDP096,
    IDP097,
    IDP098,
    IDP099,
)


def judge(own: Own) -> Judgement:
    """Apply every check to what was seen."""
    findings: list[Finding] = []
    unknown: list[NotKnown] = []
    passed: list[str] = []
    for kind in SELF_CHECKS:
        try:
            seen = list(kind().check(own))
        except Unknown as reason:
            unknown.append(NotKnown(kind.code(), kind.title, str(reason)))
            continue
        findings += seen
        if not seen:
            passed.append(kind.code())
    order = list(Severity)
    findings.sort(key=lambda item: (order.index(item.severity), item.code))
    return Judgement(tuple(findings), unknown=tuple(unknown), ok=tuple(passed))
