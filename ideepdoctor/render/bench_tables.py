"""The numbers of a bench page as tables: what a chart shows, for those who read instead. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ideepdoctor.model.bench import Result, Row
from ideepdoctor.proof.bench_bars import Chart, short
from ideepdoctor.render.bench import number
from ideepdoctor.render.charts import roofline_layers


@dataclass(frozen=True, slots=True)
class TableGroup:
    """Rows under a heading that spans the table; a row that is shorter than the heads ends in a cell that is wider."""

    title: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: ``numeric`` are the columns that are set flush right."""

    caption: str
    heads: tuple[str, ...]
    numeric: tuple[int, ...]
    groups: tuple[TableGroup, ...]


def ratios_table(chart: Chart) -> Table:
    """The ratios of a chart, and their geometric means."""
    groups = []
    for group in chart.groups:
        rows = tuple(
            (bar.label, bar.why)
            if bar.ratio is None
            else (
                bar.label,
                "" if bar.seconds is None else _ms(bar.seconds),
                number(bar.ratio.median),
                "the base" if bar.is_base else f"{number(bar.ratio.low)} to {number(bar.ratio.high)}",
            )
            for bar in group.bars
        )
        groups.append(TableGroup(f"{group.net}, batch {group.batch}", rows))
    means = tuple(
        (
            f"{mean.label} ({mean.nets} net{'s' if mean.nets > 1 else ''})",
            "",
            number(mean.ratio.median),
            f"{number(mean.ratio.low)} to {number(mean.ratio.high)}",
        )
        for mean in chart.means
    )
    if means:
        groups.append(TableGroup("geometric mean of the nets", means))
    heads = ("engine", "ms", "times the base", "95 %")
    return Table(f"Times over the time of {chart.base}", heads, (1, 2, 3), tuple(groups))


def rows_table(result: Result) -> Table:
    """Everything that was measured of each engine and net."""
    groups = []
    for net, batch in result.keys():  # noqa: SIM118 (a method, not a mapping)
        rows = tuple(_row(result, row) for row in result.results if row.key == (net, batch))
        groups.append(TableGroup(f"{net}, batch {batch}", rows))
    heads = ("engine", "ms", "95 %", "forward", "backward", "images/s", "GFLOP/s", "of ceiling")
    return Table("Time of a step in ms, forward and backward apart", heads, tuple(range(1, 8)), tuple(groups))


def _row(result: Result, row: Row) -> tuple[str, ...]:
    name = short(result.engine(row.engine))
    if not row.measured or row.median is None:
        return name, f"{row.status}: {row.why}".rstrip(": ")
    span = "" if row.low is None or row.high is None else f"{_ms(row.low)} to {_ms(row.high)}"
    return (
        name,
        _ms(row.median),
        span,
        "" if row.forward_median is None else _ms(row.forward_median),
        "" if row.backward_median is None else _ms(row.backward_median),
        "" if row.images_per_second is None else f"{row.images_per_second:.1f}",
        "" if row.gflops is None else f"{row.gflops:.0f}",
        "" if row.of_ceiling is None else f"{row.of_ceiling * 100:.0f} %",
    )


def layers_table(result: Result, engine_and_net: str) -> Table:
    """The layers of a roofline, numbered as there, then the other primitives together.

    Args:
        result: the run.
        engine_and_net: ``ENGINE-NET``, as the chart is called.
    """
    pair = next((layer.engine, layer.net) for layer in result.layers if f"{layer.engine}-{layer.net}" == engine_and_net)
    shown = roofline_layers(result, *pair)
    rows = []
    for position, layer in enumerate(shown, 1):
        flops, moved = layer.flops or 0.0, layer.bytes or 1.0
        rows.append(
            (
                str(position),
                layer.layer or layer.problem,
                layer.propagation.replace("_", " "),
                layer.kernel,
                f"{layer.milliseconds:.2f}",
                f"{flops / layer.milliseconds / 1e6:.0f}",
                f"{flops / moved:.0f}",
            )
        )
    rest: dict[str, float] = {}
    for layer in result.layers:
        if (layer.engine, layer.net) == pair and layer not in shown:
            rest[layer.primitive] = rest.get(layer.primitive, 0.0) + layer.milliseconds
    others = tuple(
        ("", name, "", "", f"{ms:.2f}", "", "") for name, ms in sorted(rest.items(), key=lambda one: -one[1])
    )
    groups = [TableGroup("", tuple(rows))]
    groups += [TableGroup("other primitives, together", others)] if others else []
    heads = ("number", "layer", "pass", "kernel", "ms", "GFLOP/s", "flop/byte")
    return Table("Layers by time in a step", heads, (4, 5, 6), tuple(groups))


def scaling_table(result: Result) -> Table:
    """Milliseconds by threads, and how many times as fast as the fewest."""
    groups = []
    for engine, net, batch in dict.fromkeys((item.engine, item.net, item.batch) for item in result.scaling):
        items = [item for item in result.scaling if (item.engine, item.net, item.batch) == (engine, net, batch)]
        items.sort(key=lambda item: item.threads)
        rows = tuple(
            (
                str(item.threads),
                _ms(item.median),
                "" if item.low is None or item.high is None else f"{_ms(item.low)} to {_ms(item.high)}",
                f"{items[0].median / item.median:.2f}",
            )
            for item in items
        )
        groups.append(TableGroup(f"{short(result.engine(engine))}, {net}, batch {batch}", rows))
    return Table("A step by threads", ("threads", "ms", "95 %", "times as fast"), (0, 1, 2, 3), tuple(groups))


def engines_table(result: Result) -> Table:
    """What each engine is: versions, variables, threads."""
    rows = tuple(
        (
            short(engine),
            engine.label,
            engine.python,
            _pairs(engine.versions, " "),
            _pairs(engine.variables, "=") or "none",
            "" if engine.threads is None else str(engine.threads),
            "on" if engine.guard else "off" if engine.kind == "ideep" else "",
        )
        for engine in result.engines
    )
    heads = ("engine", "what it is", "Python", "versions", "variables", "threads", "guard")
    return Table("Engines of this run", heads, (), (TableGroup("", rows),))


def sgemm_table(result: Result) -> Table:
    """The best matrix product of each library, fastest first."""
    best = sorted(result.ceiling.sgemm, key=lambda item: -item.gflops)
    rows = tuple(
        (
            item.library,
            _pairs(item.variables, "=") or "none",
            "" if item.size is None else str(item.size),
            "" if item.threads is None else str(item.threads),
            f"{item.gflops:.0f}",
        )
        for item in best
    )
    heads = ("library", "variables", "size", "threads", "GFLOP/s")
    return Table("Products of square single precision matrices", heads, (2, 3, 4), (TableGroup("", rows),))


def _pairs(values: Mapping[str, str], between: str) -> str:
    return ", ".join(f"{name}{between}{values[name]}" for name in sorted(values))


def _ms(seconds: float) -> str:
    digits = 2 if seconds < 0.01 else 1 if seconds < 0.1 else 0
    return f"{seconds * 1000:.{digits}f}"
