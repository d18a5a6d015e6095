"""What a report complains of, flat: one list for every format that machines read. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ideepdoctor.model.accept import position_of
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.model.fingerprint import fingerprint, numbered
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import versions

Tell = Callable[[str], str]
"""Translates a text."""


class Level(StrEnum):
    """How bad a problem is, for machines: the severities, undecided rules, and an error that ended the command."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    UNKNOWN = "unknown"
    """A rule that could not be decided: never healthy."""
    FAILED = "failed"
    """The command itself ended with an error."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to look at.

    Attributes:
        code: of the rule, or of the error that ended the command (``could-not-check``).
        level: how bad.
        title: same for all problems of a rule.
        message: what was found here, what is needed and what follows, one paragraph.
        do: one command, or one thing to do.
        path: of the file that it is about; None: none.
        line: in that file, from 1; None: the whole file.
        column: in that line, from 1.
        fingerprint: 64 hexadecimal digits; the same for the same problem in another run, whatever was measured.
    """

    code: str
    level: Level
    title: str
    message: str
    do: str
    path: str | None
    line: int | None
    column: int | None
    fingerprint: str


def problems(report: Report, tell: Tell = str) -> tuple[Problem, ...]:
    """Everything that a report complains of, worst first within each kind: the error, findings, undecided rules.

    Args:
        report: of any command.
        tell: translates titles, messages and what to do, for formats that people read.
    """
    found: list[Problem] = []
    if report.failure is not None:
        failure = report.failure
        hint = "\n".join(tell(line) for line in failure.hint.split("\n"))
        title = tell("The command failed")
        found.append(_problem(failure.code, Level.FAILED, title, tell(failure.message), hint))
    found += _linted(report.extra["lint"], report, tell) if "lint" in report.extra else _judged(report, tell)
    return _numbered(found)


def file_of(item: Problem, report: Report) -> tuple[str, bool] | None:
    """The file as those name it who show a project: its path from the top of the project, and True.

    Returns:
        For a file elsewhere, or where no project is known, the path as it is, and False; None where there is no file.
    """
    if item.path is None:
        return None
    inside = None if report.project is None else report.project.within(item.path)
    return (item.path, False) if inside is None else (inside, True)


def subject(report: Report) -> str:
    """What was examined, one line: the interpreter and what it has; the command's name where there is nothing."""
    if report.facts is None:
        return f"ideepdoctor {report.command}"
    target = report.facts.target
    where = " ".join([*target.transport, *target.emulator, target.python])
    return f"{where}: {versions(report.facts)}"


def spoken(report: Report) -> tuple[str, ...]:
    """What the command prints for people beside problems, plan and proof: its table or text, a line each."""
    if report.failure is not None or "lint" in report.extra:
        return ()
    return report.body or tuple(report.text.splitlines())


def message_of(finding: Finding, tell: Tell = str) -> str:
    """A finding in one paragraph."""
    parts = (("", finding.found), ("Needed: ", finding.needed), ("So: ", finding.consequence))
    return " ".join(_sentence(tell(f"{label}{text}")) for label, text in parts if text.strip())


def _judged(report: Report, tell: Tell) -> Iterator[Problem]:
    if report.judgement is None:
        return
    for item in report.judgement.findings:
        path, line = position_of(item)
        level, message = Level(item.severity), message_of(item, tell)
        made = _problem(item.code, level, tell(item.title), message, tell(item.next_step), path)
        yield replace(made, line=line, fingerprint=fingerprint(item.code, path, item.found, report.project))
    for unknown in report.judgement.unknown:
        text, do = _sentence(tell(f"Undecided: {unknown.reason}")), f"ideepdoctor explain {unknown.code}"
        made = _problem(unknown.code, Level.UNKNOWN, tell(unknown.title), text, do)
        yield replace(made, fingerprint=fingerprint(unknown.code, None, unknown.reason, report.project))


def _linted(data: Mapping[str, Any], report: Report, tell: Tell) -> Iterator[Problem]:
    titles = {item.code: item.title for item in (report.judgement.findings if report.judgement else ())}
    for item in data["findings"]:
        level = Level(Severity(item["severity"]))
        title, message, do = tell(titles.get(item["code"], "")), tell(item["message"]), tell(item["do"])
        made = _problem(item["code"], level, title, message, do, item["path"])
        yield _placed(made, item)
    unread = next((item for item in (report.judgement.unknown if report.judgement else ())), None)
    if unread is not None:
        for item in data["unread"]:
            title, reason, do = tell(unread.title), tell(item["reason"]), tell("mend the file")
            made = _problem(unread.code, Level.UNKNOWN, title, reason, do, item["path"])
            yield _placed(made, item)


def _placed(made: Problem, item: Mapping[str, Any]) -> Problem:
    made = replace(made, fingerprint=item["fingerprint"])
    # A line of a cell is no line of the notebook's file.
    if item.get("cell") is not None or item.get("line") is None:
        return made
    return replace(made, line=item["line"], column=item["column"])


def _problem(code: str, level: Level, title: str, message: str, do: str, path: str | None = None) -> Problem:
    return Problem(code, level, title, message, do, path, None, None, fingerprint(code, path, message))


def _numbered(found: list[Problem]) -> tuple[Problem, ...]:
    """Equal problems in one file are told apart by their order, which an edit elsewhere does not change."""
    seen: dict[str, int] = {}
    told = []
    for item in found:
        number = seen[item.fingerprint] = seen.get(item.fingerprint, 0) + 1
        told.append(replace(item, fingerprint=numbered(item.fingerprint, number)))
    return tuple(told)


def _sentence(text: str) -> str:
    shown = " ".join(text.split())
    if not shown:
        return ""
    if shown.endswith((".", "!", "?", "。")):
        return shown
    return f"{shown}." if shown[-1].isascii() else f"{shown}。"
