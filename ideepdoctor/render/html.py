"""A report as one HTML page: findings first, searchable, no network, light and dark, for a screen reader too. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.locale import columns, language, tr, translating
from ideepdoctor.model.findings import Finding
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, Status, Summary, summarize
from ideepdoctor.model.words import counted
from ideepdoctor.render.bench_tables import Table
from ideepdoctor.render.charts import Drawing
from ideepdoctor.render.html_tables import lasting_effects, operations, proof_tables, settings, tables_of
from ideepdoctor.render.pages import Section, filled, section
from ideepdoctor.render.problems import Level, Problem, problems, spoken, subject

_COLOURS = {
    "light": {"error": "#b3261e", "warning": "#8a5a00", "note": "#0b63a5", "fine": "#1a7340"},
    "dark": {"error": "#ff8a80", "warning": "#f2b84b", "note": "#7cc4ff", "fine": "#6fd08c"},
}
"""Colours beside the text that says the same; each has 4.5 to 1 against its ground."""
_UNJUDGED = (Level.FAILED, Level.UNKNOWN)
_WORDS = {
    Status.HEALTHY: "No fault seen.",
    Status.FINDINGS: "Faults were found.",
    Status.UNKNOWN: "Not everything could be decided.",
    Status.FAILED: "The command failed.",
}
_UNMEASURED = "Done."
"""Of a command that judges nothing: it found no fault because it looked for none."""
_COMMANDS = ("next", "see it", "more", "file")
"""Rows whose text is typed, or copied."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem on the page; a row is its name, its text, and whether that is code."""

    level: str
    code: str
    title: str
    rows: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class Words:
    """What the page itself says."""

    contents: str = "On this page"
    steps: str = "Next:"
    search: str = "Search the findings"
    findings: str = "Findings"
    accepted: str = "Accepted"
    measured: str = "Measured"
    output: str = "Output"
    rest: str = "Not looked at, and fine"
    levels: Mapping[str, str] = field(default_factory=dict)
    """What levels are called where the language is another one."""

    def level(self, name: str) -> str:
        """What a level is called."""
        return self.levels.get(name, name)


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    subject: str
    status: str
    verdict: str
    notes: tuple[str, ...]
    steps: tuple[str, ...]
    found: tuple[Entry, ...]
    accepted: tuple[str, ...]
    charts: tuple[Section, ...]
    tables: tuple[tuple[str, str, Table], ...]
    output: str
    rest: tuple[tuple[str, str], ...]
    footer: str
    words: Words = field(default_factory=Words)
    lang: str = "en"

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Ids and titles of the sections."""
        words = self.words
        parts = (
            ("findings", f"{words.findings} ({len(self.found)})", bool(self.found)),
            ("accepted", words.accepted, bool(self.accepted)),
            ("measured", words.measured, bool(self.charts)),
            *((name, title, True) for name, title, _ in self.tables),
            ("output", words.output, bool(self.output)),
            ("rest", words.rest, bool(self.rest)),
        )
        return tuple((name, title) for name, title, there in parts if there)


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """The page, in the language in use; text within drawings is English."""
    page = _page(report, fail_on)
    return filled("report.html.j2", _in_language(page) if translating() else page, _COLOURS)


def _in_language(page: Page) -> Page:
    words = {name: tr(str(getattr(page.words, name))) for name in Words.__dataclass_fields__ if name != "levels"}
    return replace(
        page,
        lang=language(),
        verdict=tr(page.verdict),
        notes=tuple(tr(note) for note in page.notes),
        steps=tuple(tr(step) for step in page.steps),
        found=tuple(
            replace(
                item,
                title=tr(item.title),
                rows=tuple((tr(name), tr(text), is_code) for name, text, is_code in item.rows),
            )
            for item in page.found
        ),
        accepted=tuple(tr(line) for line in page.accepted),
        charts=tuple(
            replace(
                item,
                title=tr(item.title),
                tables=tuple(_table(table) for table in item.tables),
                notes=tuple(tr(note) for note in item.notes),
            )
            for item in page.charts
        ),
        tables=tuple((name, tr(title), _table(data)) for name, title, data in page.tables),
        output=columns.lines(page.output),
        rest=tuple((tr(name), tr(text)) for name, text in page.rest),
        footer=tr(page.footer),
        words=Words(**words, levels={str(level): tr(str(level)) for level in Level}),
    )


def _table(data: Table) -> Table:
    groups = tuple(
        replace(group, title=tr(group.title), rows=tuple(tuple(tr(cell) for cell in row) for row in group.rows))
        for group in data.groups
    )
    return replace(data, caption=tr(data.caption), heads=tuple(tr(head) for head in data.heads), groups=groups)


def _page(report: Report, fail_on: FailOn) -> Page:
    summary = summarize(report, fail_on)
    parts = [counted(summary.errors, "error"), counted(summary.warnings, "warning"), counted(summary.infos, "note")]
    counts = ", ".join(part for part in parts if not part.startswith("0 "))
    judges = report.judgement is not None or report.failure is not None
    verdict = " ".join(
        part
        for part in (
            _WORDS[summary.status] if judges else _UNMEASURED,
            f"{counts}." if counts else "",
            f"Exit code {summary.exit_code}.",
        )
        if part
    )
    notes = [str(report.extra["verdict"])] if report.extra.get("verdict") else []
    notes += [str(item) for item in report.extra.get("baseline", {}).get("doubts", ())]
    judgement = report.judgement
    accepted = () if judgement is None else judgement.suppressed
    rest = []
    if judgement is not None and judgement.skipped:
        rest.append(("skipped", "; ".join(f"{item.code} because of {item.because}" for item in judgement.skipped)))
    if judgement is not None and judgement.ok:
        rest.append(("fine", ", ".join(judgement.ok)))
    return Page(
        title=f"ideepdoctor {report.command}",
        subject=subject(report),
        status=_edge(summary) if judges else "info",
        verdict=verdict,
        notes=tuple(notes),
        steps=tuple(str(item) for item in report.extra.get("next", ())),
        found=_entries(report),
        accepted=tuple(f"{item.code} {item.title}: {item.found} ({item.reason})" for item in accepted),
        charts=tuple(_charts(report)),
        tables=tuple((f"table-{number}", title, data) for number, (title, data) in enumerate(tables_of(report), 1)),
        output="\n".join(spoken(report)),
        rest=tuple(rest),
        footer=f"Made by ideepdoctor {__version__}. This page loads nothing.",
    )


def _edge(summary: Summary) -> str:
    """What the verdict is marked as: warnings alone are no errors."""
    mild = summary.status is Status.FINDINGS and not summary.errors
    return "warning" if mild else str(summary.status)


def _charts(report: Report) -> Iterator[Section]:
    from ideepdoctor.render.chart_proof import of_certify, of_smoke, of_tune

    if report.measured:
        from ideepdoctor.render.bench_html import sections

        yield from sections(report.measured)
    if report.smoke is not None and not report.smoke.failure:
        yield from _told(of_smoke(report.smoke), "Proof", proof_tables(report.smoke))
    if "certify" in report.extra:
        yield from _told(of_certify(report.extra["certify"]), "Operations", [operations(report.extra["certify"])])
        yield from _lasting(report.extra["certify"])
    if "tune" in report.extra:
        yield from _told(of_tune(report.extra["tune"]), "Settings", [settings(report.extra["tune"])])


def _lasting(data: Mapping[str, Any]) -> Iterator[Section]:
    """What certify measured of memory and of forked children; nothing where it did not."""
    if data["memory"] is not None or data["fork"] is not None:
        yield Section("Memory and forked children", "", "", (lasting_effects(data),))


def _told(drawings: Iterator[Drawing], title: str, tables: Sequence[Table]) -> Iterator[Section]:
    """Charts with the tables of their numbers; a table alone where nothing can be drawn."""
    for drawing, table in zip_longest(drawings, tables):
        if drawing is None:
            yield Section(title, "", "", (table,))
        else:
            yield section(drawing, () if table is None else (table,))


def _entries(report: Report) -> tuple[Entry, ...]:
    # Problems that are findings stand in the findings' order.
    findings = iter(() if report.judgement is None else report.judgement.findings)
    return tuple(_entry(item, None if item.level in _UNJUDGED else next(findings)) for item in problems(report))


def _entry(item: Problem, finding: Finding | None) -> Entry:
    rows: list[tuple[str, str]] = []
    if finding is None:
        rows.append(("because", item.message))
        rows += [("file", item.path if item.line is None else f"{item.path}:{item.line}")] if item.path else []
    else:
        rows += [("found", finding.found), ("needed", finding.needed), ("so", finding.consequence)]
        for seen in finding.evidence:
            rows.append(("seen", " - ".join(part for part in (seen.text, seen.path) if part)))
            rows += [("see it", seen.command)] if seen.command else []
    rows.append(("next", item.do))
    rows += [("more", f"ideepdoctor explain {item.code}")] if item.code.startswith("IDP") else []
    shown = tuple((name, text, name in _COMMANDS) for name, text in rows if text)
    return Entry(str(item.level), item.code, item.title, shown)
