"""Charts with two axes: the roofline of layers, and speed by threads. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ideepdoctor.render.chart_svg import (
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

_TOP, _BOTTOM, _LEFT, _RIGHT = 30.0, 46.0, 50.0, 14.0
_HEIGHT = 330.0
_LEGEND = 16.0
"""Height of a line of it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A layer: ``number`` is its line in the table; x is flop/byte, y is GFLOP/s, both above zero."""

    number: int
    x: float
    y: float
    text: str
    series: str


@dataclass(frozen=True, slots=True)
class Roof:
    """A ceiling: ``gflops`` flat, or (``bytes_per_second``) a slope in GB/s."""

    text: str
    gflops: float | None = None
    gigabytes_per_second: float | None = None
    dash: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Speed by threads: x threads, y times as fast as the fewest, with an interval where there is one."""

    engine: str
    label: str
    points: tuple[tuple[int, float, float | None, float | None], ...]


PASSES = {
    "forward_training": ("forward", "tuned", "circle"),
    "forward_inference": ("forward", "tuned", "circle"),
    "forward_scoring": ("forward", "tuned", "circle"),
    "backward_data": ("backward, data", "mkl", "square"),
    "backward_weights": ("backward, weights", "caffe", "triangle"),
}
"""Name, colour and shape of each pass: the shape tells them apart without colour."""


def roofline(
    name: str, title: str, description: str, points: Sequence[Point], roofs: Sequence[Roof], theme: Theme, width: float
) -> str:
    """GFLOP/s of layers over their flop per byte, below the ceilings; both axes logarithmic.

    Args:
        name, title, description: as ``document`` takes them.
        points: one or more.
        roofs: flat ones and slopes.
        theme: colours.
        width: pixels.
    """
    flat = [roof.gflops for roof in roofs if roof.gflops]
    xs, ys = [point.x for point in points], [point.y for point in points]
    legend, rows = _legend(points, roofs, theme, width)
    top = _TOP + _LEGEND * rows
    x_scale = Scale(*log_range(min(xs) / 1.3, max(xs) * 1.3), _LEFT, width - _RIGHT, True)
    y_scale = Scale(*log_range(min(ys) / 1.3, max([*ys, *flat]) * 1.3), top + _HEIGHT - _BOTTOM - _TOP, top, True)
    body = _axes(x_scale, y_scale, theme, width, "work per byte moved, flop/byte", "GFLOP/s (both axes logarithmic)")
    body += [drawn for roof in roofs for drawn in _roof(roof, x_scale, y_scale, theme)]
    body += legend
    taken = [(x_scale.at(point.x), y_scale.at(point.y)) for point in points]
    for point, (x, y) in zip(points, list(taken), strict=True):
        _, colour, shape = PASSES.get(point.series, (point.series, "other", "circle"))
        mark = _shape(shape, x, y, theme.of(colour), theme.ground)
        at = _free(x, y, taken, x_scale, y_scale)
        taken.append(at)
        leader = line(x, y, *at, theme.muted, width=0.7) if math.dist(at, (x, y)) > 15 else ""
        shown = label(at[0], at[1] + 3.5, str(point.number), theme.text, anchor="middle", size=10, halo=theme.ground)
        body.append(element("g", {"class": "point"}, element("title", {}, text=point.text) + leader + mark + shown))
    return document(name, title, description, width, y_scale.start + _BOTTOM, body, theme)


def scaling(name: str, title: str, description: str, curves: Sequence[Curve], theme: Theme, width: float) -> str:
    """How many times as fast with more threads, one curve for each engine, and the line that would be ideal."""
    threads = sorted({point[0] for curve in curves for point in curve.points})
    fewest, most = threads[0], threads[-1]
    highest = max([most / fewest, *(point[1] for curve in curves for point in curve.points)])
    log = most > 16 * fewest
    room = min(16 + max(text_width(f"{curve.label} 10.00", 11) for curve in curves), 0.45 * width)
    span = (float(fewest), float(most) if most > fewest else fewest + 1.0)
    x_scale = Scale(*span, _LEFT, width - room, log)
    top = log_range(0.5, highest)[1] if log else nice_step(highest / 4) * math.ceil(highest / nice_step(highest / 4))
    y_scale = Scale(0.5 if log else 0.0, top, _HEIGHT - _BOTTOM, _TOP, log)
    told = "threads" + (" (both axes logarithmic)" if log else "")
    body = _axes(
        x_scale,
        y_scale,
        theme,
        width,
        told,
        f"times as fast as with {fewest} thread{'s' if fewest > 1 else ''}",
        x_ticks=threads,
    )
    body.append(
        line(x_scale.at(fewest), y_scale.at(1), x_scale.at(most), y_scale.at(most / fewest), theme.muted, dash="5 4")
    )
    ends: list[tuple[float, str, str]] = [(y_scale.at(most / fewest), "ideal", theme.muted)]
    for number, curve in enumerate(curves):
        colour = theme.of(curve.engine)
        # Beside each other: intervals at the same number of threads would lie on one another.
        beside = 4.0 * (number - (len(curves) - 1) / 2)
        places = [(x_scale.at(point[0]), y_scale.at(point[1])) for point in curve.points]
        path = " ".join(f"{x:.2f},{y:.2f}" for x, y in places)
        parts = [element("title", {}, text=_told(curve))]
        style = f"fill:none;stroke:{colour};stroke-width:2"
        parts.append(element("polyline", {"points": path, "style": style}))
        for (x, y), (_, _, low, high) in zip(places, curve.points, strict=True):
            if low is not None and high is not None:
                parts.append(line(x + beside, y_scale.at(low), x + beside, y_scale.at(high), colour, width=1.5))
            parts.append(element("circle", {"cx": x, "cy": y, "r": 3.5, "style": f"fill:{colour}"}))
        body.append(element("g", {"class": "curve"}, "".join(parts)))
        ends.append((places[-1][1], f"{curve.label} {curve.points[-1][1]:.2f}", theme.text))
    body += _end_labels(ends, width - room + 8, room - 8)
    return document(name, title, description, width, _HEIGHT, body, theme)


def _told(curve: Curve) -> str:
    return f"{curve.label}: " + ", ".join(f"{count} threads {factor:.2f} times" for count, factor, *_ in curve.points)


def _end_labels(ends: Sequence[tuple[float, str, str]], x: float, room: float) -> list[str]:
    """Labels at the ends of curves, moved apart where they would lie on each other."""
    found = []
    before = -1e9
    for y, text, colour in sorted(ends):
        y = max(y + 4, before + 14)
        found.append(label(x, y, fitted(text, room, 11), colour, size=11))
        before = y
    return found


def _axes(
    x_scale: Scale,
    y_scale: Scale,
    theme: Theme,
    width: float,
    x_name: str,
    y_name: str,
    x_ticks: Sequence[float] | None = None,
) -> list[str]:
    body = [label(8, 16, y_name, theme.muted, size=11)]
    after = -1e9
    shown = ticks(x_scale.low, x_scale.high, log=x_scale.log) if x_ticks is None else x_ticks
    for value in shown:
        x, half = x_scale.at(value), text_width(tick_text(value), 10) / 2
        body.append(line(x, y_scale.end, x, y_scale.start, theme.grid))
        if x - half > after + 4:
            body.append(label(x, y_scale.start + 14, tick_text(value), theme.muted, anchor="middle", size=10))
            after = x + half
    for value in ticks(y_scale.low, y_scale.high, log=y_scale.log, most=7):
        y = y_scale.at(value)
        body.append(line(x_scale.start, y, x_scale.end, y, theme.grid))
        body.append(label(x_scale.start - 5, y + 3.5, tick_text(value), theme.muted, anchor="end", size=10))
    body.append(
        label((x_scale.start + x_scale.end) / 2, y_scale.start + 34, x_name, theme.muted, anchor="middle", size=11)
    )
    return body


def _roof(roof: Roof, x_scale: Scale, y_scale: Scale, theme: Theme) -> list[str]:
    if roof.gflops is not None:
        y = y_scale.at(roof.gflops)
        return [line(x_scale.start, y, x_scale.end, y, theme.text, dash=roof.dash)]
    slope = roof.gigabytes_per_second or 0.0
    if slope <= 0:
        return []
    left, right = max(x_scale.low, y_scale.low / slope), min(x_scale.high, y_scale.high / slope)
    if left >= right:  # outside what is shown
        return []
    start, end = ((x_scale.at(value), y_scale.at(value * slope)) for value in (left, right))
    return [line(*start, *end, theme.text, dash=roof.dash)]


def _legend(points: Sequence[Point], roofs: Sequence[Roof], theme: Theme, width: float) -> tuple[list[str], int]:
    """What shapes and lines mean, and how many lines that takes."""
    items: list[tuple[str, str, Roof | None]] = []
    for series in dict.fromkeys(point.series for point in points):
        name, colour, shape = PASSES.get(series, (series, "other", "circle"))
        items.append((name, f"{shape} {colour}", None))
    items += [(roof.text, "", roof) for roof in roofs]
    found, x, row = [], 8.0, 0
    for name, look, roof in items:
        wide = 26 + text_width(name, 10)
        if x > 8 and x + wide > width:
            x, row = 8.0, row + 1
        y = _TOP + _LEGEND * row - 2
        if roof is not None:
            found.append(line(x, y, x + 16, y, theme.text, dash=roof.dash))
        else:
            shape, colour = look.split()
            found.append(_shape(shape, x + 8, y, theme.of(colour), theme.ground))
        found.append(label(x + 20, y + 3.5, name, theme.text, size=10))
        x += wide + 8
    return found, row + 1


def _shape(shape: str, x: float, y: float, colour: str, ground: str) -> str:
    style = f"fill:{colour};stroke:{ground};stroke-width:1"
    if shape == "square":
        return element("rect", {"x": x - 4, "y": y - 4, "width": 8, "height": 8, "style": style})
    if shape == "triangle":
        path = f"M{x:.2f} {y - 5:.2f}L{x + 5:.2f} {y + 4:.2f}L{x - 5:.2f} {y + 4:.2f}Z"
        return element("path", {"d": path, "style": style})
    return element("circle", {"cx": x, "cy": y, "r": 4.5, "style": style})


def _free(
    x: float, y: float, taken: Sequence[tuple[float, float]], x_scale: Scale, y_scale: Scale
) -> tuple[float, float]:
    """A place for a number beside a point: the nearest of a few that keeps 13 pixels from all that is there."""
    places = [
        (x + radius * math.cos(angle), y + radius * math.sin(angle))
        for radius in (12.0, 20.0, 30.0, 42.0, 56.0)
        for angle in (
            0,
            math.pi,
            -math.pi / 2,
            math.pi / 2,
            -math.pi / 4,
            math.pi / 4,
            -2.4,
            2.4,
            0.4,
            -0.4,
            2.75,
            -2.75,
        )
    ]
    inside = [
        place
        for place in places
        if x_scale.start + 4 < place[0] < x_scale.end - 4 and y_scale.end + 4 < place[1] < y_scale.start - 4
    ]
    free = (place for place in inside if all(math.dist(place, other) >= 13 for other in taken))
    return next(free, (inside or places)[0])
