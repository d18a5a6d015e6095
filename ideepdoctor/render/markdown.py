"""Markdown: for an issue, a merge request, a step summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ideepdoctor import __version__
from ideepdoctor.locale import columns, tr, translating
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, Status, summarize
from ideepdoctor.model.words import counted
from ideepdoctor.render.problems import Level, Problem, problems, spoken, subject

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
_WORDS = {
    Status.HEALTHY: "no fault seen",
    Status.FINDINGS: "faults found",
    Status.UNKNOWN: "could not decide everything",
    Status.FAILED: "the command failed",
}
_ROWS = 200
"""A step summary holds one megabyte, and nobody reads more."""


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """A heading, what was examined, the error, a table of problems (worst first), what was proved, and the verdict.

    What a command has besides follows: its plan, its lines as they are for people, the next commands. A text that is
    Markdown by itself (a rule as a document) is the whole.
    """
    if report.failure is None and report.text.startswith("#"):
        return report.text.rstrip("\n")
    summary = summarize(report, fail_on)
    lines = [
        f"## ideepdoctor {escaped(report.command)}: {tr(_WORDS[summary.status])}",
        "",
        f"{code(subject(report))} · ideepdoctor {__version__} · {tr('exit code')} {summary.exit_code}",
        "",
    ]
    found = problems(report, tr)
    lines += [line for item in found if item.level is Level.FAILED for line in _failure(item)]
    rows = [_row(item) for item in found if item.level is not Level.FAILED]
    if rows:
        lines += [f"| | {tr('code')} | {tr('what')} | {tr('next')} |", "|---|---|---|---|", *rows[:_ROWS], ""]
    if len(rows) > _ROWS:
        lines += [tr(f"{counted(len(rows) - _ROWS, 'problem')} more, not shown here."), ""]
    accepted = () if report.judgement is None else report.judgement.suppressed
    if accepted:
        lines += [
            f"{tr('accepted')}:" if translating() else "Accepted:",
            "",
            *(f"- {item.code}: {escaped(tr(item.found))} ({escaped(item.reason)})" for item in accepted),
            "",
        ]
    if report.smoke is not None and not report.smoke.failure:
        tried = [item for item in report.smoke.checks if item.status != "not-run"]
        bad = sum(item.failed for item in tried)
        used = {True: "used", False: "NOT used", None: "use not known"}[report.smoke.used]
        lines += [tr(f"Smoke test: iDeep {used}, {len(tried) - bad} of {len(tried)} checks agree with float64."), ""]
    if verdict := report.extra.get("verdict"):
        lines += [f"**{escaped(tr(str(verdict)))}**", ""]
    lines += [f"- {code(tr(str(item)))}" for item in report.extra.get("next", ())]
    if report.plan is not None:
        steps = (tr(f"{step.title} (undo: {step.reversible})") for step in report.plan.steps)
        lines += ["", f"{tr('Plan')}: {escaped(tr(report.plan.title))}", ""]
        lines += [f"{number}. {escaped(text)}" for number, text in enumerate(steps, 1)]
    if shown := spoken(report):
        lines += ["", *fenced([columns.line(each) for each in shown])]
    return "\n".join(lines).rstrip("\n")


def _failure(item: Problem) -> list[str]:
    """The error that ended the command; what to do about it keeps its lines, some of which are commands."""
    lines = [f"**{escaped(item.code)}**: {escaped(item.message)}", ""]
    if item.do:
        lines += [tr("What to do:"), "", *fenced(item.do.splitlines()), ""]
    return lines


def fenced(lines: Sequence[str]) -> list[str]:
    """Lines that Markdown shows as they are."""
    runs = (len(run) for line in lines for run in re.findall("`+", line))
    fence = "`" * max(3, 1 + max(runs, default=0))
    return [f"{fence}text", *lines, fence]


def _row(item: Problem) -> str:
    level = f"**{tr(item.level)}**" if item.level is Level.ERROR else tr(str(item.level))
    where = "" if item.path is None else f" {code(item.path if item.line is None else f'{item.path}:{item.line}')}"
    what = f"{escaped(item.title)}: {escaped(item.message)}{where}" if item.title else f"{escaped(item.message)}{where}"
    return f"| {level} | {escaped(item.code)} | {what} | {code(item.do)} |"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A text as inline code, on one line; also in a cell of a table."""
    shown = " ".join(text.split()).replace("|", "\\|")
    if not shown:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"
