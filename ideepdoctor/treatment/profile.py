"""The tuned profile: the file that holds it, and where it counts. Pure."""

from __future__ import annotations

import json

from ideepdoctor.model.facts import PROFILE_SCHEMA, PROFILE_SCHEMA_VERSION, Facts, Profile
from ideepdoctor.model.plan import WriteFile

PROFILE_FILE = "_ideepdoctor_profile.json"
"""Beside the start-up file."""


def profile_text(profile: Profile) -> str:
    """The file's text: JSON, sorted keys, ending in a newline."""
    measured = {
        "cpu": profile.cpu,
        "cpus": profile.cpus,
        "date": profile.date,
        "ratio": profile.ratio,
        "ratio_high": profile.ratio_high,
        "ratio_low": profile.ratio_low,
        "subject": profile.subject,
    }
    data = {
        "schema": PROFILE_SCHEMA,
        "schema_version": PROFILE_SCHEMA_VERSION,
        "tool_version": profile.tool_version,
        "measured": measured,
        "to_intel64": profile.to_intel64,
        "variables": [
            {"name": item.name, "value": item.value, "why": item.why, "early": item.early} for item in profile.variables
        ],
    }
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def profile_step(profile: Profile) -> WriteFile:
    """The step that leaves it in its environment."""
    what = ", ".join(f"{item.name}={item.value or '(unset)'}" for item in profile.variables) or "no other variables"
    return WriteFile(profile.path, profile_text(profile), f"the fastest setting that is right: {what}")


def open_cpus(facts: Facts) -> int | None:
    """CPUs that are open to a process of the target; None: not known."""
    return len(facts.limits.affinity_cpus) if facts.limits.affinity_cpus else facts.cpu.logical_cpus


def not_here(facts: Facts) -> str | None:
    """Why the target's profile does not count on this machine; None where it does, or where there is none."""
    profile = facts.profile
    if profile is None:
        return None
    if profile.problem:
        return profile.problem
    if facts.cpu.emulated:
        return "this processor is emulated"
    if profile.cpu != (facts.cpu.model_name or ""):
        return f"it was measured on {profile.cpu or 'another processor'}, and this is {facts.cpu.model_name}"
    if profile.cpus != open_cpus(facts):
        return f"it was measured with {_cpus(profile.cpus)}, and {open_cpus(facts)} are open to this process"
    return None


def in_force(facts: Facts) -> Profile | None:
    """The target's profile where it counts on this machine."""
    return facts.profile if facts.profile is not None and not_here(facts) is None else None


def _cpus(count: int) -> str:
    return f"{count} CPU{'' if count == 1 else 's'}"
