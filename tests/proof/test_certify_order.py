"""Which cases are tried in which order, and what may stand in an option."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.errors import UsageError
from ideepdoctor.proof.certify_data import Case, Setting
from ideepdoctor.proof.certify_order import (
    BATCH_CASES,
    BATCH_SECONDS,
    batches,
    left,
    ordered,
    seconds_of,
    selected,
    settings_of,
)


def case(key: str, family: str = "relu", seconds: float = 0.1, risk: int = 0) -> Case:
    return Case(key, f"{family}_op", family, key, seconds, risk, {"key": key})


def catalogue(**counts: int) -> tuple[Case, ...]:
    return tuple(case(f"{family} {number}", family) for family, count in counts.items() for number in range(count))


ONE, TWO = Setting("1", 1), Setting("2", 2)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("5m", 300), ("1h", 3600), ("90", 90), (" 1.5 M ", 90), ("2min", 120)]
)
def test_a_length_of_time(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "0", "0s", "-5s", "5d", "1h30", "s"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(UsageError, match="no length of time"):
        seconds_of(text)


def test_without_a_word_the_users_own_number_comes_first() -> None:
    assert [item.name for item in settings_of((), 2)] == ["2", "1", "3", "4", "1cpu"]
    assert [item.name for item in settings_of((), 28)] == ["28", "2", "1", "3", "4", "1cpu"]
    assert [item.name for item in settings_of((), None)] == ["1", "2", "3", "4", "1cpu"]


def test_settings_by_name() -> None:
    assert settings_of(("2", "1cpu", "2"), 4) == (TWO, Setting("1cpu", None, True))


@pytest.mark.parametrize("word", ["0", "x", "-1", "1.5", "2000", "cpu", "²"])
def test_what_is_no_number_of_threads(word: str) -> None:
    with pytest.raises(UsageError, match="no number of threads"):
        settings_of(("2", word), 2)


def test_operations_are_chosen_by_family_function_or_short_name() -> None:
    cases = catalogue(convolution=2, batch_norm=1, fixed_batch_norm=1, relu=1)
    assert selected(cases, ()) == cases
    assert [item.family for item in selected(cases, ("relu", "conv"))] == ["convolution", "convolution", "relu"]
    assert {item.family for item in selected(cases, ("BN",))} == {"batch_norm", "fixed_batch_norm"}
    assert {item.family for item in selected(cases, ("convolution_op",))} == {"convolution"}


def test_an_operation_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="'lru'") as caught:
        selected(catalogue(relu=1, concat=1), ("relu", "lru"))
    assert caught.value.hint == "known: relu, concat"


def test_a_short_budget_sees_every_family_in_every_setting() -> None:
    pairs = ordered(catalogue(convolution=100, relu=10, concat=1), (TWO, ONE))
    first = pairs[:18]
    assert {(item.family, setting.name) for item, setting in first} == {
        (family, name) for family in ("convolution", "relu", "concat") for name in ("1", "2")
    }
    # The user's own setting first, and within it one case of each family after the other.
    assert [setting.name for _, setting in first] == ["2"] * 9 + ["1"] * 9
    assert [item.family for item, _ in first[:4]] == ["convolution", "relu", "concat", "convolution"]
    assert len(pairs) == len(set(pairs)) == 2 * 111


@pytest.mark.parametrize(
    ("settings", "chosen"),
    [((ONE, TWO), "2"), ((TWO, ONE), "2"), ((ONE,), "1"), ((Setting("1cpu", one_cpu=True), ONE, TWO), "2")],
)
def test_memory_and_forks_are_tried_once_and_where_there_are_threads(
    settings: tuple[Setting, ...], chosen: str
) -> None:
    pairs = ordered(catalogue(memory=3, fork=1, relu=1), settings)
    assert [setting.name for item, setting in pairs if item.family != "relu"] == [chosen] * 4
    assert len(pairs) == 4 + len(settings)


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 70)), st.integers(1, 3))
def test_every_pair_comes_once_and_each_family_in_its_order(counts: dict[str, int], number: int) -> None:
    settings = tuple(Setting(str(count), count) for count in range(1, number + 1))
    cases = catalogue(**counts)
    pairs = ordered(cases, settings)
    assert sorted((item.key, setting.name) for item, setting in pairs) == sorted(
        (item.key, setting.name) for item in cases for setting in settings
    )
    for family in counts:
        for setting in settings:
            keys = [item.key for item, other in pairs if item.family == family and other == setting]
            assert keys == [item.key for item in cases if item.family == family]


@given(
    st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.sampled_from([0, 0, 0, 1, 2]), st.floats(0.01, 8)), max_size=200)
)
def test_batches_are_of_one_setting_short_and_complete(rows: list[tuple[Setting, int, float]]) -> None:
    pairs = [(case(str(number), seconds=s, risk=risk), setting) for number, (setting, risk, s) in enumerate(rows)]
    found = list(batches(pairs))
    assert sorted(item.key for _, cases in found for item in cases) == sorted(item.key for item, _ in pairs)
    known = {item.key: setting for item, setting in pairs}
    for setting, cases in found:
        assert {known[item.key] for item in cases} == {setting}
        assert len(cases) <= BATCH_CASES
        assert len(cases) == 1 or sum(item.seconds for item in cases) <= BATCH_SECONDS
        # What may spoil its process is alone in it; what may end it comes last.
        assert [item.risk for item in cases] == sorted(item.risk for item in cases)
        assert len(cases) == 1 or all(item.risk < 2 for item in cases)


def test_a_slow_machine_gets_shorter_batches() -> None:
    pairs = ordered(tuple(case(str(number), seconds=1.0) for number in range(12)), (ONE,))
    assert [len(cases) for _, cases in batches(pairs)] == [10, 2]
    assert [len(cases) for _, cases in batches(pairs, pace=2.0)] == [5, 5, 2]


def test_what_has_a_result_is_not_tried_again() -> None:
    pairs = ordered(catalogue(relu=2), (ONE, TWO))
    done = {("relu 0", "1"), ("relu 1", "2")}
    assert [(item.key, setting.name) for item, setting in left(pairs, done)] == [("relu 1", "1"), ("relu 0", "2")]
