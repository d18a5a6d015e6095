"""Driver of payload/smoke.py: is iDeep really used, is it right, how much faster."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.facts import ConvTiming, OpCheck, Smoke
from ideepdoctor.proof import statistics, verbose
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, run_payload

RAN = ("right", "wrong")
UNNAMED = "jit:unnamed"
"""The kernel where MKL-DNN made code for this processor but was built without MKLDNN_VERBOSE (ideep4py 1.0.3)."""

_OP_SECONDS = 20
"""For the imports and for each operation; the slowest takes 0.3 s on a machine with 28 threads."""
_OP_SECONDS_EMULATED = 90
"""An emulator is about ten times slower, and the shapes that its cache makes wrong are larger."""
_ANSWER_SECONDS = 5.0
"""What the payload keeps of its time to end its children and to answer."""


def run_smoke(
    system: System,
    target: Target,
    *,
    threads: int | None = None,
    timing: bool = True,
    timeout_seconds: float = 120.0,
) -> Smoke:
    """Run the smoke test in a target.

    Args:
        system: starts the process.
        target: the interpreter; no timing is made under an emulator, which measures the emulator.
        threads: OMP_NUM_THREADS for the operations; None: what a program of the target would have.
        timing: measure a convolution against NumPy, too.
        timeout_seconds: for everything; operations that do not fit are reported as not run.

    Returns:
        The answer. ``failure`` is set, and ``used`` None, where Chainer cannot be imported. ``threads`` is what the
        OpenMP runtime really uses; where that cannot be asked, because iDeep is not loaded, it is what was asked for,
        else 1.

    Raises:
        CouldNotCheck: the interpreter did not start or did not answer, or answered something else.
    """
    request = {
        "threads": threads,
        "timing": timing and not target.emulator,
        "seconds": max(1.0, timeout_seconds - _ANSWER_SECONDS),
        "op_seconds": _OP_SECONDS_EMULATED if target.emulator else _OP_SECONDS,
    }
    started = time.monotonic()
    answer = run_payload(system, target, "smoke", request, timeout_seconds=timeout_seconds)
    seconds = time.monotonic() - started
    try:
        return smoke_from(answer, asked_threads=threads, seconds=seconds)
    except (KeyError, TypeError, ValueError) as error:
        raise CouldNotCheck(
            f"{target.python} answered the smoke test with something else",
            hint="run it again; if it happens again, report it",
            context={"error": f"{type(error).__name__}: {error}"},
        ) from error


def smoke_from(answer: Mapping[str, Any], *, asked_threads: int | None, seconds: float) -> Smoke:
    """Make a Smoke of the payload's answer.

    Args:
        answer: see payload/smoke.py.
        asked_threads: OMP_NUM_THREADS that was set for it, if any.
        seconds: wall time that the payload took.

    Raises:
        KeyError, TypeError, ValueError: the answer is not one of this payload's.
    """
    threads = int(answer["threads"] or asked_threads or 1)
    kernel = verbose.convolution_kernel(verbose.parse(answer["verbose"]))
    if kernel is None and answer["tells_kernels"] is False and answer["jit_code"]:
        kernel = UNNAMED
    checks = tuple(_check(item, threads) for item in answer["checks"])
    used = None if answer["failure"] else _used(checks, kernel)
    if used is False and answer["reason"]:
        checks = tuple(_explain(check, answer["reason"]) for check in checks)
    timing = None if answer["timing"] is None else _timing(answer["timing"])
    return Smoke(
        threads=threads,
        used=used,
        kernel=kernel,
        checks=checks,
        timing=timing,
        seconds=seconds,
        failure=str(answer["failure"]),
    )


def worst(smoke: Smoke) -> OpCheck | None:
    """The check that says the worst of this target: one that did not end, else the one with the largest error.

    An error that is not finite counts as larger than any. None where nothing ran.
    """
    tried = [check for check in smoke.checks if check.status != "not-run"]
    return max(tried, key=_badness, default=None)


def healthy(smoke: Smoke) -> bool:
    """Whether iDeep is used, every check was tried and is right, and there was something to check."""
    return smoke.used is True and bool(smoke.checks) and all(check.status == "right" for check in smoke.checks)


def _badness(check: OpCheck) -> tuple[bool, bool, float]:
    error = check.max_relative_error
    size = math.inf if error is None or math.isnan(error) else error
    return check.status not in RAN, check.status == "wrong", size


def _check(item: Mapping[str, Any], threads: int) -> OpCheck:
    error, tolerance = item["error"], item["tolerance"]
    return OpCheck(
        op=str(item["op"]),
        case=str(item["case"]),
        threads=threads,
        status=str(item["status"]),
        used_ideep=item["used_ideep"],
        max_relative_error=None if error is None else float(error),
        tolerance=None if tolerance is None else float(tolerance),
        hazard=item["hazard"],
        message=str(item["message"]),
    )


def _used(checks: tuple[OpCheck, ...], kernel: str | None) -> bool | None:
    """The first convolution proves it: by the type of its output, and by the kernel that MKL-DNN names."""
    first = next((check for check in checks if check.op == "convolution"), None)
    if first is None or first.status not in RAN:
        return None
    return first.used_ideep is True and kernel is not None and kernel.startswith("jit")


def _explain(check: OpCheck, reason: str) -> OpCheck:
    """Say on a convolution that NumPy computed why that was so."""
    if check.op != "convolution" or check.used_ideep or check.message:
        return check
    return replace(check, message=f"computed by NumPy: {reason}")


def _timing(item: Mapping[str, Any]) -> ConvTiming:
    ratio = statistics.spread(statistics.ratios(item["numpy"], item["ideep"]))
    ideep = statistics.spread(item["ideep"]).median
    return ConvTiming(
        case=str(item["case"]),
        repeats=len(item["ideep"]),
        numpy_seconds=statistics.spread(item["numpy"]).median,
        ideep_seconds=ideep,
        ratio=ratio.median,
        ratio_low=ratio.low,
        ratio_high=ratio.high,
        ideep_gflops=item["flops"] / ideep / 1e9,
    )
