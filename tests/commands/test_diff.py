"""``diff``: two files of facts in, what changed and why something is new out."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.commands.diff import diff
from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import facts_to_json, load_facts
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.render.json import render
from ideepdoctor.rules.overlay import apply

HOSTS = Path(__file__).parents[1] / "hosts"
HEALTHY = HOSTS / "py37-healthy.json"
SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))


def written(folder: Path, **overlay) -> str:
    path = folder / "second.json"
    path.write_text(json.dumps(apply(facts_to_json(load_facts(str(HEALTHY))), overlay)))
    return str(path)


def test_the_new_finding_and_its_cause_are_printed_and_counted(tmp_path):
    report = diff(str(HEALTHY), written(tmp_path, packages={"numpy": "1.15.4", "six": None}))
    lines = "\n".join(report.body)
    assert "package numpy  1.21.6 -> 1.15.4" in lines
    assert "package six    1.17.0 -> (none)" in lines
    assert "IDP305  NumPy 1.15.4\n    because: package numpy" in lines
    assert summarize(report, FailOn.ERROR).exit_code == 1
    data = json.loads(render(report))
    jsonschema.validate(data, SCHEMA)
    assert [item["because"] for item in data["diff"]["new"] if item["code"] == "IDP305"] == [[["package numpy"]]]


def test_an_old_fault_counts_no_more(tmp_path):
    path = written(tmp_path, packages={"numpy": "1.15.4"})
    report = diff(path, path)
    assert report.body[2:] == ("changed: nothing", "in both: IDP305", "new: nothing")
    assert summarize(report, FailOn.WARNING).exit_code == 0


def test_other_machines_compare_with_libraries_by_name():
    report = diff(str(HOSTS / "py36-healthy.json"), str(HEALTHY))
    lines = "\n".join(report.body)
    assert "libopenblas" in lines
    assert "python version" in lines
    assert "purelib" not in lines
    assert all(len(line) < 240 for line in report.body)


@pytest.mark.parametrize("text", [None, "{", '{"schema": "x"}'])
def test_what_holds_no_facts_is_refused(tmp_path, text):
    path = tmp_path / "no.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError) as caught:
        diff(str(HEALTHY), str(path))
    assert "--save-facts" in caught.value.hint
