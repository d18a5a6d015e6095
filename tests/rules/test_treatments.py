"""What findings tell people to do can be done: commands that exist, fixes where there are steps, by hand where not."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterator

import pytest
from typer.main import get_command

from ideepdoctor.cli import app
from ideepdoctor.model.findings import Finding, FixSafety
from ideepdoctor.model.plan import Install, WriteFile
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import CAUSES
from ideepdoctor.stacks.catalog import all_stacks
from tests.rules.hosts import alone, facts_on

MANAGED = {"python": {"kind": "system", "externally_managed": "/usr/lib/python3/EXTERNALLY-MANAGED"}}
UNUSABLE = {"cpu": {"cpuinfo_flags": ["sse2"], "cpuid_flags": ["sse2"], "vendor": "GenuineIntel", "emulated": False}}
COMMAND = re.compile(r"ideepdoctor(?: [a-z]+\b[^,;:()`\n]*)?")


def told(*overlays: dict[str, object]) -> Iterator[tuple[type[Rule], Example, Finding]]:
    """Every finding of every BAD example, with more laid over it."""
    for rule in RULES:
        for example in rule.bad:
            for finding in alone(rule.code(), example.host, example.overlay, *overlays):
                yield rule, example, finding


def commands(text: str) -> list[str]:
    """The doctor's own commands in a text: up to the next punctuation mark or an ``and``."""
    found = (re.split(r" and\b", line)[0].strip() for line in COMMAND.findall(text))
    return [line for line in found if line != "ideepdoctor"]


def parses(line: str) -> bool:
    words = shlex.split(line)[1:]
    command = get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    command.make_context(words[0], words[1:]).close()
    return True


ADVICE = sorted(
    {
        text
        for _, _, finding in told()
        for text in (finding.next_step, *(item.command or "" for item in finding.evidence))
    }
    | {finding.next_step for _, _, finding in told(MANAGED)}
    | {finding.next_step for _, _, finding in told(UNUSABLE)}
    | {cause.next_step for cause in CAUSES}
)
QUOTED = [quoted for rule in RULES for quoted in re.findall(r"``([^`]+)``", inspect.getdoc(rule) or "")]


@pytest.mark.parametrize("line", sorted({line for text in [*ADVICE, *QUOTED] for line in commands(text)}))
def test_every_command_that_is_named_exists_with_its_options(line: str):
    assert parses(line)


def test_the_commands_of_the_texts_are_seen_by_this_test():
    assert len({line for text in ADVICE for line in commands(text)}) > 12
    assert commands("look (ideepdoctor env) and ideepdoctor smoke -v, please") == [
        "ideepdoctor env",
        "ideepdoctor smoke -v",
    ]
    with pytest.raises(KeyError):
        parses("ideepdoctor heal")
    with pytest.raises(Exception, match="--wrong"):
        parses("ideepdoctor fix --wrong")


def test_every_stack_that_is_named_exists():
    named = {name for text in ADVICE for name in re.findall(r"--stack (chainer\S+)", text)}
    assert named
    assert named <= {stack.name for stack in all_stacks()}


@pytest.mark.parametrize("overlay", [{}, MANAGED, UNUSABLE], ids=["own", "managed", "no stack fits"])
def test_fix_is_named_exactly_where_it_has_steps(overlay: dict[str, object]):
    promises = 0
    for rule, example, finding in told(overlay):
        facts = facts_on(example.host, example.overlay, overlay)
        promised = "ideepdoctor fix" in finding.next_step
        assert promised == (finding.fix is not FixSafety.MANUAL), finding
        if promised:
            promises += 1
            assert rule().treat(finding, facts), finding
            assert ("--unsafe" in finding.next_step) == (finding.fix is FixSafety.UNSAFE), finding
            assert facts.python.externally_managed is None
    # Variables and the guard fit where no stack does; into a managed interpreter nothing is written.
    assert (promises == 0) == (overlay == MANAGED)


def test_a_change_of_chainer_is_not_safe():
    (finding,) = alone("IDP303", "py36-healthy", {"packages": {"chainer": "3.5.0"}})
    assert finding.fix is FixSafety.UNSAFE
    assert finding.next_step == "ideepdoctor fix --unsafe --python /home/user/ideep/bin/python"


BRIDGE = {"ok": False, "error_type": "TypeError", "error_text": "Descriptors cannot be created directly."}
NO_SIX = {"ok": False, "error_type": "ModuleNotFoundError", "error_text": "No module named 'six'"}
ALTERED = [{"path": "l", "problem": "size", "expected": "2", "found": "1"}]
STACK = ["chainer", "filelock", "ideep4py", "numpy", "protobuf", "setuptools", "six", "typing-extensions", "wheel"]


@pytest.mark.parametrize(
    ("code", "host", "overlay", "names"),
    [
        ("IDP305", "py37-healthy", {"packages": {"numpy": "1.15.4"}}, ["numpy"]),
        ("IDP301", "py37-healthy", {"packages": {"ideep4py": None}}, ["ideep4py"]),
        ("IDP301", "py37-healthy", {"packages": {"ideep4py": None, "numpy": "1.9"}}, ["ideep4py", "numpy"]),
        ("IDP301", "py37-healthy", {"packages": dict.fromkeys(STACK)}, STACK),
        ("IDP302", "py36-healthy", {"packages": {"ideep4py": "2.0.0b1"}}, ["ideep4py"]),
        ("IDP303", "py36-healthy", {"packages": {"ideep4py": "1.0.4"}}, ["ideep4py"]),
        ("IDP304", "py36-healthy", {"packages": {"chainer": "4.5.0"}}, ["ideep4py"]),
        ("IDP111", "py36-healthy", {"packages": {"ideep4py": "1.0.3", "chainer": "4.5.0"}}, ["ideep4py"]),
        ("IDP308", "py37-healthy", {"packages": {"chainer": None}}, ["chainer"]),
        ("IDP309", "py37-healthy", {"packages": {"ideep4py": {"altered": ALTERED}}}, ["ideep4py"]),
        (
            "IDP307",
            "py37-healthy",
            {"packages": {"protobuf": "4.24.4"}, "imports": {"chainer.links.caffe": BRIDGE}},
            ["protobuf"],
        ),
        ("IDP311", "py37-healthy", {"packages": {"six": None}, "imports": {"chainer": NO_SIX}}, ["six"]),
    ],
)
def test_a_treatment_installs_what_is_needed_and_nothing_else(
    code: str, host: str, overlay: dict[str, object], names: list[str]
):
    rule = next(rule for rule in RULES if rule.code() == code)()
    facts = facts_on(host, overlay)
    (finding,) = rule.check(facts)
    (step,) = rule.treat(finding, facts)
    assert isinstance(step, Install)
    assert sorted(item.name for item in step.requirements if item.name != "pip") == names
    assert all(item.sha256 for item in step.requirements)
    assert step.reinstall == (("ideep4py",) if code == "IDP309" else ())


@pytest.mark.parametrize(
    ("code", "name", "variables"),
    [
        ("IDP501", "CHAINER_USE_IDEEP", {"effective": {"CHAINER_USE_IDEEP": None}}),
        ("IDP701", "MKL_DEBUG_CPU_TYPE", {"effective": {"MKL_DEBUG_CPU_TYPE": None}}),
        ("IDP504", "OMP_NUM_THREADS", {}),
    ],
)
def test_a_variable_is_set_by_the_files_of_the_environment(code: str, name: str, variables: dict[str, object]):
    rule = next(rule for rule in RULES if rule.code() == code)()
    limits = {"affinity_cpus": list(range(64)), "quota_cpus": 2.0}
    facts = facts_on("py37-healthy", {"variables": variables, "limits": limits})
    (finding,) = rule.check(facts)
    steps = [step for step in rule.treat(finding, facts) if isinstance(step, WriteFile)]
    assert all(step.path.startswith("/home/user/ideep/") for step in steps)
    assert any(name in step.content for step in steps)


@pytest.mark.parametrize(
    ("overlay", "fix"),
    [
        ({}, FixSafety.SAFE),
        ({"python": {"kind": "conda"}}, FixSafety.SAFE),
        ({"python": {"kind": "pyenv"}}, FixSafety.MANUAL),
        ({"python": {"kind": "system"}}, FixSafety.MANUAL),
        ({"variables": {"inherited": {"CHAINER_USE_IDEEP": "1"}}}, FixSafety.MANUAL),
        (MANAGED, FixSafety.MANUAL),
    ],
)
def test_a_default_is_set_in_an_environment_of_its_own_where_the_user_set_nothing(
    overlay: dict[str, object], fix: FixSafety
):
    unset = {"variables": {"effective": {"CHAINER_USE_IDEEP": None}, "set_by_doctor": []}}
    (finding,) = alone("IDP501", "py37-healthy", unset, overlay)
    assert finding.fix is fix
    assert finding.next_step.startswith("ideepdoctor fix" if fix is FixSafety.SAFE else "export CHAINER_USE_IDEEP=auto")
