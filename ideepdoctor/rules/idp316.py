"""IDP316: what Chainer or ideep4py declare to need is not there."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import RELEASES, numpy_window, outside
from ideepdoctor.rules.installed import (
    cure_command,
    metadata_evidence,
    outcome,
    package,
    python_command,
    stack_fix,
    stack_steps,
)
from ideepdoctor.rules.needs import Unmet, unmet

_JUDGED_ELSEWHERE = ("setuptools",)
"""Distributions that other rules judge by what fails, whoever needs them: IDP306."""
_ONE_BRIDGE = "protobuf"
"""Chainer imports it for chainer.links.caffe alone (IDP307)."""


class IDP316(Rule):
    """A requirement that Chainer, ideep4py, NumPy, or what they need, declare is not met.

    What it checks
        The lines Requires-Dist of these distributions alone, with their markers evaluated for this Python; extras are
        left out, and so is what other rules judge by what really fails (setuptools; NumPy where Chainer needs it).
        That ideep4py 1.0.x declares ``numpy==1.13`` is a note where NumPy is one that it was measured to work with.

    Why it matters
        ``pip check`` complains, and the next ``pip install`` may move the version of another package to meet the
        requirement: ideep4py 1.0.4 drags NumPy down to 1.13. Where something is missing, an import fails sooner or
        later; where Chainer can be imported all the same, a version that is outside is only a note.

    How to fix
        ``ideepdoctor fix`` installs what the known-good stack has, by hash.

    References
        intel/ideep #25; conda #14715.
    """

    title = "A requirement is not met"
    severity = Severity.WARNING
    requires = ("IDP303", "IDP304", "IDP305", "IDP306", "IDP311")
    fix = FixSafety.SAFE
    ok = (
        Example("all are met"),
        Example("a marker of another Python", {"packages": {"six": {"requires": ["enum34; python_version < '3.4'"]}}}),
        Example("an extra", {"packages": {"chainer": {"requires": ["mock; extra == 'test'"]}}}),
        Example("of a package that nothing here needs", {"packages": {"pandas": {"requires": ["numpy>=1.26"]}}}),
        Example("numpy==1.13 is met", {"packages": {"chainer": "4.5.0", "ideep4py": "1.0.4"}}, "py36-healthy"),
    )
    bad = (
        Example(
            "filelock is missing, without an import",
            {"packages": {"filelock": None}, "imports": None, "first_op": None, "chainer": None, "mode": "quick"},
        ),
        Example("a version outside", {"packages": {"chainer": {"requires": ["six (<1.13)"]}}}),
        Example("protobuf is missing", {"packages": {"protobuf": None}}),
        Example(
            "ideep4py 1.0.4 and its numpy==1.13",
            {"packages": {"chainer": "4.5.0", "ideep4py": {"version": "1.0.4", "requires": ["numpy (==1.13)"]}}},
            "py36-healthy",
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report each requirement that is not met."""
        if package(facts, "chainer") is None or facts.planned_ideep4py is not None:
            return
        for one in unmet(facts):
            if one.name in _JUDGED_ELSEWHERE or (one.name == "numpy" and one.by.name == "chainer"):
                continue
            pinned = one.name == "numpy" and one.by.name == "ideep4py"
            if pinned and not _only_declared(facts, one):
                continue  # IDP305 tells of a NumPy that it does not work with
            yield self._pin(facts, one) if pinned else self._unmet(facts, one)

    def _unmet(self, facts: Facts, one: Unmet) -> Finding:
        result = outcome(facts, "chainer")
        imported = result is not None and result.ok
        bridge = one.name == _ONE_BRIDGE and one.found is None
        if bridge:
            consequence = "import chainer.links.caffe fails; everything else of Chainer works"
        elif one.found is None:
            consequence = f"{one.by.name} fails where it imports {one.name}"
        else:
            works = "Chainer can be imported all the same; " if imported else ""
            consequence = f"{works}pip check complains, and pip may change the version at its next installation"
        safety = stack_fix(facts)
        if safety is not FixSafety.MANUAL and not stack_steps(facts, [one.name]):
            safety = FixSafety.MANUAL
        return self.finding(
            found=f"no {one.name}" if one.found is None else f"{one.name} {one.found.version}",
            needed=f"{one.line} ({one.by.name} {one.by.version})",
            consequence=consequence,
            next_step=_by_hand(facts, one) if safety is FixSafety.MANUAL else cure_command(facts, safety),
            evidence=metadata_evidence(facts, one.by.name),
            severity=Severity.INFO if bridge or imported else None,
            fix=safety,
        )

    def _pin(self, facts: Facts, one: Unmet) -> Finding:
        return self.finding(
            found=f"numpy {one.found.version if one.found else ''}",
            needed=f"{one.line} (what {one.by.name} {one.by.version} declares)",
            consequence="none by itself: it was measured to work; pip check complains, and pip may bring NumPy 1.13",
            next_step="install further packages with: pip install --no-deps",
            evidence=metadata_evidence(facts, one.by.name),
            severity=Severity.INFO,
            fix=FixSafety.MANUAL,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install what is not met as the nearest stack pins it."""
        return stack_steps(facts, [one.name for one in unmet(facts) if one.name not in ("numpy", *_JUDGED_ELSEWHERE)])


def _only_declared(facts: Facts, one: Unmet) -> bool:
    """Whether a NumPy that ideep4py 1.0.x does not ask for is one that it was measured to work with."""
    window = numpy_window(facts.python.minor)
    return (
        one.found is not None
        and one.by.version in RELEASES
        and window is not None
        and outside(one.found.version, window) is None
    )


def _by_hand(facts: Facts, one: Unmet) -> str:
    if facts.python.externally_managed is not None:
        return "ideepdoctor setup"
    return python_command(facts, f"-m pip install '{one.line}'")
