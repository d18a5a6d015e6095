"""A report as a page: findings first, nothing from outside, nothing that a text can break."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.model.findings import Judgement
from ideepdoctor.model.plan import CreateEnv, Plan
from ideepdoctor.model.report import Report
from ideepdoctor.render.html import render
from tests.render.test_formats import facts, finding, report, reports


class Read(HTMLParser):
    """Elements in order, and the text of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self._open[-1] if self._open else "", data))

    def all(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def read(made: Report) -> Read:
    parser = Read()
    parser.feed(render(made))
    assert parser._open == []
    return parser


@pytest.mark.parametrize("kind", list(reports()))
def test_every_page_is_whole_and_loads_nothing(kind):
    page = read(reports()[kind])
    tags = [tag for tag, _ in page.found]
    for once in ("html", "head", "title", "main", "h1", "header", "footer"):
        assert tags.count(once) == 1
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.found:
        for name in ("src", "href", "action"):
            named = attributes.get(name) or "data:,"
            assert named == "data:," or (named.startswith("#") and named[1:] in ids)
    assert "url(" not in render(reports()[kind])
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_findings_come_first_and_say_everything():
    page = read(reports()["findings"])
    assert page.all("h2")[0] == "Findings"
    classes = [attributes["class"] for tag, attributes in page.found if tag == "article"]
    assert classes == ["error", "warning", "info"]
    assert {"found", "needed", "so", "next", "more"} <= set(page.all("dt"))
    assert "ideepdoctor explain IDP305" in page.all("code")
    assert any("IDP601 because of IDP305" in text for text in page.all("dd"))
    assert "Faults were found. 1 error, 1 warning, 1 note. Exit code 1." in page.all("p")


def test_the_search_is_there_where_there_is_something_to_search():
    assert "script" not in [tag for tag, _ in read(reports()["nothing"]).found]
    found = read(reports()["findings"]).found
    assert [attributes.get("for") for tag, attributes in found if tag == "label"] == ["words"]
    assert any(tag == "input" and attributes.get("id") == "words" for tag, attributes in found)


def test_a_plan_and_the_packages_are_tables_with_headers():
    plan = Plan("a new one", (CreateEnv("/env", "/usr/bin/python3.7", "uv"),))
    page = read(Report("setup", facts=facts(), plan=plan))
    heads = [attributes.get("scope") for tag, attributes in page.found if tag == "th"]
    assert heads and set(heads) == {"col"}
    assert "full" in page.all("td") and "numpy" in page.all("td")


@given(st.text(min_size=1))
def test_no_text_becomes_markup(text):
    made = report(judgement=Judgement((finding(found=f"<script>x</script>{text}", do=f'"><img src=x>{text}'),)))
    page = read(made)
    assert [tag for tag, _ in page.found].count("script") == 1
    assert "img" not in [tag for tag, _ in page.found]


def test_two_findings_of_one_rule_and_one_cure_keep_their_own_words():
    both = Judgement((finding(found="the first", path=None), finding(found="the second", path=None)))
    said = read(report(judgement=both)).all("dd")
    assert "the first" in said and "the second" in said
