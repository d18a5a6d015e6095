"""The rule of the page on new rules is complete: what the page shows is run, and held to what every rule is held to."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.explain import HEADINGS, document
from tests.rules.hosts import HEALTHY, facts_on

PAGE = Path(__file__).parents[2] / "docs" / "en" / "new-rule.md"


def written() -> type[Rule]:
    """The class that the page defines."""
    [program] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, type[Rule]] = {}
    exec(compile(program, "new-rule.md", "exec"), names)
    return names["IDP999"]


RULE = written()


@pytest.mark.parametrize(
    ("example", "bad"), [(item, bad) for bad in (True, False) for item in (RULE.bad if bad else RULE.ok)]
)
def test_its_examples_hold_alone_and_among_all_rules(example: Example, bad: bool) -> None:
    facts = facts_on(example.host, example.overlay)
    assert [finding.code for finding in RULE().check(facts)] == (["IDP999"] if bad else [])
    judged = judge(facts, (*RULES, RULE))
    counting = [finding for finding in judged.findings if finding.severity is not Severity.INFO]
    assert [finding.code for finding in counting] == (["IDP999"] if bad else [])


def test_the_finding_is_the_one_that_the_page_promises() -> None:
    [finding] = RULE().check(facts_on("py37-healthy", RULE.bad[0].overlay))
    assert (finding.found, finding.next_step) == ("OMP_DISPLAY_ENV=true", "unset OMP_DISPLAY_ENV")


@pytest.mark.parametrize("host", HEALTHY)
def test_a_healthy_machine_stays_healthy(host: str) -> None:
    assert judge(facts_on(host), (*RULES, RULE)).findings == ()


def test_it_is_a_document_and_its_check_has_the_promised_length() -> None:
    assert re.findall(r"^## (.+)$", document(RULE), re.MULTILINE) == [*HEADINGS, "Examples"]
    assert inspect.cleandoc(RULE.__doc__ or "").splitlines()[0]
    body = re.search(r"    def check.*?(?=^```)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert body is not None
    assert len(body[0].strip().splitlines()) <= 10
