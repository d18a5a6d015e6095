"""Measure engines side by side: one process for each, blocks of steps in turn, whatever was measured kept."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.bench import Engine, Net, Row, Sgemm
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.statistics import median_interval
from ideepdoctor.proof.worker import Refusal, Worker, WorkerDied
from ideepdoctor.system import System

LOAD_SECONDS = 600.0
"""To import, to make a network and to take a first step."""
QUIET_SECONDS = 0.25
"""Between two engines: OpenMP's threads spin for 0.2 s after their last work (KMP_BLOCKTIME)."""
MOST_STEPS = 50
SGEMM_SIZES = (1024, 2048)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and how.

    Attributes:
        engines: in the order of the report.
        nets: name and batch of each.
        blocks: how often each engine has its turn at a net.
        seconds: length of a turn; at least one step is taken.
        warmup: steps before the first that counts.
        affinity: CPUs that workers stay on; None: all that are open to them.
        model: FILE and FUNCTION of the user's own model, which then is the only net.
    """

    engines: tuple[EngineSpec, ...]
    nets: tuple[tuple[str, int], ...]
    blocks: int = 5
    seconds: float = 1.0
    warmup: int = 2
    affinity: tuple[int, ...] | None = None
    model: tuple[str, str] | None = None


@dataclass(slots=True)
class Measured:
    """What is known so far; it is whole after each net, interrupted ones too."""

    engines: dict[str, Engine] = field(default_factory=dict)
    nets: list[Net] = field(default_factory=list)
    rows: dict[tuple[str, str, int], Row] = field(default_factory=dict)
    sgemm: list[Sgemm] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    """Engines of iDeep that did not use it."""


Told = Callable[[str], None]


class Bench:
    """One run.

    Args:
        system: starts the workers.
        plan: what to measure.
        told: told of what happens.
    """

    def __init__(self, system: System, plan: Plan, told: Told = lambda _text: None) -> None:
        self.system, self.plan, self.told = system, plan, told
        self.measured = Measured()

    def go(self) -> Measured:
        """Measure everything. What was measured so far is in ``measured`` if this is interrupted."""
        for net, batch in self.plan.nets:
            self._net(net, batch)
        return self.measured

    def _net(self, net: str, batch: int) -> None:
        turns: list[_Turn] = []
        try:
            for spec in self.plan.engines:
                self.told(f"{net}: loading {spec.label}")
                turn = self._begin(spec, net, batch)
                if turn is not None:
                    turns.append(turn)
            for block in range(self.plan.blocks):
                # Each block begins with another engine: no engine always follows the same one.
                first = block % len(turns) if turns else 0
                for turn in [*turns[first:], *turns[:first]]:
                    if turn.ended:
                        continue
                    self.told(f"{net}: block {block + 1} of {self.plan.blocks}, {turn.spec.label}")
                    self._take(turn, block)
        finally:
            for turn in turns:
                turn.worker.close()
                # Here and not after each turn: the intervals take time that the next engine would see.
                if turn.forward and not turn.ended:
                    self.measured.rows[turn.key] = _row_of(turn, self.measured.nets)

    def _begin(self, spec: EngineSpec, net: str, batch: int) -> _Turn | None:
        """Start a worker and have it load the net; None where it could not, which is a row too."""
        key = (spec.id, net, batch)
        if spec.forward_only and self.plan.model is not None:
            self.measured.rows[key] = Row(spec.id, net, batch, "skipped", "it runs the built-in nets alone")
            return None
        request = {**spec.options, "do": "load", "net": net, "batch": batch}
        if self.plan.model is not None:
            request["model"] = list(self.plan.model)
        worker = None
        try:
            affinity = self.plan.affinity
            worker = Worker(self.system, spec.target, spec.payload, spec.variables, bare=spec.bare, affinity=affinity)
            if spec.id not in self.measured.engines:
                self._products(spec, worker)
            answer = worker.ask(request, timeout_seconds=LOAD_SECONDS)
            self._note(spec, net, batch, answer)
            step = self._warm(worker)
        except (Refusal, WorkerDied, CouldNotCheck) as error:
            if worker is not None:
                worker.close()
            self.measured.rows[key] = Row(spec.id, net, int(batch), "failed", str(error))
            return None
        except BaseException:
            if worker is not None:
                worker.close()
            raise
        return _Turn(spec, worker, net, batch, steps_in(self.plan.seconds, step))

    def _warm(self, worker: Worker) -> float:
        """Take the steps that do not count; return the seconds of the last."""
        answer = worker.ask({"do": "steps", "count": max(1, self.plan.warmup - 1)}, timeout_seconds=LOAD_SECONDS)
        return whole_steps(answer["forward"], answer["backward"])[-1]

    def _products(self, spec: EngineSpec, worker: Worker) -> None:
        """The ceiling: matrix products of the libraries that this engine brings."""
        try:
            answer = worker.ask({"do": "sgemm", "sizes": list(SGEMM_SIZES)}, timeout_seconds=LOAD_SECONDS)
        except Refusal:
            return
        best: dict[str, Sgemm] = {}
        for item in answer["sgemm"]:
            name, found = f"{item['library']}, {spec.id}", float(item["gflops"])
            if name not in best or found > best[name].gflops:
                best[name] = Sgemm(name, found, int(item["size"]), answer.get("threads"), _variables(spec, answer))
        self.measured.sgemm += best.values()

    def _note(self, spec: EngineSpec, net: str, batch: int, answer: Mapping[str, Any]) -> None:
        """Remember what the engine and the net turned out to be."""
        versions = {str(name): str(value) for name, value in dict(answer["versions"]).items()}
        self.measured.engines[spec.id] = Engine(
            id=spec.id,
            label=label_of(spec, versions),
            kind=spec.kind,
            python=str(answer.get("python", "")),
            versions=versions,
            variables=_variables(spec, answer),
            threads=answer["threads"],
            guard=bool(answer.get("guard", False)),
            forward_only=spec.forward_only,
        )
        if spec.kind == "ideep" and answer.get("used") is False and spec.id not in self.measured.unused:
            self.measured.unused.append(spec.id)
        if not any(item.key == (net, batch) for item in self.measured.nets):
            forward, backward = answer.get("flops") or (None, None)
            self.measured.nets.append(Net(net, batch, forward, backward, answer.get("parameters")))

    def _take(self, turn: _Turn, block: int) -> None:
        """One turn of an engine."""
        time.sleep(QUIET_SECONDS)
        try:
            limit = LOAD_SECONDS + 10 * self.plan.seconds
            answer = turn.worker.ask({"do": "steps", "count": turn.count}, timeout_seconds=limit)
        except (Refusal, WorkerDied) as error:
            turn.ended = True
            why = f"after {len(turn.forward)} steps: {error}"
            self.measured.rows[turn.key] = Row(*turn.key, "failed", why)
            return
        turn.forward += [float(value) for value in answer["forward"]]
        turn.backward += [float(value) for value in answer["backward"]]
        turn.blocks += [block] * len(answer["forward"])


@dataclass(slots=True)
class _Turn:
    """An engine at a net: its worker, how many steps a turn has, and the times so far."""

    spec: EngineSpec
    worker: Worker
    net: str
    batch: int
    count: int
    forward: list[float] = field(default_factory=list)
    backward: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    ended: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        return self.spec.id, self.net, self.batch


def _variables(spec: EngineSpec, answer: Mapping[str, Any]) -> dict[str, str]:
    """The variables in force, as the worker tells; else those that it was started with."""
    told = answer.get("variables")
    found = spec.variables if told is None else {str(name): str(value) for name, value in told.items()}
    shown = {name: value for name, value in found.items() if value is not None}
    if "LD_PRELOAD" in shown:
        # A result file is for others, too: folders may have a user's name.
        names = [path.rpartition("/")[2] for path in shown["LD_PRELOAD"].replace(":", " ").split()]
        shown["LD_PRELOAD"] = ":".join(names)
    return shown


def whole_steps(forward: Sequence[float], backward: Sequence[float]) -> list[float]:
    """Seconds of each step, both passes together; of the forward pass where there is no other."""
    return [one + other for one, other in zip(forward, backward or [0.0] * len(forward), strict=True)]


def steps_in(seconds: float, step: float) -> int:
    """How many steps of this length fit into a turn; one at least."""
    return max(1, min(MOST_STEPS, round(seconds / max(step, 1e-6))))


def _row_of(turn: _Turn, nets: Sequence[Net]) -> Row:
    """What the steps so far come to."""
    interval = median_interval(whole_steps(turn.forward, turn.backward), turn.blocks)
    net = next((item for item in nets if item.key == (turn.net, turn.batch)), Net(turn.net, turn.batch))
    flops = net.flops_forward
    if flops is not None and turn.backward and net.flops_backward is not None:
        flops += net.flops_backward
    return Row(
        *turn.key,
        status="measured",
        forward=tuple(turn.forward),
        backward=tuple(turn.backward),
        blocks=tuple(turn.blocks),
        median=interval.median,
        low=interval.low,
        high=interval.high,
        forward_median=statistics.median(turn.forward),
        backward_median=statistics.median(turn.backward) if turn.backward else None,
        images_per_second=turn.batch / interval.median,
        gflops=None if flops is None else flops / interval.median / 1e9,
    )


_HOW = re.compile(r"( \([^()]*\)|, ).*$")
_NAMES = {"chainer": "Chainer", "ideep4py": "iDeep", "numpy": "NumPy", "torch": "PyTorch", "opencv": "OpenCV"}


def label_of(spec: EngineSpec, versions: Mapping[str, str]) -> str:
    """The engine's name with the versions that matter to it; what sets it apart comes last."""
    if spec.kind == "ideep":
        parts = [f"Chainer {versions.get('chainer', '')}", f"iDeep {versions.get('ideep4py', '')}"]
    elif spec.kind == "numpy":
        parts = [f"Chainer {versions.get('chainer', '')}", f"NumPy {versions.get('numpy', '')}"]
    else:
        name = next((name for name in versions if name == spec.kind), None)
        if name is None:
            return spec.label
        parts = [f"{_NAMES.get(name, name)} {versions[name]}"]
    # What follows the versions in the label says how: as installed, tuned, channels last, (built here, v3).
    how = _HOW.search(spec.label)
    return " + ".join(part.strip() for part in parts) + (how[0] if how else "")
