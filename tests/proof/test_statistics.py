from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideepdoctor.proof.statistics import (
    Interval,
    Series,
    apart_ratio_interval,
    geometric_mean,
    median_interval,
    ratio_interval,
    ratios,
    spread,
)

TIMES = st.floats(min_value=1e-6, max_value=1e3)


def test_quartiles_by_interpolation() -> None:
    seen = spread([4.0, 1.0, 3.0, 2.0, 10.0])
    assert (seen.low, seen.median, seen.high) == (2.0, 3.0, 4.0)
    seen = spread([1.0, 2.0])
    assert (seen.low, seen.median, seen.high) == (1.25, 1.5, 1.75)


@given(st.lists(TIMES, min_size=2, max_size=20))
def test_a_spread_lies_in_order_within_the_values(values: list[float]) -> None:
    seen = spread(values)
    assert min(values) <= seen.low <= seen.median <= seen.high <= max(values)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_one_value_has_no_spread(values: list[float]) -> None:
    with pytest.raises(ValueError, match="two values"):
        spread(values)


def test_ratios_pair_what_was_measured_together() -> None:
    assert ratios([4.0, 9.0], [2.0, 3.0]) == [2.0, 3.0]


@pytest.mark.parametrize(("slow", "fast"), [([1.0], [1.0, 2.0]), ([1.0], [0.0]), ([-1.0], [1.0]), ([], [])])
def test_times_that_cannot_be_are_refused(slow: list[float], fast: list[float]) -> None:
    with pytest.raises(ValueError):
        ratios(slow, fast)


BLOCKS = st.lists(st.lists(TIMES, min_size=1, max_size=6), min_size=1, max_size=6)
"""Blocks of steps."""


def series(groups: list[list[float]]) -> Series:
    values = [value for group in groups for value in group]
    return Series(values, [number for number, group in enumerate(groups) for _ in group])


@settings(max_examples=30)
@given(BLOCKS)
def test_an_interval_holds_its_median_and_stays_within_the_values(groups: list[list[float]]) -> None:
    one = series(groups)
    seen = median_interval(one.values, one.blocks)
    assert min(one.values) <= seen.low <= seen.median <= seen.high <= max(one.values)
    assert seen == median_interval(one.values, one.blocks)


def test_steps_of_one_block_are_not_taken_for_independent() -> None:
    """Two kinds of blocks, 40 equal steps in each: by steps the median would be sure, by blocks it is not."""
    one = series([[1.0] * 40, [1.0] * 40, [1.0] * 40, [2.0] * 40, [2.0] * 40])
    seen = median_interval(one.values, one.blocks)
    assert (seen.low, seen.median, seen.high) == (1.0, 1.0, 2.0)


def test_one_block_gives_all_that_was_seen() -> None:
    seen = median_interval([3.0, 1.0, 2.0], [7, 7, 7])
    assert (seen.low, seen.median, seen.high) == (1.0, 2.0, 3.0)
    assert seen.spread == 1.0


def test_intervals_cover_the_true_median_about_as_often_as_they_say() -> None:
    chance = random.Random(5)
    covered = 0
    for run in range(100):
        groups = []
        for _ in range(9):
            luck = chance.gauss(0, 0.05)
            groups.append([math.exp(luck + chance.gauss(0, 0.01)) for _ in range(5)])
        one = series(groups)
        seen = median_interval(one.values, one.blocks, seed=run)
        covered += seen.low <= 1.0 <= seen.high
    assert 85 <= covered <= 100


def test_a_slow_moment_hits_both_series_and_leaves_their_ratio_alone() -> None:
    moments = [1.0, 1.3, 0.9, 1.1, 5.0]
    slow, fast = (series([[factor * moment] * 3 for moment in moments]) for factor in (2.0, 1.0))
    paired, apart = ratio_interval(slow, fast), apart_ratio_interval(slow, fast)
    assert (paired.low, paired.median, paired.high) == pytest.approx((2.0, 2.0, 2.0))
    assert apart.low < 1.9 < 2.1 < apart.high


@settings(max_examples=30)
@given(BLOCKS, BLOCKS, st.floats(0.01, 100))
def test_ratios_scale_with_what_is_above(over: list[list[float]], under: list[list[float]], factor: float) -> None:
    one, other = series(over), series(under)
    scaled = Series([value * factor for value in one.values], one.blocks)
    for of in (ratio_interval, apart_ratio_interval):
        seen, more = of(one, other), of(scaled, other)
        assert seen.low <= seen.median <= seen.high
        assert (more.low, more.median, more.high) == pytest.approx(
            (seen.low * factor, seen.median * factor, seen.high * factor)
        )


def test_blocks_that_only_one_has_are_left_out_of_a_ratio() -> None:
    whole, cut = Series([2.0, 2.0, 99.0], [1, 2, 3]), Series([1.0, 1.0], [1, 2])
    assert ratio_interval(whole, cut).median == 2.0
    with pytest.raises(ValueError, match="no block in common"):
        ratio_interval(Series([1.0], [1]), Series([1.0], [2]))


@pytest.mark.parametrize(("values", "blocks"), [([], []), ([1.0], []), ([0.0], [1]), ([math.inf], [1]), ([-1.0], [0])])
def test_a_series_that_cannot_be_is_refused(values: list[float], blocks: list[int]) -> None:
    with pytest.raises(ValueError):
        median_interval(values, blocks)


def test_geometric_means() -> None:
    seen = geometric_mean([Interval(1.0, 2.0, 4.0), Interval(4.0, 8.0, 16.0)])
    assert seen.median == pytest.approx(4.0)
    # Two independent factors of two, each to the power of a half.
    assert (seen.low, seen.high) == pytest.approx((4 / 2 ** (2**0.5 / 2), 4 * 2 ** (2**0.5 / 2)))
    for bad in ([], [Interval(0.0, 1.0, 2.0)]):
        with pytest.raises(ValueError):
            geometric_mean(bad)
