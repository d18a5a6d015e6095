"""Charts of what was proved: errors and speed of ``smoke``, cases of ``certify``, trials of ``tune``. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ideepdoctor.model.facts import ConvTiming, OpCheck, Smoke
from ideepdoctor.model.words import counted
from ideepdoctor.render.chart_bars import BarChart, BarGroup, BarMark, Mark
from ideepdoctor.render.chart_bars import draw as draw_bars
from ideepdoctor.render.charts import Drawing

RIGHT, WRONG = "ideep", "mkl"
"""Whose colours are taken; every bar says in words what it is, too."""
_ENDS = 1e-4, 1e4
"""Beyond them a bar is not drawn longer."""


def of_smoke(smoke: Smoke) -> Iterator[Drawing]:
    """How far each operation is from float64, and the convolution against NumPy's."""
    if smoke.timing is not None:
        yield _timing(smoke.timing)
    by_op: dict[str, list[OpCheck]] = {}
    for check in smoke.checks:
        by_op.setdefault(check.op, []).append(check)
    bars = tuple(_worst(op, checks) for op, checks in by_op.items())
    if any(bar.value is not None for bar in bars):
        axis = "largest error over the error that is allowed, which is 1; what is longer is wrong"
        right = sum(check.status == "right" for check in smoke.checks)
        tried = sum(check.status != "not-run" for check in smoke.checks)
        title = f"Errors against float64: {right} of {counted(tried, 'check')} right"
        told = "; ".join(f"{bar.label}: {bar.text}" for bar in bars)
        yield _drawing("errors", title, f"{axis}. {told}", axis, (BarGroup("by operation", bars),), 1.0)


def _worst(op: str, checks: list[OpCheck]) -> BarMark:
    failed = [check for check in checks if check.failed]
    measured = [
        (check.max_relative_error / check.tolerance, check)
        for check in failed or checks
        if check.max_relative_error is not None and check.tolerance
    ]
    words = f"{failed[0].status}: " if failed else ""
    if not measured:
        return BarMark(WRONG if failed else RIGHT, op, None, (words + checks[0].message) or checks[0].status)
    share, check = max(measured, key=lambda pair: pair[0] if math.isfinite(pair[0]) else math.inf)
    shown = min(max(share, _ENDS[0]), _ENDS[1]) if math.isfinite(share) else _ENDS[1]
    error = f"{check.max_relative_error:.1e}" if check.max_relative_error else "0"
    text = f"{words}{error}, allowed {check.tolerance:.0e}"
    return BarMark(WRONG if failed else RIGHT, op, shown, text)


def _timing(timing: ConvTiming) -> Drawing:
    rows = (("numpy", "NumPy", timing.numpy_seconds), ("ideep", "iDeep", timing.ideep_seconds))
    bars = tuple(BarMark(name, label, seconds * 1000, f"{seconds * 1000:.3g} ms") for name, label, seconds in rows)
    times = f"{timing.ratio:.1f} times NumPy ({timing.ratio_low:.1f} to {timing.ratio_high:.1f})"
    title = f"Convolution, forward and backward: {times}"
    axis = f"milliseconds, median of {counted(timing.repeats, 'repeat')}; shorter is faster"
    told = ", ".join(f"{bar.label} {bar.text}" for bar in bars)
    return _drawing("convolution", title, f"{told}. {axis}", axis, (BarGroup(timing.case, bars),))


def of_certify(data: Mapping[str, Any]) -> Iterator[Drawing]:
    """How many cases of each family of operations are right; ``data`` is the document's ``certify``."""
    bars = tuple(_family(row) for row in data["ops"])
    if any(bar.value for bar in bars):
        title = f"Cases against float64: {data['right']} of {data['tried']} tries right"
        axis = "tries of each family; right ones in full colour, what is lighter is not right"
        told = "; ".join(f"{bar.label}: {bar.text}" for bar in bars)
        yield _drawing("cases", title, f"{axis}. {told}", axis, (BarGroup("by operation", bars),))


def _family(row: Mapping[str, Any]) -> BarMark:
    tried, right = row["tried"], row["right"]
    if not tried:
        why = next((item["text"] for item in row["not_run"]), "")
        return BarMark(RIGHT, row["op"], None, f"not tried: {why}" if why else "not tried")
    text = f"{right} of {tried} right"
    return BarMark(RIGHT if right == tried else WRONG, row["op"], float(tried), text, first=right / tried)


def of_tune(data: Mapping[str, Any]) -> Iterator[Drawing]:
    """What each setting gains; ``data`` is the document's ``tune``."""
    groups = []
    for looked in data["dimensions"]:
        bars = tuple(_trial(trial, looked["chosen"]) for trial in looked["trials"])
        if any(bar.value for bar in bars):
            groups.append(BarGroup(f"{looked['title']} (default: {looked['default']})", bars))
    if groups:
        axis = "speed by setting, the default is 1; longer is faster; in brackets the 95 % interval"
        title = f"Speed of {data['subject']} by setting"
        told = " ".join(
            f"{group.title}: " + ", ".join(f"{bar.label} {bar.text}" for bar in group.bars) + "." for group in groups
        )
        yield _drawing("settings", title, f"{axis}. {told}", axis, tuple(groups), 1.0)


def _trial(trial: Mapping[str, Any], chosen: str | None) -> BarMark:
    gain, label = trial["gain"], trial["label"]
    name = f"{label} (chosen)" if label == chosen else label
    colour = "tuned" if label == chosen else "ideep"
    if gain is None:
        return BarMark(colour, name, None, trial["why"] or "not measured")
    text = f"{gain['ratio']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})"
    return BarMark(colour, name, gain["ratio"], text, gain["low"], gain["high"])


def _drawing(
    name: str, title: str, description: str, axis: str, groups: tuple[BarGroup, ...], base: float | None = None
) -> Drawing:
    marks = () if base is None else (Mark(base, ""),)
    chart = BarChart(f"chart-{name}", title, description, axis, groups, marks, base=base)
    return Drawing(name, title, description, lambda theme, width: draw_bars(chart, theme, width))
