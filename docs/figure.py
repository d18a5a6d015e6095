"""The figure of the architecture: what flows where, drawn from a list of boxes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 470
_FONTS = "system-ui, 'DejaVu Sans', 'Liberation Sans', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Box:
    """A part of the program.

    Attributes:
        title: what it is.
        text: lines below it: where it is.
        x, y, width, height: in pixels.
        kind: ``world`` (touches the machine), ``pure`` (functions of data), ``data``.
    """

    title: str
    text: tuple[str, ...]
    x: int
    y: int
    width: int
    height: int
    kind: str


TARGET = Box(
    "the target's Python", ("2.7, or 3.5 and later; here,", "in a container, over ssh"), 20, 20, 210, 80, "world"
)
PROBE = Box("probe", ("payload/*.py as text, on", "standard input"), 270, 20, 210, 80, "world")
ANSWER = Box("answer", ("JSON between marks", "(facts/answer.py)"), 20, 150, 210, 80, "data")
FACTS = Box("facts", ("facts/*.py make", "model/facts.py of it"), 270, 150, 210, 80, "data")
RULES = Box("rules", ("rules/idpNNN.py: facts to", "findings, nothing else"), 520, 150, 220, 80, "pure")
JUDGED = Box("judgement", ("ok, finding, skipped,", "unknown (rules/engine.py)"), 520, 270, 220, 80, "data")
PLAN = Box("plan", ("steps as data", "(model/plan.py)"), 270, 270, 210, 80, "data")
JOURNAL = Box("journal", ("treatment/: a step is written", "down, then done; undo"), 20, 270, 210, 80, "world")
RENDER = Box("render", ("one report, nine formats,", "two languages (render/, locale/)"), 520, 380, 220, 80, "pure")
SYSTEM = Box("system.py", ("the only one that starts", "processes"), 520, 20, 220, 80, "world")
BOXES = (TARGET, PROBE, ANSWER, FACTS, RULES, JUDGED, PLAN, JOURNAL, RENDER, SYSTEM)
ARROWS = (
    (SYSTEM, PROBE),
    (PROBE, TARGET),
    (TARGET, ANSWER),
    (ANSWER, FACTS),
    (FACTS, RULES),
    (RULES, JUDGED),
    (JUDGED, PLAN),
    (PLAN, JOURNAL),
    (JUDGED, RENDER),
)
_COLOURS = {"world": ("#fde8d7", "#a0522d"), "pure": ("#dcefe0", "#2e6b3f"), "data": ("#e3ebf7", "#34558b")}
_LEGEND = (("world", "touches the machine"), ("pure", "pure functions"), ("data", "data"))


def figure() -> str:
    """The figure as SVG, on a ground of its own, so that it can be read on any page."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="{_FONTS}">',
        "<title>From the probe to the report</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 L10 5 L0 10 z" fill="#333"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#fff"/>',
        *(_arrow(first, second) for first, second in ARROWS),
        *(part for box in BOXES for part in _box(box)),
    ]
    for number, (kind, told) in enumerate(_LEGEND):
        fill, stroke = _COLOURS[kind]
        x = 24 + 170 * number
        parts.append(f'<rect x="{x}" y="413" width="16" height="16" rx="3" fill="{fill}" stroke="{stroke}"/>')
        parts.append(f'<text x="{x + 24}" y="426" font-size="13" fill="#222">{escape(told)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _box(box: Box) -> list[str]:
    fill, stroke = _COLOURS[box.kind]
    middle = box.x + box.width // 2
    lines = [
        f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6" '
        f'fill="{fill}" stroke="{stroke}"/>',
        f'<text x="{middle}" y="{box.y + 24}" font-size="14" font-weight="bold" text-anchor="middle" fill="#111">'
        f"{escape(box.title)}</text>",
    ]
    for number, text in enumerate(box.text):
        y = box.y + 46 + 17 * number
        lines.append(
            f'<text x="{middle}" y="{y}" font-size="12.5" text-anchor="middle" fill="#222">{escape(text)}</text>'
        )
    return lines


def _arrow(first: Box, second: Box) -> str:
    """From one box to the next: across where they stand side by side, else down."""
    if first.y == second.y:
        y = first.y + first.height // 2
        x1, x2 = (first.x + first.width, second.x) if second.x > first.x else (first.x, second.x + second.width)
        return _line(x1, y, x2, y)
    x = first.x + first.width // 2
    return _line(x, first.y + first.height, x, second.y)


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#333" stroke-width="1.5" marker-end="url(#tip)"/>'
