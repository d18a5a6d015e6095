"""Medians, quartiles and ratios of repeated measurements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


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
