"""Every example of every rule: BAD gives that rule's finding and no other fault, OK gives none of it."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.model.plan import DisableLine, EditBlock, Install, RenameFile, SetRpath, WriteFile
from ideepdoctor.rules import BUILD_RULES, RULES
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.explain import HEADINGS, document
from ideepdoctor.rules.overlay import apply

HOSTS = Path(__file__).parents[1] / "hosts"
BUILDING = {*(rule.code() for rule in BUILD_RULES), "IDP820", "IDP824"}
CASES = [(rule, example, bad) for rule in RULES for bad in (False, True) for example in (rule.bad if bad else rule.ok)]


def facts_of(example: Example):
    return facts_from_json(apply(json.loads((HOSTS / f"{example.host}.json").read_text("utf-8")), example.overlay))


def label(case: object) -> str:
    if isinstance(case, Example):
        return case.name.replace(" ", "-")
    return case.code() if inspect.isclass(case) else ("bad" if case else "ok")


@pytest.mark.parametrize(("rule", "example", "bad"), CASES, ids=label)
def test_example(rule: type[Rule], example: Example, bad: bool):
    facts = facts_of(example)
    alone = list(rule().check(facts))
    assert {finding.code for finding in alone} == ({rule.code()} if bad else set())
    together = judge(facts, RULES)
    if bad:
        faults = {f.code for f in together.findings if f.severity is not Severity.INFO}
        assert faults <= {rule.code(), *example.also}, together.findings
        assert rule.code() in {f.code for f in together.findings}
    for finding in alone:
        assert all((finding.found, finding.needed, finding.consequence, finding.next_step))
        assert finding.found.isascii()
        assert finding.next_step.isascii()


@pytest.mark.parametrize("host", ["py27-healthy", "py36-healthy", "py37-healthy"])
def test_a_healthy_machine_has_no_finding_and_nothing_unknown(host):
    facts = facts_of(Example("as recorded", host=host))
    judgement = judge(facts, RULES)
    assert (judgement.findings, judgement.unknown, judgement.skipped) == ((), (), ())
    # No build was asked for and nothing was built: those rules have no outcome, not even a good one.
    assert set(judgement.ok) == {rule.code() for rule in RULES} - BUILDING
    assert {rule.code() for rule in RULES if not rule().concerns(facts)} == BUILDING


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_a_rule_is_a_document(rule: type[Rule]):
    text = inspect.cleandoc(rule.__doc__ or "")
    assert [line for line in text.splitlines() if line in HEADINGS] == list(HEADINGS)
    assert len(rule.ok) >= 2
    assert len(rule.bad) >= 2
    assert not rule.title.endswith(".")
    assert document(rule).startswith(f"# {rule.code()}: {rule.title}\n")


def test_codes_are_unique_and_each_rule_stands_after_those_that_it_requires():
    seen: set[str] = set()
    for rule in RULES:
        assert rule.code() not in seen
        assert set(rule.requires) <= seen, rule.code()
        seen.add(rule.code())
    assert len(list((Path(inspect.getfile(RULES[0])).parent).glob("idp*.py"))) == len(RULES)


@pytest.mark.parametrize(("rule", "example", "bad"), [case for case in CASES if case[2]], ids=label)
def test_a_safe_treatment_has_steps_and_a_manual_one_needs_none(rule: type[Rule], example: Example, bad: bool):
    facts = facts_of(example)
    for finding in rule().check(facts):
        if finding.fix is FixSafety.MANUAL:
            continue
        steps = rule().treat(finding, facts)
        assert steps, finding
        assert all(
            isinstance(step, Install | WriteFile | EditBlock | RenameFile | SetRpath | DisableLine) for step in steps
        )
        for step in steps:
            if isinstance(step, Install):
                assert all(item.sha256 for item in step.requirements)
                assert facts.python.purelib in step.snapshot
