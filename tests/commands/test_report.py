"""``report``: shown, then written, and of use to whoever gets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ideepdoctor.commands.report import ReportOptions, report
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import CountingSystem

HOST = str(Path(__file__).parents[1] / "hosts" / "py311-nothing.json")


def run(folder: Path, share: str | None = None, agrees=lambda _report: True, facts: str = HOST):
    session = Session(CountingSystem(), {"HOME": "/home/janedoe"}, str(folder), Quiet(), agrees)
    return report(session, ReportOptions(TargetOptions(), facts, share))


def test_findings_and_facts_are_one_text(tmp_path):
    text = run(tmp_path).text
    assert "IDP201" in text
    facts = json.loads(text.split("```json\n")[1].split("```")[0])
    assert facts["schema"] == "ideepdoctor-facts"
    assert list(tmp_path.iterdir()) == []


def test_it_is_shown_before_it_is_written_and_what_is_written_is_what_was_shown(tmp_path):
    shown = []
    run(tmp_path, "mine.md", lambda asked: shown.append(asked.body) or not (tmp_path / "mine.md").exists())
    assert "\n".join(shown[0]) + "\n" == (tmp_path / "mine.md").read_text("utf-8")


def test_a_file_of_json_is_facts_that_can_be_judged(tmp_path):
    run(tmp_path, "mine.json")
    assert load_facts(str(tmp_path / "mine.json")).python.version == load_facts(HOST).python.version


def test_who_does_not_agree_gets_no_file(tmp_path):
    assert run(tmp_path, "mine.md", lambda _report: False).text == "nothing was written\n"
    assert list(tmp_path.iterdir()) == []


def test_where_nobody_can_be_asked_nothing_is_written(tmp_path):
    def nobody(_report):
        raise UsageError("nobody")

    with pytest.raises(UsageError) as caught:
        run(tmp_path, "mine.md", nobody)
    assert "--yes" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_one_error(tmp_path):
    with pytest.raises(UsageError, match="cannot write"):
        run(tmp_path, "no/such/folder/mine.md")
