"""A fleet in Markdown: for an issue, a step summary, a mail. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.locale import tr
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.model.words import counted
from ideepdoctor.render.fleet_words import (
    STATE_WORDS,
    difference_lines,
    found_words,
    slow_lines,
    state_counts,
    twins_words,
)
from ideepdoctor.render.markdown import code, escaped

_MOST = 50
"""Rows of a table; a summary of a job is no place for more."""
_LONGEST = 400
"""Characters of a folded list of hosts."""


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """Counts, groups, hosts that are not like their twins, and files that say nothing."""
    fleet = report.extra["fleet"]
    files, hosts = fleet["files"], fleet["hosts"]
    summary = summarize(report, fail_on)
    lines = [
        f"## ideepdoctor {escaped(report.command)}: {tr(state_counts(hosts))}",
        "",
        " · ".join(
            (
                tr(counted(hosts["total"], "host")),
                tr(f"{counted(files['read'], 'file')} read, {files['older']} older, {files['skipped']} skipped"),
                tr(twins_words(fleet["twins"])),
                f"ideepdoctor {__version__}",
                f"{tr('exit code')} {summary.exit_code}",
            )
        ),
        "",
        *_failure(report),
        *_groups(fleet),
        *_table("Not like their twins", ("hosts", "what differs"), list(_outliers(fleet["outliers"]))),
        *_table("Slower than their twins", ("host", "how much"), list(_slower(fleet["slower"]))),
        *_table(
            "Skipped files",
            ("file", "reason"),
            [(code(item["file"]), escaped(tr(item["reason"]))) for item in fleet["skipped"]],
        ),
        *_table(
            "Older reports",
            ("file", "host", "counted instead"),
            [(code(item["file"]), code(item["host"]), code(item["instead"])) for item in fleet["older"]],
        ),
    ]
    return "\n".join(lines).rstrip("\n")


def _failure(report: Report) -> list[str]:
    failure = report.failure
    return [] if failure is None else [f"**{escaped(failure.code)}: {escaped(tr(failure.message))}**", ""]


def _groups(fleet: Mapping[str, Any]) -> list[str]:
    causes = {item["id"]: item for item in fleet["causes"]}
    rows = []
    for group in fleet["groups"]:
        told = [_cause(causes[key]) for key in group["causes"]]
        state = escaped(tr(STATE_WORDS[group["state"]]))
        rows.append((str(group["count"]), state, _hosts(group["hosts"]), "<br>".join(told)))
    return _table("Groups", ("number", "state", "hosts", "cause"), rows)


def _cause(cause: Mapping[str, Any]) -> str:
    if cause["severity"] == "failed":
        return escaped(tr(found_words(cause)))
    head = f"{tr(cause['severity'])} {escaped(cause['code'])} {escaped(tr(cause['title']))}"
    step = f" {code(tr(cause['next_step']))}" if cause["next_step"] else ""
    return f"**{head}**: {escaped(tr(found_words(cause)))}{step}"


def _outliers(items: list[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for item in items:
        yield _hosts(item["hosts"]), "<br>".join(escaped(tr(line)) for line in difference_lines(item, details=True))


def _slower(items: list[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for item in items:
        yield code(item["host"]), "<br>".join(escaped(tr(line)) for line in slow_lines(item))


def _hosts(folded: str) -> str:
    if len(folded) <= _LONGEST:
        return code(folded)
    return f"{code(folded[:_LONGEST].rpartition(',')[0] or folded[:_LONGEST])} ..."


def _table(title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    more = [tr(f"{counted(len(rows) - _MOST, 'row')} more, not shown here."), ""] if len(rows) > _MOST else []
    return [
        f"### {tr(title)}",
        "",
        f"| {' | '.join(map(tr, heads))} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(row)} |" for row in rows[:_MOST]),
        "",
        *more,
    ]
