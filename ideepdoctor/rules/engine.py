"""Run rules over facts: ok, finding, skipped or unknown for each, in one pass."""

from __future__ import annotations

from collections.abc import Iterable

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Judgement, NotKnown, Severity, Skipped
from ideepdoctor.rules.base import Rule, Unknown
from ideepdoctor.trail import timed


def judge(facts: Facts, rules: Iterable[type[Rule]], wanted: frozenset[str] | None = None) -> Judgement:
    """Apply the rules in order.

    Args:
        facts: what is.
        rules: in an order in which each rule stands after those that it requires.
        wanted: codes to report; the others still run where a wanted rule requires them. None: all.

    Returns:
        The outcomes; findings sorted by severity, then code. A rule that raises is unknown, with the exception named;
        one that does not concern these facts has none.
    """
    findings: list[Finding] = []
    skipped: list[Skipped] = []
    unknown: list[NotKnown] = []
    ok: list[str] = []
    failed: set[str] = set()
    for rule in rules:
        code = rule.code()
        if not rule().concerns(facts):
            continue
        because = next((needed for needed in rule.requires if needed in failed), None)
        if because is not None:
            failed.add(code)
            skipped.append(Skipped(code, because))
            continue
        try:
            with timed("rule", code):
                seen = list(rule().check(facts))
        except Unknown as reason:
            failed.add(code)
            unknown.append(NotKnown(code, rule.title, str(reason)))
        except Exception as error:  # noqa: BLE001 - a broken rule must not hide what the others found
            failed.add(code)
            unknown.append(NotKnown(code, rule.title, f"the rule itself failed: {type(error).__name__}: {error}"))
        else:
            findings.extend(seen)
            if any(finding.severity is not Severity.INFO for finding in seen):
                failed.add(code)
            elif not seen:
                ok.append(code)
    order = list(Severity)
    findings.sort(key=lambda finding: (order.index(finding.severity), finding.code))
    return Judgement(
        findings=tuple(item for item in findings if wanted is None or item.code in wanted),
        skipped=tuple(item for item in skipped if wanted is None or item.code in wanted),
        unknown=tuple(item for item in unknown if wanted is None or item.code in wanted),
        ok=tuple(code for code in ok if wanted is None or code in wanted),
    )
