"""IDP301: ideep4py is not installed."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import (
    cure_command,
    ideep4py_fix,
    ideep4py_steps,
    package,
    stack_steps,
)

_SHARED = ("system", "pyenv", "uv", "other")
"""Kinds of interpreters that others share: nothing is put into them without being asked for by name."""


class IDP301(Rule):
    """There is no ideep4py in this environment.

    What it checks
        The installed distributions.

    Why it matters
        Without it Chainer computes with NumPy alone, several times slower, and says nothing.

    How to fix
        ``ideepdoctor fix`` installs the release that is right for the installed Chainer, by hash.

    References
        Chainer #5995: users believe that it is on by default.
    """

    title = "ideep4py is not installed"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102", "IDP103", "IDP201", "IDP204")
    fix = FixSafety.SAFE
    ok = (Example("installed"), Example("about to be installed", {"planned_ideep4py": "2.0.0.post3"}))
    bad = (
        Example("Chainer alone", {"packages": {"ideep4py": None}}),
        Example("neither", {"packages": {"ideep4py": None, "chainer": None}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the distribution."""
        if facts.planned_ideep4py is None and package(facts, "ideep4py") is None:
            chainer = facts.package("chainer")
            safety = FixSafety.MANUAL if facts.python.kind in _SHARED else ideep4py_fix(facts)
            has = "no ideep4py and no Chainer" if chainer is None else f"Chainer {chainer.version} without ideep4py"
            yield self.finding(
                found=has,
                needed="ideep4py",
                consequence="Chainer computes with NumPy alone",
                next_step=cure_command(facts, safety),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install ideep4py; all of the stack where Chainer is missing too."""
        return stack_steps(facts, None) if facts.package("chainer") is None else ideep4py_steps(facts)
