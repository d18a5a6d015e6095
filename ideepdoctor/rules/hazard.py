"""The rules about the smoke test's checks: one known hazard each, or what no known hazard explains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ideepdoctor.model.facts import Facts, OpCheck
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.compat import guarded
from ideepdoctor.rules.installed import guard_command, guard_fix, installed_pair, variable_steps
from ideepdoctor.rules.proof import KNOWN, describe, evidence, failing
from ideepdoctor.rules.reproduce import again, operation


class _ProofRule(Rule):
    """What both kinds say of a check that did not go right; the rule's own docstring explains it."""

    needed: ClassVar[str]
    consequence: ClassVar[str]
    next_step: ClassVar[str]


class HazardRule(_ProofRule):
    """A known hazard: its failing checks are one finding.

    It is an error where the guard corrects it for this pair of releases: then there is no reason to live with it.
    Elsewhere it is a warning, with the remedy that is left.
    """

    severity = Severity.ERROR
    fix = FixSafety.SAFE
    requires = ("IDP303", "IDP304", "IDP601")
    hazards: ClassVar[tuple[str, ...]]
    """Their names in the smoke test."""
    reproduction: ClassVar[str]
    """A program of at most ten lines that shows the hazard where nothing corrects it, and prints numbers."""

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the failing cases together."""
        checks = [seen for hazard in self.hazards for seen in failing(facts, hazard)]
        if not checks:
            return
        corrected = {seen.hazard for seen in checks} & guarded(*installed_pair(facts))
        yield self.finding(
            found=describe(checks),
            needed=self.needed,
            consequence=self.consequence,
            next_step=(corrected and guard_command(facts)) or self.next_step,
            evidence=evidence(checks),
            severity=self.severity if corrected else Severity.WARNING,
            fix=guard_fix(facts) if corrected else FixSafety.MANUAL,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Leave the guard in the environment."""
        return variable_steps(facts)


class UnexplainedRule(_ProofRule):
    """Checks that ended in one of these states although they are about no known hazard: a finding each."""

    requires = ("IDP303", "IDP304", "IDP313", "IDP320", "IDP601")
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
                    evidence=self._evidence(facts, seen),
                )

    def _evidence(self, facts: Facts, seen: OpCheck) -> tuple[Evidence, ...]:
        """The check, and a program that calls the same function alone."""
        program = operation(seen.op, seen.case)
        alone = () if program is None else (Evidence("it alone, without the doctor", None, again(facts, program)),)
        return (*evidence([seen]), *alone)
