"""The page that ``--also markdown:"$GITHUB_STEP_SUMMARY"`` leaves in a job."""

from __future__ import annotations

from dataclasses import replace

from markdown_it import MarkdownIt

from ideepdoctor.commands.session import judge_all
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.render.markdown import render
from tests.recipes.clone import ROOT


def page(report: Report) -> str:
    return MarkdownIt("commonmark").enable("table").render(render(report))


def test_a_job_that_failed_before_any_finding_shows_why_and_what_to_do():
    hint = "needed: Python 3.7\nuse it:\n  ideepdoctor setup --python 3.7\n``` is no end"
    text = render(Report("setup", failure=Failure("not-possible-here", "no wheel for <cp39> | cp310", hint, 1)))
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<h2>") == 1 and "the command failed" in html
    assert "<strong>not-possible-here</strong>: no wheel for &lt;cp39&gt; | cp310" in html
    assert "<table>" not in html
    block = html.partition("<pre>")[2].partition("</pre>")[0]
    assert block.partition(">")[2].removesuffix("</code>") == hint + "\n"
    assert html.rstrip().endswith("</pre>")  # the block is closed: what another command writes below is text again


def test_a_failure_without_advice_has_no_empty_block():
    assert "<pre>" not in page(Report("setup", failure=Failure("interrupted", "interrupted", "", 130)))


def test_a_page_is_short_whatever_was_found():
    facts = load_facts(str(ROOT / "tests" / "hosts" / "py311-nothing.json"))
    judgement = judge_all(facts)
    [finding, *_] = judgement.findings
    many = tuple(replace(finding, found=f"file {number}") for number in range(450))
    html = page(Report("diagnose", facts=facts, judgement=replace(judgement, findings=many)))
    assert html.count("<tr>") == 1 + 200
    left = len(many) + len(judgement.unknown) - 200
    assert f"{left} problems more" in html
