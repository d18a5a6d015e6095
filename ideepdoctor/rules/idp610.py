"""IDP610: nothing corrects the known faults of this ideep4py."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.compat import guarded
from ideepdoctor.rules.installed import (
    guard_command,
    guard_fix,
    installed_pair,
    new_environment_command,
    variable,
    variable_steps,
)
from ideepdoctor.rules.proof import failing

_BARE = {"choice": None, "path": None, "current": None, "corrections": None}
_OFF = ("off", "no", "none", "never", "false", "0")
"""Words of IDEEPDOCTOR_GUARD that switch everything off."""


class IDP610(Rule):
    """Chainer and ideep4py are a pair with known faults, and the guard that corrects them is not at work.

    What it checks
        The releases that are installed; whether this environment's start-up file loads the guard with Chainer, and
        whether that is the guard of this release of the doctor; IDEEPDOCTOR_GUARD.

    Why it matters
        A clean install of ideep4py computes wrong BatchNormalization gradients at some numbers of threads, wrong
        products of convolution outputs, wrong weights when they are loaded after ``to_intel64()``, and more
        (IDP602 to IDP616), without a message. ``ideepdoctor smoke`` shows it on this machine in seconds.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment: a file of the standard library alone that replaces the
        wrong functions of ideep4py when Chainer is imported, and leaves all others alone. ``ideepdoctor guard status``
        lists its corrections; ``ideepdoctor guard disable`` and ``ideepdoctor undo`` take it away.

    References
        IDP602 to IDP605, IDP609, IDP612 to IDP616.
    """

    title = "Nothing corrects the known faults of this ideep4py"
    severity = Severity.ERROR
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP304")
    fix = FixSafety.SAFE
    ok = (
        Example("the guard is there"),
        Example("a pair without it", {"guard": _BARE, "packages": {"ideep4py": "1.0.3"}}),
        Example("one correction failed: IDP611", {"guard": {"problems": ["bn: TypeError: x"]}}),
    )
    bad = (
        Example("a clean install", {"guard": _BARE}),
        Example("on 2.7", {"guard": _BARE}, "py27-healthy"),
        Example("disabled", {"guard": {"choice": False, "corrections": None}}),
        Example("of another release", {"guard": {"current": False}}),
        Example("switched off", {"variables": {"effective": {"IDEEPDOCTOR_GUARD": "off"}}}),
        Example("in part", {"variables": {"effective": {"IDEEPDOCTOR_GUARD": "-bn,-lrn"}}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the guard, where the pair needs it; the smoke test's own findings say it better."""
        from ideepdoctor.treatment.leftover import guard_holds

        chainer, ideep4py = installed_pair(facts)
        hazards = guarded(chainer, ideep4py)
        if facts.planned_ideep4py is not None or not hazards or any(failing(facts, name) for name in hazards):
            return
        if facts.guard is None:
            raise Unknown("these facts do not tell whether the guard is there")
        switch = (variable(facts, "IDEEPDOCTOR_GUARD") or "").strip()
        off = sorted(word[1:] for word in switch.lower().replace(",", " ").split() if word.startswith("-"))
        pair = f"Chainer {chainer} with ideep4py {ideep4py}"
        if facts.guard.choice is not True or facts.guard.path is None:
            disabled = facts.guard.choice is False
            yield self._found(facts, f"{pair}, and {'a guard that was disabled' if disabled else 'no guard'}")
        elif not guard_holds(facts):
            yield self._found(facts, "the guard of another release of ideepdoctor", Severity.WARNING)
        elif any(word in _OFF for word in switch.lower().replace(",", " ").split()):
            yield self._found(facts, f"IDEEPDOCTOR_GUARD={switch}: nothing is corrected")
        elif off:
            yield self._found(facts, f"IDEEPDOCTOR_GUARD={switch}: {', '.join(off)} left out", Severity.WARNING)

    def _found(self, facts: Facts, found: str, severity: Severity = Severity.ERROR) -> Finding:
        return self.finding(
            found=found,
            needed="the guard, with all of its corrections",
            consequence="gradients, products and loaded weights are wrong in known places, silently",
            next_step=guard_command(facts) or new_environment_command(facts),
            evidence=(Evidence("what is wrong on this machine", None, "ideepdoctor smoke"),),
            severity=severity,
            fix=guard_fix(facts),
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Leave the guard in the environment."""
        return variable_steps(facts)
