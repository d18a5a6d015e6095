"""The documents about what is said of a fleet."""

from __future__ import annotations

import re

import pytest

from ideepdoctor.fleet import outliers
from ideepdoctor.fleet.merge_pages import IDP003, IDP004, PAGES
from ideepdoctor.rules.explain import EVERYTHING, HEADINGS, document, find


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_found_by_its_code_and_has_its_sections(page):
    assert find(page.code()) is page
    text = document(page)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [*HEADINGS, "Examples"]
    assert text.count("\n* found: ") == len(page.bad) >= 1
    assert text.count("\n* fine: ") == len(page.ok) >= 1
    assert not re.search(r"^    \S", text, re.MULTILINE)


def test_no_two_documents_have_one_code():
    codes = [item.code() for item in EVERYTHING]
    assert len(codes) == len(set(codes))


def test_the_numbers_in_the_pages_are_those_that_decide():
    slow = document(IDP004)
    assert f"at least {outliers.FEWEST_TIMED} twins" in slow
    assert f"more than {outliers.ROBUST_DEVIATIONS} robust" in slow
    assert f"at least {100 * outliers.LEAST_LOSS:.0f} %" in slow
    assert str(outliers.MAD_TO_SIGMA) in slow
    odd = " ".join(document(IDP003).split())
    assert outliers.USUAL_SHARE == (2, 3) and "at least two thirds of them" in odd
    assert f"At least {outliers.FEWEST_ALIKE} twins are needed" in odd
