"""``--mkl auto``: a wheel with MKL and one with the library of our own, measured side by side; which one, and why."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from statistics import median
from typing import TYPE_CHECKING

from ideepdoctor.builder.mkl import AUTO, NONE, WHEEL
from ideepdoctor.model.bench import Row
from ideepdoctor.model.build import BuildFacts, BuiltWheel
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.proof.bench_bars import ratio
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.bench_run import Bench, Plan
from ideepdoctor.proof.noise import Monitor
from ideepdoctor.proof.statistics import Interval, geometric_mean
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target

if TYPE_CHECKING:
    from ideepdoctor.commands.session import Session
    from ideepdoctor.stacks.data import Lock

SLOWER = 1.02
"""Times the time of the other: what the library of our own may be slower, at the most that the interval allows."""
NETS = (("conv", 8), ("alexnet", 8))
MODELS = ("linear", "dropout")
BLOCKS = 7
SECONDS = 0.7
ROUNDS = 4
"""Each in new processes: where a process happens to lie in memory can cost it 10 % of a dropout, from its first step to
its last, which no number of steps of one process shows."""
_SEVERAL = 3
_FILE = "compare_nets.py"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One thing that both computed: the time without MKL over the time with it, or why there is none.

    Attributes:
        work: its name.
        ratio: of the times, below 1: faster without MKL; None: it was not measured.
        failed: how the one without MKL failed where the other did not; empty: it did not.
        rounds: the same ratio of each round alone.
    """

    work: str
    ratio: Interval | None
    failed: str = ""
    rounds: tuple[float, ...] = ()

    @property
    def interval(self) -> Interval | None:
        """What is known of the ratio: of three rounds and more their range, for processes differ more than steps do."""
        if self.ratio is None or len(self.rounds) < _SEVERAL:
            return self.ratio
        return Interval(min(self.rounds), median(self.rounds), max(self.rounds))

    @property
    def slower(self) -> bool:
        """Whether it is surely slower without MKL."""
        return self.interval is not None and self.interval.low > SLOWER


def choose(
    session: Session,
    wheels: Mapping[str, BuiltWheel],
    lock: Lock,
    python: str,
    tell: Tell,
    *,
    blocks: int = BLOCKS,
    seconds: float = SECONDS,
    source: PackageSource | None = None,
) -> tuple[str, str]:
    """Choose between wheels that were both proved right.

    Args:
        session: this run.
        wheels: by kind (``wheel``, ``none``); one that was not right is left out.
        lock: of the environments that they are measured in, as for ``verify``.
        python: interpreter to make these from.
        tell: told each step.
        blocks: turns of each; see ``bench``.
        seconds: length of a turn.
        source: where distributions come from, as for ``verify``.

    Returns:
        The kind, and why, in a sentence.

    Raises:
        ValueError: neither is there.
        CouldNotCheck: an environment cannot be made without the network.
        ApplyFailed: it could not be made.
    """
    alone = _only(wheels)
    if alone is not None:
        return alone
    from ideepdoctor.builder.verify import make_environment, workspace

    chainer = lock.requirement("chainer")
    if chainer is None:
        raise ValueError(f"{lock.stack} holds no Chainer")
    with workspace(session) as work:
        targets = {}
        for kind in (WHEEL, NONE):
            folder = f"{work}/{kind}"
            session.system.make_folder(folder)
            _, targets[kind] = make_environment(
                session, wheels[kind], lock, chainer.version, python, folder, tell, source
            )
        monitor, before = Monitor(), sum(os.times()[:4])
        found = measure(session.system, targets[WHEEL], targets[NONE], tell, blocks=blocks, seconds=seconds)
        return decide(found, monitor.verdict(sum(os.times()[:4]) - before).messages)


def _only(wheels: Mapping[str, BuiltWheel]) -> tuple[str, str] | None:
    """The choice where there is none to make."""
    if WHEEL in wheels and NONE in wheels:
        return None
    if WHEEL in wheels:
        return WHEEL, "the wheel without MKL was not right here"
    if NONE in wheels:
        return NONE, "the wheel with MKL was not right here"
    raise ValueError("neither wheel is there")


def measure(
    system: System,
    with_mkl: Target,
    without: Target,
    tell: Tell,
    *,
    blocks: int = BLOCKS,
    seconds: float = SECONDS,
    rounds: int = ROUNDS,
    nets: Sequence[tuple[str, int]] = NETS,
    models: Sequence[str] = MODELS,
) -> tuple[Measured, ...]:
    """Measure both in turn: nets of bench, and models of our own; again while that tells nothing.

    Args:
        system: starts the workers.
        with_mkl: where the wheel with MKL is.
        without: where the other is.
        tell: told of what happens.
        blocks: turns of each in a round.
        seconds: length of a turn.
        rounds: at most.
        nets: names and batches.
        models: functions of ``compare_nets.py``.
    """
    options = {"use": "auto", "to_intel64": True}
    specs = (
        EngineSpec(WHEEL, "Chainer + iDeep, with MKL", "ideep", with_mkl, options=options),
        EngineSpec(NONE, "Chainer + iDeep, without MKL", "ideep", without, options=options),
    )
    rows: dict[tuple[str, str], Row] = {}
    alone: dict[str, tuple[float, ...]] = {}
    found: tuple[Measured, ...] = ()
    with as_file(files("ideepdoctor") / "payload" / _FILE) as path:
        plans = [Plan(specs, ((net, batch),), blocks, seconds) for net, batch in nets]
        plans += [Plan(specs, ((name, 1),), blocks, seconds, model=(str(path), name)) for name in models]
        # One for all: what it knows of an engine (its matrix products) it does not measure again.
        bench = Bench(system, plans[0], tell)
        for _ in range(rounds):
            for plan in plans:
                bench.plan = plan
                here = plan.nets[0][0]
                fresh = {kind: row for (kind, work, _), row in bench.go().rows.items() if work == here}
                rows |= {(kind, here): _joined(rows.get((kind, here)), row) for kind, row in fresh.items()}
                if all(kind in fresh and fresh[kind].measured for kind in (WHEEL, NONE)):
                    alone[here] = (*alone.get(here, ()), ratio(fresh[NONE], fresh[WHEEL]).median)
            unused = bench.measured.unused
            works = [plan.nets[0][0] for plan in plans]
            compared = (_compared(work, rows.get((WHEEL, work)), rows.get((NONE, work)), unused) for work in works)
            found = tuple(replace(item, rounds=alone.get(item.work, ())) for item in compared)
            if settled(found):
                break
    return found


def _joined(before: Row | None, row: Row) -> Row:
    """The steps of two rounds as one row; one that failed stays failed."""
    if before is None or not before.measured or not row.measured:
        return row if before is None or before.measured else before
    start = max(before.blocks) + 1
    return replace(
        row,
        forward=before.forward + row.forward,
        backward=before.backward + row.backward,
        blocks=before.blocks + tuple(start + block for block in row.blocks),
    )


def _compared(work: str, base: Row | None, other: Row | None, unused: Sequence[str]) -> Measured:
    if base is None or other is None or not base.measured or WHEEL in unused:
        return Measured(work, None)
    if not other.measured or NONE in unused:
        return Measured(work, None, failed=other.why or "iDeep was not used")
    return Measured(work, ratio(other, base))


def settled(measured: Sequence[Measured]) -> bool:
    """Whether more of the same would hardly change the choice: something failed, or is surely slower, or nothing is."""
    ratios = [item.interval for item in measured if item.interval is not None]
    if not ratios or any(item.failed for item in measured):
        return True
    slower = [item for item in measured if item.slower]
    if slower:
        return all(not item.rounds or len(item.rounds) >= ROUNDS for item in slower)
    return not geometric_mean(ratios).low <= SLOWER < geometric_mean(ratios).high


def decide(measured: Sequence[Measured], disturbed: Sequence[str] = ()) -> tuple[str, str]:
    """The kind and the reason: without MKL where nothing tells that it is slower, and all together surely is not.

    Args:
        measured: what both computed.
        disturbed: what else went on in the machine meanwhile.
    """
    kind, reason = _decided(measured)
    return kind, "; ".join([reason, *disturbed])


def _decided(measured: Sequence[Measured]) -> tuple[str, str]:
    failed = next((item for item in measured if item.failed), None)
    if failed is not None:
        return WHEEL, f"without MKL {failed.work} failed: {failed.failed[:200]}"
    known = [(item.work, item.interval) for item in measured if item.interval is not None]
    if not known:
        return WHEEL, "nothing could be measured"
    names, mean = ", ".join(work for work, _ in known), geometric_mean([found for _, found in known])
    said = f"{mean.median:.2f} times the time of MKL's ({mean.low:.2f} to {mean.high:.2f}; {names})"
    slow = [f"{item.work} {item.interval.median:.2f}" for item in measured if item.interval and item.slower]
    if slow:
        return WHEEL, f"without MKL slower: {', '.join(slow)}; all in all {said}"
    if mean.high > SLOWER:
        return WHEEL, f"without MKL {'slower' if mean.low > 1 else 'perhaps slower'}: {said}"
    return NONE, f"without MKL right and {'faster' if mean.high < 1 else 'not slower'}: {said}"


def worth_trying(facts: Facts | BuildFacts) -> str:
    """One line for a person whose processor MKL was not made for, that ``--mkl auto`` is there; else empty."""
    if isinstance(facts, BuildFacts):
        vendor, request = facts.cpu_vendor, facts.request
        if request is not None and request.mkl in (NONE, AUTO):
            return ""
    else:
        vendor = facts.cpu.vendor
    if vendor in (None, "", "GenuineIntel"):
        return ""
    name = {"AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}.get(str(vendor), str(vendor))
    return (
        f"MKL is made for Intel's processors, this one is {name}'s: ideepdoctor build --mkl auto builds with it and "
        "without, and keeps what is faster here"
    )
