"""The charts of ``bench``, drawn as SVG: which there are for given runs, and each with its words. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ideepdoctor.model.bench import Layer, Result, Row
from ideepdoctor.proof.bench_bars import Chart, short
from ideepdoctor.proof.bench_compare import compare, side_by_side
from ideepdoctor.proof.bench_limits import layers_of
from ideepdoctor.render.bench import factor, number
from ideepdoctor.render.chart_bars import BarChart, BarGroup, BarMark, Mark
from ideepdoctor.render.chart_bars import draw as draw_bars
from ideepdoctor.render.chart_lines import Curve, Point, Roof, roofline, scaling
from ideepdoctor.render.chart_svg import LIGHT, Theme, document, label

Draw = Callable[[Theme, float], str]
POINTS = 14
"""Layers of a roofline: those that take the most time."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart that can be drawn: ``draw(theme, width)`` makes the SVG; ``name`` is what ``--chart`` takes."""

    name: str
    title: str
    description: str
    draw: Draw


def drawings(results: Sequence[Result]) -> tuple[Drawing, ...]:
    """Every chart of these runs, the first one the most telling: of several runs the talk's three, then each run's."""
    found: list[Drawing] = []
    if len(results) > 1:
        found += [of_chart(chart) for chart in compare(results).charts]
    many = len(results) > 1
    for position, result in enumerate(results, 1):
        found += of_run(result, f"-{position}" if many else "")
    return tuple(found)


def of_run(result: Result, suffix: str = "") -> Iterator[Drawing]:
    """The charts of one run: engines side by side, times, GFLOP/s, rooflines, threads."""
    chart = side_by_side(result)
    if chart is not None and chart.groups:
        yield of_chart(chart, suffix)
    for made in (_times(result, suffix), _rates(result, suffix), *_rooflines(result, suffix), _threads(result, suffix)):
        if made is not None:
            yield made


def svg(drawing: Drawing, theme: Theme = LIGHT, width: float = 800) -> str:
    """The chart as a file of its own, with its title above it."""
    inner = drawing.draw(theme, width)
    found = re.search(r'height="([0-9.]+)"', inner)
    assert found is not None
    titles = textwrap.wrap(drawing.title, int(width / 9.6))
    top = 10.0 + 20 * len(titles)
    body = [label(8, 22 + 20 * line, text, theme.text, bold=True, size=15) for line, text in enumerate(titles)]
    body.append(inner.replace("<svg ", f'<svg y="{top:g}" ', 1))
    whole = document(
        f"file-{drawing.name}", drawing.title, drawing.description, width, top + float(found[1]), body, theme
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def of_chart(chart: Chart, suffix: str = "") -> Drawing:
    """Bars of ratios: the base is 1."""
    groups = tuple(
        BarGroup(
            f"{group.net}, batch {group.batch}",
            tuple(
                BarMark(bar.engine, bar.label, None, bar.why)
                if bar.ratio is None
                else BarMark(
                    bar.engine,
                    bar.label,
                    bar.ratio.median,
                    "1" if bar.is_base else factor(bar.ratio),
                    bar.ratio.low,
                    bar.ratio.high,
                )
                for bar in group.bars
            ),
        )
        for group in chart.groups
    )
    means = "; ".join(f"{mean.label} {number(mean.ratio.median)}" for mean in chart.means)
    description = f"{chart.axis}. Geometric means: {means}." if means else chart.axis
    axis = f"{chart.axis}; in brackets the 95 % interval"
    bars = BarChart(f"chart-{chart.id}{suffix}", chart.title, description, axis, groups, (Mark(1.0, ""),), base=1.0)
    return _bars(f"{chart.id}{suffix}", bars)


def _times(result: Result, suffix: str) -> Drawing | None:
    """Milliseconds of a step, forward and backward; each net on its own axis, since nets differ by far."""
    groups = []
    for net, batch in result.keys():  # noqa: SIM118 (a method, not a mapping)
        rows = [row for row in result.results if row.key == (net, batch)]
        bars = tuple(_time_bar(result, row) for row in rows)
        if any(bar.value for bar in bars):
            slowest = max(bar.value or 0.0 for bar in bars)
            groups.append(BarGroup(f"{net}, batch {batch} (the longest bar is {slowest:.0f} ms)", bars))
    if not groups:
        return None
    axis = "milliseconds of a step: forward in full colour, backward lighter; shorter is faster"
    axis += "; in brackets the 95 % interval"
    title = f"Time of a training step on {result.machine.name}"
    description = " ".join(
        f"{group.title}: " + ", ".join(f"{bar.label} {bar.text}" for bar in group.bars) + "." for group in groups
    )
    return _bars(
        f"times{suffix}", BarChart(f"chart-times{suffix}", title, description, axis, tuple(groups), shared=False)
    )


def _time_bar(result: Result, row: Row) -> BarMark:
    name = short(result.engine(row.engine))
    if not row.measured or row.median is None:
        return BarMark(row.engine, name, None, f"{row.status}: {row.why}".rstrip(": "))
    digits = 2 if row.median < 0.01 else 1 if row.median < 0.1 else 0
    ends = [None if end is None else end * 1000 for end in (row.low, row.high)]
    text = f"{row.median * 1000:.{digits}f} ms"
    if ends[0] is not None and ends[1] is not None:
        text += f" ({ends[0]:.{digits}f} to {ends[1]:.{digits}f})"
    alone = bool(row.forward) and not row.backward
    text += ", forward alone" if alone else ""
    first = 1.0
    if row.forward_median is not None and row.backward_median is not None:
        first = row.forward_median / (row.forward_median + row.backward_median)
    return BarMark(row.engine, name, row.median * 1000, text, ends[0], ends[1], first)


def _rates(result: Result, suffix: str) -> Drawing | None:
    """GFLOP/s below what this machine computes at most."""
    groups = []
    for net, batch in result.keys():  # noqa: SIM118 (a method, not a mapping)
        bars = []
        for row in result.results:
            if row.key == (net, batch) and row.measured and row.gflops is not None:
                part = "" if row.of_ceiling is None else f", {row.of_ceiling * 100:.0f} %"
                text = f"{row.gflops:.0f} GFLOP/s{part}"
                bars.append(BarMark(row.engine, short(result.engine(row.engine)), row.gflops, text))
        if bars:
            groups.append(BarGroup(f"{net}, batch {batch}", tuple(bars)))
    if not groups:
        return None
    title = f"How much of {result.machine.name} is used"
    told = " of the best matrix product" if result.ceiling.gflops else ""
    description = f"GFLOP/s of each engine and net{told}, longer is better."
    marks = tuple(_marks(result))
    axis = f"GFLOP/s; per cent{told}; longer is better" if told else "GFLOP/s; longer is better"
    chart = BarChart(f"chart-ceiling{suffix}", title, description, axis, tuple(groups), marks)
    return _bars(f"ceiling{suffix}", chart)


def _marks(result: Result) -> Iterator[Mark]:
    if result.ceiling.gflops:
        yield Mark(result.ceiling.gflops, f"best product {result.ceiling.gflops:.0f}")
    if result.ceiling.theoretical is not None:
        yield Mark(result.ceiling.theoretical.gflops, f"in theory {result.ceiling.theoretical.gflops:.0f}", "4 3")


def roofline_layers(result: Result, engine: str, net: str) -> list[Layer]:
    """The layers of a roofline by time, longest first: those whose operations and bytes are known."""
    known = [one for one in layers_of(result, engine, net) if one.flops and one.bytes and one.milliseconds > 0]
    return sorted(known, key=lambda layer: -layer.milliseconds)[:POINTS]


def _rooflines(result: Result, suffix: str) -> Iterator[Drawing]:
    for engine, net in dict.fromkeys((layer.engine, layer.net) for layer in result.layers):
        layers = roofline_layers(result, engine, net)
        if layers:
            yield _roofline(result, engine, net, layers, suffix)


def _roofline(result: Result, engine: str, net: str, layers: Sequence[Layer], suffix: str) -> Drawing:
    points = []
    for position, layer in enumerate(layers, 1):
        flops, moved = layer.flops or 0.0, layer.bytes or 0.0
        rate = flops / layer.milliseconds / 1e6
        told = f"{position}: {layer.layer or layer.problem} {layer.propagation.replace('_', ' ')}, {layer.kernel}: "
        told += f"{layer.milliseconds:.1f} ms, {rate:.0f} GFLOP/s, {flops / moved:.0f} flop/byte"
        points.append(Point(position, flops / moved, rate, told, layer.propagation))
    roofs = [Roof(mark.text + " GFLOP/s", gflops=mark.value, dash=mark.dash) for mark in _marks(result)]
    moving = [one for one in layers_of(result, engine, net) if one.bytes and one.milliseconds > 0]
    fastest = max((one.bytes or 0.0) / one.milliseconds / 1e6 for one in moving)
    roofs.append(Roof(f"slope: most bytes seen, {fastest:.0f} GB/s", gigabytes_per_second=fastest, dash="2 3"))
    name = f"roofline-{engine}-{net}{suffix}"
    title = f"Layers of {net} below the ceilings, {short(result.engine(engine))} on {result.machine.name}"
    description = "GFLOP/s over flop per byte. " + "; ".join(point.text for point in points[:6])
    return Drawing(
        name,
        title,
        description,
        lambda theme, width: roofline(f"chart-{name}", title, description, points, roofs, theme, width),
    )


def _threads(result: Result, suffix: str) -> Drawing | None:
    curves = []
    nets = {(item.net, item.batch) for item in result.scaling}
    for engine, net, batch in dict.fromkeys((item.engine, item.net, item.batch) for item in result.scaling):
        items = [item for item in result.scaling if (item.engine, item.net, item.batch) == (engine, net, batch)]
        items.sort(key=lambda item: item.threads)
        first = items[0].median
        name = short(result.engine(engine)) + (f", {net}" if len(nets) > 1 else "")
        points = tuple(
            (
                item.threads,
                first / item.median,
                None if item.high is None else first / item.high,
                None if item.low is None else first / item.low,
            )
            for item in items
        )
        curves.append(Curve(engine, name, points))
    if not curves or len({point[0] for curve in curves for point in curve.points}) < 2:
        return None
    where = ", ".join(f"{net} at batch {batch}" for net, batch in sorted(nets)) if len(nets) < 3 else "several nets"
    title = f"Speed by threads on {result.machine.name}: {where}"
    description = "; ".join(
        f"{curve.label}: " + ", ".join(f"{count} threads {times:.2f} times" for count, times, *_ in curve.points)
        for curve in curves
    )
    name = f"threads{suffix}"
    return Drawing(
        name,
        title,
        description,
        lambda theme, width: scaling(f"chart-{name}", title, description, curves, theme, width),
    )


def _bars(name: str, chart: BarChart) -> Drawing:
    return Drawing(name, chart.title, chart.description, lambda theme, width: draw_bars(chart, theme, width))
