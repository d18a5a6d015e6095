"""IDP312: Chainer says that iDeep is not available."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.installed import new_environment_command, package, python_command

_SHOW = "-c 'from chainer.backends import intel64; intel64.check_ideep_available()'"


class IDP312(Rule):
    """Chainer finds iDeep unavailable although the pair is right and both can be imported.

    What it checks
        ``chainer.backends.intel64.is_ideep_available()`` in a child started as your Python would be.

    Why it matters
        Chainer says nothing and computes with NumPy.

    How to fix
        By the reason that Chainer gives.

    References
        chainer #5995 and PR 5600.
    """

    title = "Chainer finds iDeep unavailable"
    severity = Severity.ERROR
    requires = ("IDP303", "IDP304", "IDP305", "IDP306", "IDP308", "IDP310", "IDP311", "IDP320", "IDP321")
    ok = (Example("available"), Example("not asked", {"chainer": None, "mode": "quick"}))
    bad = (
        Example("with a reason", {"chainer": {"ideep_available": False, "ideep_reason": "ImportError: intVector"}}),
        Example("without one", {"chainer": {"ideep_available": False, "ideep_reason": None}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at what Chainer said."""
        state = facts.chainer
        unanswered = state is None or state.ideep_available is None
        if unanswered and facts.mode != "quick" and facts.planned_ideep4py is None and package(facts, "chainer"):
            raise Unknown("Chainer was not asked, or did not answer, whether iDeep is available")
        if state is not None and state.ideep_available is False and facts.package("ideep4py") is not None:
            yield self.finding(
                found=f"is_ideep_available() is False: {state.ideep_reason or 'no reason given'}",
                needed="True",
                consequence="Chainer silently computes with NumPy",
                next_step=new_environment_command(facts),
                evidence=(Evidence("Chainer's own words", None, python_command(facts, _SHOW)),),
            )
