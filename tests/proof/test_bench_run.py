"""The run of bench with workers that are canned: turns, rows, what fails, what is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ideepdoctor.proof import bench_run as module
from ideepdoctor.proof.bench_engines import EngineSpec, own_engines
from ideepdoctor.proof.bench_run import Bench, Plan, label_of
from ideepdoctor.targets.target import Target
from tests.doubles import Call, FakeSystem

TARGET = Target("python3.7")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.0)


class Machine:
    """Answers workers: ``speed`` is the seconds of a step by engine; what it was asked is in ``asked``."""

    def __init__(self, speed: Mapping[str, float], **special: Any) -> None:
        self.speed, self.special, self.asked = speed, special, []

    def engine(self, call: Call) -> str:
        env = call.env or {}
        return str(env.get("ENGINE", "bare" if env.get("IDEEPDOCTOR_GUARD") == "off" else "tuned"))

    def __call__(self, call: Call, request: Mapping[str, Any]) -> Mapping[str, Any] | int:
        engine = self.engine(call)
        self.asked.append((engine, request))
        special = self.special.get(f"{engine}_{request['do']}")
        if special is not None:
            return special(request) if callable(special) else special
        if request["do"] == "sgemm":
            return {
                "sgemm": [{"library": "MKLML 2018.0.3", "size": size, "gflops": 400.0} for size in request["sizes"]]
            }
        if request["do"] == "load":
            versions = {"chainer": "7.8.1", "ideep4py": "2.0.0.post3", "numpy": "1.21.6"}
            told = {"versions": versions, "threads": 2, "parameters": 10, "flops": [1e9, 2e9], "used": True}
            return {**told, "guard": engine == "tuned", "mkldnn": True, "first": [1, 1], "loss": 1.0, "batch": 8}
        step = self.speed[engine]
        count = request["count"]
        return {"forward": [step / 4] * count, "backward": [3 * step / 4] * count}

    def system(self) -> FakeSystem:
        system = FakeSystem()
        system.workers.append(("python3.7", self))
        return system


def spec(name: str, kind: str = "ideep", **options: Any) -> EngineSpec:
    return EngineSpec(name, f"Chainer + iDeep, {name}", kind, TARGET, variables={"ENGINE": name}, **options)


def test_rows_hold_what_was_measured() -> None:
    machine = Machine({"fast": 0.1, "slow": 0.4})
    plan = Plan((spec("fast"), spec("slow", "numpy")), (("alexnet", 8),), blocks=3, seconds=1.0)
    measured = Bench(machine.system(), plan).go()
    fast, slow = (measured.rows[name, "alexnet", 8] for name in ("fast", "slow"))
    assert (fast.median, fast.low, fast.high) == pytest.approx((0.1, 0.1, 0.1))
    assert (fast.forward_median, fast.backward_median) == pytest.approx((0.025, 0.075))
    assert fast.images_per_second == pytest.approx(80)
    assert fast.gflops == pytest.approx(30)
    # As many steps as fit into a turn, and each knows its block.
    assert fast.blocks == tuple(block for block in range(3) for _ in range(10))
    assert len(slow.forward) == 3 * 2
    assert measured.nets[0].parameters == 10
    assert {item.gflops for item in measured.sgemm} == {400.0}


def test_turns_alternate_and_no_engine_is_always_behind_the_same_one() -> None:
    machine = Machine(dict.fromkeys("abc", 1.0))
    Bench(machine.system(), Plan(tuple(map(spec, "abc")), (("conv", 1),), blocks=3)).go()
    steps = "".join(engine for engine, request in machine.asked if request["do"] == "steps")
    assert steps == "abc" + "abc" + "bca" + "cab"


def test_the_engines_of_the_environment_are_asked_as_they_are() -> None:
    machine = Machine({"bare": 0.5, "tuned": 0.1})
    system = machine.system()
    measured = Bench(system, Plan(own_engines(TARGET), (("conv", 1),), blocks=2)).go()
    loads = [
        (engine, request["use"], request.get("to_intel64"))
        for engine, request in machine.asked
        if request["do"] == "load"
    ]
    assert loads == [("bare", "auto", True), ("tuned", "auto", True), ("bare", "never", None)]
    assert [measured.engines[name].guard for name in ("ideep", "tuned", "numpy")] == [False, True, False]
    assert measured.engines["numpy"].label == "Chainer 7.8.1 + NumPy 1.21.6"
    assert measured.engines["tuned"].label == "Chainer 7.8.1 + iDeep 2.0.0.post3, tuned"


@pytest.mark.parametrize(
    ("what", "answer", "why"),
    [
        ("load", {"error": {"kind": "memory", "message": "there is not enough memory"}}, "there is not enough memory"),
        ("load", -9, "ended by SIGKILL; the system had no memory left, most likely: its last words"),
        ("steps", -4, "ended by SIGILL: its last words"),
    ],
)
def test_an_engine_that_fails_is_a_row_and_the_others_go_on(what: str, answer: Any, why: str) -> None:
    machine = Machine({"good": 0.1, "bad": 0.1}, **{f"bad_{what}": answer})
    measured = Bench(machine.system(), Plan((spec("bad"), spec("good")), (("alexnet", 8),), blocks=2)).go()
    bad, good = (measured.rows[name, "alexnet", 8] for name in ("bad", "good"))
    assert (bad.status, bad.why, bad.median) == ("failed", why, None)
    assert good.status == "measured" and len(good.blocks) == 20


def test_an_engine_that_dies_later_says_after_how_many_steps() -> None:
    counts = iter((1, 1, None))

    def steps(request: Mapping[str, Any]) -> Any:
        return -6 if next(counts) is None else {"forward": [1.0] * request["count"], "backward": []}

    machine = Machine({"good": 0.1}, bad_steps=steps)
    measured = Bench(machine.system(), Plan((spec("bad"), spec("good")), (("conv", 1),), blocks=3)).go()
    assert measured.rows["bad", "conv", 1].why == "after 1 steps: ended by SIGABRT: its last words"
    assert set(measured.rows["good", "conv", 1].blocks) == {0, 1, 2}


def test_an_interrupted_run_keeps_what_it_has() -> None:
    turns = []

    def steps(request: Mapping[str, Any]) -> Any:
        turns.append(request)
        if len(turns) == 4:
            raise KeyboardInterrupt
        return {"forward": [1.0] * request["count"], "backward": [1.0] * request["count"]}

    machine = Machine({}, only_steps=steps)
    bench = Bench(machine.system(), Plan((spec("only"),), (("conv", 1), ("alexnet", 1)), blocks=9))
    with pytest.raises(KeyboardInterrupt):
        bench.go()
    assert bench.measured.rows["only", "conv", 1].median == 2.0
    assert bench.measured.rows["only", "conv", 1].blocks == (0, 1)


def test_ideep_that_was_not_used_is_told() -> None:
    answer = {"versions": {"chainer": "7"}, "threads": 1, "used": False, "guard": False}
    machine = Machine({"only": 0.1}, only_load=answer)
    measured = Bench(machine.system(), Plan((spec("only"),), (("conv", 1),), blocks=2)).go()
    assert measured.unused == ["only"]
    assert measured.rows["only", "conv", 1].gflops is None


def test_a_peer_cannot_run_the_users_model() -> None:
    machine = Machine({"mine": 0.1})
    peer = spec("opencv", "opencv", forward_only=True)
    plan = Plan((spec("mine"), peer), (("model", 1),), blocks=2, model=("/m.py", "make"))
    measured = Bench(machine.system(), plan).go()
    assert measured.rows["opencv", "model", 1].status == "skipped"
    loads = [request for _, request in machine.asked if request["do"] == "load"]
    assert [request["model"] for request in loads] == [["/m.py", "make"]]


def test_labels() -> None:
    torch = EngineSpec("torch", "PyTorch", "torch", TARGET, payload="bench_torch")
    assert label_of(torch, {"torch": "2.13.0", "mkldnn": "3.12"}) == "PyTorch 2.13.0"
    assert label_of(torch, {}) == "PyTorch"
    channels = EngineSpec("torch-channels-last", "PyTorch, channels last", "torch", TARGET)
    assert label_of(channels, {"torch": "2.13.0"}) == "PyTorch 2.13.0, channels last"


def test_variables_are_those_in_force_without_folders() -> None:
    told = {"MKL_DEBUG_CPU_TYPE": "7", "LD_PRELOAD": "/home/someone/libjemalloc.so.2:/usr/lib/libm.so"}
    answer = {"versions": {}, "threads": 2, "used": True, "variables": told}
    machine = Machine({"only": 0.1}, only_load=answer)
    measured = Bench(machine.system(), Plan((spec("only"),), (("conv", 1),), blocks=2)).go()
    expected = {"MKL_DEBUG_CPU_TYPE": "7", "LD_PRELOAD": "libjemalloc.so.2:libm.so"}
    assert measured.engines["only"].variables == expected
