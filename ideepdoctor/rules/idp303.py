"""IDP303: a pair that Chainer does not use."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import Pair, pair, right_release
from ideepdoctor.rules.installed import cure_command, ideep4py_fix, ideep4py_steps, metadata_evidence, package


class IDP303(Rule):
    """Chainer does not recognise this ideep4py and silently goes on without it.

    What it checks
        The versions of Chainer and ideep4py against what was measured for every pair of releases.

    Why it matters
        ``chainer.backends.intel64.is_ideep_available()`` is False (``Unsupported iDeep version (1)``), and nothing is
        printed: the program runs on NumPy.

    How to fix
        The ideep4py that is right for the installed Chainer: 1.0.4 for 4.0.0 to 5.0.0b2, 2.0.0.post3 from 5.0.0rc1 to
        7.8.1.

    References
        Chainer PR 4934, 5231 and 5600; Chainer's tips page says that 1.0.x and 2.0.x exclude each other.
    """

    title = "Chainer does not use this ideep4py"
    severity = Severity.ERROR
    requires = ("IDP110", "IDP111", "IDP301", "IDP302", "IDP308")
    fix = FixSafety.SAFE
    ok = (
        Example("7.8.1 with 2.0.0.post3"),
        Example("4.5.0 with 1.0.4", {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}}, "py36-healthy"),
        Example("a build of your own", {"packages": {"ideep4py": "2.0.0.post3+local"}}),
    )
    bad = (
        Example("7.8.1 with 1.0.4", {"packages": {"ideep4py": "1.0.4"}}, "py36-healthy"),
        Example("before the iDeep backend", {"packages": {"chainer": "3.5.0"}}, "py36-healthy"),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look the pair up."""
        chainer, ideep4py = package(facts, "chainer"), package(facts, "ideep4py")
        if chainer is None or ideep4py is None or facts.planned_ideep4py is not None:
            return
        if pair(chainer.version, ideep4py.version) is Pair.UNUSED:
            safety = ideep4py_fix(facts)
            yield self.finding(
                found=f"Chainer {chainer.version} with ideep4py {ideep4py.version}",
                needed=right_release(chainer.version),
                consequence="Chainer silently computes with NumPy",
                next_step=cure_command(facts, safety),
                evidence=(*metadata_evidence(facts, "chainer"), *metadata_evidence(facts, "ideep4py")),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the release that is right for the installed Chainer."""
        return ideep4py_steps(facts)
