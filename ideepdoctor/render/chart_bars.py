"""Grouped horizontal bars with intervals. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ideepdoctor.render.chart_svg import (
    SIZE,
    Scale,
    Theme,
    document,
    element,
    fitted,
    label,
    line,
    log_range,
    nice_step,
    text_width,
    tick_text,
    ticks,
)

WIDE = 600
"""From this width on labels stand beside the bars, not above them."""
_BAR = 13
_LOG_FROM = 20.0
"""Longest to shortest: beyond it the axis is logarithmic, or the short ones could not be seen."""


@dataclass(frozen=True, slots=True)
class BarMark:
    """A bar: ``value`` None has no bar but its text (why not); ``first`` is the part of it in full colour, 0 to 1."""

    engine: str
    label: str
    value: float | None
    text: str
    low: float | None = None
    high: float | None = None
    first: float = 1.0


@dataclass(frozen=True, slots=True)
class BarGroup:
    """Bars under a heading."""

    title: str
    bars: tuple[BarMark, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the bars: a ceiling, or what is 1."""

    value: float
    text: str
    dash: str = ""


@dataclass(frozen=True, slots=True)
class BarChart:
    """What is drawn; ``axis`` names unit and direction. ``shared``: one axis for all groups, else one for each.

    ``base``: the ratio that is 1 in a chart of ratios. Such a chart alone may get a logarithmic axis: its bars begin
    there, what is slower to the right, what is faster to the left.
    """

    name: str
    title: str
    description: str
    axis: str
    groups: tuple[BarGroup, ...]
    marks: tuple[Mark, ...] = ()
    shared: bool = True
    base: float | None = None


def is_log(chart: BarChart) -> bool:
    """Whether the axis is logarithmic: the longest bar is more than 20 times the shortest."""
    values = [bar.value for group in chart.groups for bar in group.bars if bar.value]
    return chart.base is not None and bool(values) and max(values) > _LOG_FROM * min(values)


def draw(chart: BarChart, theme: Theme, width: float = 420) -> str:
    """The chart as an SVG document of this width; the height is what it needs."""
    beside = width >= WIDE
    bars = [bar for group in chart.groups for bar in group.bars]
    left = 8 + (min(0.3 * width, max((text_width(bar.label) for bar in bars), default=0.0)) + 8 if beside else 0)
    log = is_log(chart)
    scale = _scale(chart, bars, log, left, width)
    body: list[str] = []
    y = 10.0
    for text in _lines(chart.axis + (" (logarithmic axis)" if log else ""), width - 16):
        y += SIZE + 2
        body.append(label(8, y, text, theme.muted, size=11))
    y += 6
    if chart.shared:
        y += SIZE
        top = y
        body.append("")  # the grid goes here, behind the bars, when its height is known
        place = len(body) - 1
        y += 4 + 13 * sum(bool(mark.text) for mark in chart.marks)
    for group in chart.groups:
        own = scale if chart.shared else _scale(chart, group.bars, False, left, width)
        y += 20
        body.append(label(8, y, fitted(group.title, width - 16), theme.text, bold=True, halo=theme.ground))
        y += 7
        for bar in group.bars:
            origin = own.at(chart.base) if log and chart.base is not None else own.start
            drawn, y = _bar(bar, own, origin, theme, y, width, left, beside)
            body.append(drawn)
    if chart.shared:
        body[place] = _grid(chart, scale, theme, top, y + 4, width)
        y += 18
    return document(chart.name, chart.title, chart.description, width, y + 8, body, theme)


def _scale(chart: BarChart, bars: Sequence[BarMark], log: bool, left: float, width: float) -> Scale:
    """The longest scale from ``left`` on which every bar leaves room for its text."""
    low, high = _range(chart, bars, log)
    unit = Scale(low, high, 0.0, 1.0, log)
    right = width - 14
    for bar in bars:
        if bar.value is not None:
            # From where its text begins: the end of the bar or of its interval, or the base.
            ends = [bar.value, bar.high or bar.value, *([chart.base] if log and chart.base is not None else [])]
            part = max(unit.at(end) for end in ends)
            room = width - 10 - text_width(bar.text, 11) - left
            right = min(right, left + max(room, 0.2 * width) / max(part, 0.05))
    return Scale(low, high, left, right, log)


def _range(chart: BarChart, bars: Sequence[BarMark], log: bool) -> tuple[float, float]:
    values = [end for bar in bars if bar.value for end in (bar.value, bar.high or bar.value)]
    marks = [mark.value for mark in chart.marks] if chart.shared else []
    high = max([*values, *marks], default=1.0)
    if log and chart.base is not None:
        return log_range(min(chart.base, *(bar.low or bar.value for bar in bars if bar.value)), high)
    if not chart.shared:
        return 0.0, high
    step = nice_step(high / 5)
    return 0.0, step * -(-high // step)


def _bar(
    bar: BarMark, scale: Scale, origin: float, theme: Theme, y: float, width: float, left: float, beside: bool
) -> tuple[str, float]:
    """The markup of a bar that begins at y, and where the next one begins."""
    gap = 6 if beside else 9
    parts = [element("title", {}, text=f"{bar.label}: {bar.text}")]
    if beside:
        parts.append(label(8, y + _BAR - 2, fitted(bar.label, left - 16), theme.text))
    else:
        y += SIZE
        parts.append(label(left, y, fitted(bar.label, width - left - 8), theme.text, halo=theme.ground))
        y += 5
    if bar.value is None:
        room = width - left - 8
        parts.append(label(left, y + _BAR - 3, fitted(bar.text, room, 11), theme.muted, size=11, halo=theme.ground))
        return element("g", {"class": "bar"}, "".join(parts)), y + _BAR + gap
    colour = theme.of(bar.engine)
    start, end = sorted((origin, scale.at(bar.value)))
    split = start + (end - start) * bar.first
    box = {"y": y, "height": float(_BAR)}
    parts.append(element("rect", {"x": start, "width": split - start, **box, "style": f"fill:{colour}"}))
    if bar.first < 1:
        style = f"fill:{colour};fill-opacity:.45"
        parts.append(element("rect", {"x": split, "width": end - split, **box, "style": style}))
    far = end
    if bar.low is not None and bar.high is not None and bar.high > bar.low:
        low, far, middle = scale.at(bar.low), max(end, scale.at(bar.high)), y + _BAR / 2
        parts.append(line(low, middle, scale.at(bar.high), middle, theme.text, width=1.2))
        parts += [line(x, middle - 3, x, middle + 3, theme.text, width=1.2) for x in (low, scale.at(bar.high))]
    parts.append(label(far + 4, y + _BAR - 3, bar.text, theme.text, size=11, halo=theme.ground))
    attributes = {"class": "bar", "data-value": f"{bar.value:.6g}"}
    return element("g", attributes, "".join(parts)), y + _BAR + gap


def _grid(chart: BarChart, scale: Scale, theme: Theme, top: float, bottom: float, width: float) -> str:
    parts = []
    after = -1e9
    for value in ticks(scale.low, scale.high, log=scale.log):
        x, text = scale.at(value), tick_text(value)
        parts.append(line(x, top + 3, x, bottom, theme.grid))
        half = text_width(text, 10) / 2
        if x - half > after + 4:
            parts += [label(x, y, text, theme.muted, anchor="middle", size=10) for y in (top, bottom + 12)]
            after = x + half
    for number, mark in enumerate(chart.marks):
        x = scale.at(mark.value)
        parts.append(line(x, top + 3, x, bottom, theme.text, dash=mark.dash))
        if not mark.text:
            continue
        room, y = text_width(mark.text, 10), top + 14 + 13 * number
        # The first of several to the left of its line, so that it keeps off the others; so too what does not fit.
        fits = x + 4 + room < width - 4 and not (number == 0 and len(chart.marks) > 1)
        parts.append(
            label(
                x + 4 if fits else x - 4,
                y,
                mark.text,
                theme.text,
                anchor="start" if fits else "end",
                size=10,
                halo=theme.ground,
            )
        )
    return "".join(parts)


def _lines(text: str, room: float) -> list[str]:
    return textwrap.wrap(text, max(20, int(room / (0.56 * 11))))
