"""IDP703: NumPy is slower with all threads than with fewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts, TimedStep
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.causes import because, causes

_LIBRARIES = {"numpy": ("NumPy", "OPENBLAS_NUM_THREADS"), "mkl": ("NumPy with MKL", "MKL_NUM_THREADS")}
_WORTH = 1.05
"""Less than that is no finding."""


def _bench(*rows: tuple[str, int, float], quiet: bool = True) -> dict[str, Any]:
    steps = [
        {
            "engine": engine,
            "subject": "alexnet, batch 8",
            "threads": threads,
            "seconds": seconds,
            "low": seconds * 0.98,
            "high": seconds * 1.02,
            "of_ceiling": None,
        }
        for engine, threads, seconds in rows
    ]
    return {"bench": {"steps": steps, "quiet": quiet, "noise": [] if quiet else ["other programs took 30 %"]}}


class IDP703(Rule):
    """A training step with NumPy takes longer with all threads than with fewer.

    What it checks
        Steps that ``ideepdoctor bench`` timed with several numbers of threads, with their 95 % intervals. Nothing is
        said where nothing was timed.

    Why it matters
        A comparison with NumPy at all threads flatters iDeep then, and what else uses NumPy in the program is slower
        than it could be. It is seen on large machines: small products are cut into pieces that are not worth a thread,
        hyper-threads share a core, a container's quota stops all threads at once, memory is on another socket.

    How to fix
        Give NumPy's library the number of threads that was fastest: OPENBLAS_NUM_THREADS, or MKL_NUM_THREADS for a
        NumPy with MKL. iDeep's own threads (OMP_NUM_THREADS) are another matter: see ``ideepdoctor tune``.

    References
        OpenBLAS #1622, #4387.

        Reports: espnet #380, pytorch #975 and #3146, apache/mxnet #4931, deeplearning4j/libnd4j #287.
    """

    title = "NumPy is slower with all threads than with fewer"
    severity = Severity.WARNING
    ok = (
        Example("nothing was measured"),
        Example("faster with each thread", _bench(("numpy", 1, 1.0), ("numpy", 2, 0.6))),
        Example("within noise", _bench(("numpy", 1, 1.0), ("numpy", 2, 1.02))),
        Example("iDeep is another matter", _bench(("ideep", 1, 1.0), ("ideep", 2, 1.5))),
        Example("one number of threads", _bench(("mkl", 2, 1.5))),
    )
    bad = (
        Example("slower with two", _bench(("numpy", 1, 1.0), ("numpy", 2, 1.5))),
        Example("MKL on many", _bench(("mkl", 1, 3.0), ("mkl", 4, 1.0), ("mkl", 64, 2.0))),
        Example("on a busy machine", _bench(("numpy", 1, 1.0), ("numpy", 2, 1.5), quiet=False)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the most threads with the fastest of the others, for each engine and net."""
        groups: dict[tuple[str, str], list[TimedStep]] = {}
        for step in () if facts.bench is None else facts.bench.steps:
            if step.engine in _LIBRARIES:
                groups.setdefault((step.engine, step.subject), []).append(step)
        for (engine, subject), steps in groups.items():
            everything = max(steps, key=lambda step: step.threads)
            fewer = [step for step in steps if step.threads < everything.threads]
            if not fewer:
                continue
            best = min(fewer, key=lambda step: step.seconds)
            if everything.low <= best.high or everything.seconds < _WORTH * best.seconds:
                continue
            name, switch = _LIBRARIES[engine]
            why = causes(facts, everything.threads, mkl=engine == "mkl")
            yield self.finding(
                found=f"{subject} with {name}: {everything.seconds:.3g} s with {everything.threads} threads, "
                f"{best.seconds:.3g} s with {best.threads}",
                needed="more threads, less time",
                consequence=f"{everything.seconds / best.seconds:.1f} times slower than it can be; cause: "
                + because(why, "the pieces are too small for so many threads"),
                next_step=f"export {switch}={best.threads}",
                evidence=tuple(Evidence(text, None, "ideepdoctor bench") for text in why),
            )
