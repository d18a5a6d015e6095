"""The pieces of an SVG chart: elements, colours, scales and ticks. Pure text; numbers are pixels of the viewBox."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', 'Noto Sans', Arial, sans-serif"
SIZE = 12
"""Of the text; a character is about 0.56 of it wide."""

# After Okabe and Ito (2008), made darker or lighter until each stands out 3 to 1 from its ground and any two differ for
# the colour-blind, too. Bars bear labels besides: no colour has to be told from another one.
LIGHT_SERIES = {
    "tuned": "#0072b2",
    "ideep": "#3d8fbf",
    "source": "#004c78",
    "numpy": "#9a8100",
    "mkl": "#b03a00",
    "torch": "#b0457f",
    "caffe": "#008060",
    "opencv": "#603018",
    "cupy": "#222222",
    "other": "#9000f0",
}
DARK_SERIES = {
    "tuned": "#56b4e9",
    "ideep": "#3e8fc2",
    "source": "#a5d8f5",
    "numpy": "#e6d440",
    "mkl": "#f28e2b",
    "torch": "#dd8fbd",
    "caffe": "#18b98f",
    "opencv": "#c03030",
    "cupy": "#f2f2f2",
    "other": "#9030f0",
}


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by what they are for; CSS values."""

    ground: str
    text: str
    muted: str
    grid: str
    series: Mapping[str, str]

    def of(self, engine: str) -> str:
        """The colour of an engine, by its id."""
        if engine in self.series:
            return self.series[engine]
        return self.series["source" if engine.startswith("ideep-") else "other"]


LIGHT = Theme("#ffffff", "#1b1f24", "#59616b", "#d5d9de", LIGHT_SERIES)
DARK = Theme("#14181d", "#e8ebee", "#a3acb6", "#3a424b", DARK_SERIES)
PAGE = Theme(
    "var(--ground)",
    "var(--text)",
    "var(--muted)",
    "var(--grid)",
    {name: f"var(--{name})" for name in LIGHT_SERIES},
)
"""Colours that the page decides, by what the reader's system prefers."""


def element(name: str, attributes: Mapping[str, object], inner: str = "", text: str | None = None) -> str:
    """An element; ``text`` is escaped, ``inner`` is markup. Numbers get two decimals at most."""
    shown = "".join(f' {key}="{_value(value)}"' for key, value in attributes.items())
    content = inner if text is None else escape(text, quote=False)
    return f"<{name}{shown}>{content}</{name}>" if content else f"<{name}{shown}/>"


def label(
    x: float,
    y: float,
    text: str,
    fill: str,
    *,
    anchor: str = "start",
    bold: bool = False,
    size: float = SIZE,
    halo: str = "",
) -> str:
    """Text with its base line at y; ``halo`` is the colour of a seam around it that keeps lines off."""
    style = f"fill:{fill};font-size:{size}px" + (";font-weight:600" if bold else "")
    style += f";paint-order:stroke;stroke:{halo};stroke-width:4px;stroke-linejoin:round" if halo else ""
    return element("text", {"x": x, "y": y, "text-anchor": anchor, "style": style}, text=text)


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, *, width: float = 1, dash: str = "") -> str:
    """A straight line; ``dash`` as in stroke-dasharray."""
    style = f"stroke:{stroke};stroke-width:{width}" + (f";stroke-dasharray:{dash}" if dash else "")
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "style": style})


def document(
    name: str, title: str, description: str, width: float, height: float, body: list[str], theme: Theme
) -> str:
    """A whole SVG; ``name`` makes its ids, ``title`` and ``description`` are what a screen reader says."""
    head = element("title", {"id": f"{name}-title"}, text=title)
    head += element("desc", {"id": f"{name}-desc"}, text=description)
    attributes: dict[str, object] = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": f"0 0 {_value(width)} {_value(height)}",
        "width": width,
        "height": height,
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-desc",
        "font-family": FONT,
    }
    ground = element("rect", {"width": width, "height": height, "style": f"fill:{theme.ground}"})
    return element("svg", attributes, head + ground + "".join(body))


def text_width(text: str, size: float = SIZE) -> float:
    """About how wide a text is; on the safe side for sans-serif fonts."""
    return 0.58 * size * len(text)


def fitted(text: str, room: float, size: float = SIZE) -> str:
    """The text, or its beginning and an ellipsis where it is wider than the room."""
    if text_width(text, size) <= room + 0.5:
        return text
    return text[: max(1, int(room / (0.58 * size)) - 1)].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to pixels: linear, or logarithmic (then ``low`` is above zero)."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; those outside are put at the nearer end."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            part = (inside - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)


def ticks(low: float, high: float, *, log: bool, most: int = 6) -> list[float]:
    """Round values within the range: 1, 2, 5 of each power of ten, fewer where they are too many."""
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [value for value in found if low * 0.999 <= value <= high * 1.001]
            if len(found) <= most:
                break
        return found
    step = nice_step((high - low) / max(1, most - 1))
    count = math.floor((high - low) / step + 1e-9)
    return [low + step * number for number in range(count + 1)]


def nice_step(rough: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough * 0.999)


def log_range(low: float, high: float) -> tuple[float, float]:
    """Ends for a logarithmic axis: the values with room, on 1, 2 or 5 of a power of ten."""
    steps = [digit * 10.0**power for power in range(-12, 16) for digit in (1, 2, 5)]
    below = max((step for step in steps if step < low * 0.999), default=low / 2)
    above = min((step for step in steps if step >= high * 0.999), default=high * 2)
    return below, above


def tick_text(value: float) -> str:
    """0.1, 2, 500, 20k."""
    if value >= 10_000:
        return f"{value / 1000:g}k"
    return f"{value:g}"


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escape(str(value))
