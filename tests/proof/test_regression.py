"""Two runs against each other: what the test says of made-up machines whose difference is known."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideepdoctor.proof.regression import (
    Verdict,
    blocks_needed,
    compare,
    effect_size,
    least_blocks,
    p_greater,
    pairs_needed,
)
from ideepdoctor.proof.statistics import Series

VALUES = st.lists(st.integers(0, 8).map(float), min_size=1, max_size=5)


def run(speed: float, noise: float, blocks: int = 5, seed: int = 0) -> Series:
    """A run of a machine whose blocks scatter by ``noise`` (relative)."""
    chance = random.Random(seed)
    lucks = [speed * math.exp(chance.gauss(0, noise)) for _ in range(blocks)]
    return Series([luck for luck in lucks for _ in range(3)], [block for block in range(blocks) for _ in range(3)])


@pytest.mark.parametrize(
    ("factor", "noise", "limit", "verdict"),
    [
        (1.3, 0.01, 0.1, Verdict.SLOWER),
        (1 / 1.3, 0.01, 0.1, Verdict.FASTER),
        (1.05, 0.005, 0.1, Verdict.SAME),
        (1.05, 0.005, 0.0, Verdict.SLOWER),
        (1.1, 0.2, 0.1, Verdict.CANNOT_TELL),
        (1.0, 0.3, 0.05, Verdict.CANNOT_TELL),
    ],
)
def test_what_a_difference_comes_to(factor: float, noise: float, limit: float, verdict: Verdict) -> None:
    seen = compare(run(1.0, noise, seed=1), run(factor, noise, seed=2), limit)
    assert seen.verdict is verdict
    assert (seen.more_blocks > 0) == (verdict is Verdict.CANNOT_TELL)
    assert seen.ratio.low <= seen.ratio.median <= seen.ratio.high


def test_runs_of_one_machine_are_called_slower_as_seldom_as_the_test_says() -> None:
    wrong = sum(
        compare(run(1.0, 0.05, seed=2 * n), run(1.0, 0.05, seed=2 * n + 1), 0.0).verdict is Verdict.SLOWER
        for n in range(120)
    )
    assert wrong <= 9  # 2.5 % would be 3


def test_three_blocks_never_tell_and_four_do() -> None:
    assert least_blocks() == 4
    few = compare(run(1.0, 0.001, 3), run(9.0, 0.001, 3), 0.1)
    assert (few.verdict, few.effect, few.more_blocks) == (Verdict.CANNOT_TELL, 1.0, 1)
    assert compare(run(1.0, 0.001, 4), run(9.0, 0.001, 4), 0.1).verdict is Verdict.SLOWER


def test_one_odd_block_does_not_hide_a_difference() -> None:
    before = Series([1.0, 1.01, 0.99, 1.0, 1.02, 1.0, 4.0], range(7))
    after = Series([1.5, 1.51, 1.49, 1.5, 1.52, 1.5, 1.51], range(7))
    assert compare(before, after, 0.1).verdict is Verdict.SLOWER


@settings(max_examples=60)
@given(VALUES, VALUES)
def test_p_is_the_part_of_all_orders_that_look_so_great(first: list[float], second: list[float]) -> None:
    pooled = [*first, *second]

    def wins(chosen: tuple[int, ...]) -> float:
        inside = [pooled[i] for i in chosen]
        outside = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        return sum((one > other) + 0.5 * (one == other) for one in inside for other in outside)

    seen = wins(tuple(range(len(first))))
    orders = [wins(chosen) for chosen in itertools.combinations(range(len(pooled)), len(first))]
    assert p_greater(first, second) == pytest.approx(sum(order >= seen for order in orders) / len(orders))


def test_the_normal_approximation_meets_the_exact_count() -> None:
    chance = random.Random(3)
    first, second = ([chance.gauss(shift, 1) for _ in range(12)] for shift in (0.8, 0.0))
    # Eight of each are counted; twelve are approximated.
    exact = p_greater(first[:8], second[:8])
    from ideepdoctor.proof import regression

    seen = regression._rank_statistic(first[:8], second[:8])
    assert regression._p_normal(seen, 8, 8, [*first[:8], *second[:8]]) == pytest.approx(exact, abs=0.02)
    assert 0 < p_greater(first, second) < 0.2
    assert p_greater([1.0] * 20, [1.0] * 20) == 1.0


@given(VALUES, VALUES)
def test_the_size_of_the_effect_turns_with_its_sides(first: list[float], second: list[float]) -> None:
    assert -1 <= effect_size(first, second) <= 1
    assert effect_size(first, second) == pytest.approx(-effect_size(second, first))


def test_more_noise_or_a_smaller_difference_needs_more_blocks() -> None:
    counts = [
        blocks_needed([math.log(v) for v in run(1, noise, 8).block_medians()], [0.0] * 8, difference)
        for noise, difference in ((0.01, 0.1), (0.1, 0.1), (0.2, 0.1), (0.2, 0.05))
    ]
    assert counts[0] == least_blocks()
    assert counts == sorted(counts)
    assert counts[3] > 2 * counts[2]


def test_as_many_blocks_as_it_asks_for_do_tell() -> None:
    noise, difference = 0.1, 0.15
    few = [[math.log(v) for v in run(1, noise, 30, seed).block_medians()] for seed in (1, 2)]
    count = blocks_needed(*few, difference)
    told = sum(
        compare(run(1, noise, count, 2 * n), run(1 + difference, noise, count, 2 * n + 1), 0).verdict is Verdict.SLOWER
        for n in range(60)
    )
    assert 38 <= told <= 58  # four of five are 48


def test_pairs_need_a_spread() -> None:
    assert pairs_needed([1.0, 1.0, 1.0], 0.1) == least_blocks()
    assert pairs_needed([1.0, 2.0, 0.5], 0.1) > 100
    with pytest.raises(ValueError):
        pairs_needed([1.0], 0.1)
    with pytest.raises(ValueError):
        compare(run(1, 0.1), run(1, 0.1), -0.1)
