"""A fleet for a person in a terminal: what to print, without how. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.model.words import counted
from ideepdoctor.render.fleet_words import (
    SEVERITY_WORDS,
    STATE_WORDS,
    difference_lines,
    found_words,
    slow_lines,
    state_counts,
    twins_words,
)

_STYLES = {"error": "bold red", "failed": "bold red", "warning": "bold yellow", "unknown": "bold magenta"}
_STATE_STYLES = {"healthy": "bold green", "findings": "bold red", "unknown": "bold magenta"}
_INDENT = 2
_LABEL = 8
"""Width of the first column of rows, as everywhere in text."""
_LINES_OF_HOSTS = 3
"""Of a folded list, without -v."""
_MOST = 10
"""Rows of a list (groups, outliers, files) without -v."""


@dataclass(frozen=True, slots=True)
class Block:
    """A heading and rows of two columns below it.

    Attributes:
        head: texts with styles.
        rows: label and value.
    """

    head: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, str], ...] = ()


def blocks(report: Report, fail_on: FailOn, width: int, *, details: bool) -> Iterator[Block]:
    """The whole picture: counts, groups, outliers, files that say nothing, and what it comes to.

    Args:
        report: has the key ``fleet``.
        fail_on: decides the exit code that the last line speaks of.
        width: columns of the terminal.
        details: everything, however long (``-v``).
    """
    fleet = report.extra["fleet"]
    page = _Page(fleet, max(24, width - _INDENT - _LABEL - 1), details)
    yield page.head()
    yield from page.groups()
    yield from page.notes()
    yield from page.outliers()
    yield from page.slower()
    yield from page.splits()
    yield from page.files()
    summary = summarize(report, fail_on)
    parts = [
        f"{counted(summary.errors, 'kind')} of error" if summary.errors else "",
        f"{counted(summary.warnings, 'kind')} of warning" if summary.warnings else "",
        f"{summary.unknown} undecided" if summary.unknown else "",
    ]
    words = ", ".join(part for part in parts if part) or "no fault seen"
    style = "bold red" if summary.errors else "bold yellow" if summary.warnings or summary.unknown else "bold green"
    yield Block(((words, style), (f"; exit code {summary.exit_code}", "")))


class _Page:
    """Makes the blocks of one fleet."""

    def __init__(self, fleet: Mapping[str, Any], width: int, details: bool) -> None:
        self._fleet, self._width, self._details = fleet, width, details
        self._causes = {item["id"]: item for item in fleet["causes"]}

    def head(self) -> Block:
        files, hosts = self._fleet["files"], self._fleet["hosts"]
        rows = [("hosts", f"{counted(hosts['total'], 'host')}: {state_counts(hosts)}")]
        if files["older"] or files["skipped"]:
            older, skipped = counted(files["older"], "older report"), counted(files["skipped"], "file")
            rows.append(("files", f"{files['read']} read; {older} not counted, {skipped} skipped"))
        else:
            rows.append(("files", f"{files['read']} read, every one counted"))
        rows.append(("twins", twins_words(self._fleet["twins"])))
        return Block((("fleet", "bold"),), tuple(rows))

    def groups(self) -> Iterator[Block]:
        groups = self._fleet["groups"]
        shown = groups if self._details else groups[:_MOST]
        for group in shown:
            style = _STATE_STYLES.get(group["state"], "bold red")
            head = (
                (f"{group['number']:>2}. {counted(group['count'], 'host')}, ", "bold"),
                (STATE_WORDS[group["state"]], style),
            )
            rows = list(self._hosts(group["hosts"]))
            for cause in group["causes"]:
                rows += self._cause(self._causes[cause])
            yield Block(head, tuple(rows))
        yield from self._more(len(groups) - len(shown), "group")

    def notes(self) -> Iterator[Block]:
        found = [item for item in self._fleet["causes"] if item["severity"] == "info"]
        rows: list[tuple[str, str]] = []
        if self._details:
            for item in found:
                rows += [(item["code"], f"{item['title']}: {item['found']}"), *self._hosts(item["hosts"])]
        elif found:
            rows.append(("notes", f"{counted(len(found), 'note')} that part no hosts (-v shows)"))
        if self._fleet["accepted"]:
            rows.append(("accepted", f"{counted(self._fleet['accepted'], 'finding')} that somebody has accepted"))
        if self._fleet["quick"]:
            rows.append(("quick", f"{counted(self._fleet['quick'], 'host')} with static checks only"))
        if rows:
            yield Block((("besides", "bold"),), tuple(rows))

    def outliers(self) -> Iterator[Block]:
        items = self._fleet["outliers"]
        if not items:
            return
        rows: list[tuple[str, str]] = []
        shown = items if self._details else items[:_MOST]
        for item in shown:
            rows += self._hosts(item["hosts"])
            rows += [("", line) for line in difference_lines(item, self._details)]
        rows.append(("more", "ideepdoctor explain IDP003"))
        yield Block((("not like their twins", "bold yellow"),), tuple(rows))
        yield from self._more(len(items) - len(shown), "row")

    def slower(self) -> Iterator[Block]:
        items = self._fleet["slower"]
        if not items:
            return
        rows: list[tuple[str, str]] = []
        shown = items if self._details else items[:_MOST]
        for item in shown:
            rows += self._hosts(item["host"])
            rows += [("", line) for line in slow_lines(item)]
        rows.append(("more", "ideepdoctor explain IDP004"))
        yield Block((("slower than their twins", "bold yellow"),), tuple(rows))
        yield from self._more(len(items) - len(shown), "row")

    def splits(self) -> Iterator[Block]:
        items = self._fleet["splits"]
        if not items or not self._details:
            return
        rows = []
        for item in items:
            values = ", ".join(f"{value['value']} ({value['count']})" for value in item["values"])
            others = f" and {counted(item['others'], 'other value')}" if item["others"] else ""
            rows.append(("", f"{item['what']}: {values}{others}"))
        yield Block((("twins of several kinds", "bold"),), tuple(rows))

    def files(self) -> Iterator[Block]:
        skipped, older = self._fleet["skipped"], self._fleet["older"]
        if skipped:
            shown = skipped if self._details else skipped[:_MOST]
            rows = [("", f"{item['file']}: {item['reason']}") for item in shown]
            yield Block((("skipped files: nothing is known from them", "bold magenta"),), tuple(rows))
            yield from self._more(len(skipped) - len(shown), "file")
        if older:
            shown = older if self._details else older[:_MOST]
            rows = [
                ("", f"{item['file']} ({item['at']}): {item['host']} is judged by {item['instead']}") for item in shown
            ]
            yield Block((("older reports: not counted", "bold"),), tuple(rows))
            yield from self._more(len(older) - len(shown), "file")

    def _cause(self, cause: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        label = SEVERITY_WORDS[cause["severity"]]
        if cause["severity"] == "failed":
            yield label, found_words(cause)
        else:
            yield label, f"{cause['code']} {cause['title']}"
            yield "", found_words(cause)
        if cause["next_step"]:
            yield "next", cause["next_step"]

    def _hosts(self, folded: str) -> Iterator[tuple[str, str]]:
        lines = list(_broken(folded, self._width))
        shown = lines if self._details else lines[:_LINES_OF_HOSTS]
        for number, line in enumerate(shown):
            yield "hosts" if number == 0 else "", line
        if len(shown) < len(lines):
            yield "", "... (-v, or --format json, has them all)"

    def _more(self, number: int, noun: str) -> Iterator[Block]:
        if number > 0:
            yield Block(((f"and {counted(number, noun)} more (-v shows)", "dim"),))


def _broken(folded: str, width: int) -> Iterator[str]:
    """A folded list in lines that end behind a comma."""
    line = ""
    for part in folded.split(","):
        if line and len(line) + len(part) + 1 > width:
            yield f"{line},"
            line = part
        else:
            line = f"{line},{part}" if line else part
    yield line
