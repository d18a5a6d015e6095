"""IDP709: an engine is slower than it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule


def _bench(*changed: str) -> dict[str, Any]:
    why = "slower by more than 10 %: 1.31 times the time of then (1.28 to 1.35), p = 0.004"
    row = {"engine": "tuned", "subject": "alexnet, batch 8", "baseline": "20260101T000000Z-abcdef", "why": why}
    return {"bench": {"steps": [], "slower": [{**row, "changed": list(changed)}]}}


class IDP709(Rule):
    """A training step takes longer than in an earlier run of bench, by more than the limit that was asked for.

    What it checks
        With ``ideepdoctor bench --fail-if-slower 10%``, the blocks of each engine and net against those of the last run
        of this machine, or of the run that ``--baseline`` names: a rank test of the blocks, and a ratio whose 95 %
        interval is above the limit. Where no difference can be told, nothing is said.

    Why it matters
        A variable that was lost, another version, a guard that has more to do, or a machine that is shared with others
        cost time that nobody notices.

    How to fix
        Look at what changed since; it is listed with the finding. Measure again on a quiet machine.

    References
        Mann and Whitney 1947 (the test of ranks), Efron 1979 (the interval).
    """

    title = "An engine is slower than it was"
    severity = Severity.ERROR
    ok = (Example("nothing was compared"), Example("nothing is slower", {"bench": {"steps": [], "slower": []}}))
    bad = (
        Example("nothing else changed", _bench()),
        Example("with another variable", _bench("MKL_DEBUG_CPU_TYPE 7 to none")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report what bench has told apart."""
        for row in () if facts.bench is None else facts.bench.slower:
            since = "what changed since costs time" if row.changed else "nothing that is recorded changed since"
            yield self.finding(
                found=f"{row.engine}, {row.subject}: {row.why}",
                needed=f"as fast as in run {row.baseline}",
                consequence=f"{since}{'' if row.changed else ': the machine, or a load on it'}",
                next_step=f"ideepdoctor bench history {row.baseline}",
                evidence=tuple(Evidence(f"since then: {text}") for text in row.changed),
            )
