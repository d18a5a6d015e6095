"""IDP705: a tuned profile that does not count here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.treatment.profile import not_here

_HERE: dict[str, Any] = {"cpu": {"model_name": "AMD EPYC"}, "limits": {"affinity_cpus": [0, 1]}}


def _profile(**changes: Any) -> dict[str, Any]:
    profile = {
        "path": "/home/user/ideep/lib/python3.7/site-packages/_ideepdoctor_profile.json",
        "cpu": "AMD EPYC",
        "cpus": 2,
        "subject": "alexnet, batch 8",
        "variables": [],
        "to_intel64": None,
        "ratio": 1.2,
        "ratio_low": 1.1,
        "ratio_high": 1.3,
        "date": "2026-01-01T00:00:00Z",
        "tool_version": "0.1.0",
        "problem": "",
    }
    return {**_HERE, "profile": {**profile, **changes}}


class IDP705(Rule):
    """What ``tune`` left in the environment was measured elsewhere, and is not used here.

    What it checks
        The processor's model and the number of CPUs that are open to the process, against those in the profile.

    Why it matters
        The fastest setting of one machine may be a slow one on another. The profile is left alone and not obeyed; the
        defaults hold.

    How to fix
        ``ideepdoctor tune`` measures again and replaces it.

    References
        None: the file is ideepdoctor's own.
    """

    title = "The tuned profile is of another machine"
    severity = Severity.INFO
    ok = (Example("none"), Example("measured here", _profile()))
    bad = (
        Example("another processor", _profile(cpu="AMD EPYC 7742 64-Core Processor")),
        Example("other CPUs", _profile(cpus=64)),
        Example("damaged", _profile(problem="it is no JSON: x")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Say why it does not count."""
        why = not_here(facts)
        if why is None or facts.profile is None or facts.planned_ideep4py is not None:
            return
        yield self.finding(
            found=f"the profile of {facts.profile.subject or 'tune'} is not used: {why}",
            needed="one that was measured on this machine",
            consequence="the default variables hold; they may be slower than what tune would find",
            next_step=f"ideepdoctor tune --python {facts.python.executable}",
            evidence=(Evidence("written by ideepdoctor tune", facts.profile.path, ""),),
        )
