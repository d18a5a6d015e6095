"""The tuned profile of a target's environment, from the text of its file."""

from __future__ import annotations

import json

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.answer import Answer
from ideepdoctor.model.facts import PROFILE_SCHEMA, PROFILE_SCHEMA_VERSION, Profile, TunedVariable


def read_profile(answer: Answer) -> Profile | None:
    """The profile of the probe's answer; None where there is no file. One that cannot be understood says why."""
    file = answer.maybe_part("profile")
    if file is None:
        return None
    return parse_profile(file.text("path"), file.maybe_text("text"))


def parse_profile(path: str, text: str | None) -> Profile:
    """The profile of a file's text; ``problem`` is set where it is none. Never raises."""
    try:
        data = json.loads(text or "")
    except (ValueError, RecursionError) as error:
        return Profile(path, problem="it cannot be read" if text is None else f"it is no JSON: {error}")
    if not isinstance(data, dict) or data.get("schema") != PROFILE_SCHEMA:
        return Profile(path, problem="it is no profile of ideepdoctor")
    version = str(data.get("schema_version"))
    if version.split(".")[0] != PROFILE_SCHEMA_VERSION:
        return Profile(path, problem=f"it is of version {version}, and this release knows {PROFILE_SCHEMA_VERSION}")
    try:
        return _read(path, Answer(data, "profile"))
    except CouldNotCheck as error:
        return Profile(path, problem=f"it cannot be understood: {error.message}")


def _read(path: str, data: Answer) -> Profile:
    measured = data.part("measured")
    return Profile(
        path,
        cpu=measured.text("cpu"),
        cpus=measured.integer("cpus"),
        subject=measured.text("subject"),
        variables=tuple(
            TunedVariable(item.text("name"), item.text("value"), item.text("why"), item.flag("early"))
            for item in data.parts("variables")
        ),
        to_intel64=data.maybe_flag("to_intel64"),
        ratio=measured.number("ratio") or None,
        ratio_low=measured.number("ratio_low") or None,
        ratio_high=measured.number("ratio_high") or None,
        date=measured.text("date"),
        tool_version=data.text("tool_version"),
    )
