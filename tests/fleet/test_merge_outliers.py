"""Which of many alike is odd, and which is slow."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.fleet.merge_features import UNSET, features_of
from ideepdoctor.fleet.outliers import Tally, Vector, differences, listed_difference, median, spread
from ideepdoctor.model.facts import ConvTiming, Smoke
from ideepdoctor.rules.loading import MKLDNN, own_file, stranger, taken
from tests.rules.hosts import facts_on

HOST = "py37-healthy"


def odd(*vectors: tuple[Vector, int]) -> dict[str, dict[str, str]]:
    """By the number of a vector, what its hosts have and their twins do not."""
    tally = Tally()
    for vector, hosts in vectors:
        tally.add(vector, hosts)
    usual = tally.usual()
    told = {
        str(number): {item.name: value for item, value in differences(vector, usual)}
        for number, (vector, _hosts) in enumerate(vectors)
    }
    return {number: found for number, found in told.items() if found}


@pytest.mark.parametrize(
    ("usual", "other", "found"),
    [
        (9, 1, True),
        (2, 1, True),
        (3, 1, True),
        (5, 5, False),
        (6, 4, False),
        (1, 1, False),
    ],
)
def test_a_value_is_odd_where_two_thirds_have_another(usual: int, other: int, found: bool):
    told = odd(({"threads": "64"}, usual), ({"threads": "4"}, other))
    assert told == ({"1": {"threads": "4"}} if found else {})


def test_what_is_not_known_is_no_difference():
    assert odd(({"threads": "64"}, 9), ({"threads": None}, 3)) == {}
    assert odd(({"variable": {"A": "1"}}, 9), ({"variable": None}, 1)) == {}


def test_a_variable_that_few_have_or_few_lack_is_odd():
    assert odd(({"variable": {}}, 9), ({"variable": {"A": "1"}}, 1)) == {"1": {"variable A": "1"}}
    assert odd(({"variable": {"A": "1"}}, 9), ({"variable": {}}, 1)) == {"1": {"variable A": UNSET}}


def test_twins_of_two_kinds_are_split_and_none_is_odd():
    tally = Tally()
    tally.add({"package": {"six": "1.16"}}, 6)
    tally.add({"package": {"six": "1.17"}}, 5)
    assert tally.usual() == {}
    [split] = tally.splits()
    assert (split.name, split.values) == ("package six", (("1.16", 6), ("1.17", 5)))


def test_a_feature_with_blanks_in_its_name_is_one_feature():
    assert odd(({"kernel of the convolution": "a", "kernel": "x"}, 4), ({"kernel of the convolution": "b"}, 1)) == {
        "1": {"kernel of the convolution": "b"}
    }


def test_how_lists_differ_is_told():
    assert listed_difference("avx avx2", "avx avx2 avx512f") == "lacks avx512f"
    assert listed_difference("avx fma4", "avx avx2") == "lacks avx2; has more fma4"


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40))
def test_the_median_has_half_on_each_side(values: list[float]):
    middle = median(values)
    assert 2 * sum(value < middle for value in values) <= len(values)
    assert 2 * sum(value > middle for value in values) <= len(values)


def test_one_slow_host_is_found_and_moves_nothing():
    noise = random.Random(3)
    values = [100 * noise.gauss(1, 0.01) for _ in range(50)]
    level = spread([*values, 55.0])
    assert level.limit is not None and 55 < level.limit < min(values)
    assert level.median == pytest.approx(spread(values).median, rel=0.005)


def test_noise_alone_makes_nobody_slow():
    """At 3.5 robust deviations and 10 %, of 2,000 hosts with 2 % of noise at most one in a thousand is below."""
    noise = random.Random(5)
    values = [100 * noise.gauss(1, 0.02) for _ in range(2000)]
    level = spread(values)
    assert level.limit is not None
    assert sum(value < level.limit for value in values) <= 2


def test_equal_twins_leave_room_for_a_tenth_and_few_twins_say_nothing():
    assert spread([100.0] * 5).limit == pytest.approx(90)
    assert spread([100.0] * 4).limit is None
    with pytest.raises(ValueError, match="no values"):
        spread([])


def test_noisy_twins_make_a_wide_limit():
    level = spread([60.0, 80.0, 100.0, 120.0, 140.0])
    assert level.mad == 20
    assert level.limit == pytest.approx(100 - 3.5 * 1.4826 * 20)


def test_a_host_is_compared_by_what_it_has_and_not_by_where_or_what_it_is_called():
    facts = facts_on(HOST, {"variables": {"effective": {"OMP_NUM_THREADS": "4", "LD_LIBRARY_PATH": "/s/node17/lib"}}})
    found = features_of(facts, None, "node17")
    assert found is not None
    assert found.machine == {"processor": "AMD EPYC", "CPUs": "2", "machine": "x86_64"}
    assert found.versions["Python"] == "CPython 3.7.16"
    assert found.versions["NumPy"] == "1.21.6"
    assert isinstance(found.values["variable"], dict)
    assert found.values["variable"]["LD_LIBRARY_PATH"] == "/s/HOST/lib"
    assert isinstance(found.values["package"], dict)
    assert "numpy" not in found.values["package"] and "six" in found.values["package"]
    assert "avx512f" in str(found.values["instructions"]).split()
    assert found.values["threads"] is None


def test_the_mkldnn_that_computes_is_named_without_its_place():
    own = features_of(facts_on(HOST), None, "a")
    loaded = [taken(MKLDNN, "/opt/other/libmkldnn.so.0", "LD_LIBRARY_PATH")]
    native = {"native": {"files": [own_file(), stranger()], "predicted": loaded, "started": None}}
    other = features_of(facts_on(HOST, native), None, "a")
    assert own is not None and other is not None
    assert str(own.values["MKL-DNN"]).startswith("MKL-DNN 0.14, ideep4py's own, build ")
    assert other.values["MKL-DNN"] == "MKL-DNN 0.19.0, of nobody known"


def test_speeds_that_are_none_are_left_out():
    timing = ConvTiming("(8,8)", 3, 0.2, 0.1, 2.0, 1.9, 2.1, 50.0)
    facts = facts_on(HOST)
    good, bad = (
        features_of(facts, Smoke(2, True, "jit:avx2", timing=item), "a")
        for item in (timing, ConvTiming("(8,8)", 3, 0.2, 0.1, float("inf"), 1.9, 2.1, 0.0))
    )
    assert good is not None and bad is not None
    assert [(item.unit, item.value) for item in good.measures] == [("GFLOP/s", 50.0), ("times", 2.0)]
    assert bad.measures == ()


def test_a_step_of_bench_is_a_speed():
    step = {"engine": "ideep", "subject": "alexnet, batch 8", "threads": 2, "seconds": 0.25, "low": 0.2, "high": 0.3}
    found = features_of(facts_on(HOST, {"bench": {"steps": [step, {**step, "seconds": 0.0}]}}), None, "a")
    assert found is not None
    assert [(item.what, item.unit, item.value) for item in found.measures] == [
        ("ideep, alexnet, batch 8", "steps/s", 4)
    ]


def test_an_unknown_processor_has_no_twins():
    assert features_of(facts_on(HOST, {"cpu": {"model_name": None, "vendor": None}}), None, "a") is None
    assert features_of(facts_on(HOST, {"packages": None}), None, "a") is None
