"""IDP824: a built wheel that nobody tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule


def _built(verified: bool, **more: Any) -> dict[str, Any]:
    info = {"march": "x86-64-v3", "cpu_flags": ["avx2"], "mkl": "none", "commit": "8800808", "mkldnn_commit": "c0095ec"}
    return {"built": {**info, "numpy": "1.16.6", "verified": verified, **more}}


class IDP824(Rule):
    """An ideep4py that was built with ``--no-verify`` has not been compared with anything.

    What it checks
        What the wheel says of itself in its dist-info.

    Why it matters
        A build can end well and compute nothing, or wrong numbers: a stand-in for a library, a flag that the source
        was not written for. ``ideepdoctor build`` tries every wheel in a fresh environment before it hands it out,
        unless it is told not to.

    How to fix
        ``ideepdoctor smoke`` and ``ideepdoctor certify`` prove it where it is installed.

    References
        README, From source.
    """

    title = "The installed ideep4py was built and never tried"
    severity = Severity.INFO
    requires = ("IDP101",)
    ok = (Example("a wheel of the index"), Example("proved when it was built", _built(True)))
    bad = (
        Example("--no-verify", _built(False)),
        Example("for another machine", _built(False, march="haswell", cpu_flags=["avx2", "fma"])),
    )

    def concerns(self, facts: Facts) -> bool:
        """Whether the installed ideep4py is one that was built, and no other is being built."""
        return facts.built is not None and facts.build is None

    def check(self, facts: Facts) -> Iterator[Finding]:
        """By its own word."""
        if facts.built is None or facts.built.verified or facts.planned_ideep4py is not None:
            return
        yield self.finding(
            found=f"built from {facts.built.commit[:12]} with -march={facts.built.march}, not verified",
            needed="a proof",
            consequence="whether it is right is not known",
            next_step="ideepdoctor certify",
        )
