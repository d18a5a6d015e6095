from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.proof.statistics import ratios, spread

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
