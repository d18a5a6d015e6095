"""The report of a run of ``bench``: its lines, its data, what is slower than it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ideepdoctor.commands.session import judge_all
from ideepdoctor.facts.bench import bench_facts
from ideepdoctor.model.bench import Result
from ideepdoctor.model.facts import Facts, Slower
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_compare import side_by_side
from ideepdoctor.proof.bench_file import as_data
from ideepdoctor.proof.bench_history import Regression
from ideepdoctor.proof.regression import Verdict

SPEED = frozenset({"IDP601", "IDP703", "IDP704", "IDP709"})
"""The rules that judge what bench measures."""


def report_of(
    result: Result,
    facts: Facts,
    regressions: Sequence[Regression],
    limit: float | None,
    unused: Sequence[str] = (),
) -> Report:
    """The report of a run: its lines, its data, what the rules about speed find, what is slower than it was."""
    from ideepdoctor.commands.bench_files import shows_unicode
    from ideepdoctor.render.bench import lines

    slower = tuple(
        Slower(item.engine, f"{item.net}, batch {item.batch}", item.baseline, item.why, item.changed)
        for item in regressions
        if item.verdict is Verdict.SLOWER
    )
    measured = replace(facts, bench=replace(bench_facts(result), unused=tuple(unused), slower=slower))
    judgement = judge_all(measured, SPEED)
    extra: dict[str, Any] = {"bench": as_data(result)}
    body = list(lines(result, unicode=shows_unicode()))
    if limit is not None:
        extra["regressions"] = [
            {**_as_row(item), "verdict": str(item.verdict), "baseline": item.baseline, "why": item.why}
            for item in regressions
        ]
        body += ["", *(f"{item.net}, {item.engine}: {item.why}" for item in regressions)]
        if not regressions:
            body.append("Nothing to compare with: no earlier run here has these engines and nets.")
    extra["verdict"] = _verdict(result, len(slower), unused)
    return Report("bench", facts=measured, judgement=judgement, body=tuple(body), extra=extra, measured=(result,))


def _as_row(item: Regression) -> dict[str, Any]:
    return {"engine": item.engine, "net": item.net, "batch": item.batch, "changed": list(item.changed)}


def _verdict(result: Result, slower: int, unused: Sequence[str]) -> str:
    """One sentence, and the next step."""
    if unused:
        return f"NOT USED: {', '.join(unused)} computed with NumPy alone. Next: ideepdoctor diagnose"
    if slower:
        return f"SLOWER: {slower} of the measured pairs of engine and net. Next: look at what changed since"
    noisy = "" if result.noise.quiet else f" (the machine was not quiet: {result.noise.messages[0]})"
    said = _ratios(result)
    return f"MEASURED{noisy}: {said}. Next: ideepdoctor bench chart {result.id} -o bench.html"


def _ratios(result: Result) -> str:
    """How the best engine of iDeep compares with each other one, over all nets."""
    chart = side_by_side(result)
    if chart is None:
        return "nothing"
    said = [f"{mean.label} {mean.ratio.median:.1f}" for mean in chart.means]
    return f"times the time of {chart.base}: {', '.join(said)}" if said else f"{chart.base} alone"
