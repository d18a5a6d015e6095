"""Are two runs different? A rank test of block medians, its power, and how many blocks would tell.

The test is that of Mann and Whitney (1947) on the logarithms of block medians, one-sided at 2.5 % at each of the two
ends of a margin: slower by more than the limit, faster by more than it, or the same within it (two one-sided tests,
Schuirmann 1987). Its distribution is counted exactly where that is cheap. Three blocks a run can never tell: of the 20
orders of 3 + 3 one alone is 5 %.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ideepdoctor.proof.statistics import Interval, Series, apart_ratio_interval

ALPHA = 0.025
"""Of each one-sided test: 5 % in all."""
POWER = 0.8
_EXACT = 20_000
"""Orders that are counted one by one; beyond it the normal approximation is good."""
_EFFICIENCY = 3 / math.pi
"""Of the rank test against Student's for normal values (Pitman)."""


class Verdict(StrEnum):
    """What a later run is against an earlier one."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Difference:
    """A later run against an earlier one.

    Attributes:
        verdict: beyond the limit, within it, or not to be told.
        ratio: of the medians, later to earlier, above 1 slower; its 95 % interval.
        p_slower, p_faster: how often blocks of one and the same speed at the limit would look so slow, or so fast.
        effect: of all pairs of blocks, the part in which the later one is slower minus the part in which it is faster
            (Cliff's delta, -1 to 1).
        more_blocks: how many more blocks in each run would tell a difference of the limit; 0 where it is told.
    """

    verdict: Verdict
    ratio: Interval
    p_slower: float
    p_faster: float
    effect: float
    more_blocks: int


def compare(before: Series, after: Series, limit: float) -> Difference:
    """Judge a later series against an earlier one that was not measured together with it.

    Args:
        before: the baseline.
        after: what is judged.
        limit: the relative difference that matters: 0.1 is 10 %; 0: any that can be told.

    Raises:
        ValueError: a limit below zero.
    """
    if limit < 0:
        raise ValueError("a limit is not below zero")
    margin = math.log1p(limit)
    early, late = ([math.log(value) for value in series.block_medians()] for series in (before, after))
    slower = p_greater([value - margin for value in late], early)
    faster = p_greater(early, [value + margin for value in late])
    verdict = Verdict.CANNOT_TELL
    if slower <= ALPHA:
        verdict = Verdict.SLOWER
    elif faster <= ALPHA:
        verdict = Verdict.FASTER
    elif margin and max(_p_within(early, late, margin)) <= ALPHA:
        verdict = Verdict.SAME
    more = 0
    if verdict is Verdict.CANNOT_TELL:
        more = max(1, blocks_needed(early, late, limit) - min(len(early), len(late)))
    return Difference(
        verdict, apart_ratio_interval(after, before), slower, faster, effect_size(late, early), more_blocks=more
    )


def _p_within(early: Sequence[float], late: Sequence[float], margin: float) -> tuple[float, float]:
    """How often runs that differ by the margin, this way or that, would look as close as these."""
    return p_greater([value + margin for value in early], late), p_greater(late, [value - margin for value in early])


def p_greater(first: Sequence[float], second: Sequence[float]) -> float:
    """One-sided p-value that ``first`` tends to be greater than ``second`` (Mann and Whitney; ties count half)."""
    pooled = [*first, *second]
    if math.comb(len(pooled), len(first)) > _EXACT:
        return _p_normal(_rank_statistic(first, second), len(first), len(second), pooled)
    ranks = _ranks(pooled)
    seen = sum(ranks[: len(first)])
    sums = [sum(chosen) for chosen in itertools.combinations(ranks, len(first))]
    return sum(total >= seen - 1e-9 for total in sums) / len(sums)


def effect_size(first: Sequence[float], second: Sequence[float]) -> float:
    """Cliff's delta: 1 where every value of ``first`` is greater than every one of ``second``, -1 the other way."""
    return 2 * _rank_statistic(first, second) / (len(first) * len(second)) - 1


def blocks_needed(first: Sequence[float], second: Sequence[float], difference: float) -> int:
    """Blocks that each of two runs needs to tell a relative difference in four of five cases.

    From the spread of the logarithms of block medians within the runs, by the normal approximation of the rank test.

    Args:
        first, second: logarithms of block medians.
        difference: 0.1 is 10 %; 0 is taken as 1 %, since no number tells nothing from nothing.
    """
    degrees = max(1, len(first) + len(second) - 2)
    squares = sum((value - statistics.fmean(values)) ** 2 for values in (first, second) for value in values)
    return max(least_blocks(), _needed(2 * squares / degrees, difference))


def pairs_needed(ratios: Sequence[float], difference: float) -> int:
    """Blocks that one interleaved run needs to tell two engines apart that differ by this much.

    Args:
        ratios: of the block medians of the two, a ratio for each block; one alone has no spread.
        difference: as in ``blocks_needed``.

    Raises:
        ValueError: fewer than two ratios, or one that is not above zero.
    """
    if len(ratios) < 2 or min(ratios) <= 0:
        raise ValueError("the spread of ratios needs two or more above zero")
    return max(least_blocks(), _needed(statistics.variance(math.log(ratio) for ratio in ratios), difference))


def least_blocks() -> int:
    """The fewest blocks a run with which the test can tell anything: 4, of whose 70 orders one is 1.4 %."""
    return next(count for count in itertools.count(1) if 1 / math.comb(2 * count, count) <= ALPHA)


def _needed(variance: float, difference: float) -> int:
    normal = statistics.NormalDist()
    reach = normal.inv_cdf(1 - ALPHA) + normal.inv_cdf(POWER)
    step = math.log1p(difference or 0.01)
    return math.ceil(reach**2 * variance / step**2 / _EFFICIENCY)


def _rank_statistic(first: Sequence[float], second: Sequence[float]) -> float:
    """U of Mann and Whitney: pairs in which the first is greater, ties half."""
    return sum(1.0 if one > other else 0.5 if one == other else 0.0 for one in first for other in second)


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the middle of theirs."""
    ordered = sorted(values)
    places: dict[float, list[int]] = {}
    for place, value in enumerate(ordered, 1):
        places.setdefault(value, []).append(place)
    return [statistics.fmean(places[value]) for value in values]


def _p_normal(seen: float, first: int, second: int, pooled: Sequence[float]) -> float:
    """The normal approximation with the corrections for ties and for continuity."""
    count = first + second
    tied = [len(list(group)) for _, group in itertools.groupby(sorted(pooled))]
    ties = sum(many**3 - many for many in tied)
    variance = first * second / 12 * (count + 1 - ties / (count * (count - 1)))
    if variance <= 0:
        return 1.0
    return statistics.NormalDist().cdf(-(seen - first * second / 2 - 0.5) / math.sqrt(variance))
