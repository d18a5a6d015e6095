"""Two sets of facts: what changed, and which change explains what is new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideepdoctor.facts.compare import compare
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json, load_facts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.overlay import apply

HOSTS = Path(__file__).parents[1] / "hosts"
HEALTHY = load_facts(str(HOSTS / "py37-healthy.json"))


def judged(facts: Facts):
    return judge(facts, RULES)


def changed(**overlay: Any) -> Facts:
    return facts_from_json(apply(facts_to_json(HEALTHY), overlay))


def because(first: Facts, second: Facts) -> dict[str, tuple[tuple[str, ...], ...]]:
    return {item.finding.code: item.because for item in compare(first, second, judged).new}


def test_nothing_changed():
    found = compare(HEALTHY, HEALTHY, judged)
    assert (found.changes, found.new, found.gone) == ((), (), ())


@pytest.mark.parametrize(
    ("overlay", "wanted"),
    [
        ({"packages": {"numpy": "1.15.4", "six": None}}, {"IDP305": (("package numpy",),)}),
        (
            {"variables": {"effective": {"OMP_NUM_THREADS": "9"}}, "packages": {"requests": "2.1"}},
            {"IDP504": (("variable OMP_NUM_THREADS",),)},
        ),
    ],
)
def test_the_change_without_which_it_would_not_be_is_named_and_no_other(overlay, wanted):
    assert because(HEALTHY, changed(**overlay)) == wanted


class NoAvx(Rule):
    """AVX cannot be used: its flag is missing, or its registers are not saved."""

    title = "No AVX"
    severity = Severity.ERROR

    def check(self, facts: Facts) -> Iterator[Finding]:
        if "avx" not in (facts.cpu.flags or ()) or (facts.cpu.xcr0 or 0) & 6 != 6:
            yield self.finding(found="no AVX", needed="AVX", consequence="SIGILL", next_step="none")


def test_two_changes_that_only_together_do_it_are_named_together():
    second = changed(cpu={"cpuid_flags": ["sse2"], "cpuinfo_flags": ["sse2"], "xcr0": 3})
    [found] = compare(HEALTHY, second, lambda facts: judge(facts, (NoAvx,))).new
    assert all(len(names) > 1 and all(name.startswith("cpu ") for name in names) for names in found.because)
    assert found.because == (("cpu cpuinfo_flags", "cpu xcr0"),)


def test_what_is_only_seen_explains_nothing():
    died = {"ok": False, "error_type": "ImportError", "error_text": "libmkldnn.so.0: cannot open shared object file"}
    second = changed(imports={"ideep4py": died})
    found = compare(HEALTHY, second, judged)
    assert [item.symptom for item in found.changes] == [True]
    assert found.new
    assert all(item.because == () for item in found.new)


def test_a_finding_that_is_gone_and_one_that_stays():
    first = changed(packages={"numpy": "1.15.4"}, variables={"effective": {"OMP_NUM_THREADS": "9"}})
    second = changed(packages={"numpy": "1.15.4"})
    found = compare(first, second, judged)
    assert [item.code for item in found.gone] == ["IDP504"]
    assert "IDP305" in [item.code for item in found.same]
    assert found.new == ()


def test_where_an_environment_lies_is_no_change():
    text = json.dumps(facts_to_json(HEALTHY)).replace("/home/user/ideep", "/srv/other place/env")
    moved = facts_from_json(json.loads(text))
    found = compare(HEALTHY, moved, judged)
    assert [item.what for item in found.changes] == []
    assert (found.new, found.gone) == ((), ())


def test_the_same_fault_elsewhere_is_the_same_fault():
    first = changed(packages={"numpy": "1.15.4"})
    text = json.dumps(facts_to_json(first)).replace("/home/user/ideep", "/srv/env")
    found = compare(first, facts_from_json(json.loads(text)), judged)
    assert found.new == ()
    assert "IDP305" in [item.code for item in found.same]


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["numpy", "six", "protobuf", "requests"]), st.sampled_from(["1.15.4", "4.21", None])
    ),
    st.dictionaries(st.sampled_from(["OMP_NUM_THREADS", "CHAINER_USE_IDEEP"]), st.sampled_from(["9", "never"])),
)
def test_every_explanation_is_true(packages, variables):
    second = changed(packages=packages, variables={"effective": variables})
    found = compare(HEALTHY, second, judged)
    changes = {item.what for item in found.changes}
    assert {item.finding for item in found.new} <= set(found.judgement.findings)
    for item in found.new:
        for names in item.because:
            assert set(names) <= changes
            package = {name.removeprefix("package ") for name in names if name.startswith("package ")}
            variable = {name.removeprefix("variable ") for name in names if name.startswith("variable ")}
            without = changed(
                packages={name: value for name, value in packages.items() if name not in package},
                variables={"effective": {name: value for name, value in variables.items() if name not in variable}},
            )
            assert item.finding.found not in [
                left.found for left in judged(without).findings if left.code == item.finding.code
            ]
