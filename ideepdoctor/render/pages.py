"""The templates of pages, and what all pages have: colours, font, charts of the width of a phone and of paper. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ideepdoctor.render.bench_tables import Table
from ideepdoctor.render.chart_svg import DARK, FONT, LIGHT, PAGE, Theme
from ideepdoctor.render.charts import Drawing

if TYPE_CHECKING:
    from collections.abc import Mapping

_WIDTH = 420.0
"""Of a chart's viewBox: a phone's, so that its text can be read there; on a desk it is scaled up a little."""
_PAPER_WIDTH = 720.0
"""Of a chart on paper: labels beside the bars, so that it fits a page."""


@dataclass(frozen=True, slots=True)
class Section:
    """A chart (empty: none) for screens and for paper, the tables that hold its numbers, and what to know besides."""

    title: str
    svg: str
    paper: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


def section(drawing: Drawing, tables: tuple[Table, ...], notes: Sequence[str] = ()) -> Section:
    """A chart with its tables."""
    # The two have their own ids: a page may have each but once.
    svg, paper = (_sized(drawing.draw(PAGE, width)) for width in (_WIDTH, _PAPER_WIDTH))
    paper = re.sub(r"(chart-[^\" ]+)-(title|desc)", r"\1-paper-\2", paper)
    return Section(drawing.title, svg, paper, tables, tuple(notes))


def filled(template: str, page: Any, more: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """A template of this folder with a page in it.

    Args:
        template: name of the file.
        page: what it calls ``page``.
        more: colours by name, beside those of charts, for ``light`` and ``dark``.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    loader = FunctionLoader(lambda name: (files("ideepdoctor") / "render" / name).read_text("utf-8"))
    made = Environment(autoescape=True, undefined=StrictUndefined, loader=loader).get_template(template)
    light, dark = (_variables(theme, (more or {}).get(name, {})) for theme, name in ((LIGHT, "light"), (DARK, "dark")))
    return made.render(page=page, light=light, dark=dark, font=Markup(FONT))  # noqa: S704 (a constant of ours)


def _sized(svg: str) -> str:
    """The chart without a size of its own: the page decides."""
    return re.sub(r' width="[0-9.]+" height="[0-9.]+" role=', " role=", svg, count=1)


def _variables(theme: Theme, more: Mapping[str, str]) -> str:
    """The theme as custom properties of CSS."""
    named = {"ground": theme.ground, "text": theme.text, "muted": theme.muted, "grid": theme.grid}
    return " ".join(f"--{name}: {value};" for name, value in {**named, **theme.series, **more}.items())
