"""What findings say of the consequence where it depends on what is known: every bad example, by what it holds."""

from __future__ import annotations

import pytest

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.model.plan import Install, SetRpath
from ideepdoctor.rules.idp115 import IDP115
from ideepdoctor.rules.idp405 import IDP405
from ideepdoctor.rules.idp411 import IDP411
from ideepdoctor.rules.idp506 import IDP506
from ideepdoctor.rules.idp509 import IDP509
from ideepdoctor.rules.idp707 import IDP707
from tests.rules.hosts import alone, facts_on


def of_example(rule: type, name: str) -> tuple[Facts, Finding]:
    example = next(one for one in rule.bad if one.name == name)
    facts = facts_on(example.host, example.overlay)
    [finding] = rule().check(facts)
    return facts, finding


@pytest.mark.parametrize("name", [one.name for one in IDP115.bad if not one.name.startswith("WSL")])
def test_registers_are_those_of_the_processor_by_its_name(name: str):
    example = next(one for one in IDP115.bad if one.name == name)
    facts, finding = of_example(IDP115, name)
    assert facts.cpu.model_name
    assert f"of {facts.cpu.model_name}:" in finding.found
    [nameless] = alone("IDP115", example.host, example.overlay, {"cpu": {"model_name": None}})
    assert "of this CPU:" in nameless.found


@pytest.mark.parametrize("name", [one.name for one in IDP411.bad])
def test_a_mixed_mkl_says_how_the_import_ended_or_what_will_come(name: str):
    facts, finding = of_example(IDP411, name)
    numpy = (facts.imports or {}).get("numpy")
    if numpy is not None and not numpy.ok:
        assert finding.consequence == f"measured: the process ended with exit code {numpy.exit_code}"
    else:
        assert finding.consequence.startswith("numpy.fft may end")


def test_both_endings_of_a_mixed_mkl_are_among_the_examples():
    said = {of_example(IDP411, one.name)[1].consequence.split()[0] for one in IDP411.bad}
    assert said == {"measured:", "numpy.fft"}


def test_a_threading_layer_ends_what_it_ended():
    example = IDP506.bad[0]
    working = alone("IDP506", example.host, example.overlay, {"imports": {"numpy": {"ok": True}}})
    assert [one.consequence for one in working] == ["import mkl ends the process with exit code 1"]
    dead = alone("IDP506", example.host, example.overlay, {"imports": {"numpy": {"ok": False, "exit_code": 1}}})
    assert [one.consequence for one in dead] == ["the import of NumPy ends the process"]


def test_a_harmful_value_is_shown_with_its_variable():
    facts, finding = of_example(IDP509, "OpenMP may give fewer threads")
    assert (facts.variables.effective or {})["OMP_DYNAMIC"] == "true"
    assert finding.found == "OMP_DYNAMIC=true"


@pytest.mark.parametrize("name", [one.name for one in IDP707.bad])
def test_a_limit_that_is_surely_too_low_says_what_ends(name: str):
    _, finding = of_example(IDP707, name)
    surely = ("the first operation ends", "import ideep4py fails", "the kernel kills")
    assert finding.consequence.startswith(surely) == (finding.severity is Severity.ERROR)


def test_a_tag_that_somebody_changed_in_a_wheel_is_cured_by_the_wheel_and_a_build_by_its_tag():
    example = IDP405.bad[0]
    facts, finding = of_example(IDP405, example.name)
    steps = IDP405().treat(finding, facts)
    assert steps
    assert all(isinstance(step, SetRpath) for step in steps)
    binding = facts.native.binding
    assert {step.rpath for step in steps if step.path == binding} == {"$ORIGIN/lib"}
    assert {step.rpath for step in steps if step.path != binding} <= {"$ORIGIN"}
    row = {"path": steps[0].path, "problem": "sha256", "expected": "a", "found": "b"}
    changed = facts_on(example.host, example.overlay, {"packages": {"ideep4py": {"altered": [row]}}})
    assert [type(step) for step in IDP405().treat(finding, changed)] == [Install]
    other = facts_on(
        example.host, example.overlay, {"packages": {"ideep4py": {"altered": [{**row, "path": "/elsewhere.so"}]}}}
    )
    assert {type(step) for step in IDP405().treat(finding, other)} == {SetRpath}
    gone = facts_on(example.host, example.overlay, {"packages": {"ideep4py": None}})
    assert IDP405().treat(finding, gone) == ()
    foreign = facts_on(
        example.host,
        example.overlay,
        {"packages": {"ideep4py": {"altered": [row]}}, "python": {"implementation": "PyPy", "abi": "pypy37_pp73"}},
    )
    assert {type(step) for step in IDP405().treat(finding, foreign)} == {SetRpath}
