"""A report as one HTML page: findings first, searchable, no network, light and dark, for a screen reader too. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.model.findings import Finding
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, Status, summarize
from ideepdoctor.model.words import counted
from ideepdoctor.render.chart_svg import DARK, FONT, LIGHT, Theme
from ideepdoctor.render.json import plan_as_data
from ideepdoctor.render.problems import Level, Problem, problems, subject

_ALERTS = {
    "light": {"error": "#b3261e", "warning": "#8a5a00", "note": "#0b63a5"},
    "dark": {"error": "#ff8a80", "warning": "#f2b84b", "note": "#7cc4ff"},
}
"""Colours beside the text that says the same; each has 4.5 to 1 against its ground."""
_UNJUDGED = (Level.FAILED, Level.UNKNOWN)
_USED = {True: "iDeep is used", False: "iDeep is NOT used", None: "whether iDeep is used is not known"}
_WORDS = {
    Status.HEALTHY: "No fault seen.",
    Status.FINDINGS: "Faults were found.",
    Status.UNKNOWN: "Not everything could be decided.",
    Status.FAILED: "The command failed.",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One problem on the page."""

    level: str
    code: str
    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table on the page."""

    title: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    subject: str
    verdict: str
    found: tuple[Entry, ...]
    accepted: tuple[str, ...]
    tables: tuple[Table, ...]
    rest: tuple[tuple[str, str], ...]
    footer: str


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """The page. Results of ``bench`` have a page of their own: ``bench_html``."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    source = (files("ideepdoctor") / "render" / "report.html.j2").read_text("utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(source)
    light, dark = _variables(LIGHT, "light"), _variables(DARK, "dark")
    return template.render(page=_page(report, fail_on), light=light, dark=dark, font=Markup(FONT))  # noqa: S704 (a constant of ours)


def _page(report: Report, fail_on: FailOn) -> Page:
    summary = summarize(report, fail_on)
    parts = [counted(summary.errors, "error"), counted(summary.warnings, "warning"), counted(summary.infos, "note")]
    counts = ", ".join(part for part in parts if not part.startswith("0 "))
    verdict = " ".join(
        part
        for part in (
            _WORDS[summary.status],
            f"{counts}." if counts else "",
            str(report.extra.get("verdict") or ""),
            f"Exit code {summary.exit_code}.",
        )
        if part
    )
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
        verdict=verdict,
        found=_entries(report),
        accepted=tuple(f"{item.code} {item.title}: {item.found} ({item.reason})" for item in accepted),
        tables=tuple(_tables(report)),
        rest=tuple(rest),
        footer=f"Made by ideepdoctor {__version__}. This page loads nothing.",
    )


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
    return Entry(str(item.level), item.code, item.title, tuple(row for row in rows if row[1]))


def _tables(report: Report) -> list[Table]:
    tables = []
    if report.plan is not None:
        steps = plan_as_data(report.plan)["steps"]
        planned = tuple((str(number), step["title"], step["reversible"]) for number, step in enumerate(steps, 1))
        tables.append(Table("Plan", report.plan.title, ("number", "step", "undo"), planned))
    if report.smoke is not None and not report.smoke.failure:
        smoke = report.smoke
        used = _USED[smoke.used]
        checked = tuple(
            (item.op, item.case, item.status, _number(item.max_relative_error), item.message) for item in smoke.checks
        )
        caption = f"{used}, kernel {smoke.kernel or 'not known'}, {counted(smoke.threads, 'thread')}"
        tables.append(Table("Proof", caption, ("operation", "case", "outcome", "error", "note"), checked))
    if report.facts is not None and report.facts.packages:
        there = tuple((item.name, item.version, item.location or "") for item in report.facts.packages)
        tables.append(Table("Packages", "As Python would import them", ("name", "version", "where"), there))
    return tables


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.1e}" if isinstance(value, float) else json.dumps(value)


def _variables(theme: Theme, name: str) -> str:
    colours = {"ground": theme.ground, "text": theme.text, "muted": theme.muted, "grid": theme.grid, **_ALERTS[name]}
    return " ".join(f"--{key}: {value};" for key, value in colours.items())
