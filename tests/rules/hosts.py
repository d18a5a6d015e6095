"""Facts of recorded machines with changes, and the outcomes of rules on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ideepdoctor.facts.serialize import facts_from_json
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Judgement, Severity
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.overlay import apply

HOSTS = Path(__file__).parents[1] / "hosts"
HEALTHY = ("py27-healthy", "py36-healthy", "py37-healthy")
QUICK: dict[str, Any] = {
    "mode": "quick",
    "imports": None,
    "first_op": None,
    "chainer": None,
    "libraries": None,
    "smoke": None,
    "native": {"started": None, "pairs": None},
}
"""What a quick run leaves out."""


@cache
def _recorded(host: str) -> str:
    return (HOSTS / f"{host}.json").read_text("utf-8")


def recorded(host: str) -> dict[str, Any]:
    """The facts of a recorded host as JSON data, to be changed at will."""
    found: dict[str, Any] = json.loads(_recorded(host))
    return found


def facts_on(host: str, *overlays: Mapping[str, Any]) -> Facts:
    """The recorded host with the overlays laid over it, one after the other."""
    data = json.loads(_recorded(host))
    for overlay in overlays:
        data = apply(data, overlay)
    return facts_from_json(data)


def judged(host: str, *overlays: Mapping[str, Any]) -> Judgement:
    return judge(facts_on(host, *overlays), RULES)


def alone(code: str, host: str, *overlays: Mapping[str, Any]) -> list[Finding]:
    """What one rule says, whatever it requires. Raises Unknown as the rule does."""
    rule = next(rule for rule in RULES if rule.code() == code)
    return list(rule().check(facts_on(host, *overlays)))


def faults(judgement: Judgement) -> list[str]:
    """Codes of the findings that are errors or warnings, once for each finding."""
    return [finding.code for finding in judgement.findings if finding.severity is not Severity.INFO]


def unknowns(judgement: Judgement) -> list[str]:
    return [item.code for item in judgement.unknown]
