"""Which of two wheels --mkl auto keeps: the decision as data, the measuring with canned workers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.builder import compare, verify
from ideepdoctor.builder.compare import Measured, choose, decide, measure, settled, worth_trying
from ideepdoctor.commands.session import Session
from ideepdoctor.model.build import BuildFacts, BuildRequest, BuiltWheel
from ideepdoctor.proof import bench_run
from ideepdoctor.proof.statistics import Interval
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import Call, FakeSystem
from tests.rules.hosts import facts_on

WHEEL = BuiltWheel("/w/a.whl", "a.whl", "2.0.0.post3+doctor.v3", "0" * 64, "t", (), "1.16.0", "wheel", "c", "m")


def one(work: str, low: float, median: float, high: float) -> Measured:
    return Measured(work, Interval(low, median, high))


# ------------------------------------------------------------------------------------------------------ the decision


@pytest.mark.parametrize(
    ("measured", "kind", "said"),
    [
        ((one("conv", 0.99, 1.0, 1.01),), "none", "right and not slower: 1.00 times the time of MKL's (0.99 to 1.01"),
        ((one("conv", 0.5, 0.6, 0.7),), "none", "right and faster: 0.60"),
        ((one("conv", 1.0, 1.01, 1.02),), "none", "not slower"),
        ((one("conv", 1.0, 1.01, 1.021),), "wheel", "perhaps slower: 1.01"),
        ((one("conv", 0.8, 1.0, 1.3),), "wheel", "perhaps slower"),
        ((one("conv", 1.005, 1.015, 1.03),), "wheel", "without MKL slower: 1.01"),
        ((one("conv", 1.3, 1.5, 1.6),), "wheel", "without MKL slower: conv 1.50; all in all 1.50"),
        # One that is surely slower is not made good by others that are faster.
        ((one("conv", 0.4, 0.5, 0.6), one("dropout", 1.1, 1.2, 1.3)), "wheel", "slower: dropout 1.20; all in all 0.77"),
        # One that cannot be told alone is, together with others.
        ((one("conv", 0.7, 0.8, 0.9), one("linear", 0.97, 1.0, 1.03)), "none", "faster: 0.89 times"),
        ((one("conv", 0.9, 0.9, 0.9), Measured("alexnet", None)), "none", "(0.90 to 0.90; conv)"),
        (
            (one("conv", 0.9, 0.9, 0.9), Measured("alexnet", None, "ended by SIGSEGV")),
            "wheel",
            "alexnet failed: ended by",
        ),
        ((Measured("conv", None),), "wheel", "nothing could be measured"),
        ((), "wheel", "nothing could be measured"),
    ],
)
def test_decisions(measured: tuple[Measured, ...], kind: str, said: str) -> None:
    found, reason = decide(measured)
    assert found == kind and said in reason


def test_what_disturbed_is_told() -> None:
    kind, reason = decide((one("conv", 0.9, 0.95, 1.0),), ("other programs took 40 % of the processors",))
    assert kind == "none" and reason.endswith("; other programs took 40 % of the processors")


@pytest.mark.parametrize(
    ("measured", "over"),
    [
        ((one("conv", 0.9, 1.0, 1.1),), False),
        ((one("conv", 0.9, 1.0, 1.01),), True),
        ((one("conv", 1.03, 1.1, 1.2),), True),
        ((one("conv", 0.5, 0.9, 1.3), one("linear", 1.03, 1.1, 1.2)), True),
        ((one("conv", 0.5, 0.9, 1.3), Measured("linear", None, "died")), True),
        ((), True),
    ],
)
def test_more_is_measured_while_it_tells_nothing(measured: tuple[Measured, ...], over: bool) -> None:
    assert settled(measured) is over


# ----------------------------------------------------------------------------------------------------- the measuring


class Machine:
    """Workers whose steps take as long as ``seconds`` says, by interpreter and by what they were asked to load."""

    def __init__(self, seconds: Mapping[tuple[str, str], float], **special: Any) -> None:
        self.seconds, self.special, self.loaded = seconds, special, []
        self.work: dict[str, str] = {}

    def __call__(self, call: Call, request: Mapping[str, Any]) -> Mapping[str, Any] | int:
        python = call.argv[0]
        if request["do"] == "sgemm":
            self.loaded.append((python, "sgemm"))
            return {"sgemm": []}
        if request["do"] == "load":
            self.work[python] = request["model"][1] if request.get("model") else request["net"]
            self.loaded.append((python, self.work[python]))
            assert request["use"] == "auto" and request["to_intel64"] is True
            used = self.special.get("used", True)
            told = {"versions": {}, "threads": None, "parameters": 1, "flops": None, "guard": False, "mkldnn": True}
            return {**told, "used": used, "first": [1, 1], "loss": 1.0, "batch": 8}
        found = self.seconds[python, self.work[python]]
        if found < 0:
            return 139
        # A little that differs from step to step, the same in both.
        count = int(request["count"])
        return {"forward": [found * (1 + 0.001 * (number % 3)) for number in range(count)], "backward": [found] * count}

    def system(self) -> FakeSystem:
        system = FakeSystem()
        for name in ("with", "without"):
            system.workers.append((name, self))
        return system


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_run, "QUIET_SECONDS", 0.0)


def measured(machine: Machine, **options: Any) -> tuple[Measured, ...]:
    asked = {"nets": (("conv", 8),), "models": ("dropout",), "blocks": 4, "seconds": 0.1, **options}
    return measure(machine.system(), Target("with"), Target("without"), lambda _text: None, **asked)


def test_both_compute_everything_in_turn() -> None:
    machine = Machine(
        {("with", "conv"): 0.02, ("without", "conv"): 0.01, ("with", "dropout"): 0.01, ("without", "dropout"): 0.01}
    )
    conv, dropout = measured(machine)
    assert (conv.work, dropout.work) == ("conv", "dropout")
    assert conv.ratio is not None and conv.ratio.median == pytest.approx(0.5, rel=0.01)
    assert dropout.ratio is not None and dropout.ratio.median == pytest.approx(1.0, rel=0.01)
    assert decide((conv, dropout))[0] == "none"
    assert machine.loaded == [
        *(("with", "sgemm"), ("with", "conv"), ("without", "sgemm"), ("without", "conv")),
        *(("with", "dropout"), ("without", "dropout")),
    ]


def test_the_models_are_in_a_file_that_a_target_can_open() -> None:
    seen = []
    machine = Machine({("with", "linear"): 1.0, ("without", "linear"): 1.0})

    def noted(call: Call, request: Mapping[str, Any]) -> Mapping[str, Any] | int:
        seen.extend([request["model"]] if request.get("model") else [])
        return machine(call, request)

    system = FakeSystem(workers=[("with", noted), ("without", noted)])
    measure(system, Target("with"), Target("without"), print, nets=(), models=("linear",), blocks=1)
    [path, name] = seen[0]
    text = Path(path).read_text("ascii")
    assert name == "linear" and all(f"\ndef {model}():" in text for model in compare.MODELS)


def test_what_tells_nothing_is_measured_again_and_put_together() -> None:
    class Restless(Machine):
        turns = 0

        def __call__(self, call: Call, request: Mapping[str, Any]) -> Mapping[str, Any] | int:
            answer = super().__call__(call, request)
            if request["do"] == "steps" and call.argv[0] == "without" and isinstance(answer, Mapping):
                self.turns += 1
                scale = 1.5 if self.turns % 2 else 0.6
                return {name: [value * scale for value in values] for name, values in answer.items()}
            return answer

    machine = Restless({(python, "conv"): 0.05 for python in ("with", "without")})
    [conv] = measured(machine, models=(), rounds=3)
    assert machine.loaded.count(("without", "conv")) == 3
    assert conv.ratio is not None and conv.ratio.low < 1 < conv.ratio.high
    assert decide((conv,))[0] == "wheel"
    calm = Machine({(python, "conv"): 0.05 for python in ("with", "without")})
    measured(calm, models=(), rounds=3)
    assert calm.loaded.count(("without", "conv")) == 1


def test_a_worker_without_mkl_that_dies_decides() -> None:
    machine = Machine({("with", "conv"): 0.01, ("without", "conv"): -1.0})
    found = measured(machine, models=())
    kind, reason = decide(found)
    assert kind == "wheel" and "conv failed" in reason and "139" in reason


def test_a_worker_with_mkl_that_dies_decides_nothing() -> None:
    machine = Machine({("with", "conv"): -1.0, ("without", "conv"): 0.01})
    assert measured(machine, models=()) == (Measured("conv", None),)


def test_an_ideep_that_is_not_used_is_not_measured() -> None:
    machine = Machine({(python, "conv"): 0.01 for python in ("with", "without")}, used=False)
    assert decide(measured(machine, models=()))[1] == "nothing could be measured"


# ------------------------------------------------------------------------------------------------------ the choice


def session(system: FakeSystem) -> Session:
    return Session(system, os.environ, "/", Quiet(), lambda _report: True)


def test_one_that_is_right_alone_is_taken_without_measuring() -> None:
    lock = all_stacks()[0].locks[0]
    system = FakeSystem()
    kind, reason = choose(session(system), {"wheel": WHEEL}, lock, "python3.7", print)
    assert (kind, reason) == ("wheel", "the wheel without MKL was not right here")
    kind, reason = choose(session(system), {"none": WHEEL}, lock, "python3.7", print)
    assert (kind, reason) == ("none", "the wheel with MKL was not right here")
    with pytest.raises(ValueError, match="neither"):
        choose(session(system), {}, lock, "python3.7", print)
    assert system.calls == []


def test_each_wheel_has_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IDEEPDOCTOR_CACHE_DIR", str(tmp_path))
    made = []

    def environment(
        _session: Session, wheel: BuiltWheel, _lock: Any, chainer: str, _python: str, work: str, _t: Any, _source: Any
    ) -> Any:
        made.append((wheel.mkl, chainer, work.rpartition("/")[2]))
        return None, Target("with" if wheel.mkl == "wheel" else "without")

    monkeypatch.setattr(verify, "make_environment", environment)
    works = [name for name, _ in compare.NETS] + list(compare.MODELS)
    seconds = {(python, work): 0.05 for python in ("with", "without") for work in works}
    seconds |= {("without", work): 0.1 for work in works}
    system = Machine(seconds).system()
    lock = next(lock for stack in all_stacks() if stack.chainer == "7.8.1" for lock in stack.locks)
    wheels = {"wheel": WHEEL, "none": replace(WHEEL, mkl="none")}
    kind, reason = choose(session(system), wheels, lock, "python3.7", print, blocks=4, seconds=0.1)
    assert made == [("wheel", "7.8.1", "wheel"), ("none", "7.8.1", "none")]
    assert kind == "wheel" and "slower: conv 2.00, alexnet 2.00, linear 2.00, dropout 2.00" in reason
    assert [call.path for call in system.calls if call.kind == "remove_tree"][-1].startswith(str(tmp_path))


# ------------------------------------------------------------------------------------------------------- the line


def test_the_line_is_for_processors_that_mkl_was_not_made_for() -> None:
    line = worth_trying(BuildFacts(cpu_vendor="AuthenticAMD"))
    assert "--mkl auto" in line and "this one is AMD's" in line and "\n" not in line
    for vendor in (None, "", "GenuineIntel"):
        assert worth_trying(BuildFacts(cpu_vendor=vendor)) == ""
    for word, there in (("wheel", True), ("none", False), ("auto", False)):
        asked = BuildRequest("python", "out", mkl=word)
        assert bool(worth_trying(BuildFacts(cpu_vendor="AuthenticAMD", request=asked))) is there


@pytest.mark.parametrize(("vendor", "there"), [("AuthenticAMD", True), ("GenuineIntel", False)])
def test_the_line_from_the_facts_of_a_machine(vendor: str, there: bool) -> None:
    facts = facts_on("py37-healthy")
    assert bool(worth_trying(replace(facts, cpu=replace(facts.cpu, vendor=vendor)))) is there


def test_rounds_that_differ_more_than_steps_tell_nothing() -> None:
    """As one environment against itself was measured: a process that lies badly in memory, and three that do not."""
    sure = Interval(1.03, 1.10, 1.25)
    seen = Measured("dropout", sure, rounds=(1.66, 0.993, 1.048, 1.004))
    assert not seen.slower and seen.interval == Interval(0.993, (1.004 + 1.048) / 2, 1.66)
    kind, reason = decide((seen, Measured("linear", Interval(0.99, 1.0, 1.01), rounds=(0.996, 0.987, 1.011, 1.001))))
    assert kind == "wheel" and "perhaps slower" in reason
    assert Measured("dropout", sure, rounds=(1.05, 1.10, 1.08, 1.2)).slower
    assert not settled((Measured("dropout", sure, rounds=(1.10,)),)) and settled((Measured("dropout", sure),))
