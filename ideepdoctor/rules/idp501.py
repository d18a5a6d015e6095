"""IDP501: the variable that turns iDeep on is not set."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import fix_command, variable, variable_fix, variable_steps


class IDP501(Rule):
    """CHAINER_USE_IDEEP is not set, and Chainer's default is ``never``.

    What it checks
        The variable as a program of this environment sees it.

    Why it matters
        Chainer with ideep4py installed still computes with NumPy alone and says nothing.

    How to fix
        ``ideepdoctor fix`` makes ``auto`` the default of this environment; or ``export CHAINER_USE_IDEEP=auto``.

    References
        Chainer PR 6127 made it the default and PR 6794 took that back.

        Reports: chainer PR 4337 and 4477.
    """

    title = "CHAINER_USE_IDEEP is not set"
    severity = Severity.WARNING
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP304", "IDP308")
    fix = FixSafety.SAFE
    ok = (
        Example("auto"),
        Example("always, set by the user", {"variables": {"effective": {"CHAINER_USE_IDEEP": "always"}}}),
        Example("never, set on purpose", {"variables": {"effective": {"CHAINER_USE_IDEEP": "never"}}}),
    )
    bad = (
        Example("unset", {"variables": {"effective": {"CHAINER_USE_IDEEP": None}, "set_by_doctor": []}}),
        Example(
            "unset, quick",
            {"variables": {"effective": {"CHAINER_USE_IDEEP": None}, "set_by_doctor": []}, "imports": None},
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the variable; one that is set to nothing at all is IDP502's."""
        if facts.planned_ideep4py is None and variable(facts, "CHAINER_USE_IDEEP") is None:
            safety = variable_fix(facts, "CHAINER_USE_IDEEP")
            shell = "export CHAINER_USE_IDEEP=auto"
            yield self.finding(
                found="CHAINER_USE_IDEEP is not set; Chainer's default is never",
                needed="auto",
                consequence="Chainer computes with NumPy alone, although ideep4py is there",
                next_step=fix_command(facts) if safety is FixSafety.SAFE else shell,
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Set the recommended variables in the environment."""
        return variable_steps(facts)
