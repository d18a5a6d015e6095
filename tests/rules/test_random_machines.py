"""A healthy machine stays healthy whatever it has that does no harm, and a fault on it is found."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rules.healthy_machines import machines
from tests.rules.hosts import faults, judged, unknowns

Machine = tuple[str, list[dict[str, Any]]]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines())
def test_a_healthy_machine_is_healthy_whatever_else_it_has(machine: Machine):
    host, overlays = machine
    judgement = judged(host, *overlays)
    assert (faults(judgement), unknowns(judgement), judgement.skipped) == ([], [], ())
    assert judgement.findings == (), "a processor that shows what it has is no note either"


BROKEN: dict[str, dict[str, Any]] = {
    "IDP501": {"variables": {"effective": {"CHAINER_USE_IDEEP": None}}},
    "IDP504": {"variables": {"effective": {"OMP_NUM_THREADS": "4096"}}},
    "IDP305": {"packages": {"numpy": "1.9.3"}},
    "IDP304": {"packages": {"chainer": "4.5.0"}},
}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines(), st.sampled_from(sorted(BROKEN)))
def test_the_same_machines_with_a_fault_have_a_finding(machine: Machine, code: str):
    host, overlays = machine
    assert faults(judged(host, *overlays, BROKEN[code])) == [code]
