"""The rules about the smoke test's checks: one known hazard each, or what no known hazard explains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.proof import KNOWN, describe, evidence, failing


class _ProofRule(Rule):
    """What both kinds say of a check that did not go right; the rule's own docstring explains it."""

    needed: ClassVar[str]
    consequence: ClassVar[str]
    next_step: ClassVar[str]


class HazardRule(_ProofRule):
    """A known hazard: its failing checks are one finding."""

    requires = ("IDP303", "IDP304", "IDP601")
    hazard: ClassVar[str]
    """Its name in the smoke test."""

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the failing cases together."""
        checks = failing(facts, self.hazard)
        if checks:
            yield self.finding(
                found=describe(checks),
                needed=self.needed,
                consequence=self.consequence,
                next_step=self.next_step,
                evidence=evidence(checks),
            )


class UnexplainedRule(_ProofRule):
    """Checks that ended in one of these states although they are about no known hazard: a finding each."""

    requires = ("IDP303", "IDP304", "IDP313", "IDP601")
    next_step = "ideepdoctor diagnose --save-facts facts.json, and report it"
    states: ClassVar[tuple[str, ...]]

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each such check."""
        for seen in () if facts.smoke is None else facts.smoke.checks:
            if seen.status in self.states and seen.hazard not in KNOWN:
                yield self.finding(
                    found=describe([seen]),
                    needed=self.needed,
                    consequence=self.consequence,
                    next_step=self.next_step,
                    evidence=evidence([seen]),
                )
