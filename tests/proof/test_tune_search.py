"""The search of tune on simulated machines: times that are known, noise that is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ideepdoctor.proof.tune_data import MARGIN, Choice, Effort
from ideepdoctor.proof.tune_search import Search
from ideepdoctor.proof.tune_space import DEFAULT, Dimension, Option, Setting, thread_option


class Machine:
    """Knows the true time of each setting; its noise has a part that all settings of a block share."""

    def __init__(self, seconds: Callable[[Setting], float], noise: float = 0.01, seed: int = 0) -> None:
        self.seconds, self.noise, self.chance = seconds, noise, random.Random(seed)
        self.spent, self.measured, self.broken = 0.0, [], {}

    def measure(self, running: Sequence[Setting], block: int) -> Mapping[Setting, Sequence[float] | str]:
        drift = self.chance.lognormvariate(0, 3 * self.noise)
        self.measured.append((block, tuple(running)))
        found: dict[Setting, Sequence[float] | str] = {}
        for item in running:
            steps = [self.seconds(item) * drift * self.chance.lognormvariate(0, self.noise) for _ in range(3)]
            self.spent += sum(steps)
            found[item] = self.broken.get(item, steps)
        return found


def dimension(name: str, *labels: str) -> Dimension:
    return Dimension(name, name, "default", tuple(Option(name, label, ((name, label),)) for label in labels))


def run(machine: Machine, space: Sequence[Dimension], budget: float = 1e9, **more) -> Choice:
    effort = more.pop("effort", Effort())
    wrong = more.pop("wrong", lambda setting: "")
    return Search(space, machine.measure, wrong, lambda: budget - machine.spent, effort).go()


def factors(table: Mapping[str, float]) -> Callable[[Setting], float]:
    """Options whose effects multiply."""

    def seconds(setting: Setting) -> float:
        result = 1.0
        for item in setting.options:
            result *= table.get(item.label, 1.0)
        return result

    return seconds


SPACE = (dimension("mkl", "5", "unset"), dimension("layouts", "plain"), dimension("affinity", "compact", "scatter"))


def test_what_is_faster_in_each_dimension_is_found_and_measured_again():
    machine = Machine(factors({"5": 0.8, "unset": 1.5, "scatter": 0.9, "compact": 1.1}))
    choice = run(machine, SPACE)
    assert choice.setting.label == "scatter, 5"
    assert choice.gain is not None and choice.gain.low < 1 / 0.72 < choice.gain.high
    assert [item.verdict for item in choice.looked] == ["gain", "noise", "gain"]
    assert choice.telling and choice.complete


@pytest.mark.parametrize("seed", range(12))
def test_where_nothing_is_faster_the_default_stays(seed):
    choice = run(Machine(factors({}), noise=0.05, seed=seed), SPACE)
    assert choice.setting == DEFAULT and choice.gain is None


def test_a_gain_within_the_margin_is_no_gain():
    choice = run(Machine(factors({"5": 1 - MARGIN / 2}), noise=0.0001), SPACE)
    assert choice.setting == DEFAULT


def test_what_is_slower_is_dropped_from_its_race():
    machine = Machine(factors({"unset": 3.0}))
    run(machine, SPACE[:1], effort=Effort(pairs=False))
    rounds = [running for _, running in machine.measured]
    slow = DEFAULT.with_option(SPACE[0].options[1])
    assert sum(slow in running for running in rounds) == 3 and len(rounds) > 3


def test_a_noisy_machine_is_said_to_be_one():
    choice = run(Machine(factors({"5": 0.97}), noise=0.4, seed=5), SPACE[:1])
    assert choice.setting == DEFAULT and not choice.telling
    assert choice.looked[0].verdict == "unknown"


def test_a_fast_wrong_setting_is_refused_and_the_next_is_taken():
    machine = Machine(factors({"5": 0.6, "unset": 0.8}))
    five = DEFAULT.with_option(SPACE[0].options[0])
    choice = run(machine, SPACE[:1], wrong=lambda item: "gradient is off" if item == five else "")
    assert [(item.setting, item.why) for item in choice.refused] == [(five, "gradient is off")]
    assert choice.setting.label == "unset" and choice.gain is not None


def test_where_all_that_is_faster_is_wrong_the_default_stays():
    machine = Machine(factors({"5": 0.6, "unset": 0.8}))
    choice = run(machine, SPACE[:1], wrong=lambda item: "wrong")
    assert choice.setting == DEFAULT and len(choice.refused) == 2 and choice.gain is None


def test_what_cannot_be_measured_says_why_and_is_not_chosen():
    machine = Machine(factors({"5": 0.5}))
    machine.broken[DEFAULT.with_option(SPACE[0].options[0])] = "ended by SIGILL"
    choice = run(machine, SPACE[:1])
    assert choice.setting == DEFAULT
    assert [trial.why for trial in choice.looked[0].trials] == ["ended by SIGILL", ""]


def test_a_default_that_cannot_be_measured_is_told():
    machine = Machine(factors({}))
    machine.broken[DEFAULT] = "not there"
    search = Search(SPACE, machine.measure, lambda setting: "", lambda: 1.0)
    assert search.go().setting == DEFAULT and search.failed[DEFAULT] == "not there"


def test_without_time_what_was_not_looked_at_is_named():
    choice = run(Machine(factors({"scatter": 0.5})), SPACE, budget=20.0)
    assert not choice.complete
    assert choice.looked[-1].verdict == "skipped"


def test_time_is_held_back_for_the_last_race():
    """A gain that the search has found is not lost because the search took all of the time."""
    space = (dimension("mkl", "5"), *(dimension(f"d{number}", "x", "y", "z") for number in range(20)))
    for budget in (100.0, 200.0, 300.0, 400.0):
        machine = Machine(factors({"5": 0.2}), noise=0.02)
        choice = run(machine, space, budget=budget)
        five = choice.setting.option("mkl")
        assert five is not None and not choice.complete and machine.spent <= budget + 30


QUICK = Effort(blocks=6, last=0, pairs=False)


@pytest.mark.parametrize("seed", range(6))
def test_without_a_last_race_the_one_from_the_default_decides(seed):
    space = (Dimension("quick", "both", "default", (*SPACE[0].options, *SPACE[2].options)),)
    found = run(Machine(factors({"5": 0.7, "unset": 2.0}), noise=0.02, seed=seed), space, effort=QUICK)
    assert found.setting.label == "5" and found.gain is not None and found.gain.low > 1 + MARGIN
    assert found.looked[0].verdict == "gain"
    same = run(Machine(factors({"unset": 2.0}), noise=0.02, seed=seed), space, effort=QUICK)
    assert same.setting == DEFAULT and same.telling


def test_without_a_last_race_too_few_blocks_decide_nothing():
    space = (Dimension("quick", "both", "default", SPACE[0].options),)
    found = run(Machine(factors({"5": 0.5})), space, budget=20.0, effort=QUICK)
    assert found.setting == DEFAULT and not found.telling


def test_of_two_that_are_as_good_the_simpler_one_is_taken():
    taken = [run(Machine(factors({"5": 0.5}), noise=0.02, seed=seed), SPACE).setting.label for seed in range(6)]
    assert taken.count("5") >= 5


def test_between_the_best_number_of_threads_and_its_neighbours_there_may_be_a_better_one():
    def seconds(setting: Setting) -> float:
        count = int(setting.variables.get("OMP_NUM_THREADS", "16"))
        return 1 + abs(count - 6) / 10

    space = (Dimension("threads", "threads", "16 threads", tuple(map(thread_option, (8, 4, 2, 1))), ordered=True),)
    assert run(Machine(seconds), space).setting.label == "OMP_NUM_THREADS=6"


def test_two_that_help_alone_and_not_together_are_told_apart():
    def seconds(setting: Setting) -> float:
        return {0: 1.0, 1: 0.8, 2: 0.9}[len(setting.options)]

    choice = run(Machine(seconds), (dimension("a", "x"), dimension("b", "y")))
    assert len(choice.setting.options) == 1


@settings(max_examples=25, deadline=None)
@given(
    table=st.fixed_dictionaries({name: st.floats(0.5, 2.0) for name in ("5", "unset", "plain", "compact", "scatter")}),
    seed=st.integers(0, 1000),
)
def test_the_choice_is_within_five_percent_of_an_exhaustive_search_and_never_slower_than_the_default(table, seed):
    seconds = factors(table)
    choice = run(Machine(seconds, noise=0.005, seed=seed), SPACE)
    every = (
        Setting(tuple(option for option in chosen if option is not None))
        for chosen in product(*([None, *item.options] for item in SPACE))
    )
    best = min(seconds(setting) for setting in every)
    assert seconds(choice.setting) <= 1.05 * best
    assert seconds(choice.setting) <= seconds(DEFAULT)


@settings(max_examples=20, deadline=None)
@given(budget=st.floats(0.0, 300.0), seed=st.integers(0, 1000), noise=st.floats(0.001, 0.05))
def test_a_budget_is_kept_but_for_the_races_that_were_begun(budget, seed, noise):
    machine = Machine(factors({"5": 0.8, "scatter": 0.9}), noise=noise, seed=seed)
    choice = run(machine, SPACE, budget=budget)
    assert machine.spent <= budget + 4 * 3 * 5.0  # the block that was begun: four settings, three steps, the slowest
    assert choice.gain is None or choice.gain.low > 1 + MARGIN
