"""A baseline and the settings of a project count for every command that judges an environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from ideepdoctor.options import Format, Output
from ideepdoctor.terminal import JUDGING, run
from tests.formats import READ
from tests.reports import FINDINGS, REPORTS


def told(name: str, capsysbinary: pytest.CaptureFixture[bytes], baseline: str | None = None) -> dict:
    output = Output(Format.JSON, baseline=baseline)
    with pytest.raises(typer.Exit) as ended:
        run(name, lambda _session: REPORTS[name](), output)
    document = READ[Format.JSON](capsysbinary.readouterr().out.decode("utf-8"))
    assert document["summary"]["exit_code"] == ended.value.exit_code
    return document


@pytest.mark.parametrize("name", sorted(JUDGING - {"tune"}))
def test_what_was_known_counts_no_more_and_is_listed(name, tmp_path: Path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IDEEPDOCTOR_SETTINGS", raising=False)
    first = told(name, capsysbinary)
    assert first["summary"]["exit_code"] == 1
    (tmp_path / "base.json").write_text(json.dumps(first))
    again = told(name, capsysbinary, "base.json")
    assert (again["summary"]["exit_code"], again["findings"], again["unknown"]) == (0, [], [])
    assert len(again["suppressed"]) == len(first["findings"]) + len(first["unknown"])
    assert again["baseline"]["met"] == again["baseline"]["known"] == 4
    assert again["baseline"]["doubts"] == []
    (tmp_path / "ideepdoctor.toml").write_text('[[ignore]]\ncode = "IDP305"\nreason = "it will do"\n')
    ignored = told(name, capsysbinary)
    assert [item["code"] for item in ignored["findings"]] == [item.code for item in FINDINGS[1:]]


def test_a_baseline_of_another_command_serves_as_far_as_it_goes(tmp_path: Path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.json").write_text(json.dumps(told("diagnose", capsysbinary)))
    document = told("smoke", capsysbinary, "base.json")
    assert document["summary"]["exit_code"] == 0
    assert document["baseline"]["doubts"] == []


def test_a_baseline_that_is_none_stops_the_command_before_it_begins(tmp_path: Path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.json").write_text("{")

    def begun(_session: object) -> None:
        raise AssertionError("it must not begin")

    with pytest.raises(typer.Exit) as ended:
        run("certify", begun, Output(Format.JSON, baseline="base.json"))
    assert ended.value.exit_code == 2
    assert "damaged" in json.loads(capsysbinary.readouterr().out)["error"]["message"]
