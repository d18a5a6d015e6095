"""The report of a run of ``bench``: its lines, its data, what is slower than it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ideepdoctor.model.bench import Result
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Judgement, Severity
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_compare import side_by_side
from ideepdoctor.proof.bench_file import as_data
from ideepdoctor.proof.bench_history import Regression
from ideepdoctor.proof.regression import Verdict


def report_of(
    result: Result,
    facts: Facts | None,
    regressions: Sequence[Regression],
    limit: float | None,
    unused: Sequence[str] = (),
) -> Report:
    """The report of a run: its lines, its data, what is slower than it was."""
    from ideepdoctor.render.bench import lines

    slower = [item for item in regressions if item.verdict is Verdict.SLOWER]
    findings = (*(_slower(item) for item in slower), *_slow_here(result, facts))
    extra: dict[str, Any] = {"bench": as_data(result)}
    body = list(lines(result))
    if limit is not None:
        extra["regressions"] = [
            {**_as_row(item), "verdict": str(item.verdict), "baseline": item.baseline, "why": item.why}
            for item in regressions
        ]
        body += ["", *(f"{item.net}, {item.engine}: {item.why}" for item in regressions)]
        if not regressions:
            body.append("Nothing to compare with: no earlier run here has these engines and nets.")
    extra["verdict"] = _verdict(result, slower, unused)
    return Report("bench", facts=facts, judgement=Judgement(findings), body=tuple(body), extra=extra)


def _slow_here(result: Result, facts: Facts | None) -> tuple[Finding, ...]:
    """What the rules about speed find in the times."""
    if facts is None:
        return ()
    from ideepdoctor.commands.session import judge_all
    from ideepdoctor.facts.bench import bench_facts

    return judge_all(replace(facts, bench=bench_facts(result)), frozenset({"IDP703", "IDP704"})).findings


def _as_row(item: Regression) -> dict[str, Any]:
    return {"engine": item.engine, "net": item.net, "batch": item.batch, "changed": list(item.changed)}


def _slower(item: Regression) -> Finding:
    return Finding(
        code="IDP709",
        severity=Severity.ERROR,
        title="An engine is slower than it was",
        found=f"{item.engine} at {item.net}, batch {item.batch}: {item.why}",
        needed=f"as fast as in run {item.baseline}",
        consequence="Something that was changed since costs time." if item.changed else "The machine or a load on it.",
        next_step=f"ideepdoctor bench history {item.baseline}",
        evidence=tuple(Evidence(f"since then: {text}") for text in item.changed),
        fix=FixSafety.MANUAL,
    )


def _verdict(result: Result, slower: Sequence[Regression], unused: Sequence[str]) -> str:
    """One sentence, and the next step."""
    if unused:
        return f"NOT USED: {', '.join(unused)} computed with NumPy alone. Next: ideepdoctor diagnose"
    if slower:
        return f"SLOWER: {len(slower)} of the measured pairs of engine and net. Next: look at what changed since"
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
