"""What one file says of a host, and which files say nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.merge_files import files_of, host_of, read_file
from ideepdoctor.fleet.read import HostReport, Unreadable, parse_host
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.render.json import envelope
from tests.benchmarks.fleet_reports import DAMAGED, damage
from tests.rules.hosts import facts_on, judged

WRITTEN = "2026-11-30T00:00:00Z"
HOSTS = Path(__file__).parents[1] / "hosts"


def parse(document: Mapping[str, Any] | bytes) -> HostReport:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return parse_host(data, WRITTEN, "node7")


def of(command: str, **extra: Any) -> dict[str, Any]:
    facts = facts_on("py311-nothing")
    return envelope(Report(command, facts=facts, judgement=judged("py311-nothing"), extra=extra))


def about(status: str, message: str = "", name: str = "node1.example") -> dict[str, Any]:
    return {"name": name, "status": status, "message": message, "seconds": 1.5}


def why_not(document: Mapping[str, Any] | bytes) -> str:
    with pytest.raises(Unreadable) as caught:
        parse(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_facts_are_judged_by_the_rules():
    found = parse((HOSTS / "py311-nothing.json").read_bytes())
    assert (found.name, found.status, found.at) == ("node7", "ok", "2026-01-01T00:00:00Z")
    assert {item.code for item in found.causes} >= {"IDP201"}
    assert found.facts is not None
    assert parse((HOSTS / "py37-healthy.json").read_bytes()).causes == ()


def test_an_answer_of_the_bare_probe_is_judged_too(tmp_path):
    import subprocess
    import sys

    from ideepdoctor.targets.bare import bare_probe

    script = tmp_path / "probe.py"
    script.write_bytes(bare_probe())
    told = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=True).stdout
    found = parse(told)
    assert found.facts is not None and found.status == "ok"
    assert {item.code for item in found.causes} >= {"IDP201"}
    assert why_not({**json.loads(told), "schema_version": "9"}).startswith("is not usable: ")


def test_a_report_without_the_host_is_of_the_file():
    found = parse(of("diagnose"))
    assert (found.name, found.at, found.facts) == ("node7", "2026-01-01T00:00:00Z", None)
    assert [item.code for item in found.causes if item.severity == "error"] == ["IDP201"]


def test_a_report_says_whose_it_is():
    assert parse(of("diagnose", host=about("ok"))).name == "node1.example"
    assert parse(of("diagnose", host=about("ok", name="a b"))).name == "a%20b"
    assert "names a host with 300 characters" in why_not(of("diagnose", host=about("ok", name="n" * 300)))


@pytest.mark.parametrize("status", ["unreachable", "timeout", "failed"])
def test_a_host_without_an_answer_is_never_judged(status: str):
    found = parse(envelope(Report("diagnose", extra={"host": about(status, "no\n route")})))
    assert found.status == status
    [cause] = found.causes
    assert (cause.code, cause.severity, cause.found) == (status, "failed", "no route")


def test_a_command_that_failed_is_a_host_that_failed():
    failed = Failure("could-not-check", "the target does not answer", "look at it", 3)
    found = parse(envelope(Report("diagnose", failure=failed)))
    assert (found.status, found.causes[0].found) == ("failed", "the target does not answer")
    assert parse(envelope(Report("env", failure=failed))).status == "failed"


@pytest.mark.parametrize("command", ["cpu", "env", "explain", "history"])
def test_a_command_that_judges_nothing_proves_no_health(command: str):
    report = envelope(Report(command, facts=facts_on("py37-healthy")))
    assert f"is a report of {command}, which judges no environment" in why_not(report)


def test_what_merge_made_is_no_host():
    assert "what fleet merge made of many hosts" in why_not(envelope(Report("fleet merge", extra={"fleet": {}})))


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_file_is_told_by_its_damage(how: str):
    words = {
        "cut": "is cut off",
        "binary": "is a binary file",
        "empty": "is empty",
        "foreign": "is JSON of something else",
        "newer": "is a report of schema version 2, and this ideepdoctor knows 1",
        "nan": "a number that JSON lacks",
        "words": "is no JSON",
    }
    assert words[how] in why_not(damage(how))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"[" * 100_000, "is no JSON"),
        (b"null", "is JSON of something else"),
        (b"[1]", "is JSON of something else"),
        (b'{"a": "\xff"}', "is no JSON"),
        (b'{"schema": "ideepdoctor-report"}', "of schema version none"),
        (b'{"schema": "ideepdoctor-facts", "schema_version": "1"}', "field tool_version"),
        ({**of("diagnose"), "findings": {}}, "field findings"),
        ({**of("diagnose"), "findings": [{"code": 1}]}, "field findings.0.code"),
        (of("diagnose", host=about("asleep")), "field host.status"),
        (of("diagnose", host=about("ok"), facts={"schema_version": "7"}), "a report with facts of schema version 7"),
        (of("diagnose", host=about("ok"), facts={"schema_version": "1"}), "field facts"),
    ],
)
def test_what_is_nearly_a_report_is_named_by_what_is_wrong(document: Any, words: str):
    assert words in why_not(document)


def test_a_mark_of_the_order_of_bytes_does_no_harm():
    assert parse(b"\xef\xbb\xbf" + json.dumps(of("diagnose")).encode()).name == "node7"


def test_a_report_of_a_later_minor_version_is_read():
    later = {**of("diagnose"), "schema_version": "1.4", "more": {"what": [1]}}
    assert parse(later).causes == parse(of("diagnose")).causes


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("a/node001.json", "node001"),
        ("a/node001.facts.json", "node001"),
        ("a/node001-report.json", "node001"),
        ("a/node001/report.json", "node001"),
        ("a/n.example.org", "n.example.org"),
        ("a/x y.json", "x%20y"),
    ],
)
def test_a_file_is_of_the_host_that_it_is_called_after(path: str, host: str):
    assert host_of(Path(path)) == host


def test_folders_lists_and_files_are_found_in_their_order(tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / ".hidden").mkdir()
    for name in ("d/b.json", "d/a.json", "d/e/c.json", "d/notes.txt", "d/.hidden/x.json", "one"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "lines").write_bytes(b"one\r\n\nd\n")
    (tmp_path / "nuls").write_bytes(b"d/e/c.json\0one\0")
    assert [file.shown for file in files_of(["d"], str(tmp_path))] == ["d/a.json", "d/b.json", "d/e/c.json"]
    assert [file.shown for file in files_of(["@lines"], str(tmp_path))] == ["one", "d/a.json", "d/b.json", "d/e/c.json"]
    assert [file.shown for file in files_of(["@nuls"], str(tmp_path))] == ["d/e/c.json", "one"]


def test_a_standard_input_that_is_closed_is_one_error(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageError, match="standard input is closed"):
        list(files_of(["-"], str(tmp_path)))


def test_what_cannot_be_read_is_told_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "large.json").touch()
    os.truncate(tmp_path / "large.json", 64_000_001)
    for name, words in (("fifo.json", "is no regular file"), ("large.json", "is larger than 64 MB"), ("no", "No such")):
        with pytest.raises(Unreadable, match=words):
            read_file(tmp_path / name)
    [gone] = files_of(["gone"], str(tmp_path))
    assert gone.problem == "cannot be read: No such file or directory"
    [odd] = files_of(["a\0b"], str(tmp_path))
    assert odd.problem == "cannot be read: no file can have this name"
