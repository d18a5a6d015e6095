"""IDP311: the import of Chainer fails otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts, Outcome
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import numpy_window
from ideepdoctor.rules.deaths import classify, explained, failed, how_it_ended, killed, last_line
from ideepdoctor.rules.idp509 import refused_switches
from ideepdoctor.rules.installed import fix_command, outcome, package, python_command, stack_fix, stack_steps, tried


class IDP311(Rule):
    """``import chainer`` fails or ends the process, for a known reason that no other rule finds.

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
    requires = ("IDP110", "IDP111", "IDP116", "IDP204", "IDP306", "IDP315", "IDP317", "IDP401", "IDP707")
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
        Example("an old processor", {"imports": {"chainer": killed("SIGILL")}, "chainer": None}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Classify a failed import."""
        result = failed_chainer(facts)
        if result is None:
            return
        missing = "No module named" in (result.error_text or "")
        if not missing and not explained(result):
            return
        cause = classify(result)
        curable = missing and stack_fix(facts) is FixSafety.SAFE and _missing_steps(facts)
        safety = FixSafety.SAFE if curable else FixSafety.MANUAL
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
        return _missing_steps(facts)


def _missing_steps(facts: Facts) -> tuple[Step, ...]:
    needs = ("six", "filelock", "typing-extensions", "protobuf", "numpy", "setuptools", "typing")
    return stack_steps(facts, [name for name in needs if facts.package(name) is None])


def failed_chainer(facts: Facts) -> Outcome | None:
    """How the import of Chainer ended; None where it went well, or where what is below it fails already.

    One fault is one finding. Raises Unknown where it was not tried.
    """
    if package(facts, "chainer") is None:
        return None
    result = tried(facts, "chainer")
    if result is None or result.ok or _told_by_another_rule(facts) or refused_switches(facts):
        return None
    return result


def _told_by_another_rule(facts: Facts) -> bool:
    """Whether NumPy is missing (IDP305), or ideep4py dies of what Chainer dies of (IDP310 and those before it)."""
    if facts.package("ideep4py") is None:
        return False
    if facts.package("numpy") is None and numpy_window(facts.python.minor) is not None:
        return True
    below, numpy = outcome(facts, "ideep4py"), outcome(facts, "numpy")
    if below is None or below.ok:
        return False
    return below.signal is not None or below.timed_out or (numpy is not None and not numpy.ok)
