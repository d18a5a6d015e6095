"""Charts as XML: lengths are proportional to values, nothing leaves the picture, every bar bears its value and unit."""

from __future__ import annotations

import functools
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from ideepdoctor.model.bench import Scaling
from ideepdoctor.render.chart_bars import BarChart, BarGroup, BarMark, Mark, draw, is_log
from ideepdoctor.render.chart_lines import Point, Roof, roofline
from ideepdoctor.render.chart_svg import (
    DARK,
    DARK_SERIES,
    LIGHT,
    LIGHT_SERIES,
    PAGE,
    Scale,
    Theme,
    fitted,
    log_range,
    text_width,
    tick_text,
    ticks,
)
from ideepdoctor.render.charts import Drawing, drawings, svg
from tests.data.bench import make

SVG = "{http://www.w3.org/2000/svg}"
SMALL = make.small()


@functools.cache
def every() -> tuple[Drawing, ...]:
    return (*drawings([SMALL]), *drawings([SMALL, make.BIG, make.MIDDLE, make.GPU])[:3])


def named(name: str) -> Drawing:
    return next(drawing for drawing in every() if drawing.name == name)


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode("utf-8"))


def bars_of(root: ElementTree.Element) -> list[tuple[float, float, str]]:
    """Value, length and title of each bar."""
    found = []
    for group in root.iter(f"{SVG}g"):
        if group.get("class") == "bar" and group.get("data-value") is not None:
            length = sum(float(rect.get("width", "0")) for rect in group.iter(f"{SVG}rect"))
            found.append((float(group.get("data-value", "")), length, group.findtext(f"{SVG}title", "")))
    return found


def test_which_charts_there_are() -> None:
    assert [drawing.name for drawing in every()] == [
        *("engines", "times", "ceiling", "roofline-tuned-alexnet", "threads"),
        *("numpy", "peer", "gpu"),
    ]
    assert drawings([replace(SMALL, results=(), layers=(), scaling=())]) == ()


@pytest.mark.parametrize("width", [420.0, 800.0])
@pytest.mark.parametrize("name", ["engines", "ceiling", "peer"])
def test_bars_on_a_linear_axis_are_as_long_as_their_values(name: str, width: float) -> None:
    found = bars_of(parsed(named(name).draw(LIGHT, width)))
    assert len(found) > 10
    unit = found[0][1] / found[0][0]
    for value, length, title in found:
        assert length == pytest.approx(unit * value, abs=0.03), title
    assert max(length for _, length, _ in found) > 0.4 * width


@pytest.mark.parametrize("width", [420.0, 800.0])
def test_bars_of_each_net_share_an_axis_where_nets_differ_by_far(width: float) -> None:
    root = parsed(named("times").draw(LIGHT, width))
    found = [bar for bar in bars_of(root) if bar[0] > 0]
    units = [length / value for value, length, _ in found]
    per_net = [units[:6], units[6:12], units[12:17], units[17:22], units[22:]]
    assert [len(part) for part in per_net] == [6, 6, 5, 5, 3]
    for part in per_net:
        assert part == pytest.approx([part[0]] * len(part), rel=0.01)


@pytest.mark.parametrize("name", ["numpy", "gpu"])
def test_bars_on_a_logarithmic_axis_reach_from_one(name: str) -> None:
    drawn = named(name).draw(LIGHT, 600)
    assert "logarithmic axis" in drawn
    found = bars_of(parsed(drawn))
    units = [length / abs(math.log(value)) for value, length, _ in found if not 0.9 < value < 1.1]
    assert units == pytest.approx([units[0]] * len(units), rel=0.01)
    assert [length for value, length, _ in found if value == 1.0] == pytest.approx(
        [0.0] * 4 if name == "gpu" else [0.0] * 5
    )


@pytest.mark.parametrize("width", [420.0, 800.0])
@pytest.mark.parametrize(
    "name",
    ["engines", "times", "ceiling", "numpy", "peer", "gpu", "threads", "roofline-tuned-alexnet"],
)
def test_no_text_leaves_the_picture_or_lies_on_another(name: str, width: float) -> None:
    root = parsed(named(name).draw(LIGHT, width))
    _, _, wide, high = map(float, root.get("viewBox", "").split())
    assert wide == width
    boxes = []
    for text in root.iter(f"{SVG}text"):
        size = float(re.search(r"font-size:([0-9.]+)px", text.get("style", ""))[1])  # type: ignore[index]
        shown = "".join(text.itertext())
        # A little less than the safe side: what a usual font takes.
        length, x, y = 0.9 * text_width(shown, size), float(text.get("x", "")), float(text.get("y", ""))
        left = {"start": x, "middle": x - length / 2, "end": x - length}[text.get("text-anchor", "start")]
        assert left >= -1, shown
        assert left + length <= wide + 1, shown
        assert 0 < y <= high, shown
        boxes.append((left, y - 0.75 * size, left + length, y, shown))
    for number, one in enumerate(boxes):
        for other in boxes[:number]:
            apart = one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]
            assert apart, (one[4], other[4])


def test_every_bar_bears_its_value_and_charts_name_their_units() -> None:
    for drawing, unit in zip(
        every(), ("times", "milliseconds", "GFLOP/s", "GFLOP/s", "times", "times", "times", "times"), strict=True
    ):
        drawn = drawing.draw(LIGHT, 420)
        assert unit in re.sub(r"<(title|desc).*?</\1>", "", drawn), drawing.name
        for group in parsed(drawn).iter(f"{SVG}g"):
            if group.get("class") == "bar":
                title = group.findtext(f"{SVG}title", "")
                label, value = title.split(": ", 1)
                texts = ["".join(text.itertext()) for text in group.iter(f"{SVG}text")]
                assert len(texts) == 2
                assert texts[1].startswith(value[:10].rstrip()), title
                assert label.startswith(texts[0].rstrip("…"))


@pytest.mark.parametrize("theme", [LIGHT, DARK, PAGE])
def test_a_chart_speaks_to_those_who_cannot_see_it(theme: Theme) -> None:
    for drawing in every():
        root = parsed(drawing.draw(theme, 420))
        assert root.get("role") == "img"
        ids = {element.get("id"): "".join(element.itertext()) for element in root.iter() if element.get("id")}
        title, description = (ids[name] for name in root.get("aria-labelledby", "").split())
        assert title == drawing.title
        assert len(description) > 30


def test_a_file_of_its_own_has_its_title_and_needs_no_style_of_a_page() -> None:
    for drawing in every():
        whole = svg(drawing)
        assert "var(" not in whole
        assert drawing.title.split()[0] in whole
        root = parsed(whole)
        assert (root.get("width"), len(root.findall(f"{SVG}svg"))) == ("800", 1)
        inner = root.find(f"{SVG}svg")
        assert inner is not None
        assert float(root.get("height", "")) == float(inner.get("y", "")) + float(inner.get("height", ""))


def test_names_that_are_markup_stay_text() -> None:
    engines = tuple(replace(engine, id=f"<{engine.id}>&\"'", label="<b>&") for engine in SMALL.engines)
    rows = tuple(
        replace(row, engine=f"<{row.engine}>&\"'", net="<script>") for row in SMALL.results if row.net == "vgga"
    )
    strange = replace(SMALL, engines=engines, results=rows, nets=())
    for drawing in drawings([strange]):
        assert "<script>" not in drawing.draw(LIGHT, 420)
        parsed(svg(drawing))


def chart(*values: float, **fields: object) -> BarChart:
    bars = tuple(BarMark("tuned", f"bar {value}", value, f"{value:g} ms") for value in values)
    return BarChart("c", "t", "d", "ms", (BarGroup("g", bars),), **fields)  # type: ignore[arg-type]


def test_only_ratios_beyond_twenty_get_a_logarithmic_axis() -> None:
    assert not is_log(chart(1.0, 20.0, base=1.0))
    assert is_log(chart(1.0, 20.1, base=1.0))
    assert not is_log(chart(1.0, 500.0))
    assert not is_log(chart())


def test_what_was_not_measured_has_its_reason_and_no_bar() -> None:
    none = BarChart("c", "t", "d", "ms", (BarGroup("g", (BarMark("x", "x", None, "failed: <memory>"),)),))
    root = parsed(draw(none, LIGHT, 420))
    assert bars_of(root) == []
    assert "failed: <memory>" in "".join(root.itertext())


def test_lines_across_stand_at_their_value() -> None:
    root = parsed(draw(chart(100.0, 200.0, marks=(Mark(150.0, "ceiling"),)), LIGHT, 420))
    ends = {value: length for value, length, _ in bars_of(root)}
    lines = [float(line.get("x1", "")) for line in root.iter(f"{SVG}line") if "#1b1f24" in line.get("style", "")]
    assert lines == [pytest.approx(8 + 0.75 * ends[200.0], abs=0.1)]


def test_threads_have_a_curve_each_an_ideal_line_and_ends_that_can_be_read() -> None:
    counts = [(1, 1.0), (2, 0.55), (4, 0.3), (28, 0.1), (56, 0.1)]
    both = tuple(
        Scaling(engine, "vgga", 8, count, time) for engine in ("tuned", "torch", "mkl") for count, time in counts
    )
    [drawing] = [one for one in drawings([replace(SMALL, scaling=both)]) if one.name == "threads"]
    root = parsed(drawing.draw(LIGHT, 420))
    curves = [group for group in root.iter(f"{SVG}g") if group.get("class") == "curve"]
    assert [len(curve.findall(f"{SVG}circle")) for curve in curves] == [5, 5, 5]
    assert "logarithmic" in "".join(root.itertext())
    ends = [float(text.get("y", "")) for text in root.iter(f"{SVG}text") if "10.00" in (text.text or "")]
    assert len(ends) == 3
    assert min(abs(one - other) for one in ends for other in ends if one is not other) >= 13
    alone = replace(SMALL, scaling=both[:1])
    assert "threads" not in [one.name for one in drawings([alone])]


def test_points_of_a_roofline_stand_where_work_and_speed_are() -> None:
    points = [
        Point(n, x, y, f"point {n}", "backward_data") for n, (x, y) in enumerate([(1, 10), (10, 100), (100, 1000)])
    ]
    roofs = [Roof("flat", gflops=2000.0), Roof("slope", gigabytes_per_second=20.0)]
    root = parsed(roofline("r", "t", "d", points, roofs, LIGHT, 420))
    marks = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g") if group.get("class") == "point"]
    places = [(float(mark.get("x", "")), float(mark.get("y", ""))) for mark in marks if mark is not None]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.05)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.05)
    assert y0 > y1
    assert "backward, data" in "".join(root.itertext())


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("theme", "series"), [(LIGHT, LIGHT_SERIES), (DARK, DARK_SERIES)])
def test_colours_stand_out_from_their_ground(theme: Theme, series: dict[str, str]) -> None:
    for name, colour in series.items():
        assert contrast(colour, theme.ground) >= 3, name
    assert contrast(theme.text, theme.ground) >= 7
    assert contrast(theme.muted, theme.ground) >= 4.5


# How the three kinds of colour blindness see linear red, green and blue (Machado, Oliveira and Fernandes 2009).
BLIND = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def seen_by(kind: str, colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    mixed = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in BLIND[kind]]
    x, y, z = (
        sum(a * b for a, b in zip(row, mixed, strict=True))
        for row in ((0.4339, 0.3762, 0.1899), (0.2126, 0.7152, 0.0722), (0.0178, 0.1095, 0.8727))
    )
    fx, fy, fz = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)]


@pytest.mark.parametrize("series", [LIGHT_SERIES, DARK_SERIES])
@pytest.mark.parametrize("kind", BLIND)
def test_engines_can_be_told_apart_by_the_colour_blind(kind: str, series: dict[str, str]) -> None:
    for number, one in enumerate(series):
        for other in list(series)[:number]:
            far = math.dist(seen_by(kind, series[one]), seen_by(kind, series[other]))
            assert far >= 9.5, (one, other, far)


def test_scales_and_ticks() -> None:
    linear, log = Scale(0, 10, 100, 200), Scale(1, 100, 0, 100, True)
    assert (linear.at(5), linear.at(99), log.at(10), log.at(0.1)) == (150, 200, 50, 0)
    assert ticks(0, 10, log=False) == [0, 2, 4, 6, 8, 10]
    assert ticks(0.1, 1000, log=True) == [0.1, 1, 10, 100, 1000]
    assert ticks(1, 10, log=True) == [1, 2, 5, 10]
    assert log_range(2.2, 180) == (2, 200)
    assert log_range(1, 20) == (0.5, 20)
    assert [tick_text(value) for value in (0.1, 2.0, 500.0, 20000.0)] == ["0.1", "2", "500", "20k"]
    assert fitted("a long name", 40, 12) == "a lo…"
    assert fitted("short", 400) == "short"
