"""Results of ``bench`` as one HTML page: no script, no network, light and dark, for a phone, a desk and paper. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ideepdoctor import __version__
from ideepdoctor.model.bench import Result
from ideepdoctor.proof.bench_bars import Labelled, labelled, short
from ideepdoctor.proof.bench_compare import compare, side_by_side
from ideepdoctor.proof.bench_limits import limits
from ideepdoctor.render.bench_tables import (
    engines_table,
    layers_table,
    ratios_table,
    rows_table,
    scaling_table,
    sgemm_table,
)
from ideepdoctor.render.charts import Drawing, of_chart, of_run
from ideepdoctor.render.pages import Section, filled, section


@dataclass(frozen=True, slots=True)
class Run:
    """What the page shows of one run."""

    title: str
    facts: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    subtitle: str
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    runs: tuple[Run, ...]
    footer: str


def page(results: Sequence[Result]) -> str:
    """The page of one run, or of several set against each other.

    Args:
        results: one or more; the order decides which machine is "this" one (see ``bench_compare.compare``).
    """
    return filled("bench.html.j2", _page(results)) + "\n"


def sections(results: Sequence[Result]) -> tuple[Section, ...]:
    """The charts of these runs with their tables, for another page."""
    found = [*_compared(results)[0]] if len(results) > 1 else []
    for number, run in enumerate(labelled(results), 1):
        found += _run(run, "" if len(results) == 1 else f"-{number}").sections
    return tuple(found)


def _page(results: Sequence[Result]) -> Page:
    runs = labelled(results)
    drawn: list[Section] = []
    notes: tuple[str, ...] = ()
    if len(results) > 1:
        drawn, notes = _compared(results)
        title = f"Chainer with iDeep: {len(results)} runs on {_and([run.label for run in runs])}"
    else:
        title = f"Chainer with iDeep on {runs[0].label}"
    warnings = [
        f"The run on {run.label} was interrupted: what was measured until then."
        for run in runs
        if not run.result.complete
    ]
    warnings += [
        f"{run.label} was not quiet: {'; '.join(run.result.noise.messages) or 'see its noise below'}."
        for run in runs
        if not run.result.noise.quiet
    ]
    nets = dict.fromkeys(f"{net} (batch {batch})" for result in results for net, batch in result.keys())  # noqa: SIM118
    subtitle = f"Forward + backward of {', '.join(nets) or 'no net'}. Medians with 95 % bootstrap intervals of blocks."
    shown = tuple(_run(run, "" if len(runs) == 1 else f"-{number}") for number, run in enumerate(runs, 1))
    footer = f"Made by ideepdoctor {__version__}. This page loads nothing and runs no script."
    return Page(title, subtitle, (*warnings, *notes), tuple(drawn), shown, footer)


def _compared(results: Sequence[Result]) -> tuple[list[Section], tuple[str, ...]]:
    comparison = compare(results)
    found = [section(of_chart(chart), (ratios_table(chart),), chart.notes) for chart in comparison.charts]
    return found, tuple(f"Not drawn: {note}." for note in comparison.notes)


def _run(run: Labelled, suffix: str) -> Run:
    result = run.result
    told = tuple(f"{item.net}, {short(result.engine(item.engine))}: {item.text}." for item in limits(result))
    sections = [_run_section(result, drawing, suffix) for drawing in of_run(result, suffix)]
    if result.engines:
        sections.append(Section(f"Engines on {run.label}" if suffix else "Engines", "", "", (engines_table(result),)))
    return Run(f"Run {result.id} on {run.label}", tuple(_facts(result)), told, tuple(sections))


def _run_section(result: Result, drawing: Drawing, suffix: str) -> Section:
    """A chart of a run with the table that belongs to it."""
    kind = drawing.name.removesuffix(suffix) if suffix else drawing.name
    if kind == "engines":
        chart = side_by_side(result)
        assert chart is not None
        return section(drawing, (ratios_table(chart),), chart.notes)
    if kind == "times":
        return section(drawing, (rows_table(result),))
    if kind == "threads":
        return section(drawing, (scaling_table(result),))
    if kind.startswith("roofline-"):
        return section(drawing, (layers_table(result, kind.removeprefix("roofline-")),))
    return section(drawing, (sgemm_table(result),) if result.ceiling.sgemm else ())


def _facts(result: Result) -> list[tuple[str, str]]:
    machine, noise, method, ceiling = result.machine, result.noise, result.method, result.ceiling
    cores = [
        f"{name} {count:g}"
        for name, count in (
            ("sockets", machine.sockets),
            ("cores", machine.physical_cores),
            ("logical CPUs", machine.logical_cpus),
            ("CPUs used", machine.cpus_used),
            ("quota", machine.quota_cpus),
        )
        if count is not None
    ]
    found = [
        ("Machine", ", ".join(part for part in (machine.name, machine.cpu, machine.isa, *cores) if part)),
        ("Measured", f"{result.started}, {result.seconds:.0f} s, ideepdoctor {result.tool.version}"),
    ]
    if machine.memory_bytes:
        found.append(("Memory", f"{machine.memory_bytes / 1e9:.1f} GB"))
    if machine.emulated:
        found.append(("Emulated", "yes: times say little about a real machine"))
    seen = [
        f"{name} {value:.1f}{unit}"
        for name, value, unit in (
            ("steal", noise.steal_percent, " %"),
            ("others' processor time", noise.busy_percent, " %"),
            ("load", noise.load, ""),
            ("widest interval", noise.spread_percent, " %"),
        )
        if value is not None
    ]
    seen += [f"{noise.megahertz[0]:.0f} to {noise.megahertz[1]:.0f} MHz"] if noise.megahertz else []
    seen += [] if noise.throttled is None else ["throttled" if noise.throttled else "not throttled"]
    found.append(("Noise", ", ".join(["quiet" if noise.quiet else "not quiet", *seen, *noise.messages])))
    how = [
        f"{value:g} {name}"
        for value, name in (
            (method.warmup_steps, "steps to warm up"),
            (method.blocks, "interleaved blocks"),
            (method.seconds_per_block, "s for each block"),
        )
        if value is not None
    ]
    how += [f"pinned to CPUs {', '.join(map(str, method.affinity))}"] if method.affinity else []
    found.append(("Method", ", ".join([*how, "a process for each engine", "random data", "median of steps"])))
    if ceiling.theoretical is not None:
        theory = ceiling.theoretical
        found.append(("In theory", f"{theory.gflops:.0f} GFLOP/s: {theory.basis}"))
    if ceiling.gflops is not None:
        found.append(("Ceiling", f"{ceiling.gflops:.0f} GFLOP/s, the best matrix product measured here"))
    shares = ", ".join(
        f"{item.net}, {short(result.engine(item.engine))}: {item.share * 100:.1f} %" for item in result.reorders
    )
    if shares:
        found.append(("Reorders", shares))
    return found


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
