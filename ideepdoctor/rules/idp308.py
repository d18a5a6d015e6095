"""IDP308: Chainer is not installed."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import cure_command, package, stack_fix, stack_steps


class IDP308(Rule):
    """There is an ideep4py but no Chainer.

    What it checks
        The installed distributions.

    Why it matters
        ideep4py alone does nothing for a program that uses Chainer.

    How to fix
        ``ideepdoctor fix`` installs the Chainer that goes with it, by hash.

    References
        None.
    """

    title = "Chainer is not installed"
    severity = Severity.ERROR
    requires = ("IDP301",)
    fix = FixSafety.SAFE
    ok = (Example("installed"), Example("an older one", {"packages": {"chainer": "6.7.0"}}))
    bad = (
        Example("ideep4py alone", {"packages": {"chainer": None}}),
        Example("on 3.6", {"packages": {"chainer": None}}, "py36-healthy"),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the distribution."""
        if facts.planned_ideep4py is None and package(facts, "chainer") is None:
            safety = stack_fix(facts)
            yield self.finding(
                found="no Chainer",
                needed="Chainer 5 to 7.8.1 (6.7.0 on Python 2.7)",
                consequence="import chainer fails",
                next_step=cure_command(facts, safety),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the best stack for this interpreter."""
        return stack_steps(facts, None)
