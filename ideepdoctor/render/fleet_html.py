"""A fleet as one HTML page: a map of hosts and causes, and everything by name; searchable, no network. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.fleet.names import natural, unfold
from ideepdoctor.locale import translating
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, Status, summarize
from ideepdoctor.model.words import counted
from ideepdoctor.render.fleet_page import Cell, Column, Group, Page, Row, in_language
from ideepdoctor.render.fleet_words import (
    STATE_WORDS,
    difference_lines,
    found_words,
    kind_words,
    slow_lines,
    state_counts,
    twins_words,
)
from ideepdoctor.render.pages import filled

COLOURS = {
    "light": {"error": "#b3261e", "warning": "#8a5a00", "note": "#0b63a5", "fine": "#1a7340", "odd": "#7a3b94"},
    "dark": {"error": "#ff8a80", "warning": "#f2b84b", "note": "#7cc4ff", "fine": "#6fd08c", "odd": "#d9a7f0"},
}
"""Of cells, with the ground's colour as text; each has 4.5 to 1 against the ground, and a letter says the same."""
MOST_HOSTS = 200
"""Hosts that have a row each in the map; of more, each group has one."""
MOST_ROWS = 400
MOST_COLUMNS = 40
_LETTERS = {"error": "E", "warning": "W", "unknown": "?", "failed": "X", "odd": "D"}
_MEANING = (
    ("error", "E", "error"),
    ("warning", "W", "warning"),
    ("unknown", "?", "could not be decided"),
    ("failed", "X", "no answer that could be judged"),
    ("odd", "D", "differs from its twins"),
)
_WORDS = {
    Status.HEALTHY: "No fault seen.",
    Status.FINDINGS: "Faults were found.",
    Status.UNKNOWN: "Not everything could be decided.",
    Status.FAILED: "The command failed.",
}


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """The page, in the language in use."""
    page = _page(report, fail_on)
    return filled("fleet.html.j2", in_language(page) if translating() else page, COLOURS)


def _page(report: Report, fail_on: FailOn) -> Page:
    fleet, summary = report.extra["fleet"], summarize(report, fail_on)
    hosts, files = fleet["hosts"], fleet["files"]
    by_host = hosts["total"] <= MOST_HOSTS
    columns = _columns(fleet)
    rows = _by_host(fleet, columns) if by_host else _by_group(fleet, columns)
    read = f"{counted(files['read'], 'file')} read, {files['older']} older, {files['skipped']} skipped"
    words = report.failure.message if report.failure else _WORDS[summary.status]
    return Page(
        title=f"ideepdoctor {report.command}",
        subject=f"{counted(hosts['total'], 'host')}: {state_counts(hosts)}. {read}. {twins_words(fleet['twins'])}.",
        verdict=f"{words} Exit code {summary.exit_code}.",
        edge={Status.HEALTHY: "fine", Status.UNKNOWN: "warning"}.get(summary.status, "error"),
        by_host=by_host,
        columns=tuple(Column(label, title) for _key, label, title in columns),
        rows=tuple(rows[:MOST_ROWS]),
        left_out=f"{len(rows) - MOST_ROWS} groups more are in the list below" if len(rows) > MOST_ROWS else "",
        meaning=_MEANING,
        groups=_groups(fleet),
        outliers=tuple(
            (counted(item["count"], "host"), item["hosts"], tuple(difference_lines(item, details=True)))
            for item in fleet["outliers"]
        ),
        slower=tuple(
            (item["host"], item["host"], (*slow_lines(item), f"twins: {kind_words(item)}")) for item in fleet["slower"]
        ),
        notes=tuple(
            (f"{item['code']} {item['title']}: {found_words(item)}", item["hosts"])
            for item in fleet["causes"]
            if item["severity"] == "info"
        ),
        splits=tuple(_split(item) for item in fleet["splits"]),
        kinds=tuple((str(item["count"]), kind_words(item)) for item in fleet["twins"]["classes"]),
        skipped=tuple((item["file"], item["reason"]) for item in fleet["skipped"]),
        older=tuple((item["file"], item["host"], item["instead"]) for item in fleet["older"]),
        footer=f"Made by ideepdoctor {__version__}. This page loads nothing.",
    )


_Key = tuple[str, str]
"""What a column is about: ``code`` and a code, or ``odd`` and a feature."""


def _columns(fleet: Mapping[str, Any]) -> list[tuple[_Key, str, str]]:
    """Key, label and title of each: codes as the causes come (worst first), then what twins differ in."""
    found: dict[_Key, tuple[str, str]] = {}
    for cause in fleet["causes"]:
        if cause["severity"] != "info":
            found.setdefault(("code", cause["code"]), (cause["code"], cause["title"] or cause["code"]))
    for item in fleet["outliers"]:
        for row in item["differs"]:
            found.setdefault(("odd", row["what"]), (row["what"], f"differs from its twins in: {row['what']}"))
    for item in fleet["slower"]:
        found.setdefault(("odd", "speed"), ("speed", f"slower than its twins: {item['what']}"))
    return [(key, *texts) for key, texts in found.items()][:MOST_COLUMNS]


def _odd(fleet: Mapping[str, Any]) -> dict[str, dict[_Key, str]]:
    """By host, what it differs in from its twins, and how. Few hosts do."""
    found: dict[str, dict[_Key, str]] = defaultdict(dict)
    for item in fleet["outliers"]:
        for host in unfold(item["hosts"]):
            for row in item["differs"]:
                found[host]["odd", row["what"]] = f"{row['what']}: {row['difference'] or row['found']}"
    for item in fleet["slower"]:
        found[item["host"]]["odd", "speed"] = slow_lines(item)[0]
    return found


def _by_host(fleet: Mapping[str, Any], columns: Sequence[tuple[_Key, str, str]]) -> list[Row]:
    odd = _odd(fleet)
    causes = {item["id"]: item for item in fleet["causes"]}
    rows = []
    for group in fleet["groups"]:
        cells = _cells(group, causes)
        for host in unfold(group["hosts"]):
            own = {key: Cell("odd", _LETTERS["odd"], text) for key, text in odd.get(host, {}).items()}
            line = tuple({**cells, **own}.get(key, Cell()) for key, _label, _title in columns)
            rows.append(Row(host, host, group["state"], STATE_WORDS[group["state"]], line))
    return sorted(rows, key=lambda row: natural(row.label))


def _by_group(fleet: Mapping[str, Any], columns: Sequence[tuple[_Key, str, str]]) -> list[Row]:
    odd = _odd(fleet)
    causes = {item["id"]: item for item in fleet["causes"]}
    rows = []
    for group in fleet["groups"]:
        cells = _cells(group, causes)
        numbers: dict[_Key, int] = defaultdict(int)
        for host in unfold(group["hosts"]) if odd else ():
            for key in odd.get(host, ()):
                numbers[key] += 1
        own = {
            key: Cell("odd", str(number), f"{counted(number, 'host')} of this group") for key, number in numbers.items()
        }
        line = tuple({**cells, **own}.get(key, Cell()) for key, _label, _title in columns)
        label = f"{group['number']}. {counted(group['count'], 'host')}"
        rows.append(Row(label, group["hosts"], group["state"], STATE_WORDS[group["state"]], line))
    return rows


def _cells(group: Mapping[str, Any], causes: Mapping[str, Mapping[str, Any]]) -> dict[_Key, Cell]:
    cells: dict[_Key, Cell] = {}
    for cause in (causes[key] for key in group["causes"]):
        severity = cause["severity"]
        told = f"{severity} {cause['code']}: {found_words(cause)}"
        cells.setdefault(("code", cause["code"]), Cell(severity, _LETTERS[severity], told))
    return cells


def _groups(fleet: Mapping[str, Any]) -> tuple[Group, ...]:
    causes = {item["id"]: item for item in fleet["causes"]}
    return tuple(
        Group(
            group["number"],
            f"{counted(group['count'], 'host')}, {STATE_WORDS[group['state']]}",
            group["state"],
            group["hosts"],
            tuple(_cause(causes[key]) for key in group["causes"]),
        )
        for group in fleet["groups"]
    )


def _cause(cause: Mapping[str, Any]) -> tuple[str, str, tuple[tuple[str, str, bool], ...]]:
    rows = [
        ("found", found_words(cause), False),
        ("needed", cause["needed"], False),
        ("so", cause["consequence"], False),
    ]
    rows.append(("next", cause["next_step"], True))
    if cause["code"].startswith("IDP"):
        rows.append(("more", f"ideepdoctor explain {cause['code']}", True))
    head = "" if cause["severity"] == "failed" else f"{cause['code']} {cause['title']}"
    return cause["severity"], head, tuple(row for row in rows if row[1])


def _split(item: Mapping[str, Any]) -> str:
    values = ", ".join(f"{value['value']} ({value['count']})" for value in item["values"])
    others = f" and {counted(item['others'], 'other value')}" if item["others"] else ""
    return f"{item['what']}: {values}{others}"
