"""What a file says of a host: a report of any command, facts, an answer of the bare probe, or neither and why."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.groups import UNDECIDED, Cause
from ideepdoctor.fleet.names import printable
from ideepdoctor.model.facts import FACTS_SCHEMA, FACTS_SCHEMA_VERSION, Facts, Smoke
from ideepdoctor.model.findings import Judgement
from ideepdoctor.model.report import REPORT_SCHEMA, REPORT_SCHEMA_VERSION
from ideepdoctor.targets.bare import is_bare, read_bare

JUDGING = frozenset(
    {"setup", "diagnose", "fix", "install", "upgrade", "downgrade", "smoke", "certify", "guard", "libs", "report"}
    | {"bench", "tune"}
)
"""Commands whose reports say what is wrong with an environment, be it nothing."""
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(NaN|Infinity)\s*[,}\]]")
_LONGEST_NAME = 255
"""Characters of a host's name, as DNS has it."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Unreadable(Exception):
    """A file that says nothing about a host; the text is one clause, "is cut off"."""


@dataclass(frozen=True, slots=True)
class HostReport:
    """What one file says of one host.

    Attributes:
        name: of the host.
        status: ok, unreachable, timeout, failed.
        at: UTC, ISO 8601: when it was collected, else when the file was written.
        causes: what is wrong with it, or could not be decided, and notes.
        accepted: findings that somebody has accepted.
        quick: only static checks were made.
        facts: None where the file has none.
        smoke: None where the file has none.
    """

    name: str
    status: str
    at: str
    causes: tuple[Cause, ...]
    accepted: int = 0
    quick: bool = False
    facts: Facts | None = None
    smoke: Smoke | None = None


@dataclass(frozen=True)
class _Tool:
    command: str


@dataclass(frozen=True)
class _Target:
    collected_at: str = ""
    mode: str = "full"


@dataclass(frozen=True)
class _Treatment:
    next_step: str
    safety: str


@dataclass(frozen=True)
class _Finding:
    code: str
    severity: Literal["error", "warning", "info"]
    title: str
    found: str
    needed: str
    consequence: str
    treatment: _Treatment


@dataclass(frozen=True)
class _Unknown:
    code: str
    title: str
    reason: str


@dataclass(frozen=True)
class _Error:
    message: str
    hint: str = ""


@dataclass(frozen=True)
class _Host:
    name: str
    status: Literal["ok", "unreachable", "timeout", "failed"]
    message: str = ""


@dataclass(frozen=True)
class _Envelope:
    """The part of the envelope that is looked at; what else is in it may be as it likes."""

    tool: _Tool
    target: _Target | None
    findings: list[_Finding]
    unknown: list[_Unknown]
    error: _Error | None
    suppressed: list[Any] = field(default_factory=list)
    proof: Smoke | None = None
    host: _Host | None = None
    facts: Facts | None = None


def parse_host(data: bytes, written: str, name: str) -> HostReport:
    """What a file's bytes say of a host.

    Args:
        data: JSON, in UTF-8.
        written: when the file was, UTC, ISO 8601; counts where the document does not say when it was made.
        name: of the host where the document does not say.

    Raises:
        Unreadable: it is no JSON, or not of a host, or of a newer major version.
    """
    document = _json(data)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == FACTS_SCHEMA:
        _same_major(document, "facts", FACTS_SCHEMA_VERSION)
        return _of_facts(_validated(Facts, data), name, written)
    if is_bare(document):
        return _of_bare(document, name, written)
    if schema != REPORT_SCHEMA:
        raise Unreadable("is JSON of something else: neither a report nor facts of ideepdoctor")
    _same_major(document, "a report", REPORT_SCHEMA_VERSION)
    if isinstance(document.get("facts"), dict):
        _same_major(document["facts"], "a report with facts", FACTS_SCHEMA_VERSION)
    return _of_envelope(_validated(_Envelope, data), name, written)


def causes_of(judgement: Judgement) -> tuple[Cause, ...]:
    """What the rules said, as causes."""
    found = [
        Cause(
            item.code,
            str(item.severity),
            item.title,
            item.found,
            item.needed,
            item.consequence,
            item.next_step,
            str(item.fix),
        )
        for item in judgement.findings
    ]
    return (*found, *(_undecided(item.code, item.title, item.reason) for item in judgement.unknown))


def _of_facts(facts: Facts, name: str, written: str) -> HostReport:
    from ideepdoctor.commands.session import judge_all

    return HostReport(
        name,
        "ok",
        _time(facts.collected_at, written),
        causes_of(judge_all(facts)),
        quick=facts.mode == "quick",
        facts=facts,
        smoke=facts.smoke,
    )


def _of_bare(document: dict[str, Any], name: str, written: str) -> HostReport:
    try:
        return _of_facts(read_bare(document), name, written)
    except UsageError as error:
        raise Unreadable(f"is not usable: {error.message}") from None


def _of_envelope(found: _Envelope, name: str, written: str) -> HostReport:
    command = found.tool.command
    status = "ok" if found.host is None else found.host.status
    shown = name if found.host is None else printable(found.host.name) or name
    if len(shown) > _LONGEST_NAME:
        raise Unreadable(f"names a host with {len(shown)} characters")
    facts, target = found.facts, found.target or _Target()
    at = _time((facts.collected_at if facts else "") or target.collected_at, written)
    if status == "ok" and found.error is not None:
        status = "failed"
    if status != "ok":
        words = (found.host.message if found.host else "") or (found.error.message if found.error else "")
        hint = found.error.hint if found.error else ""
        cause = Cause(status, "failed", "", " ".join(words.split()) or "no reason was given", next_step=hint)
        return HostReport(shown, status, at, (cause,))
    if command.split(" ")[0] == "fleet" and found.host is None:
        raise Unreadable(f"is what {command} made of many hosts, not the report of one")
    judged = command in JUDGING or found.host is not None
    if not judged and facts is None and not found.findings and not found.unknown:
        raise Unreadable(f"is a report of {command}, which judges no environment")
    if not judged and facts is not None:
        return _of_facts(facts, shown, at)
    causes = [
        Cause(
            item.code,
            item.severity,
            item.title,
            item.found,
            item.needed,
            item.consequence,
            item.treatment.next_step,
            item.treatment.safety,
        )
        for item in found.findings
    ]
    causes += [_undecided(item.code, item.title, item.reason) for item in found.unknown]
    smoke = found.proof if facts is None or facts.smoke is None else facts.smoke
    quick = (facts.mode if facts else target.mode) == "quick"
    return HostReport(shown, "ok", at, tuple(causes), len(found.suppressed), quick, facts, smoke)


def _undecided(code: str, title: str, reason: str) -> Cause:
    return Cause(code, UNDECIDED, title, reason, next_step=f"ideepdoctor explain {code}")


def _json(data: bytes) -> Any:
    from pydantic_core import from_json

    text = data.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        raise Unreadable("is empty")
    if b"\0" in text:
        raise Unreadable("is a binary file")
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        words = str(error)
    if _NO_NUMBER.search(text):
        raise Unreadable("is no JSON: it has a number that JSON lacks (NaN or infinity)")
    if words.startswith("EOF"):
        raise Unreadable("is cut off: its JSON has no end")
    if text[:1] not in b"{[" and text.lstrip()[:1] not in (b"{", b"["):
        raise Unreadable("is no JSON")
    raise Unreadable(f"is no JSON: {words}")


def _same_major(document: dict[str, Any], what: str, known: str) -> None:
    version = document.get("schema_version")
    if not isinstance(version, str) or version.partition(".")[0] != known:
        shown = version if isinstance(version, str) else "none"
        raise Unreadable(f"is {what} of schema version {shown}, and this ideepdoctor knows {known}: update it")


@lru_cache(maxsize=1)
def _adapters() -> dict[type[Any], Any]:
    # Here and not above: pydantic costs 0.1 s to import; and once: a validator of all facts takes 10 ms to make.
    from pydantic import TypeAdapter

    return {kind: TypeAdapter(kind) for kind in (Facts, _Envelope)}


def _validated(kind: type[Any], data: bytes) -> Any:
    from pydantic import ValidationError

    try:
        return _adapters()[kind].validate_json(data.removeprefix(b"\xef\xbb\xbf"), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise Unreadable(f"is not as this ideepdoctor knows reports: field {field}: {first['msg']}") from None


def _time(told: str, written: str) -> str:
    return told if _TIME.fullmatch(told) else written
