"""IDP305: a NumPy that ideep4py was not made for."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.built_host import built_host
from ideepdoctor.rules.compat import outside
from ideepdoctor.rules.installed import (
    cure_command,
    metadata_evidence,
    needed_numpy,
    package,
    stack_fix,
    stack_steps,
)


class IDP305(Rule):
    """NumPy lies outside the window that ideep4py works with on this Python.

    What it checks
        The version of NumPy against what was measured: 1.16.0 to 1.21.6 on Python 3.7, 1.13.0 to 1.19.5 on 3.6,
        1.13.0 to 1.16.6 on 2.7. Of an ideep4py that ``build`` made, against the NumPy that it was compiled against.

    Why it matters
        The wheel declares no dependency, so pip does not protect it. With an older NumPy the import of ideep4py fails
        (``numpy.core.multiarray failed to import``, ``module compiled against API version``), and Chainer silently
        goes on without it.

    How to fix
        ``ideepdoctor fix`` installs the NumPy of the known-good stack, by hash.

    References
        intel/ideep #25.

        Reports: pytorch #413 and dillonalaird/shared_numpy #10 (NumPy of another API version).
    """

    title = "NumPy does not fit this ideep4py"
    severity = Severity.ERROR
    requires = ("IDP201", "IDP204", "IDP301", "IDP302", "IDP303", "IDP304", "IDP315")
    fix = FixSafety.SAFE
    ok = (
        Example("1.21.6 on 3.7"),
        Example("the lowest", {"packages": {"numpy": "1.16.0"}}),
        Example("1.13.3 on 3.6", {"packages": {"numpy": "1.13.3"}}, "py36-healthy"),
        Example("a later one than a build's", built_host(numpy="1.26.4")),
    )
    bad = (
        Example("1.15.4 on 3.7", {"packages": {"numpy": "1.15.4"}}),
        Example("1.12.1 on 3.6", {"packages": {"numpy": "1.12.1"}}, "py36-healthy"),
        Example("none", {"packages": {"numpy": None}}),
        Example("older than a build's", built_host(numpy="1.21.6")),
        Example("NumPy 2 for a build against 1.23", built_host(numpy="2.0.2")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the version with the window."""
        window = needed_numpy(facts)
        numpy = package(facts, "numpy")
        if window is None or facts.planned_ideep4py is not None:
            return
        if numpy is None or outside(numpy.version, window):
            safety = stack_fix(facts)
            yield self.finding(
                found="no NumPy" if numpy is None else f"NumPy {numpy.version}",
                needed=f"NumPy {_words(window)} (Python {facts.python.minor})",
                consequence="import ideep4py fails, and Chainer silently computes with NumPy alone",
                next_step=cure_command(facts, safety),
                evidence=metadata_evidence(facts, "numpy"),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the NumPy of the nearest stack."""
        return stack_steps(facts, ["numpy"])


def _words(window: tuple[str, str]) -> str:
    return f"{window[0]} or later" if outside("2.100", window) is None else f"{window[0]} to {window[1]}"
