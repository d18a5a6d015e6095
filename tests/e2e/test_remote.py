"""Targets over a real sshd: the same words as here, but for what is the target's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import Answer, doctor
from tests.e2e.hosts import HostSpec, Kind, SshHosts, ssh_hosts

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

Made = Callable[..., tuple[Path, Answer]]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    folder = tmp_path_factory.mktemp("hosts")
    wanted = ("far", HostSpec("closed", Kind.CLOSED), HostSpec("mute", Kind.SILENT))
    with ssh_hosts(folder, *wanted) as made:
        yield made


def at(hosts: SshHosts, name: str, command: str, *words: str) -> Answer:
    environ = {"IDEEPDOCTOR_SSH_OPTIONS": f"-F {hosts.config}", "IDEEPDOCTOR_TARGET": f"ssh:{name}"}
    return doctor(command, "--format", "json", *words, environ=environ)


def judged(answer: Answer) -> list[tuple[str, str, str]]:
    """Findings without where they are to be cured."""
    return [(item["code"], item["severity"], item["found"]) for item in answer.document["findings"]]


@pytest.mark.parametrize("version", ["3.7", "2.7"])
def test_what_is_said_over_ssh_is_what_is_said_here(made: Made, hosts: SshHosts, version: str) -> None:
    folder, answer = made(version)
    assert answer.code == 0, answer.stdout + answer.stderr
    python = ("--python", str(folder / "bin" / "python"))
    for command, words in (
        ("diagnose", ()),
        ("libs", ()),
        ("smoke", ("--no-timing",)),
        ("certify", ("--ops", "linear", "--threads", "1", "--fresh")),
    ):
        near = doctor(command, "--format", "json", *python, *words)
        far = at(hosts, "far", command, *python, *words)
        assert (far.code, judged(far)) == (near.code, judged(near)), command
        target: dict[str, Any] = far.document["target"]
        assert (target["address"], target["transport"]) == ("ssh:far", ["ssh", "far"])
        own = ("address", "transport", "reason", "collected_at", "python")
        expected = {name: value for name, value in near.document["target"].items() if name not in own}
        assert {name: value for name, value in target.items() if name not in own} == expected
        if command == "libs":
            paths = [item["path"] for item in far.document["libs"]["libraries"]]
            assert paths == [item["path"] for item in near.document["libs"]["libraries"]]
        if command == "certify":
            assert far.document["certify"]["right"] == near.document["certify"]["right"] > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [("closed", "connection refused|does not answer"), ("mute", "does not answer"), ("nobody", "does not resolve")],
)
def test_a_host_that_is_not_reached_is_one_error(hosts: SshHosts, name: str, message: str) -> None:
    answer = at(hosts, name, "diagnose")
    assert answer.code == 3
    assert re.search(message, answer.document["error"]["message"])


def test_commands_that_write_refuse_and_say_what_to_run_there(hosts: SshHosts) -> None:
    answer = at(hosts, "far", "fix", "--python", "/opt/x")
    assert (answer.code, "ideepdoctor fix --python /opt/x" in answer.document["error"]["hint"]) == (2, True)
