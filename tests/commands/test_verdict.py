"""The sentence that a proof comes to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.commands.verdict import verdict
from ideepdoctor.model.facts import ConvTiming, OpCheck, Smoke
from ideepdoctor.model.findings import Finding, Judgement, NotKnown, Severity
from tests.rules.hosts import facts_on

FACTS = facts_on("py37-healthy")
STACK = "Python 3.7.16, Chainer 7.8.1, ideep4py 2.0.0.post3, NumPy 1.21.6"
RIGHT = OpCheck("convolution", "(8,16,56,56)", 2, "right", True, 1.4e-6, 1e-4)
WRONG = OpCheck("batch_normalization", "(8,16,56,56)", 2, "wrong", True, 0.46, 1e-4, hazard="H1")
TIMING = ConvTiming("conv", 7, 0.3, 0.1, 3.04, 2.55, 3.26, 100.0)
SMOKE = Smoke(2, True, "jit:avx2", (RIGHT, replace(RIGHT, max_relative_error=2e-7)))
HEALTHY = Judgement()


def finding(severity: Severity) -> Finding:
    return Finding("IDP999", severity, "t", "f", "n", "c", "s")


def test_ready_says_what_was_proved():
    assert verdict(FACTS, HEALTHY, SMOKE) == (
        f"READY: {STACK}; iDeep is used (kernel jit:avx2, 2 threads). "
        "2 of 2 checks are right, worst relative error 1.4e-06. "
        "The guard corrects what is known to be wrong with these releases."
    )
    assert "guard" not in verdict(facts_on("py37-healthy", {"guard": None}), HEALTHY, SMOKE)


def test_the_speed_is_said_where_it_was_measured():
    text = verdict(FACTS, HEALTHY, replace(SMOKE, threads=1, timing=TIMING))
    assert "(kernel jit:avx2, 1 thread)" in text
    assert text.endswith("Convolution forward + backward: 3.0 times NumPy (2.5 to 3.3).")


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.INFO])
def test_known_hazards_are_named_and_leave_it_ready(severity: Severity):
    smoke = replace(SMOKE, checks=(RIGHT, WRONG, replace(WRONG, hazard="H14"), replace(WRONG, hazard="H2")))
    text = verdict(FACTS, Judgement((finding(severity),)), smoke)
    assert text.startswith("READY: ")
    assert "1 of 4 checks are right, worst relative error 1.4e-06. " in text
    assert "3 are NOT right (known hazards H1, H2, H14): see the findings." in text


@pytest.mark.parametrize("status", ["wrong", "crashed", "raised", "timeout"])
def test_one_that_is_not_right_is_counted_whatever_its_ending(status: str):
    smoke = replace(SMOKE, checks=(RIGHT, replace(WRONG, status=status, hazard=None, max_relative_error=None)))
    text = verdict(FACTS, Judgement((finding(Severity.ERROR),)), smoke)
    assert text.startswith("FAULTY: ")
    assert text.endswith("1 of 2 checks are right, worst relative error 1.4e-06. 1 is NOT right: see the findings.")


def test_what_was_not_run_counts_neither_way():
    smoke = replace(SMOKE, checks=(RIGHT, replace(RIGHT, status="not-run", max_relative_error=9.0)))
    assert "1 of 1 checks are right, worst relative error 1.4e-06." in verdict(FACTS, HEALTHY, smoke)


@pytest.mark.parametrize("checks", [(), (replace(RIGHT, status="not-run"),), (WRONG,)])
def test_where_nothing_was_right_nothing_is_ready(checks: tuple[OpCheck, ...]):
    text = verdict(FACTS, HEALTHY, replace(SMOKE, checks=checks))
    assert text.startswith("UNDECIDED: ")
    assert "nothing was compared" in text or "NOT right" in text


def test_what_could_not_be_decided_is_not_ready():
    judgement = Judgement(unknown=(NotKnown("IDP110", "t", "r"), NotKnown("IDP701", "t", "r")))
    text = verdict(FACTS, judgement, SMOKE)
    assert text.startswith("UNDECIDED: ")
    assert text.endswith("2 rules could not be decided: see the findings.")
    assert verdict(FACTS, replace(judgement, unknown=judgement.unknown[:1]), SMOKE).endswith(
        "1 rule could not be decided: see the findings."
    )
    assert verdict(FACTS, replace(judgement, findings=(finding(Severity.ERROR),)), SMOKE).startswith("FAULTY: ")


def test_numpy_alone_is_not_used():
    text = verdict(FACTS, HEALTHY, replace(SMOKE, used=False))
    assert text == f"NOT USED on {STACK}: Chainer computed with NumPy, not with iDeep."


@pytest.mark.parametrize(
    ("smoke", "why"),
    [
        (replace(SMOKE, failure="import chainer: SIGSEGV"), "import chainer: SIGSEGV"),
        (replace(SMOKE, used=False, failure="timeout"), "timeout"),
        (replace(SMOKE, used=None), "no answer"),
    ],
)
def test_what_could_not_run_proves_nothing(smoke: Smoke, why: str):
    assert verdict(FACTS, HEALTHY, smoke) == f"NOT PROVED on {STACK}: the smoke test could not run ({why})."


def test_only_what_is_installed_is_named():
    alone = facts_on("py37-healthy", {"packages": {"chainer": None, "numpy": None}})
    assert verdict(alone, HEALTHY, SMOKE).startswith("READY: Python 3.7.16, ideep4py 2.0.0.post3; iDeep")
