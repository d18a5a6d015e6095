"""Results of ``bench`` as lines of text: bars of time, numbers with their units. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ideepdoctor.locale import columns
from ideepdoctor.model.bench import Key, Result, Row
from ideepdoctor.model.words import counted
from ideepdoctor.proof.bench_bars import Chart, Comparison, short
from ideepdoctor.proof.bench_compare import side_by_side
from ideepdoctor.proof.bench_limits import limits
from ideepdoctor.proof.statistics import Interval

WIDTH = 80
LEAST_WIDTH = 76
_NUMBERS = 41
"""Columns after the bar: ms, its interval, images/s, GFLOP/s, per cent of the ceiling."""
_UNICODE = "█▒─"
_ASCII = "#=-"


def lines(result: Result, width: int = WIDTH, unicode: bool = True) -> list[str]:
    """A run: the machine, a block of bars for each net, what limits it, and how quiet it was.

    A bar is the time of a step, from zero to the slowest engine of the net: forward, then backward in a lighter shade.

    Args:
        result: the run.
        width: columns of the terminal; less than LEAST_WIDTH is taken as that.
        unicode: whether block characters can be shown; else # and =.
    """
    width = max(width, LEAST_WIDTH)
    marks = _UNICODE if unicode else _ASCII
    found = [*_head(result, width), ""]
    found += _wrapped(f"bars: {marks[0]} forward, {marks[1]} backward; * forward alone", width, "")
    keys = list(result.keys())
    for key in keys:
        found += _net(result, key, width, marks)
    chart = side_by_side(result)
    if chart is not None and chart.means:
        found += ["", *_means(chart, width)]
    told = limits(result)
    if told:
        found += ["", "what limits it"]
        for item in told:
            name = short(result.engine(item.engine))
            found += _wrapped(f"{item.net}, {name}: {item.text}", width, "  ")
    found += _scaling(result, width)
    if not result.complete:
        found += ["", *_wrapped("interrupted: what was measured until then", width, "")]
    return found


def comparison_lines(comparison: Comparison, width: int = WIDTH, unicode: bool = True) -> list[str]:
    """Runs set against each other: the machines, then a block of bars for each chart. Arguments as in ``lines``."""
    width = max(width, LEAST_WIDTH)
    found: list[str] = []
    for run in comparison.runs:
        machine = run.result.machine
        cores = f", {counted(machine.cpus_used, 'CPU')}" if machine.cpus_used else ""
        cut = "" if run.result.complete else ", interrupted"
        found += _wrapped(f"{run.label}: {machine.cpu or 'unknown'}{cores}, {run.result.started}{cut}", width, "")
    for chart in comparison.charts:
        found += ["", *_wrapped(chart.title, width, "")]
        found += _wrapped(f"{chart.axis}; in brackets the 95 % interval", width, "  ")
        found += _chart(chart, width, _UNICODE if unicode else _ASCII)
        found += _means(chart, width)
        for note in chart.notes:
            found += _wrapped(f"note: {note}", width, "  ")
    for note in comparison.notes:
        found += ["", *_wrapped(f"not drawn: {note}", width, "")]
    return found


def _head(result: Result, width: int) -> Iterator[str]:
    machine, ceiling, noise = result.machine, result.ceiling, result.noise
    yield f"bench {result.id}  {result.started}, {result.seconds:.0f} s"
    used = "" if machine.cpus_used is None else f", {machine.cpus_used} of {machine.logical_cpus or '?'} CPUs"
    cpu = ", ".join(part for part in (machine.cpu, machine.isa, "emulated" if machine.emulated else "") if part)
    yield from _wrapped(f"machine  {machine.name}: {cpu or 'unknown'}{used}", width, "", "         ")
    if ceiling.gflops is not None:
        best = next((item for item in ceiling.sgemm if item.gflops == ceiling.gflops), None)
        by = ""
        if best is not None:
            variables = "".join(f", {name}={value}" for name, value in sorted(best.variables.items()))
            by = f" (best sgemm: {best.library}{variables})"
        theory = "" if ceiling.theoretical is None else f"; in theory {ceiling.theoretical.gflops:.0f}"
        yield from _wrapped(f"ceiling  {ceiling.gflops:.0f} GFLOP/s{by}{theory}", width, "", "         ")
    seen = [
        f"{name} {value:.1f} %"
        for name, value in (("steal", noise.steal_percent), ("others", noise.busy_percent))
        if value is not None
    ]
    seen += [] if noise.load is None else [f"load {noise.load:.1f}"]
    seen += [] if noise.spread_percent is None else [f"widest interval {noise.spread_percent:.1f} %"]
    yield from _wrapped(
        f"noise    {'quiet' if noise.quiet else 'NOT QUIET'}: {', '.join(seen)}".rstrip(": "), width, "", "         "
    )
    for message in noise.messages:
        yield from _wrapped(message, width, "         ")


def _net(result: Result, key: Key, width: int, marks: str) -> list[str]:
    rows = [row for row in result.results if row.key == key]
    measured = sorted((row for row in rows if row.measured), key=lambda row: row.median or 0.0)
    names = {row.engine: short(result.engine(row.engine)) for row in rows}
    label = min(max((len(name) for name in names.values()), default=0) + 1, 24)
    bar = max(6, width - 2 - label - 1 - _NUMBERS)
    title = f"{key[0]}, batch {key[1]}"
    titles = f"{'ms':>7} {'95 %':>13} {'images/s':>8} {'GF/s':>5} {'max':>4}"
    found = ["", f"{title:<{width - _NUMBERS}.{width - _NUMBERS - 1}}{titles}"]
    slowest = max((row.high or row.median or 0.0 for row in measured), default=0.0)
    for row in measured:
        found.append(_row(row, names[row.engine], label, bar, slowest, marks))
    for row in rows:
        if not row.measured:
            found += _wrapped(f"{names[row.engine]:<{label}.{label}} {row.status}: {row.why}", width, "  ")
    return found


def _row(row: Row, name: str, label: int, width: int, slowest: float, marks: str) -> str:
    median = row.median or 0.0
    length = max(1, round(width * median / slowest))
    forward = row.forward_median or (median if not row.backward else 0.0)
    first = min(length, round(length * forward / median)) if row.backward_median else length
    bar = marks[0] * first + marks[1] * (length - first)
    shown = f"{name}{'' if row.backward or not row.forward else ' *'}"
    low, high = row.low or median, row.high or median
    digits = 2 if median < 0.01 else 1 if median < 0.1 else 0
    span = f"{low * 1000:.{digits}f}-{high * 1000:.{digits}f}"
    per_second = "" if row.images_per_second is None else f"{row.images_per_second:.1f}"
    gflops = "" if row.gflops is None else f"{row.gflops:.0f}"
    part = "" if row.of_ceiling is None else f"{row.of_ceiling * 100:.0f}%"
    numbers = f"{median * 1000:>7.{digits}f} {span:>13} {per_second:>8} {gflops:>5} {part:>4}"
    return f"  {shown:<{label}.{label}} {bar:<{width}}{numbers}".rstrip()


def _means(chart: Chart, width: int) -> list[str]:
    found = [*_wrapped(f"geometric mean, {chart.base} = 1", width, "")]
    label = min(max((len(mean.label) for mean in chart.means), default=0), width - 42)
    for mean in chart.means:
        nets = f"{mean.nets} net{'s' if mean.nets > 1 else ''}"
        found += _wrapped(f"{mean.label:<{label}.{label}}  {factor(mean.ratio)}, {nets}", width, "  ")
    return found if chart.means else []


def _chart(chart: Chart, width: int, marks: str) -> Iterator[str]:
    label = min(max(len(bar.label) for group in chart.groups for bar in group.bars), 32)
    room = max(6, width - 4 - label - 1 - 23)
    for group in chart.groups:
        yield f"  {group.net}, batch {group.batch}"
        longest = max((bar.ratio.median for bar in group.bars if bar.ratio is not None), default=1.0)
        for bar in group.bars:
            if bar.ratio is None:
                yield from _wrapped(f"{bar.label:<{label}.{label}} {bar.why}", width, "    ")
                continue
            drawn = marks[0] * max(1, round(room * bar.ratio.median / longest))
            text = "1" if bar.is_base else factor(bar.ratio)
            yield f"    {bar.label:<{label}.{label}} {drawn:<{room}} {text}".rstrip()


def factor(ratio: Interval) -> str:
    """``3.15 (3.11 to 3.20)``: three digits that count, never fewer decimals than one below ten."""
    return f"{number(ratio.median)} ({number(ratio.low)} to {number(ratio.high)})"


def number(value: float) -> str:
    """A ratio with three digits that count: 0.112, 3.15, 31.5, 315."""
    return f"{value:.{3 if value < 0.995 else 2 if value < 9.995 else 1 if value < 99.95 else 0}f}"


def _scaling(result: Result, width: int) -> Iterator[str]:
    groups = dict.fromkeys((item.engine, item.net, item.batch) for item in result.scaling)
    if groups:
        yield ""
        yield "threads (how many times as fast as the fewest)"
    for engine, net, batch in groups:
        items = [item for item in result.scaling if (item.engine, item.net, item.batch) == (engine, net, batch)]
        items.sort(key=lambda item: item.threads)
        steps = [f"{item.threads}: {item.median * 1000:.0f} ms ({items[0].median / item.median:.2f})" for item in items]
        yield from _wrapped(f"{net} batch {batch}, {short(result.engine(engine))}: {', '.join(steps)}", width, "  ")


def _wrapped(text: str, width: int, indent: str, rest: str | None = None) -> Sequence[str]:
    after = indent + "  " if rest is None else rest
    return columns.wrap(text, width, first=indent, rest=after) or [indent.rstrip()]
