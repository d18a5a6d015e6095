"""The table of what is detected: every name in it exists, and every rule is in it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs.generate.coverage import HOW, STAGES, Check, Failure, checks, failures, own, pages
from docs.generate.symptoms import signatures, signs
from docs.generate.words import Words
from ideepdoctor.rules import RULES
from ideepdoctor.rules.explain import EVERYTHING

ROOT = Path(__file__).parents[2]
CODES = frozenset(rule.code() for rule in EVERYTHING)


@cache
def functions(path: str) -> frozenset[str]:
    """The tests that a file defines."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.name)
def test_an_entry_is_whole_and_what_it_names_exists(failure: Failure) -> None:
    assert re.fullmatch(r"F\d\d", failure.name)
    assert failure.title and failure.sources
    assert (failure.stage in STAGES, failure.how in HOW) == (True, True)
    assert set(failure.codes) <= CODES
    assert failure.codes or failure.outside, "neither a rule nor a reason"
    assert failure.tests
    for test in failure.tests:
        path, _, name = test.partition("::")
        assert (ROOT / path).is_file(), path
        assert name.startswith("test_") and name in functions(path), test


@pytest.mark.parametrize("failure", [item for item in failures() if item.codes], ids=lambda failure: failure.name)
def test_what_was_shown_for_real_has_a_test_that_runs_the_real_thing(failure: Failure) -> None:
    if failure.how in ("real", "emulated"):
        assert any(test.startswith("tests/e2e/") for test in failure.tests) or failure.name in ELSEWHERE


ELSEWHERE: dict[str, str] = {}
"""Entries whose real test is not in tests/e2e, and where it is."""


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
def test_a_check_names_codes_that_exist(check: Check) -> None:
    assert check.title and check.codes
    assert set(check.codes) <= CODES


def test_no_name_is_missing() -> None:
    assert [check.name for check in sorted(checks(), key=lambda check: check.name)] == [
        f"C{n:02}" for n in range(1, 26)
    ]
    assert [item.name for item in failures()] == sorted(item.name for item in failures())
    assert len(failures()) >= 73


def test_every_rule_is_named_by_a_report_or_was_found_here() -> None:
    reported = {code for failure in failures() for code in failure.codes}
    rules = {rule.code() for rule in RULES}
    assert rules - reported - set(own()) == set(), "name it in docs/failures.toml or docs/own.toml"
    assert set(own()) - rules == set()
    assert set(own()) & reported == set(), "it is in both"


def test_texts_are_of_entries_and_codes_that_exist_and_the_two_agree() -> None:
    named = {failure.name: failure for failure in failures()}
    for signature in signatures():
        assert signature["code"] in CODES, signature
        assert not signature["entry"].startswith("F") or signature["entry"] in named, signature
    # A text that several faults make is of each of their entries; it is called by the likeliest.
    for signature in signatures():
        text = signature["text"]
        alike = [other["entry"] for other in signatures() if text in other["text"] or other["text"] in text]
        codes = {code for entry in alike for code in codes_of(entry)}
        assert signature["code"] in codes or not codes_of(signature["entry"]), signature


def codes_of(entry: str) -> tuple[str, ...]:
    """The codes of an entry; of hazards and measured ends, which have none here, nothing."""
    return next((failure.codes for failure in failures() if failure.name == entry), ())


def test_signs_are_of_stages_and_codes_that_exist() -> None:
    for sign in signs():
        assert sign["stage"] in STAGES
        assert sign["codes"] and set(sign["codes"]) <= CODES, sign


def test_the_page_has_every_entry_with_links_and_the_totals() -> None:
    page = pages(Words("en"))["coverage.md"]
    inside = [item for item in failures() if not item.outside]
    assert f"**Detected: {len(inside)} / {len(inside)}**" in page
    for failure in failures():
        assert f"({failure.name.lower()})=\n### {failure.name}: " in page
        for code in failure.codes:
            assert f"[{code}](rules/{code}.md)" in page
    for check in checks():
        assert f"| {check.name} | " in page
