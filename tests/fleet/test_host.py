"""What came back from a host, as the document of the fleet."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.fleet.host import Host, HostStatus, examined, file_name, host_document, not_asked
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.summary import FailOn
from ideepdoctor.render.json import document as as_text
from ideepdoctor.targets.bare import bare_probe
from tests.test_cli import SCHEMA

COOKIE = "cookie"


@pytest.fixture(scope="module")
def answer() -> str:
    """What the bare probe says of the Python that runs this."""
    done = subprocess.run([sys.executable, "-B", "-"], input=bare_probe(), capture_output=True, timeout=120)
    return done.stdout.decode().strip()


def end(status: str = "ok", **result: Any) -> TaskEnd:
    return TaskEnd("n1", status, "Ask the probe", 1.5, result)


def printed(answer: str, code: int = 0, python: str = "/p") -> str:
    return f"banner\n{COOKIE} begin {python}\n{answer}\n\n{COOKIE} end {code}\n"


def test_an_answer_becomes_the_envelope_of_diagnose_with_host_and_facts(answer):
    import jsonschema

    host = examined(end(), printed(answer), COOKIE, 60)
    assert (host.status, host.message, host.seconds) == (HostStatus.OK, "", 1.5)
    document = json.loads(as_text(host_document(host, FailOn.ERROR)))
    jsonschema.validate(document, SCHEMA)
    assert document["host"] == {"name": "n1", "status": "ok", "message": "", "seconds": 1.5}
    assert facts_from_json(document["facts"]) == host.facts
    assert document["tool"]["command"] == "diagnose"
    assert [item["code"] for item in document["findings"]] == [
        item.code
        for item in host.judgement.findings  # type: ignore[union-attr]
    ]
    assert "error" in host.words


CASES = [
    (end("unreachable", msg="ssh: no route"), "", HostStatus.UNREACHABLE, "ssh: no route"),
    (end("timeout", msg="Timed out after 60"), "", HostStatus.TIMEOUT, "no answer within 60 seconds"),
    (end("failed", msg="sudo: a password is required"), "", HostStatus.FAILED, "sudo: a password is required"),
    (end(), printed("", 124), HostStatus.TIMEOUT, "/p gave no answer within 60 seconds"),
    (end(), printed("", 137), HostStatus.TIMEOUT, "/p gave no answer within 60 seconds"),
    (end(), f"{COOKIE} none\n", HostStatus.FAILED, "there is no Python on the host"),
    (end(), f"{COOKIE} none /p q\n", HostStatus.FAILED, "there is no Python /p q on the host"),
    (end(stderr="a\nIllegal instruction"), printed("", 132), HostStatus.FAILED, "/p ended with 132 and no answer: Ill"),
    (end(), printed("", 3), HostStatus.FAILED, "/p ended with 3 and no answer: it said nothing"),
    (end(), f"{COOKIE} begin /p\nhalf", HostStatus.FAILED, "the connection ended before /p had answered"),
    (end(stderr="not a login shell"), "", HostStatus.FAILED, "the host answered something else: not a login shell"),
    (end(), printed("hello"), HostStatus.FAILED, "/p printed what is no answer of the probe: hello"),
    (end(), printed("[]"), HostStatus.FAILED, "no answer of the bare probe"),
    (end(), printed('{"schema": "ideepdoctor-probe", "schema_version": "1"}'), HostStatus.FAILED, "not what the bare"),
]


@pytest.mark.parametrize(("ended", "text", "status", "message"), CASES)
def test_a_host_without_an_answer_is_never_healthy(ended, text, status, message):
    import jsonschema

    host = examined(ended, text, COOKIE, 60)
    assert (host.status, host.message[: len(message)]) == (status, message)
    document = json.loads(as_text(host_document(host, FailOn.NEVER)))
    jsonschema.validate(document, SCHEMA)
    assert (document["summary"]["status"], document["summary"]["exit_code"]) == ("failed", 3)
    assert document["error"]["message"] == host.message
    assert "facts" not in document
    assert host.words == f"n1: {status}, {host.message}"


def test_hosts_that_were_not_reached_before_the_end_are_told():
    assert not_asked(["a"]) == [Host("a", HostStatus.FAILED, "not looked at: the run was ended before")]


def test_a_file_is_called_as_its_host_where_that_can_be():
    assert file_name("node-1.example_2") == "node-1.example_2.json"
    odd = ["../../etc/passwd", "a b", "a_b ", ".hidden", "", "ä"]
    names = [file_name(name) for name in odd]
    assert len(set(names)) == len(odd)
    assert all("/" not in name and not name.startswith(".") and name.endswith(".json") for name in names)
