"""What certify saw of lasting effects, memory and forked children, as facts and as faults. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from ideepdoctor.model.facts import Lasting, Outcome
from ideepdoctor.proof.certify_data import Case, Result, Setting
from ideepdoctor.rules.lasting import leaks, megabytes

LEAK = "leak"
"""What a case is said to show whose memory grows with every step."""
CODES = ("IDP620", "IDP621", "IDP622")
"""The rules about it."""

Pairs = Sequence[tuple[Case, Setting]]
Results = Mapping[tuple[str, str], Result]


def lasting_of(pairs: Pairs, results: Results) -> Lasting | None:
    """What the cases ``memory`` and ``fork`` measured; None where none of them was tried."""
    found = Lasting()
    for case, setting in pairs:
        item = results.get((case.key, setting.name))
        if item is None or item.status == "not-run":
            continue
        measured = item.measured or {}
        if case.family == "fork":
            found = replace(found, fork=_outcome(item, measured))
        elif "same_bytes" in measured:
            count, grown = int(measured["count"]), int(measured["same_bytes"])
            found = replace(found, fixed_calls=count, fixed_growth_bytes=grown)
        elif "ideep_bytes" in measured:
            count, grown = int(measured["count"]), int(measured["ideep_bytes"])
            found = replace(found, varying_shapes=count, varying_growth_bytes=grown)
        elif "numpy_bytes" in measured:
            found = replace(found, numpy_growth_bytes=int(measured["numpy_bytes"]))
    return None if found == Lasting() else found


def _outcome(item: Result, measured: Mapping[str, Any]) -> Outcome:
    """How the child ended, or the process that was to fork it."""
    return Outcome(
        ok=item.status == "right",
        seconds=float(measured.get("seconds", item.seconds or 0.0)),
        error_text=item.message or None,
        signal=measured.get("signal"),
        exit_code=measured.get("exit_code"),
        timed_out=item.status == "timeout",
    )


def with_leaks(results: Results, lasting: Lasting | None) -> dict[tuple[str, str], Result]:
    """The results, with the case of the same shapes as wrong where its memory grew with every step."""
    if lasting is None or not leaks(lasting):
        return dict(results)
    text = f"{lasting.fixed_calls} steps took {megabytes(lasting.fixed_growth_bytes or 0)} more and more"
    return {
        key: replace(item, status="wrong", hazard=LEAK, error=None, message=text)
        if item.measured and "same_bytes" in item.measured
        else item
        for key, item in results.items()
    }


def memory_data(lasting: Lasting | None) -> dict[str, Any] | None:
    """The document's ``memory``; None where nothing of it was measured."""
    if lasting is None or (lasting.fixed_growth_bytes is None and lasting.varying_growth_bytes is None):
        return None
    return {
        "steps": lasting.fixed_calls,
        "step_bytes": lasting.fixed_growth_bytes,
        "shapes": lasting.varying_shapes,
        "ideep_bytes": lasting.varying_growth_bytes,
        "numpy_bytes": lasting.numpy_growth_bytes,
    }


def fork_data(lasting: Lasting | None) -> dict[str, Any] | None:
    """The document's ``fork``; None where it was not tried."""
    if lasting is None or lasting.fork is None:
        return None
    names = ("ok", "seconds", "timed_out", "signal", "exit_code", "error_text")
    return {name: value for name, value in asdict(lasting.fork).items() if name in names}
