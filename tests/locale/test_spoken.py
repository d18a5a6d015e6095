"""What is really said is in Japanese: each finding of each bad example, each rule's page, each page of --help."""

from __future__ import annotations

import re

import pytest

from ideepdoctor import locale
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.locale import tr
from ideepdoctor.rules import RULES
from ideepdoctor.rules.explain import EVERYTHING, document
from tests.lint.sources import found as lint_found
from tests.locale.test_catalogues import english
from tests.rules.test_examples import facts_of

QUOTED = re.compile(r"(行目|桁|失敗します): .*", re.DOTALL)
"""What a compiler, a program or Python said is shown as it said it."""
NAMES = re.compile(r"power of an array|relu of infinity")
"""Of tests; they are typed after --ops, too."""
SPOKEN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def japanese():
    before = list(locale._translate)
    locale.use("ja")
    yield
    locale._translate[:] = before


def left(text: str) -> list[str]:
    """What is still English in a text that a person is told."""
    return english(NAMES.sub("", QUOTED.sub("", tr(text))))


def said_of(finding):
    yield from (finding.title, finding.found, finding.needed, finding.consequence, finding.next_step)
    yield from (seen.text for seen in finding.evidence)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code())
def test_each_finding_is_told_in_japanese(rule):
    wrong = [
        (text, tr(text))
        for example in rule.bad
        for finding in rule().check(facts_of(example))
        for text in said_of(finding)
        if left(text)
    ]
    assert not wrong


@pytest.mark.parametrize(
    "check", [each for each in LINT_CHECKS if each.code() != "IDP900"], ids=lambda each: each.code()
)
def test_each_remark_on_a_program_is_told_in_japanese(check):
    wrong = [
        (text, tr(text))
        for sample in check.bad
        for item in lint_found(sample.source, sample.file)
        for text in said_of(item.finding)
        if left(text)
    ]
    assert not wrong


@pytest.mark.parametrize("rule", EVERYTHING, ids=lambda rule: rule.code())
def test_each_page_of_a_rule_is_in_japanese(rule):
    page = re.sub(r"```python.*?```", "", document(rule, tr), flags=re.DOTALL)
    wrong = [line for line in page.splitlines() if english(line)]
    assert not wrong
    assert len(SPOKEN.findall(page)) > 80


def test_each_page_of_help_is_in_japanese():
    from typer.main import get_command

    from ideepdoctor.cli import app
    from ideepdoctor.cli_help import Context

    wrong = []

    def look(command, parent, name):
        context = Context(command, parent=parent, info_name=name)
        text = re.sub(r"\[(env var|default|環境変数|既定値)[^\]]*\]", "", command.get_help(context))
        wrong.extend((name, line) for line in text.splitlines() if english(line) and "Usage" not in line)
        for each in getattr(command, "commands", {}):
            look(command.commands[each], context, each)

    look(get_command(app), None, "ideepdoctor")
    assert not wrong


def report_of(host):
    from ideepdoctor.model.report import Report
    from ideepdoctor.rules.base import Example
    from ideepdoctor.rules.engine import judge

    facts = facts_of(Example("x", {"packages": {"numpy": "1.15.4"}}, host=host))
    return Report("diagnose", facts=facts, judgement=judge(facts, RULES))


def test_pages_and_tables_are_in_japanese():
    from ideepdoctor.render import html, markdown

    page = html.render(report_of("py37-healthy"))
    assert '<html lang="ja">' in page
    text = re.sub(r"<(style|script|code).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert not [line for line in text.splitlines() if english(line)]
    assert "現状" in text
    assert "NumPy がこの ideep4py に合わない" in text
    table = markdown.render(report_of("py37-healthy"))
    assert not [line for line in table.splitlines() if english(re.sub(r"`[^`]*`", "", line))]
    assert "必要" in table


def test_what_machines_read_stays_english():
    from ideepdoctor.options import Format
    from ideepdoctor.render.formats import renderer

    report = report_of("py37-healthy")
    for form in Format:
        if form in (Format.TEXT, Format.MARKDOWN, Format.HTML):
            continue
        told = renderer(form)(report)
        assert not SPOKEN.search(told), form
        assert "IDP305" in told


def test_a_terminal_of_80_columns_is_enough():
    from io import StringIO

    from rich.cells import cell_len

    from ideepdoctor.render.text import console, render

    stream = StringIO()
    to = console(file=stream)
    to.width = 80
    render(report_of("py37-healthy"), to, details=True)
    lines = stream.getvalue().splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert sum(bool(SPOKEN.search(line)) for line in lines) > 5


def test_a_verdict_is_told_sentence_by_sentence():
    told = tr(
        "READY: Python 3.7.16, NumPy 1.21.6; iDeep is used (kernel jit, 2 threads). 38 of 38 checks are right, worst "
        "relative error 2.4e-06. The guard corrects what is known to be wrong with these releases. Convolution "
        "forward + backward: 3.7 times NumPy (3.7 to 5.0)."
    )
    assert told.startswith("準備完了: ")
    assert not english(told)
    assert told.index("3.7.16") < told.index("38") < told.index("2.4e-06") < told.index("ガード") < told.index("5.0")
