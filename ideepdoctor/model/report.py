"""The one thing that every renderer renders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ideepdoctor.model.bench import Result
from ideepdoctor.model.facts import Facts, Smoke
from ideepdoctor.model.findings import Judgement
from ideepdoctor.model.plan import Plan
from ideepdoctor.model.project import Project

REPORT_SCHEMA = "ideepdoctor-report"
REPORT_SCHEMA_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that ended the command, as data."""

    code: str
    message: str
    hint: str
    exit_code: int
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What a command found, planned, did and proved."""

    command: str
    facts: Facts | None = None
    judgement: Judgement | None = None
    plan: Plan | None = None
    smoke: Smoke | None = None
    failure: Failure | None = None
    text: str = ""
    """A result that is text by nature (a document, shell code): printed as it is, and not part of the JSON."""
    body: tuple[str, ...] = ()
    """Lines between what was examined and what was found; not part of the JSON, where ``extra`` has the same."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What this command alone has, JSON-ready, under keys of its own."""
    measured: tuple[Result, ...] = ()
    """Runs of ``bench`` that charts are drawn from; ``extra`` has their numbers."""
    project: Project | None = None
    """Where paths begin; None: unknown."""
