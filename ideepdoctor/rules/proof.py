"""What the rules about the smoke test share: checks by hazard, and examples of smoke tests."""

from __future__ import annotations

from typing import Any

from ideepdoctor.model.facts import Facts, OpCheck
from ideepdoctor.model.findings import Evidence

KNOWN = ("H1", "H2", "H3", "H4", "H5", "H7", "H8", "H9", "H10", "H11", "H14", "H15", "H16", "H17", "to_intel64-bn")
"""Hazards that have a rule of their own."""


def failing(facts: Facts, hazard: str) -> list[OpCheck]:
    """The checks of a known hazard that did not go right; none where no smoke test was run."""
    return [] if facts.smoke is None else [c for c in facts.smoke.checks if c.hazard == hazard and c.failed]


def describe(checks: list[OpCheck]) -> str:
    """The worst check in words, and how many there are."""
    worst = max(checks, key=lambda check: check.max_relative_error or 0.0)
    if worst.max_relative_error is None:
        how = worst.message or worst.status
    else:
        how = f"off by {percent(worst.max_relative_error)}"
    more = f", and {len(checks) - 1} more" if len(checks) > 1 else ""
    return f"{worst.op} {worst.case}".strip() + f": {how} ({threads(worst.threads)}){more}"


def percent(error: float) -> str:
    """A relative error as people say it."""
    if not error < 1e6:
        return "everything"
    return f"{100 * error:.0f} %" if error >= 0.1 else f"{100 * error:.2g} %"


def threads(count: int) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{count} thread{'' if count == 1 else 's'}"


def evidence(checks: list[OpCheck]) -> tuple[Evidence, ...]:
    """Each failing case, with the command that shows it."""
    return tuple(
        Evidence(f"{check.status}: {check.op} {check.case} {check.message}".strip(), None, "ideepdoctor smoke -v")
        for check in checks
    )


def smoke(*checks: dict[str, Any], used: bool | None = True, ratio: float | None = 3.0) -> dict[str, Any]:
    """A smoke test for an example."""
    timing = None if ratio is None else {**_TIMING, "ratio": ratio, "ratio_low": ratio * 0.9, "ratio_high": ratio * 1.1}
    return {
        "smoke": {
            "threads": 2,
            "used": used,
            "kernel": "jit:avx2" if used else None,
            "checks": list(checks),
            "timing": timing,
            "seconds": 3.0,
            "failure": "",
        }
    }


def unguarded(*checks: dict[str, Any]) -> dict[str, Any]:
    """A smoke test for an example, in an environment that has no guard."""
    return {**smoke(*checks), "guard": {"choice": None, "path": None, "current": None, "corrections": None}}


def check(op: str, status: str, hazard: str | None = None, error: float | None = None) -> dict[str, Any]:
    """A check for an example."""
    return {
        "op": op,
        "case": "(8,16,56,56)",
        "threads": 2,
        "status": status,
        "used_ideep": True,
        "max_relative_error": error,
        "tolerance": 1e-4,
        "hazard": hazard,
        "message": "",
    }


_TIMING = {
    "case": "conv",
    "repeats": 7,
    "numpy_seconds": 0.3,
    "ideep_seconds": 0.1,
    "ideep_gflops": 100.0,
}
