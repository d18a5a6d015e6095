"""Rules as documents, and how they are found."""

from __future__ import annotations

import json
import re

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.rules import RULES
from ideepdoctor.rules.explain import HEADINGS, document, find
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.idp305 import IDP305
from ideepdoctor.rules.idp505 import IDP505

CODES = [rule.code() for rule in RULES]


@pytest.mark.parametrize("word", ["IDP305", "idp305", " Idp305 ", "305"])
def test_a_rule_is_found_by_its_code_however_it_is_written(word: str):
    assert find(word) is IDP305


@pytest.mark.parametrize(("word", "near"), [("IDP350", "IDP3"), ("IDP30", "IDP30"), ("395", "IDP31")])
def test_a_code_that_does_not_exist_is_told_with_near_ones(word: str, near: str):
    with pytest.raises(UsageError, match=word) as caught:
        find(word)
    assert "did you mean" in caught.value.hint
    assert near in caught.value.hint
    assert "ideepdoctor explain" in caught.value.hint


def test_a_word_that_is_near_to_nothing_gets_the_list():
    with pytest.raises(UsageError) as caught:
        find("numpy")
    assert caught.value.hint == "All codes: ideepdoctor explain"


@pytest.mark.parametrize("code", CODES)
def test_a_document_has_its_sections_in_order_and_every_example(code: str):
    rule = find(code)
    text = document(rule)
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    see = ["See it yourself"] if hasattr(rule, "reproduction") else []
    assert headings == [*HEADINGS, *see, "Examples"]
    assert f"Severity: {rule.severity}. Treatment: {rule.fix}" in text
    for section in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert section.strip(), "an empty section"
    assert text.count("\n* found: ") == len(rule.bad)
    assert text.count("\n* fine: ") == len(rule.ok)
    assert text.endswith("\n")
    assert max(map(len, text.splitlines())) <= 250


@pytest.mark.parametrize("code", CODES)
def test_the_text_of_a_section_is_not_indented_as_code(code: str):
    text = re.sub(r"^```.*?^```", "", document(find(code)), flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"^    \S", text, re.MULTILINE)


def test_each_hazard_has_a_program_of_ten_lines_at_most():
    hazards = [rule for rule in RULES if issubclass(rule, HazardRule)]
    assert len(hazards) == 14
    for rule in hazards:
        lines = rule.reproduction.strip("\n").splitlines()
        assert 3 <= len(lines) <= 10, rule
        assert max(map(len, lines)) <= 120
        assert "\n".join(lines) in document(rule)


def test_what_a_rule_rests_on_is_said():
    assert f"looked at only where {', '.join(IDP505.requires)} hold" in document(IDP505)
    assert "looked at only" not in document(find("101"))


def test_an_example_shows_its_facts_and_names_its_host_where_it_changes_nothing():
    text = document(IDP305)
    overlay = json.dumps({"packages": {"numpy": "1.15.4"}}, sort_keys=True)
    assert f"* found: 1.15.4 on 3.7: `{overlay}`" in text
    assert "* fine: 1.21.6 on 3.7 (py37-healthy)" in text
