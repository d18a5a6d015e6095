"""IDP302: a release that cannot work."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import cure_command, ideep4py_fix, ideep4py_steps, metadata_evidence, release


class IDP302(Rule):
    """The installed ideep4py is a release whose wheel cannot work anywhere.

    What it checks
        The version: 1.0.1 and 1.0.2 need libglog.so.0 and do not ship it; 2.0.0b1 ships none of its libraries.

    Why it matters
        The import fails, Chainer says nothing and goes on with NumPy.

    How to fix
        Another release: 2.0.0.post3 for Chainer 5 and later, 1.0.4 for Chainer 4.

    References
        chainer PR 4385; intel/ideep #22.

        Reports: oneDNN #294 (libmkldnn.so.0 not found); chainer/chainer-test #461 (libpython).
    """

    title = "This release of ideep4py cannot work"
    severity = Severity.ERROR
    requires = ("IDP301", "IDP315")
    fix = FixSafety.SAFE
    ok = (
        Example("2.0.0.post3"),
        Example("1.0.4", {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}}, "py36-healthy"),
    )
    bad = (
        Example("1.0.2", {"packages": {"ideep4py": "1.0.2", "chainer": "4.5.0"}}, "py36-healthy"),
        Example("2.0.0b1", {"packages": {"ideep4py": "2.0.0b1"}}, "py36-healthy"),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look the version up."""
        known = release(facts)
        if known is not None and known.broken:
            safety = ideep4py_fix(facts)
            yield self.finding(
                found=f"ideep4py {known.version}",
                needed="ideep4py 2.0.0.post3 (Chainer 5 and later) or 1.0.4 (Chainer 4)",
                consequence=f"its import fails ({known.broken}) and Chainer silently uses NumPy",
                next_step=cure_command(facts, safety),
                evidence=metadata_evidence(facts, "ideep4py"),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the release that is right for the installed Chainer."""
        return ideep4py_steps(facts)
