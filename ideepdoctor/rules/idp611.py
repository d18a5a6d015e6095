"""IDP611: the guard could not make a correction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import guarded
from ideepdoctor.rules.installed import installed_pair


def _says(why_not: str, *problems: str) -> dict[str, Any]:
    row = {"name": "bn", "rule": "IDP602", "what": "gradients", "active": not why_not, "why_not": why_not}
    return {"guard": {"corrections": [row], "problems": list(problems)}}


class IDP611(Rule):
    """The guard is there, knows this Chainer and ideep4py, and something in it failed.

    What it checks
        What the guard says in a process that has imported Chainer.

    Why it matters
        What it could not correct is wrong there as it is without it. A mistake of the guard stops no program: it leaves
        the correction out and says so once.

    How to fix
        Look at what the text names: another package that changes ideep4py or Chainer, an ideep4py built by yourself
        under the name of a release. Else report it with the facts of this machine.

    References
        IDP610.
    """

    title = "The guard could not correct everything"
    severity = Severity.ERROR
    requires = ("IDP303", "IDP304", "IDP313", "IDP320", "IDP610")
    ok = (
        Example("all corrections made"),
        Example("one is not needed", _says("these versions do not need it")),
        Example("one is done by another", _says("product does it everywhere")),
    )
    bad = (
        Example("a correction raised", _says("AttributeError: concat", "concat: AttributeError: concat")),
        Example("nothing at all", {"guard": {"corrections": [], "why_not": "OSError: /proc"}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Read what the guard said."""
        found = facts.guard
        if found is None or found.corrections is None or not guarded(*installed_pair(facts)):
            return
        said = found.problems or ((found.why_not,) if found.why_not else ())
        if said and not found.why_not.startswith("switched off"):
            yield self.finding(
                found=said[0] + (f", and {len(said) - 1} more" if len(said) > 1 else ""),
                needed="every correction that this pair needs",
                consequence="what was left out is computed as wrong as without the guard",
                next_step="ideepdoctor diagnose --save-facts facts.json, and report it",
                evidence=tuple(Evidence(text, found.path, "ideepdoctor guard status") for text in said),
            )
