"""From the probe's answer to facts, and what happens where the answer is none."""

from __future__ import annotations

import base64
import json
import os
import sys
from dataclasses import replace
from typing import Any

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.collect import BARE, collect, read_facts
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from tests.doubles import Call, FakeSystem, completed, payload_answer


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the probe tells of this very Python."""
    request = {"phase": "static", "quick": True, "timeout_seconds": 60}
    return run_payload(RealSystem(), Target(sys.executable), "probe", request, timeout_seconds=90)


def test_this_python(told: dict[str, Any]) -> None:
    facts = read_facts(told, Target(sys.executable, reason="asked for"), quick=True)
    assert facts.mode == "quick"
    assert facts.target.reason == "asked for"
    assert os.path.realpath(facts.python.prefix) == os.path.realpath(sys.prefix)
    assert facts.python.version == "{}.{}.{}".format(*sys.version_info)
    assert facts.platform.system == "Linux"
    assert facts.platform.machine == os.uname().machine
    assert facts.limits.memory_total_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert facts.limits.disk_free_bytes
    assert facts.cpu.logical_cpus and facts.cpu.logical_cpus >= len(facts.limits.affinity_cpus or ())
    assert facts.imports is None and facts.first_op is None and facts.chainer is None and facts.libraries is None
    assert facts.package("pytest") is not None
    assert facts.collected_at.endswith("Z")


@pytest.mark.parametrize("key", ["machine", "python", "variables"])
@pytest.mark.parametrize("value", [None, 3, "text", []])
def test_an_answer_that_is_none_is_refused(told: dict[str, Any], key: str, value: Any) -> None:
    with pytest.raises(CouldNotCheck, match=key):
        read_facts({**told, key: value}, Target("python"), quick=True)


@pytest.mark.parametrize(
    ("key", "value"), [("abi", 3), ("bits", "64"), ("bits", True), ("version", None), ("pip_scripts", [["one"]])]
)
def test_a_wrong_field_is_named(told: dict[str, Any], key: str, value: Any) -> None:
    python = {**told["python"], key: value}
    with pytest.raises(CouldNotCheck, match=f"answer.python.{key}"):
        read_facts({**told, "python": python}, Target("python"), quick=True)


def request_of(call: Call) -> dict[str, Any]:
    """What the probe is asked."""
    asked: dict[str, Any] = json.loads(base64.urlsafe_b64decode(call.argv[-1]))
    return asked


def test_what_the_probe_is_asked(told: dict[str, Any]) -> None:
    system = FakeSystem().on(lambda call: True, payload_answer(told))
    target = Target("/env/bin/python", transport=("ssh", "there"), emulator=("qemu", "-cpu", "Haswell"))
    environ = {"A": "1"}
    facts = collect(system, target, environ, replace(BARE, interpreters=True), cwd="/somewhere")
    (call,) = [call for call in system.calls if call.kind == "run"]
    assert call.argv[:6] == ("ssh", "there", "qemu", "-cpu", "Haswell", "/env/bin/python")
    assert call.env == environ
    asked = request_of(call)
    assert (asked["phase"], asked["quick"], asked["cwd"]) == ("static", True, None), "a folder of this machine"
    assert asked["emulator"] == ["qemu", "-cpu", "Haswell"]
    assert call.timeout_seconds and call.timeout_seconds > 2 * asked["timeout_seconds"]
    assert facts.interpreters is None, "those of this machine say nothing of another"
    assert facts.target.transport == ("ssh", "there")
    assert system.writes() == []


def test_imports_are_asked_for_when_not_quick(told: dict[str, Any]) -> None:
    system = FakeSystem().on(lambda call: True, payload_answer(told))
    collect(system, Target("python"), {}, replace(BARE, imports=True), child_seconds=7)
    asked = request_of(system.calls[0])
    assert (asked["phase"], asked["quick"], asked["timeout_seconds"]) == ("full", False, 7)


@pytest.mark.parametrize("answer", [completed("no Python"), completed(returncode=127, error="not there")])
def test_a_target_that_does_not_answer(answer: Any) -> None:
    system = FakeSystem().on(lambda call: True, answer)
    with pytest.raises(CouldNotCheck):
        collect(system, Target("python"), {}, BARE)


def test_numbers_may_be_whole() -> None:
    assert Answer({"seconds": 3}).number("seconds") == 3.0
    with pytest.raises(CouldNotCheck, match=r"answer\.seconds"):
        Answer({"seconds": "3"}).number("seconds")
    with pytest.raises(CouldNotCheck):
        Answer({"seconds": True}).maybe_integer("seconds")


def test_a_run_without_the_libraries_answer_goes_on_and_leaves_them_unknown(told: dict[str, Any]) -> None:
    system = FakeSystem().on(lambda call: b"mkl_versions" in call.stdin, completed(returncode=1))
    system.on(lambda call: True, payload_answer(told))
    facts = collect(system, Target("python"), {}, replace(BARE, libraries=True))
    assert facts.native is None
    assert len(system.commands()) == 2


def test_a_run_that_is_about_the_libraries_alone_does_not(told: dict[str, Any]) -> None:
    system = FakeSystem().on(lambda call: b"mkl_versions" in call.stdin, completed(returncode=1))
    system.on(lambda call: True, payload_answer(told))
    with pytest.raises(CouldNotCheck):
        collect(system, Target("python"), {}, replace(BARE, libraries=True, start=True))
