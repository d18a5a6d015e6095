"""The engine: four outcomes, gates, the filter, and rules that fail themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, NotKnown, Severity, Skipped
from ideepdoctor.rules.base import Rule, Unknown
from ideepdoctor.rules.engine import judge
from tests.rules.hosts import facts_on

FACTS = facts_on("py37-healthy")


def rule(
    name: str,
    *says: Severity,
    requires: tuple[str, ...] = (),
    raises: Exception | None = None,
    severity: Severity = Severity.ERROR,
) -> type[Rule]:
    """A rule that yields findings of these severities, then raises."""

    def check(self: Rule, facts: Facts) -> Iterator[Finding]:
        assert facts is FACTS
        for number, mild in enumerate(says):
            yield self.finding(found=f"{number}", needed="n", consequence="c", next_step="s", severity=mild)
        if raises is not None:
            raise raises

    return type(name, (Rule,), {"title": f"title {name}", "severity": severity, "requires": requires, "check": check})


def test_four_outcomes():
    judgement = judge(
        FACTS,
        [
            rule("R1"),
            rule("R2", Severity.ERROR),
            rule("R3", requires=("R2",)),
            rule("R4", raises=Unknown("no file")),
        ],
    )
    assert judgement.ok == ("R1",)
    assert [finding.code for finding in judgement.findings] == ["R2"]
    assert judgement.skipped == (Skipped("R3", "R2"),)
    assert judgement.unknown == (NotKnown("R4", "title R4", "no file"),)


def test_a_rule_that_fails_is_unknown_and_the_others_still_run():
    judgement = judge(FACTS, [rule("R1", raises=KeyError("x")), rule("R2", Severity.ERROR)])
    assert judgement.unknown == (NotKnown("R1", "title R1", "the rule itself failed: KeyError: 'x'"),)
    assert [finding.code for finding in judgement.findings] == ["R2"]


@pytest.mark.parametrize("error", [Unknown("?"), ValueError("x")])
def test_findings_of_a_rule_that_then_fails_are_not_half_told(error: Exception):
    judgement = judge(FACTS, [rule("R1", Severity.ERROR, raises=error)])
    assert (judgement.findings, len(judgement.unknown), judgement.ok) == ((), 1, ())


def test_a_skip_goes_down_the_chain_and_names_the_nearest_cause():
    chain = [
        rule("R1", Severity.WARNING),
        rule("R2", Severity.ERROR, requires=("R1",)),
        rule("R3", requires=("R2",)),
        rule("R4", requires=("R0", "R3")),
    ]
    judgement = judge(FACTS, chain)
    assert judgement.skipped == (Skipped("R2", "R1"), Skipped("R3", "R2"), Skipped("R4", "R3"))
    assert [finding.code for finding in judgement.findings] == ["R1"]


def test_unknown_stops_what_rests_on_it():
    judgement = judge(FACTS, [rule("R1", raises=Unknown("?")), rule("R2", requires=("R1",))])
    assert judgement.skipped == (Skipped("R2", "R1"),)
    assert judgement.ok == ()


def test_a_note_stops_nothing_and_is_not_ok():
    judgement = judge(FACTS, [rule("R1", Severity.INFO), rule("R2", requires=("R1",))])
    assert judgement.ok == ("R2",)
    assert judgement.skipped == ()
    assert judgement.worst() is Severity.INFO


def test_a_note_beside_a_warning_stops_what_rests_on_it():
    judgement = judge(FACTS, [rule("R1", Severity.INFO, Severity.WARNING), rule("R2", requires=("R1",))])
    assert judgement.skipped == (Skipped("R2", "R1"),)


def test_findings_are_sorted_by_severity_then_code():
    rules = [
        rule("R3", Severity.WARNING),
        rule("R2", Severity.INFO, Severity.ERROR),
        rule("R4", Severity.ERROR),
        rule("R1", Severity.WARNING),
    ]
    judgement = judge(FACTS, rules)
    assert [(item.severity.value, item.code) for item in judgement.findings] == [
        ("error", "R2"),
        ("error", "R4"),
        ("warning", "R1"),
        ("warning", "R3"),
        ("info", "R2"),
    ]
    assert judgement.worst() is Severity.ERROR


def test_the_filter_hides_and_does_not_let_pass():
    rules = [
        rule("R1", Severity.ERROR),
        rule("R2", requires=("R1",)),
        rule("R3"),
        rule("R4", raises=Unknown("?")),
        rule("R5", Severity.ERROR),
    ]
    assert judge(FACTS, rules, frozenset({"R2"})).skipped == (Skipped("R2", "R1"),)
    assert judge(FACTS, rules, frozenset({"R2"})).findings == ()
    assert judge(FACTS, rules, frozenset({"R3"})).ok == ("R3",)
    assert [item.code for item in judge(FACTS, rules, frozenset({"R5"})).findings] == ["R5"]
    assert [item.code for item in judge(FACTS, rules, frozenset({"R4"})).unknown] == ["R4"]
    nothing = judge(FACTS, rules, frozenset())
    assert (nothing.findings, nothing.skipped, nothing.unknown, nothing.ok) == ((), (), (), ())
    assert nothing.worst() is None


def test_a_finding_has_the_severity_of_its_rule_unless_it_names_its_own():
    plain = rule("R1", severity=Severity.WARNING)()
    finding = plain.finding(found="f", needed="n", consequence="c", next_step="s")
    assert (finding.code, finding.severity, finding.title) == ("R1", Severity.WARNING, "title R1")
    assert finding.explain == "ideepdoctor explain R1"
