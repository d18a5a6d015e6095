"""IDP607: another function dies."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.proof import KNOWN, check, describe, evidence, smoke


class IDP607(Rule):
    """A function ends the process, raises or hangs here, and no known hazard explains it.

    What it checks
        Every check of the smoke test that is about no known hazard.

    Why it matters
        A program that calls it dies or stands still.

    How to fix
        Use NumPy for that function (``with chainer.using_config('use_ideep', 'never'):``), and report it with the
        facts of this machine: ``ideepdoctor diagnose --save-facts FILE``.

    References
        Chainer #4572 (parameters that are neither 2-D nor 4-D).
    """

    title = "A function fails here"
    severity = Severity.ERROR
    requires = ("IDP303", "IDP304", "IDP313", "IDP601")
    ok = (
        Example("right", smoke(check("relu", "right", None, 1e-7))),
        Example("a known hazard has its own rule", smoke(check("mul", "crashed", "H2", 1.0))),
        Example("not run", smoke(check("lstm", "not-run"))),
    )
    bad = (
        Example("crash", smoke(check("lrn", "crashed"))),
        Example("hang", smoke(check("lrn", "timeout"))),
        Example("raise", smoke(check("lrn", "raised"))),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such check."""
        for seen in () if facts.smoke is None else facts.smoke.checks:
            if seen.status in ("crashed", "raised", "timeout") and seen.hazard not in KNOWN:
                yield self.finding(
                    found=describe([seen]),
                    needed="a result",
                    consequence="a program that calls it dies, raises or hangs",
                    next_step="ideepdoctor diagnose --save-facts facts.json, and report it",
                    evidence=evidence([seen]),
                )
