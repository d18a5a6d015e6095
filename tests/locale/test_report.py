"""A report in another language: what people read is told, what machines read is not."""

from __future__ import annotations

import pytest

from ideepdoctor import locale
from ideepdoctor.locale.report import localized
from ideepdoctor.locale.translate import Translator
from ideepdoctor.model.findings import Evidence, Finding, Judgement, NotKnown, Severity, Suppressed
from ideepdoctor.model.report import Failure, Report

FINDING = Finding(
    code="IDP305",
    severity=Severity.ERROR,
    title="it is old",
    found="version 1",
    needed="version 2",
    consequence="it fails",
    next_step="ideepdoctor fix",
    evidence=(Evidence("it is old", "/a/it is old", "it is old"),),
)
REPORT = Report(
    "diagnose",
    judgement=Judgement(
        (FINDING,),
        unknown=(NotKnown("IDP1", "it is old", "it fails"),),
        suppressed=(Suppressed("IDP2", None, "it is old", "it fails", "it fails", "f"),),
    ),
    failure=Failure("usage", "it fails", "it is old\nideepdoctor fix", 2, {"path": "it fails"}),
    extra={"verdict": "it fails", "next": ["it is old"], "count": 3},
)


@pytest.fixture
def japanese(monkeypatch):
    told = {"it is old": "古い", "it fails": "失敗します", "version {n}": "バージョン {n}"}
    monkeypatch.setattr(locale, "_translate", [Translator(told)])


def test_what_people_read_is_told(japanese):
    told = localized(REPORT)
    item = told.judgement.findings[0]
    assert (item.title, item.found, item.needed, item.consequence) == (
        "古い",
        "バージョン 1",
        "バージョン 2",
        "失敗します",
    )
    assert told.judgement.unknown[0].reason == "失敗します"
    assert told.judgement.suppressed[0].found == "失敗します"
    assert told.failure.message == "失敗します"
    assert told.failure.hint == "古い\nideepdoctor fix"
    assert told.extra == {"verdict": "失敗します", "next": ["古い"], "count": 3}


def test_codes_paths_commands_and_reasons_stay(japanese):
    told = localized(REPORT)
    item = told.judgement.findings[0]
    assert (item.code, item.next_step) == ("IDP305", "ideepdoctor fix")
    assert item.evidence == (Evidence("古い", "/a/it is old", "it is old"),)
    assert told.judgement.suppressed[0].reason == "it fails"  # a person wrote it
    assert told.failure.context == {"path": "it fails"}


def test_in_english_it_is_the_same_report():
    locale.use("en")
    assert localized(REPORT) is REPORT
