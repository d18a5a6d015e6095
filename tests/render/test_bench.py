"""Results as text: widths, bars, numbers and their units."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.model.bench import Machine, Result, Row
from ideepdoctor.proof.bench_compare import compare
from ideepdoctor.render.bench import LEAST_WIDTH, comparison_lines, lines, number
from tests.data.bench import make

SMALL = make.small()
LONG = replace(
    SMALL,
    machine=replace(SMALL.machine, name="a-name-that-is-much-longer-than-anyone-would-want-to-give-a-machine-" * 3),
    engines=tuple(replace(engine, id=engine.id, label=engine.label * 4) for engine in SMALL.engines),
)
WITH_LONG = compare([SMALL, LONG, make.BIG, make.GPU])
EMPTY = Result("x", "2026-01-01T00:00:00Z", Machine("m"))


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("unicode", [True, False])
def test_nothing_is_wider_than_the_terminal(width: int, unicode: bool) -> None:
    for result in (SMALL, LONG, make.interrupted(SMALL), make.GPU, EMPTY):
        shown = lines(result, width, unicode)
        assert max(len(line) for line in shown) <= max(width, LEAST_WIDTH)
        assert all(line == line.rstrip() for line in shown)
        assert unicode or "".join(shown).isascii()
    shown = comparison_lines(WITH_LONG, width, unicode)
    assert max(len(line) for line in shown) <= max(width, LEAST_WIDTH)


def bars(net: str, marks: str = "#=") -> dict[str, str]:
    shown = lines(SMALL, 80, unicode=False)
    start = next(i for i, line in enumerate(shown) if line.startswith(net))
    rows = shown[start + 1 : shown.index("", start)]
    return {row[2:21].strip(): "".join(char for char in row[21:] if char in marks) for row in rows}


def test_bars_are_as_long_as_the_times_forward_and_backward() -> None:
    seen = bars("overfeat")
    full = len(seen["NumPy (MKL)"])
    slowest = max(row.high or 0 for row in SMALL.results if row.net == "overfeat")
    for engine, name in (("tuned", "iDeep tuned"), ("torch", "PyTorch"), ("mkl", "NumPy (MKL)")):
        row = SMALL.row(engine, ("overfeat", 8))
        assert row is not None and row.median is not None and row.forward_median is not None
        assert len(seen[name]) == pytest.approx(full * row.median / slowest, abs=1.1)
        assert seen[name].count("#") == pytest.approx(len(seen[name]) * 0.36, abs=1)
    assert "=" not in bars("alexnet")["OpenCV DNN *"]


def test_every_number_of_a_row_is_there_fastest_first() -> None:
    shown = lines(SMALL)
    start = next(i for i, line in enumerate(shown) if line.startswith("alexnet"))
    assert shown[start].split() == ["alexnet,", "batch", "8", "ms", "95", "%", "images/s", "GF/s", "max"]
    assert shown[start + 2].split()[-5:] == ["111", "110-113", "71.8", "308", "66%"]
    names = [line[2:21].strip() for line in shown[start + 1 : start + 7]]
    assert names[:3] == ["OpenCV DNN *", "iDeep tuned", "PyTorch"]
    assert any(line.strip() == "OpenCV DNN          failed: needs 9.1 GB, 7.8 GB are free" for line in shown)


def test_the_head_names_machine_ceiling_and_noise() -> None:
    text = " ".join(" ".join(lines(SMALL)).split())
    assert "machine two-cores: AMD EPYC, avx512, 2 of 2 CPUs" in text
    assert "ceiling 467 GFLOP/s (best sgemm: MKLML 2018.0.3, MKL_DEBUG_CPU_TYPE=7); in theory 524" in text
    assert "noise quiet: steal 0.1 %, others 2.0 %, load 0.4, widest interval 3.4 %" in text
    noisy = replace(SMALL, noise=replace(SMALL.noise, quiet=False, messages=("40 blocks would tell 5 %",)))
    text = " ".join(" ".join(lines(noisy)).split())
    assert "NOT QUIET" in text
    assert "40 blocks would tell 5 %" in text


def test_means_limits_and_threads_follow() -> None:
    text = " ".join(" ".join(lines(SMALL)).split())
    assert "geometric mean, iDeep tuned = 1" in text
    assert "vgga, iDeep tuned: 386 GFLOP/s, 83 % of the best matrix product here" in text
    assert "alexnet batch 8, iDeep tuned: 1: 187 ms (1.00), 2: 110 ms (1.70)" in text
    assert lines(make.interrupted(SMALL))[-1] == "interrupted: what was measured until then"


def test_a_row_that_has_only_a_median_is_shown() -> None:
    row = Row("cupy", "alexnet", 128, median=0.005)
    shown = lines(replace(EMPTY, results=(row,)))
    assert any("5.00     5.00-5.00" in line for line in shown)


def test_a_comparison_has_bars_ratios_and_notes() -> None:
    shown = comparison_lines(compare([SMALL, make.BIG, make.GPU]), unicode=False)
    text = " ".join(" ".join(shown).split())
    assert "NumPy against iDeep: iDeep tuned, two-cores is 1" in text
    assert "NumPy (MKL) is slower on the bigger machine" in text
    [first] = [line for line in shown if "NumPy (MKL), 28-cores" in line and "8.99" in line]
    [base] = [line for line in shown if "iDeep tuned, two-cores" in line and line.endswith(" 1") and "#" in line][:1]
    assert first.count("#") == pytest.approx(8.99 * base.count("#"), rel=0.3)
    assert "not drawn" in " ".join(comparison_lines(compare([make.GPU])))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1116, "0.112"), (0.9949, "0.995"), (0.996, "1.00"), (3.149, "3.15"), (31.46, "31.5"), (314.9, "315")],
)
def test_ratios_have_three_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text
