"""Markdown: for an issue, a merge request, a step summary."""

from __future__ import annotations

import re

from ideepdoctor import __version__
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, Status, summarize
from ideepdoctor.render.problems import Level, Problem, problems, subject

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")
_WORDS = {
    Status.HEALTHY: "no fault seen",
    Status.FINDINGS: "faults found",
    Status.UNKNOWN: "could not decide everything",
    Status.FAILED: "the command failed",
}


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """A heading, what was examined, a table of problems (worst first), what was proved, and the verdict."""
    summary = summarize(report, fail_on)
    lines = [
        f"## ideepdoctor {escaped(report.command)}: {_WORDS[summary.status]}",
        "",
        f"{code(subject(report))} · ideepdoctor {__version__} · exit code {summary.exit_code}",
        "",
    ]
    found = problems(report)
    if found:
        lines += ["| | code | what | next |", "|---|---|---|---|", *(_row(item) for item in found), ""]
    accepted = () if report.judgement is None else report.judgement.suppressed
    if accepted:
        lines += [
            "Accepted:",
            "",
            *(f"- {item.code}: {escaped(item.found)} ({escaped(item.reason)})" for item in accepted),
            "",
        ]
    if report.smoke is not None and not report.smoke.failure:
        tried = [item for item in report.smoke.checks if item.status != "not-run"]
        bad = sum(item.failed for item in tried)
        used = {True: "used", False: "NOT used", None: "use not known"}[report.smoke.used]
        lines += [f"Smoke test: iDeep {used}, {len(tried) - bad} of {len(tried)} checks agree with float64.", ""]
    if verdict := report.extra.get("verdict"):
        lines += [f"**{escaped(str(verdict))}**", ""]
    return "\n".join(lines).rstrip("\n")


def _row(item: Problem) -> str:
    level = f"**{item.level}**" if item.level in (Level.ERROR, Level.FAILED) else str(item.level)
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
