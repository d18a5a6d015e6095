"""What is printed about a target on another machine: right to type here, or said to be done there."""

from __future__ import annotations

import subprocess

import pytest

from ideepdoctor.commands.session import judge_all
from ideepdoctor.model.facts import TargetRef
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.elsewhere import command_there, named, step_there
from tests.rules.hosts import facts_on

SSH = TargetRef("/env/bin/python", ("ssh", "-p", "22", "lab"), address="ssh:lab:22")
DOCKER = TargetRef("/env/bin/python", ("docker", "exec", "-i", "box"), address="docker:box")
HERE = TargetRef("/env/bin/python")


@pytest.mark.parametrize(
    ("step", "there"),
    [
        ("ideepdoctor fix --python /x", "on ssh:lab:22: ideepdoctor fix --python /x"),
        ("unset LD_PRELOAD", "on ssh:lab:22: unset LD_PRELOAD"),
        ("ideepdoctor libs", "ideepdoctor libs --target ssh:lab:22 --python /env/bin/python"),
        ("ideepdoctor cpu --why-not avx", "ideepdoctor cpu --target ssh:lab:22 --python /env/bin/python --why-not avx"),
        ("ideepdoctor certify --target ssh:lab:22", "on ssh:lab:22: ideepdoctor certify --target ssh:lab:22"),
        ("", ""),
    ],
)
def test_a_step_says_where_it_is_to_be_done(step: str, there: str) -> None:
    assert step_there(SSH, step) == there
    assert step_there(HERE, step) == step


def test_a_target_is_named_by_its_options() -> None:
    assert named(HERE) == "--python /env/bin/python"
    assert named(DOCKER) == "--target docker:box --python /env/bin/python"


def test_a_command_reaches_the_other_side_whole() -> None:
    assert command_there(HERE, "cat /x") == "cat /x"
    assert command_there(DOCKER, "cat /x") == "docker exec -i box cat /x"
    assert command_there(DOCKER, "cat /x | wc") == "docker exec -i box sh -c 'cat /x | wc'"
    command = "python -c 'print(\"a  b\")'"
    script = f'set -- {command_there(SSH, command)}; echo "$5"'
    words = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert words.stdout == f"{command}\n"


BAD = [(rule, example) for rule in RULES for example in rule.bad]


@pytest.mark.parametrize(("rule", "example"), BAD, ids=lambda one: getattr(one, "name", None) or one.code())
def test_every_finding_about_another_machine_says_so(rule: type[Rule], example: Example) -> None:
    reach = {"target": {"address": "ssh:lab", "transport": ["ssh", "lab"]}}
    found = judge_all(facts_on(example.host, example.overlay, reach)).findings
    assert rule.code() in [item.code for item in found]
    for finding in found:
        assert finding.next_step.startswith("on ssh:lab: ") or "--target ssh:lab" in finding.next_step
        assert all(item.command is None or "ssh" in item.command for item in finding.evidence)
    near = judge_all(facts_on(example.host, example.overlay)).findings
    assert not any("ssh" in f"{item.next_step}" for item in near)
