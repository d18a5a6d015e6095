"""``explain --log``: cause and cure of a failed build, by its log."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.commands.explain import Symptoms, explain, explain_log, lines_of
from ideepdoctor.errors import UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.render.json import envelope
from ideepdoctor.render.text import console, render

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
LOG = """-- Configuring done
CMake Error: Unknown argument --build
mdarray.cc:3:10: fatal error: ideep.hpp: No such file or directory
error: command 'gcc' failed with exit status 1
"""


def told(folder: Path, text: str | bytes) -> Report:
    path = folder / "build.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return explain_log(str(path))


def text_of(report: Report) -> str:
    stream = io.StringIO()
    render(report, console(file=stream))
    return stream.getvalue()


def code_of(report: Report) -> int:
    return int(summarize(report, FailOn.ERROR).exit_code)


def test_the_first_cause_first_and_both_ways_to_cure_it(tmp_path: Path):
    report = told(tmp_path, LOG)
    assert report.judgement is not None
    first, second = report.judgement.findings
    assert (first.code, second.code) == ("IDP805", "IDP822")
    assert first.found == "line 2: CMake Error: Unknown argument --build"
    assert "cmake==3.18.4.post1" in first.next_step and "ideepdoctor build" in first.next_step
    assert "nothing for this one" in second.next_step
    assert (first.severity, second.severity) == ("error", "warning")
    assert code_of(report) == 1
    text = text_of(report)
    assert text.index("IDP805") < text.index("IDP822")
    assert "4 lines; cure the first before the next" in text


def test_a_call_of_cmake_that_was_refused_and_did_no_harm(tmp_path: Path):
    """The library was built and installed before: setup.py goes on, and all is well."""
    report = told(tmp_path, "CMake Error: Unknown argument --build\nbuilding extension\n2.0.0.post3\n")
    assert report.judgement is not None
    (finding,) = report.judgement.findings
    assert (finding.code, finding.severity) == ("IDP805", "warning")
    assert "no harm" in finding.consequence
    assert code_of(report) == 0


@pytest.mark.parametrize(
    ("head", "step"),
    [
        ("# ideepdoctor build --python 3.11", "ideepdoctor build --jobs 1"),
        ("# /opt/doctor/bin/ideepdoctor setup --build", "ideepdoctor build --jobs 1"),
        ("# we tried ideepdoctor build and then make", "make -j1"),
        ("make", "make -j1"),
    ],
)
def test_the_doctors_own_log_is_told_by_its_head(tmp_path: Path, head: str, step: str):
    report = told(tmp_path, f"{head}\nc++: fatal error: Killed signal terminated program cc1plus\n")
    assert report.judgement is not None
    assert step in report.judgement.findings[0].next_step


def test_causes_are_not_sorted_by_their_numbers(tmp_path: Path):
    report = told(tmp_path, "a.cc:1:1: error: x [-Werror=array-bounds]\nsh: 1: cmake: not found\n")
    assert report.judgement is not None
    assert [item.code for item in report.judgement.findings] == ["IDP813", "IDP805"]


def test_one_document_that_the_schema_knows(tmp_path: Path):
    report = told(tmp_path, LOG)
    document = json.loads(json.dumps(envelope(report)))
    jsonschema.validate(document, SCHEMA)
    assert [item["code"] for item in document["findings"]] == ["IDP805", "IDP822"]
    assert document["log"]["lines"] == 4
    assert document["log"]["hits"][0] == {"code": "IDP805", "line": 2, "text": "CMake Error: Unknown argument --build"}
    assert document["summary"]["exit_code"] == 1
    assert document["target"] is None


def test_a_log_in_which_nothing_is_known(tmp_path: Path):
    report = told(tmp_path, "all is well\nfoo.c:1:2: error: something new\nthe end\n")
    assert report.judgement is None
    assert code_of(report) == 0
    text = text_of(report)
    assert "nothing in it is known" in text
    assert "2: foo.c:1:2: error: something new" in text
    assert "the end" not in text
    assert "ideepdoctor diagnose" in text
    assert envelope(report)["log"]["telling"] == [{"line": 2, "text": "foo.c:1:2: error: something new"}]


def test_a_warning_alone_is_no_error(tmp_path: Path):
    report = told(tmp_path, "python setup.py build\nSegmentation fault (core dumped)\n")
    assert report.judgement is not None
    assert [item.code for item in report.judgement.findings] == ["IDP818"]
    assert code_of(report) == 0


@pytest.mark.parametrize("data", [b"\0" * 300_000, bytes(range(256)) * 500, b"\xff\xfe" * 10, b"x" * 3_000_000])
def test_junk_is_no_cause(tmp_path: Path, data: bytes):
    assert told(tmp_path, data).judgement is None


def test_line_numbers_are_those_of_an_editor(tmp_path: Path):
    report = told(tmp_path, b"a\r\nprogress 1\rprogress 2\rdone\r\n" + b"y" * 200_000 + b"\r\nmake: *** [x] Killed\r\n")
    assert report.extra["log"]["hits"] == [{"code": "IDP811", "line": 4, "text": "make: *** [x] Killed"}]
    assert report.extra["log"]["lines"] == 4


def test_lines_without_an_end_are_cut_and_counted_once():
    stream = io.BytesIO(b"a" * 200_000 + b"\n" + b"b" * 10)
    assert [(line[0], len(line)) for line in lines_of(stream)] == [("a", 65536), ("b", 10)]


@pytest.mark.parametrize("name", ["no-such-file.log", "."])
def test_what_cannot_be_read(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="cannot read"):
        explain_log(str(tmp_path / name))


def test_an_empty_log(tmp_path: Path):
    with pytest.raises(UsageError, match="is empty"):
        told(tmp_path, "")


def test_standard_input(monkeypatch: pytest.MonkeyPatch):
    class Given:
        buffer = io.BytesIO(LOG.encode())

    monkeypatch.setattr("sys.stdin", Given)
    report = explain(None, Symptoms(log="-"))
    assert report.body[0].startswith("standard input: 4 lines")
    assert report.extra["log"]["path"] is None


def test_a_code_and_a_log_at_once():
    with pytest.raises(UsageError, match="at once"):
        explain("IDP805", Symptoms(log="build.log"))
