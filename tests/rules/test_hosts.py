"""Every recorded machine has the findings that a person has reviewed, and the constructed ones are up to date."""

from __future__ import annotations

import pytest

from tests.hosts.build import HERE, SHAPES, built
from tests.hosts.review import FINDINGS, facts_of, findings_text, hosts

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
