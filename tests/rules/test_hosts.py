"""Every recorded machine has the findings that a person has reviewed, and the constructed ones are up to date."""

from __future__ import annotations

import pytest

from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from tests.hosts.build import HERE, SHAPES, built
from tests.hosts.review import FINDINGS, facts_of, findings_text, hosts
from tests.rules.hosts import alone

AGAIN = "python tests/hosts/{}.py makes it; read what changed"


def test_there_are_enough_machines():
    assert len(hosts()) >= 40
    assert {path.stem for path in SHAPES.glob("*.toml")} <= set(hosts())
    assert {path.stem for path in FINDINGS.glob("*.txt")} == set(hosts())


@pytest.mark.parametrize("path", sorted(SHAPES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_constructed_machine_is_what_its_shape_makes(path):
    assert (HERE / f"{path.stem}.json").read_text("utf-8") == built(path), AGAIN.format("build")


@pytest.mark.parametrize("name", hosts())
def test_a_machine_has_the_findings_that_were_reviewed(name: str):
    assert (FINDINGS / f"{name}.txt").read_text("utf-8") == findings_text(name), AGAIN.format("review")


@pytest.mark.parametrize("name", hosts())
def test_nothing_of_the_machine_that_recorded_it_is_left(name: str):
    text = (HERE / f"{name}.json").read_text("utf-8")
    assert not any(word in text for word in ("/root", "/tmp/", "/work/")), name
    facts = facts_of(name)
    assert facts.collected_at == "2026-01-01T00:00:00Z"
    assert facts.python.executable.startswith(("/home/user/", "/usr/", "C:/Users/user/"))


def test_on_arm_the_advice_is_for_the_python_that_is_there():
    """Chainer needs Python 3.11 or older; Debian's own Python may not be changed by pip."""
    for name in ("graviton3", "raspberry-pi-4", "apple-m1"):
        [finding] = [item for item in judge(facts_of(name), RULES).findings if item.code == "IDP101"]
        assert finding.next_step.startswith("make an environment with Python 3.8 to 3.11"), name
    [finding] = alone("IDP101", "py311-nothing", {"platform": {"machine": "aarch64"}})
    assert finding.next_step.startswith("python -m pip install 'setuptools<74'")
