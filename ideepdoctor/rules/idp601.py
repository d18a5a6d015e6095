"""IDP601: iDeep is not used."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.proof import smoke


class IDP601(Rule):
    """The smoke test ran, and NumPy did the work.

    What it checks
        Whether the output of a convolution is an ideep4py.mdarray and MKLDNN_VERBOSE named a generated kernel, in the
        smoke test; and whether that is so in the networks that ``ideepdoctor bench`` has measured.

    Why it matters
        This is the silent failure: everything works, several times slower than it could.

    How to fix
        ``ideepdoctor diagnose`` names the cause.

    References
        apache/mxnet #12500 (users ask how to see it); chainer #5995.

        Reports: PaddlePaddle #27935, oneDNN #733 and #1845.
    """

    title = "iDeep is not used"
    severity = Severity.ERROR
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP310", "IDP312", "IDP313", "IDP320")
    ok = (Example("used", smoke()), Example("no smoke test was run"))
    bad = (
        Example("NumPy did it", smoke(used=False)),
        Example("NumPy computed what bench measured", {"bench": {"steps": [], "unused": ["tuned"]}}),
        Example("could not be tried", {"smoke": {**smoke()["smoke"], "used": None, "failure": "timeout"}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the smoke test's answer."""
        for engine in () if facts.bench is None else facts.bench.unused:
            yield self.finding(
                found=f"bench measured {engine}, and the outputs of its convolutions were NumPy arrays",
                needed="an ideep4py.mdarray",
                consequence="what was measured is NumPy",
                next_step="ideepdoctor diagnose",
            )
        if facts.smoke is None or facts.smoke.used:
            return
        why = facts.smoke.failure or "the output was a NumPy array"
        yield self.finding(
            found=why,
            needed="an ideep4py.mdarray out of a generated kernel (jit:...)",
            consequence="Chainer computes with NumPy alone, or not at all",
            next_step="ideepdoctor diagnose -v",
        )
