"""Settings and baselines: read where they are looked for, refused with one clear error."""

from __future__ import annotations

import json
import os
from datetime import date

import pytest

from ideepdoctor import __version__
from ideepdoctor.commands.settings import accepted, project_of
from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.model.accept import fingerprints
from ideepdoctor.model.findings import Finding, Judgement, NotKnown, Severity
from ideepdoctor.model.project import Project
from ideepdoctor.model.report import Report
from ideepdoctor.render.json import render

IGNORE = '[[ignore]]\ncode = "idp701"\nreason = "  on  purpose "\npath = "/opt/*"\nuntil = 2027-03-31\n'
FINDING = Finding("IDP305", Severity.ERROR, "NumPy", "numpy 1.15", "1.16", "unused", "fix")
UNKNOWN = NotKnown("IDP111", "AVX", "no CPUID")


def refused(folder, environ=None, baseline=None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        accepted(str(folder), environ or {}, baseline)
    assert "\n" not in caught.value.message
    return caught.value


def test_nothing_is_accepted_where_nothing_says_so(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert accepted(str(tmp_path), {}, None) == accepted(str(tmp_path), {"IDEEPDOCTOR_SETTINGS": ""}, None)
    assert accepted(str(tmp_path), {}, None).ignores == ()


@pytest.mark.parametrize("name", ["ideepdoctor.toml", "pyproject.toml"])
def test_settings_are_found_in_the_folder_and_above_it(tmp_path, name):
    text = IGNORE if name == "ideepdoctor.toml" else IGNORE.replace("[[ignore]]", "[[tool.ideepdoctor.ignore]]")
    (tmp_path / name).write_text(text)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    told = accepted(str(below), {}, None)
    [ignore] = told.ignores
    assert (ignore.code, ignore.reason, ignore.path, ignore.until) == (
        "IDP701",
        "on purpose",
        "/opt/*",
        date(2027, 3, 31),
    )
    assert told.origin == str(tmp_path / name)


def test_the_top_of_a_repository_ends_the_search(tmp_path):
    (tmp_path / "ideepdoctor.toml").write_text(IGNORE)
    top = tmp_path / "project"
    (top / ".git").mkdir(parents=True)
    assert accepted(str(top), {}, None).ignores == ()


def test_the_variable_names_another_file_or_none(tmp_path):
    (tmp_path / "ideepdoctor.toml").write_text(IGNORE)
    (tmp_path / "other.toml").write_text(IGNORE.replace("701", "305"))
    told = accepted(str(tmp_path), {"IDEEPDOCTOR_SETTINGS": "other.toml"}, None)
    assert [item.code for item in told.ignores] == ["IDP305"]
    assert accepted(str(tmp_path), {"IDEEPDOCTOR_SETTINGS": ""}, None).ignores == ()
    assert "no.toml" in refused(tmp_path, {"IDEEPDOCTOR_SETTINGS": "no.toml"}).message


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[[ignore", "no TOML"),
        ("ignore = 1", "list of tables"),
        ('ignore = ["IDP701"]', "list of tables"),
        ('[[ignore]]\nreason = "r"', "no rule has the code None"),
        ('[[ignore]]\ncode = "IDP999"\nreason = "r"', "no rule has the code IDP999"),
        ('[[ignore]]\ncode = "IDP906"\nreason = "r"', "about programs"),
        ('[[ignore]]\ncode = "IDP701"', "without a reason"),
        ('[[ignore]]\ncode = "IDP701"\nreason = "  "', "without a reason"),
        ('[[ignore]]\ncode = "IDP701"\nreason = "r"\nuntil = "soon"', "until is no date"),
        ('[[ignore]]\ncode = "IDP701"\nreason = "r"\nuntil = 2027-01-01T00:00:00', "until is no date"),
        ('[[ignore]]\ncode = "IDP701"\nreason = "r"\npath = 1', "path is no pattern"),
        ('[[ignore]]\ncode = "IDP701"\nreason = "r"\nwhy = "x"', "unknown key why"),
        ('ignored = "x"', "unknown key ignored"),
        ("baseline = 3", "baseline is no path"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path, text, word):
    (tmp_path / "ideepdoctor.toml").write_text(text)
    assert word in refused(tmp_path).message


def report_file(folder, name="base.json") -> str:
    facts = load_facts("tests/hosts/py37-healthy.json")
    report = Report("diagnose", facts=facts, judgement=Judgement((FINDING,), unknown=(UNKNOWN,)))
    (folder / name).write_text(render(report))
    return name


def test_a_baseline_is_a_report(tmp_path):
    told = accepted(str(tmp_path), {}, report_file(tmp_path))
    assert told.baseline is not None
    assert told.baseline.fingerprints == frozenset(fingerprints([FINDING])) | frozenset(fingerprints([UNKNOWN]))


def test_the_settings_name_a_baseline_beside_them_and_the_option_another(tmp_path):
    report_file(tmp_path)
    (tmp_path / "ideepdoctor.toml").write_text('baseline = "base.json"\n')
    below = tmp_path / "below"
    below.mkdir()
    assert len(accepted(str(below), {}, None).baseline.fingerprints) == 2
    (below / "none.json").write_text(json.dumps({"schema": "ideepdoctor-report", "findings": []}))
    assert accepted(str(below), {}, "none.json").baseline.fingerprints == frozenset()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "cannot read the baseline"),
        ("{", "no JSON"),
        ("[]", "no report"),
        ('{"schema": "other"}', "no report"),
        ('{"schema": "ideepdoctor-report", "findings": [{"code": "IDP305"}]}', "without fingerprints"),
        ('{"schema": "ideepdoctor-report", "findings": 7}', "damaged"),
        ('{"schema": "ideepdoctor-report", "findings": ["IDP305"]}', "damaged"),
        ('{"schema": "ideepdoctor-report", "schema_version": "2"}', "another kind of doctor: schema_version 2"),
        ('{"schema": "ideepdoctor-report", "schema_version": 2}', "another kind of doctor: schema_version 2"),
        ('{"schema": "ideepdoctor-report", "error": {"code": "busy"}}', "a run that failed"),
        ('{"schema": "ideepdoctor-facts"}', "no report"),
        ('{"schema": "ideepdoctor-report", "findings": [', "damaged, or no JSON"),
        (b"\xff\xfe\x00", "damaged, or no JSON"),
        ("[" * 100_000, "damaged, or no JSON"),
    ],
)
def test_a_baseline_that_is_none_is_refused(tmp_path, text, word):
    if text is not None:
        (tmp_path / "base.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    error = refused(tmp_path, baseline="base.json")
    assert word in error.message
    assert "--format json" in error.hint


def test_a_baseline_tells_who_made_it_and_for_what(tmp_path):
    known = accepted(str(tmp_path), {}, report_file(tmp_path)).baseline
    assert known is not None
    assert (known.command, known.made_by, known.made_for) == ("diagnose", __version__, "/home/user/ideep/bin/python")
    (tmp_path / "odd.json").write_text(json.dumps({"schema": "ideepdoctor-report", "tool": 3, "target": None}))
    odd = accepted(str(tmp_path), {}, "odd.json").baseline
    assert odd is not None
    assert (odd.command, odd.made_by, odd.made_for) == ("", "", "")


@pytest.mark.parametrize(
    ("variables", "below", "root"),
    [
        ({}, "a/b", "top"),
        ({}, "../beside", ""),
        ({"GITHUB_WORKSPACE": "top/a"}, "a/b", "top/a"),
        ({"CI_PROJECT_DIR": "top"}, "a", "top"),
        ({"CI_PROJECT_DIR": "beside"}, "a", "top"),
        ({"CI_PROJECT_DIR": ""}, "a", "top"),
    ],
)
def test_a_project_is_the_repository_or_the_checkout_of_a_job(tmp_path, variables, below, root):
    (tmp_path / "top" / ".git").mkdir(parents=True)
    environ = {name: str(tmp_path / value) if value else "" for name, value in variables.items()}
    cwd = os.path.normpath(tmp_path / "top" / below)
    assert project_of(cwd, environ) == Project(cwd, str(tmp_path / root) if root else "")
