"""The driver of the smoke test, with canned answers of its payload."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.facts import OpCheck, Smoke
from ideepdoctor.proof.smoke import UNNAMED, healthy, run_smoke, worst
from ideepdoctor.targets.target import Target
from tests.doubles import FakeSystem, completed, payload_answer

CONVOLUTION = (
    "mkldnn_verbose,exec,convolution,jit:avx2,forward_training,fsrc:nChw8c fwei:OIhw8i8o fbia:x fdst:nChw8c,"
    "alg:convolution_direct,mb4_g1ic16oc32_ih14oh14kh3sh1dh0ph1_iw14ow14kw3sw1dw0pw1,0.12"
)


def item(op: str = "convolution", status: str = "right", **fields: Any) -> dict[str, Any]:
    plain = {
        "op": op,
        "case": "x (4,16,14,14)",
        "hazard": None,
        "status": status,
        "used_ideep": True,
        "error": 4e-7,
        "tolerance": 1e-5,
        "message": "",
    }
    return {**plain, **fields}


def answer(*checks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    plain = {
        "failure": "",
        "threads": 2,
        "available": True,
        "reason": "",
        "checks": list(checks) or [item()],
        "tells_kernels": True,
        "jit_code": True,
        "verbose": [CONVOLUTION],
        "timing": None,
    }
    return {**plain, **fields}


def run(given: dict[str, Any], **options: Any) -> Smoke:
    return run_smoke(FakeSystem().on("python3.7", payload_answer(given)), Target("python3.7"), **options)


def request_of(system: FakeSystem) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(system.calls[0].argv[-1]))


def test_the_answer_becomes_a_smoke() -> None:
    seen = run(answer(item(), item("relu", "wrong", error=0.5, hazard="H9", message="output is off by 0.5")))
    assert (seen.threads, seen.used, seen.kernel, seen.failure, seen.timing) == (2, True, "jit:avx2", "", None)
    assert seen.checks[1] == OpCheck(
        op="relu",
        case="x (4,16,14,14)",
        threads=2,
        status="wrong",
        used_ideep=True,
        max_relative_error=0.5,
        tolerance=1e-5,
        hazard="H9",
        message="output is off by 0.5",
    )


def test_the_request_says_what_was_asked_for() -> None:
    system = FakeSystem().on("python3.7", payload_answer(answer()))
    run_smoke(system, Target("python3.7"), threads=3, timing=True, timeout_seconds=60)
    asked = request_of(system)
    assert (asked["threads"], asked["timing"], asked["emulator"]) == (3, True, [])
    assert asked["seconds"] < 60 == system.calls[0].timeout_seconds


def test_an_emulator_is_not_timed_and_gets_more_time_for_each_operation() -> None:
    plain = FakeSystem().on("python3.7", payload_answer(answer()))
    run_smoke(plain, Target("python3.7"))
    system = FakeSystem().on("qemu-x86_64", payload_answer(answer()))
    run_smoke(system, Target("python3.7", emulator=("qemu-x86_64", "-cpu", "Haswell")))
    asked = request_of(system)
    assert asked["timing"] is False
    assert asked["emulator"] == ["qemu-x86_64", "-cpu", "Haswell"]
    assert asked["op_seconds"] > request_of(plain)["op_seconds"]
    assert request_of(plain)["timing"] is True


@pytest.mark.parametrize(
    ("fields", "used"),
    [
        ({}, True),
        ({"checks": [item(used_ideep=False)]}, False),
        ({"verbose": []}, False),
        ({"verbose": [CONVOLUTION.replace("jit:avx2", "gemm:blas")]}, False),
        ({"checks": [item(status="crashed", used_ideep=None, error=None)], "verbose": []}, None),
        ({"checks": [item("relu")]}, None),
        ({"failure": "import of chainer: SIGILL"}, None),
    ],
)
def test_use_is_proved_by_the_array_and_the_kernel_together(fields: dict[str, Any], used: bool | None) -> None:
    assert run(answer(**fields)).used is used


@pytest.mark.parametrize(
    ("tells", "jit", "kernel"),
    [(False, True, UNNAMED), (False, False, None), (True, True, None), (None, True, None)],
)
def test_a_library_that_cannot_name_its_kernel_is_believed_by_the_code_it_made(
    tells: bool | None, jit: bool, kernel: str | None
) -> None:
    seen = run(answer(verbose=[], tells_kernels=tells, jit_code=jit))
    assert seen.kernel == kernel
    assert seen.used is (kernel is not None)


def test_why_iDeep_was_not_used_is_said_on_the_convolution() -> None:
    reason = "RuntimeError: Unsupported iDeep version (1)"
    seen = run(answer(item(used_ideep=False), item("relu", used_ideep=False), verbose=[], reason=reason))
    assert seen.used is False
    assert seen.checks[0].message == f"computed by NumPy: {reason}"
    assert seen.checks[1].message == ""


def test_threads_are_what_the_runtime_says_then_what_was_asked_for() -> None:
    assert run(answer(threads=2), threads=8).threads == 2
    assert run(answer(threads=None), threads=8).threads == 8
    assert run(answer(threads=None)).threads == 1


def test_timing_is_the_median_of_ratios_with_their_quartiles() -> None:
    measured = {
        "case": "batch 8",
        "flops": 3_000_000_000,
        "numpy": [0.04, 0.08, 0.06, 0.05, 0.09],
        "ideep": [0.01, 0.04, 0.02, 0.01, 0.03],
    }
    timing = run(answer(timing=measured)).timing
    assert timing is not None
    assert (timing.repeats, timing.numpy_seconds, timing.ideep_seconds) == (5, 0.06, 0.02)
    assert (timing.ratio_low, timing.ratio, timing.ratio_high) == pytest.approx((3.0, 3.0, 4.0))
    assert timing.ideep_gflops == pytest.approx(150.0)


def test_an_interpreter_that_does_not_answer_is_an_error_with_a_hint() -> None:
    with pytest.raises(CouldNotCheck):
        run_smoke(FakeSystem().on("python3.7", completed(returncode=-9)), Target("python3.7"))
    with pytest.raises(CouldNotCheck):
        run_smoke(FakeSystem(), Target("python3.7"))


@pytest.mark.parametrize("spoil", ["checks", "verbose", "threads", "timing"])
def test_an_answer_that_is_another_programs_is_an_error(spoil: str) -> None:
    given = answer()
    del given[spoil]
    with pytest.raises(CouldNotCheck, match="something else"):
        run(given)
    with pytest.raises(CouldNotCheck, match="something else"):
        run(answer(checks=[{"op": "relu"}]))


def ops(*given: dict[str, Any]) -> Smoke:
    return run(answer(*given))


def test_the_worst_is_what_did_not_end_then_the_largest_error() -> None:
    right = [item(error=1e-7), item("relu", error=3e-6)]
    small = item("linear", "wrong", error=0.1)
    large = item("lrn", "wrong", error=1.3)
    endless = item("bn", "wrong", error=None)
    crash = item("concat", "crashed", error=None)
    skipped = item("lstm", "not-run", error=None)
    expected = ["relu", "linear", "lrn", "bn", "concat"]
    found = []
    for seen in (right, [*right, small], [large, *right, small], [endless, large], [crash, endless, *right, skipped]):
        check = worst(ops(*seen))
        assert check is not None
        found.append(check.op)
    assert found == expected


def test_nothing_that_ran_has_no_worst() -> None:
    assert worst(ops(item("lstm", "not-run", error=None))) is None


def test_healthy_is_used_and_all_tried_and_all_right() -> None:
    assert healthy(ops(item(), item("relu")))
    assert not healthy(run(answer(verbose=[])))
    assert not healthy(run(answer(failure="import of chainer: SIGILL")))
    for status in ("wrong", "crashed", "raised", "timeout", "not-run"):
        assert not healthy(ops(item(), item("relu", status)))
    assert not healthy(Smoke(threads=2, used=True, kernel="jit:avx2"))
