"""IDP111: a release whose code generator knows Intel processors alone."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.installed import cure_command, ideep4py_fix, ideep4py_steps, metadata_evidence, release


class IDP111(Rule):
    """ideep4py 1.0.3 and older abort at import on a processor that is not Intel's.

    What it checks
        The vendor of the processor, where ideep4py 1.0.1 to 1.0.3 is installed or planned.

    Why it matters
        MKL-DNN 0.12 asks the processor for its cache sizes in Intel's way. On AMD that fails, and the process aborts
        in ``import ideep4py`` and so in ``import chainer``: ``terminate called after throwing an instance of
        'Xbyak::Error'``.

    How to fix
        ideep4py 1.0.4 (for Chainer 4) or 2.0.0.post3 (for Chainer 5 and later).

    References
        Measured: the vendor alone decides; emulated Intel models work, emulated AMD ones abort.
    """

    title = "This ideep4py dies at import on CPUs that are not Intel's"
    severity = Severity.ERROR
    requires = ("IDP101",)
    fix = FixSafety.SAFE
    ok = (
        Example("2.0.0.post3 on AMD"),
        Example(
            "1.0.3 on Intel",
            {"packages": {"ideep4py": "1.0.3", "chainer": "4.5.0"}, "cpu": {"vendor": "GenuineIntel"}},
            "py36-healthy",
        ),
    )
    bad = (
        Example("1.0.3 on AMD", {"packages": {"ideep4py": "1.0.3", "chainer": "4.5.0"}}, "py36-healthy"),
        Example("1.0.3 planned on AMD", {"planned_ideep4py": "1.0.3"}, "py36-healthy"),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the vendor."""
        known = release(facts)
        if known is None or known.broken or not known.intel_only:
            return
        if facts.cpu.vendor is None:
            raise Unknown("the vendor of the processor could not be read")
        if facts.cpu.vendor != "GenuineIntel":
            planned = facts.planned_ideep4py is not None
            safety = FixSafety.MANUAL if planned else ideep4py_fix(facts)
            yield self.finding(
                found=f"ideep4py {known.version} on a CPU of {facts.cpu.vendor}",
                needed="ideep4py 1.0.4 or 2.0.0.post3",
                consequence="import ideep4py, and so import chainer, ends the process (SIGABRT, Xbyak::Error)",
                next_step="leave --stack and --ideep out, or name another one"
                if planned
                else cure_command(facts, safety),
                evidence=metadata_evidence(facts, "ideep4py"),
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the release that is right for the installed Chainer."""
        return ideep4py_steps(facts)
