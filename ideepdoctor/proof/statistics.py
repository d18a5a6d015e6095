"""Medians, quartiles and ratios of repeated measurements, and how far they can be trusted.

Intervals are bootstrap percentile intervals (Efron 1979) of whole blocks. What tells two runs apart is in
``regression.py``.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

LEVEL = 0.95
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its quartiles, in the unit of the values."""

    low: float
    median: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Quartiles by linear interpolation between the values (the extremes are the 0 and 100 % points).

    Raises:
        ValueError: fewer than two values: they have no spread.
    """
    if len(values) < 2:
        raise ValueError(f"a spread needs two values or more, not {len(values)}")
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(low, median, high)


def ratios(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    """slow / fast for each repeat of an interleaved measurement: a slow moment of the machine hits both.

    Raises:
        ValueError: not as many of one as of the other, or a time that is not above zero.
    """
    if min((*slow, *fast), default=0.0) <= 0:
        raise ValueError("a measured time is not above zero")
    return [one / other for one, other in zip(slow, fast, strict=True)]


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate with the interval that resampling gives, in the unit of the values (or as a ratio)."""

    low: float
    median: float
    high: float

    @property
    def spread(self) -> float:
        """Width over the point: 0.1 is 10 %."""
        return (self.high - self.low) / self.median


@dataclass(frozen=True, slots=True)
class Series:
    """Times of steps that were measured in blocks; steps of one block share its luck and are not independent.

    Attributes:
        values: seconds of each step, above zero.
        blocks: the block number of each step.

    Raises:
        ValueError: no values, not as many numbers as values, or a time that is not above zero.
    """

    values: Sequence[float]
    blocks: Sequence[int]

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError("no measured time")
        if len(self.values) != len(self.blocks):
            raise ValueError(f"{len(self.values)} times, {len(self.blocks)} block numbers")
        if not all(0 < value < math.inf for value in self.values):
            raise ValueError("a measured time is not above zero")

    def by_block(self) -> dict[int, list[float]]:
        """The values of each block, in the order of the block numbers."""
        found: dict[int, list[float]] = {}
        for block, value in sorted(zip(self.blocks, self.values, strict=True), key=lambda pair: pair[0]):
            found.setdefault(block, []).append(value)
        return found

    def block_medians(self) -> list[float]:
        """One value for each block: what is independent."""
        return [statistics.median(values) for values in self.by_block().values()]


def median_interval(values: Sequence[float], blocks: Sequence[int], *, seed: int = 0) -> Interval:
    """The median with its 95 % bootstrap percentile interval, resampling whole blocks.

    One block tells nothing about how blocks differ: the interval is then all that was seen.

    Args:
        values: seconds of each step.
        blocks: the block number of each step.
        seed: of the resampling; the same values give the same interval.

    Raises:
        ValueError: see ``Series``.
    """
    series = Series(values, blocks)
    point = statistics.median(values)
    groups = list(series.by_block().values())
    if len(groups) == 1:
        return Interval(min(values), point, max(values))
    draws = (statistics.median(_joined(groups, chosen)) for chosen in _choices(len(groups), seed))
    return _percentiles(draws, point)


def ratio_interval(over: Series, under: Series, *, seed: int = 0) -> Interval:
    """The ratio of the medians of two interleaved series, ``over`` to ``under``, resampling blocks of both together.

    A slow moment of the machine hits both series of a block, so it leaves the ratio alone. Blocks that only one of
    them has (an interrupted run) are left out.

    Raises:
        ValueError: they have no block in common.
    """
    first, second = over.by_block(), under.by_block()
    shared = [block for block in first if block in second]
    if not shared:
        raise ValueError("the two have no block in common")
    above, below = [first[block] for block in shared], [second[block] for block in shared]
    every = range(len(shared))
    point = statistics.median(_joined(above, every)) / statistics.median(_joined(below, every))
    if len(shared) == 1:
        return Interval(min(above[0]) / max(below[0]), point, max(above[0]) / min(below[0]))
    draws = (
        statistics.median(_joined(above, chosen)) / statistics.median(_joined(below, chosen))
        for chosen in _choices(len(shared), seed)
    )
    return _percentiles(draws, point)


def apart_ratio_interval(over: Series, under: Series, *, seed: int = 0) -> Interval:
    """The ratio of the medians of two series that were not measured together (two runs, two machines)."""
    above, below = (list(series.by_block().values()) for series in (over, under))
    point = statistics.median(over.values) / statistics.median(under.values)
    if len(above) == 1 or len(below) == 1:
        one, other = (median_interval(series.values, series.blocks, seed=seed) for series in (over, under))
        return Interval(one.low / other.high, point, one.high / other.low)
    # Two seeds: the same choices for both would pair what is not paired.
    both = zip(_choices(len(above), 2 * seed), _choices(len(below), 2 * seed + 1), strict=True)
    draws = (statistics.median(_joined(above, one)) / statistics.median(_joined(below, two)) for one, two in both)
    return _percentiles(draws, point)


def geometric_mean(ratios: Sequence[Interval]) -> Interval:
    """The geometric mean of independent ratios; its interval from theirs, taken as normal in logarithms.

    Raises:
        ValueError: no ratio, or one that is not above zero.
    """
    if not ratios or min(item.low for item in ratios) <= 0:
        raise ValueError("a geometric mean needs ratios above zero")
    point = statistics.fmean(math.log(item.median) for item in ratios)
    count = len(ratios)
    down = math.sqrt(sum(math.log(item.median / item.low) ** 2 for item in ratios)) / count
    up = math.sqrt(sum(math.log(item.high / item.median) ** 2 for item in ratios)) / count
    return Interval(math.exp(point - down), math.exp(point), math.exp(point + up))


def _choices(count: int, seed: int) -> Iterator[list[int]]:
    """``RESAMPLES`` times as many block positions as there are blocks, drawn with replacement."""
    chance = random.Random(seed)  # noqa: S311 (a bootstrap is no secret)
    for _ in range(RESAMPLES):
        yield chance.choices(range(count), k=count)


def _joined(groups: Sequence[Sequence[float]], chosen: Iterable[int]) -> list[float]:
    return [value for index in chosen for value in groups[index]]


def _percentiles(draws: Iterable[float], point: float) -> Interval:
    """The middle 95 % of the draws; the point is never outside (a median of few blocks may be at an end)."""
    ordered = sorted(draws)
    cut = int(len(ordered) * (1 - LEVEL) / 2)
    return Interval(min(point, ordered[cut]), point, max(point, ordered[-1 - cut]))
