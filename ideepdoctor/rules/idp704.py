"""IDP704: iDeep stays far below what this machine computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.causes import because, causes

_LEAST = 1 / 3


def _bench(of_ceiling: float | None, low: float = 0.98, quiet: bool = True, engine: str = "ideep") -> dict[str, Any]:
    step = {
        "engine": engine,
        "subject": "vgga, batch 8",
        "threads": 2,
        "seconds": 1.0,
        "low": low,
        "high": 1.02,
        "of_ceiling": of_ceiling,
    }
    return {"bench": {"steps": [step], "quiet": quiet, "noise": [] if quiet else ["other programs took 30 %"]}}


class IDP704(Rule):
    """A training step with iDeep runs at less than a third of the best matrix product that was measured here.

    What it checks
        GFLOP/s of the steps that ``ideepdoctor bench`` timed with iDeep as it is set up here, against its best product
        of two matrices on the same machine in the same run. Nothing is said where nothing was timed.

    Why it matters
        The networks that bench measures are convolutions and matrix products, and reach half of that and more. Far less
        means that something is in the way: too many threads for a quota or an affinity, MKL's slow path on AMD, an
        emulated processor, other programs, or functions that iDeep does not compute.

    How to fix
        Remove the cause that is named; ``ideepdoctor tune`` looks for a faster setting, ``ideepdoctor trace`` shows
        where the time goes.

    References
        Measured here: AlexNet, VGG-A and OverFeat reach 70 to 95 % of the ceiling on two cores with AVX-512.
    """

    title = "iDeep stays far below what this machine computes"
    severity = Severity.WARNING
    requires = ("IDP601",)
    ok = (
        Example("nothing was measured"),
        Example("most of it", _bench(0.8)),
        Example("no ceiling is known", _bench(None)),
        Example("not clearly below", _bench(0.32, low=0.9)),
        Example("NumPy is another matter", _bench(0.1, engine="numpy")),
    )
    bad = (
        Example("a tenth", _bench(0.1)),
        Example("on a busy machine", _bench(0.2, quiet=False)),
        Example("by a quota", {**_bench(0.2), "limits": {"quota_cpus": 1.0}}, also=("IDP504",)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Take the best that the interval allows: noise alone must not raise it."""
        for step in () if facts.bench is None else facts.bench.steps:
            if step.engine != "ideep" or step.of_ceiling is None:
                continue
            if step.of_ceiling * step.seconds / step.low >= _LEAST:
                continue
            why = causes(facts, step.threads, mkl=True)
            yield self.finding(
                found=f"{step.subject}: {100 * step.of_ceiling:.0f} % of the best matrix product, "
                f"{step.threads} thread{'' if step.threads == 1 else 's'}",
                needed="a third of it at least",
                consequence="most of the machine's time is lost; cause: "
                + because(why, "none that is known was seen: layers that iDeep does not compute, or layouts"),
                next_step="ideepdoctor trace -- python train.py shows where the time goes; ideepdoctor tune",
                evidence=tuple(Evidence(text, None, "ideepdoctor bench") for text in why),
            )
