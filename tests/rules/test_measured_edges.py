"""Where a rule's border was measured: just inside it and just outside."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.model.plan import Install
from ideepdoctor.rules.idp303 import IDP303
from ideepdoctor.rules.overlay import apply

from .hosts import QUICK, alone, facts_on, faults, judged


def user_sets(**values: str) -> dict[str, Any]:
    return {"variables": {"inherited": values, "effective": values, "set_by_doctor": []}}


@pytest.mark.parametrize("extra", [{}, QUICK], ids=["full", "quick"])
def test_a_variable_set_to_nothing_is_not_an_unset_one(extra: dict[str, Any]):
    judgement = judged("py37-healthy", extra, user_sets(CHAINER_USE_IDEEP=""))
    assert faults(judgement) == ["IDP502"]
    assert (judgement.findings[0].severity, judgement.findings[0].fix) == (Severity.ERROR, FixSafety.MANUAL)
    assert judgement.findings[0].found == "CHAINER_USE_IDEEP is set to nothing"
    assert faults(judged("py37-healthy", extra, {"variables": {"effective": {"CHAINER_USE_IDEEP": None}}})) == [
        "IDP501"
    ]


@pytest.mark.parametrize(
    ("bind", "places", "one_thread"),
    [
        ("true", None, True),
        ("TRUE", None, True),
        ("close", None, True),
        ("spread", None, True),
        ("master", None, True),
        ("close,spread", None, True),
        (None, "cores", True),
        (None, "cores(2)", True),
        (None, "THREADS", True),
        (None, "{1}", True),
        ("false", None, False),
        ("FALSE", "cores", False),
        ("", None, False),
        (None, "sockets", False),
        (None, "{0,1}", False),
        ("true", "sockets", False),
        ("true", "{0,1}", False),
        ("close", "{0:2}", False),
    ],
)
def test_bindings_that_leave_one_thread(bind: str | None, places: str | None, one_thread: bool):
    values = {name: value for name, value in (("OMP_PROC_BIND", bind), ("OMP_PLACES", places)) if value is not None}
    many = {"limits": {"affinity_cpus": [0, 1]}}
    assert faults(judged("py37-healthy", many, user_sets(**values))) == (["IDP505"] if one_thread else [])
    assert faults(judged("py37-healthy", {"limits": {"affinity_cpus": [1]}}, user_sets(**values))) == []
    assert faults(judged("py36-healthy", many, user_sets(**values))) == []


@pytest.mark.parametrize(("chainer", "read"), [("4.5.0", False), ("5.4.0", True), ("7.8.1", True)])
def test_chainer_4_does_not_read_the_dtype(chainer: str, read: bool):
    pair = {"packages": {"chainer": chainer, "ideep4py": "1.0.4" if chainer < "5" else "2.0.0.post3"}}
    judgement = judged("py36-healthy", pair, user_sets(CHAINER_DTYPE="float64"))
    assert faults(judgement) == (["IDP503"] if read else [])


@pytest.mark.parametrize("extra", [{}, QUICK], ids=["full", "quick"])
def test_a_build_for_a_python_without_a_wheel(extra: dict[str, Any]):
    built = {"ideep4py": {"version": "2.0.0", "tags": ["cp38-cp38-linux_x86_64"]}}
    newer = {"python": {"version": "3.8.18", "abi": "cp38"}, "packages": built}
    assert faults(judged("py37-healthy", newer, extra)) == []
    assert faults(judged("py37-healthy", newer, extra, {"packages": {"ideep4py": None}})) == ["IDP201"]
    assert alone("IDP201", "py37-healthy", newer, extra, {"planned_ideep4py": "2.0.0.post3"})


def test_cupy_that_chainer_cannot_read_is_named():
    broken = {"ok": False, "error_type": "ValueError", "error_text": "Not a valid numpy version string"}
    overlay = {"packages": {"chainer": "7.8.0"}, "imports": {"chainer": broken}, "chainer": None}
    (finding,) = alone("IDP311", "py37-healthy", overlay)
    assert "CuPy" in finding.consequence
    assert "7.8.1" in finding.next_step


def test_an_overlay_changes_what_it_names_and_nothing_else():
    host = {"variables": {"inherited": {"A": "1", "B": "2"}, "effective": {"A": "1"}}, "imports": {"x": {"ok": True}}}
    before = repr(host)
    changed = apply(host, {"variables": {"inherited": {"A": None}, "effective": None}, "imports": None})
    assert changed == {"variables": {"inherited": {"B": "2"}, "effective": None}, "imports": None}
    assert repr(host) == before


def test_facts_without_effective_variables_go_by_the_inherited_ones():
    known = {"CHAINER_USE_IDEEP": "1", "MKL_DEBUG_CPU_TYPE": "7"}
    overlay = {"variables": {"inherited": known, "effective": None, "set_by_doctor": []}}
    assert facts_on("py37-healthy", overlay).variables.effective is None
    assert faults(judged("py37-healthy", overlay)) == ["IDP502"]


@pytest.mark.parametrize(("value", "codes"), [("1", ["IDP502"]), ("auto", ["IDP701"]), ("never", ["IDP701"])])
def test_mkl_on_amd_is_no_matter_while_every_function_raises(value: str, codes: list[str]):
    amd = {"cpu": {"vendor": "AuthenticAMD", "cpuid_vendor": "AuthenticAMD"}}
    unset = {"variables": {"effective": {"MKL_DEBUG_CPU_TYPE": None}}}
    assert faults(judged("py37-healthy", amd, user_sets(CHAINER_USE_IDEEP=value), unset)) == codes


def test_a_pair_that_must_go_is_one_finding_whatever_its_numpy():
    old = {"packages": {"numpy": "1.12.1"}}
    unused = {"packages": {"ideep4py": "1.0.4", "chainer": "7.8.1"}}
    assert faults(judged("py36-healthy", old)) == ["IDP305"]
    assert faults(judged("py36-healthy", old, unused)) == ["IDP303"]
    (finding,) = alone("IDP303", "py36-healthy", old, unused)
    (step,) = IDP303().treat(finding, facts_on("py36-healthy", old, unused))
    assert isinstance(step, Install)
    assert {"ideep4py", "numpy"} <= {item.name for item in step.requirements}
