"""IDP311: the import of Chainer fails otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import WHEEL_PYTHONS
from ideepdoctor.rules.deaths import classify, failed, how_it_ended, killed, last_line
from ideepdoctor.rules.installed import fix_command, outcome, package, python_command, stack_steps


class IDP311(Rule):
    """``import chainer`` fails or ends the process, for a reason that no other rule explains.

    What it checks
        How a child ended that imported it.

    Why it matters
        Nothing of yours can run.

    How to fix
        A missing module is installed by ``ideepdoctor fix``; otherwise by the cause that the finding names.

    References
        chainer #8621 (CuPy 10 and Chainer 7.8.0).
    """

    title = "Chainer cannot be imported"
    severity = Severity.ERROR
    requires = ("IDP110", "IDP111", "IDP204", "IDP306")
    fix = FixSafety.SAFE
    ok = (Example("imported"), Example("not tried", {"imports": None, "first_op": None, "mode": "quick"}))
    bad = (
        Example(
            "six is missing",
            {
                "packages": {"six": None},
                "imports": {"chainer": failed("ModuleNotFoundError", "No module named 'six'")},
                "chainer": None,
            },
        ),
        Example("killed", {"imports": {"chainer": killed("SIGSEGV")}, "chainer": None}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Classify a failed import; where ideep4py's own import kills, that is the finding."""
        result, below = outcome(facts, "chainer"), outcome(facts, "ideep4py")
        if result is None or result.ok or package(facts, "chainer") is None:
            return
        if below is not None and not below.ok and below.signal is not None:
            return
        cause = classify(result)
        missing = "No module named" in (result.error_text or "")
        own = facts.python.minor in WHEEL_PYTHONS and facts.python.externally_managed is None
        safety = FixSafety.SAFE if missing and own else FixSafety.MANUAL
        yield self.finding(
            found=how_it_ended(result),
            needed="an import that succeeds",
            consequence="nothing of yours that uses Chainer runs" if missing else cause.consequence,
            next_step=fix_command(facts) if safety is FixSafety.SAFE else cause.next_step,
            evidence=(Evidence(last_line(result), None, python_command(facts, "-c 'import chainer'")),),
            fix=safety,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install what Chainer needs, as the nearest stack pins it."""
        needs = ("six", "filelock", "typing-extensions", "protobuf", "numpy", "setuptools", "typing")
        return stack_steps(facts, [name for name in needs if facts.package(name) is None])
