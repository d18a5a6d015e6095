"""What an ideep4py that was built says of its own build, from the file in its dist-info."""

from __future__ import annotations

import json

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.packages import normalise, parse_metadata
from ideepdoctor.model.build import BuildInfo


def read_built(answer: Answer) -> BuildInfo | None:
    """Of the ideep4py that Python would import; None where there is none, or it says nothing, or nothing readable."""
    for item in answer.parts("distributions"):
        package = parse_metadata(item.text("metadata"), None, item.text("location"))
        if package is not None and normalise(package.name) == "ideep4py":
            return parse_built(item.maybe_text("build"))
    return None


def parse_built(text: str | None) -> BuildInfo | None:
    """The text of ideepdoctor-build.json; None where it is none. Never raises."""
    try:
        data = json.loads(text or "")
        part = Answer(data, "build") if isinstance(data, dict) else None
        return None if part is None else _read(part)
    except (ValueError, RecursionError, CouldNotCheck):
        return None


def _read(part: Answer) -> BuildInfo:
    return BuildInfo(
        march=part.text("march"),
        cpu_flags=part.texts("cpu_flags"),
        mkl=part.text("mkl"),
        commit=part.text("commit"),
        mkldnn_commit=part.maybe_text("mkldnn_commit") or "",
        numpy=part.text("numpy"),
        verified=part.flag("verified"),
        extra=part.text_by_name("extra") or {},
    )
