"""Machines with several nodes of memory: one process over all against one on each, and against interleaved memory."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.limits import parse_cpu_list
from ideepdoctor.proof.bench_run import LOAD_SECONDS, whole_steps
from ideepdoctor.proof.statistics import Interval, Series, ratio_interval
from ideepdoctor.proof.tune_measure import Subject
from ideepdoctor.proof.tune_space import DEFAULT
from ideepdoctor.proof.worker import Refusal, Worker, WorkerDied
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target

INTERLEAVED = ("numactl", "--interleave=all")
_BLOCKS = 5


@dataclass(frozen=True, slots=True)
class Nodes:
    """What was measured; ratios of images per second to those of one process over all nodes, None: not measured.

    Attributes:
        each: one process on each node, all at the same time.
        interleaved: one process over all with its memory interleaved.
        why: why something could not be measured.
    """

    each: Interval | None = None
    interleaved: Interval | None = None
    why: str = ""


def parse_cpus(text: str) -> tuple[int, ...]:
    """Numbers of a node's CPUs in the kernel's notation, ``0-3,8``; a node may have memory alone."""
    return parse_cpu_list(text) or ()


def measure_nodes(
    system: System,
    target: Target,
    subject: Subject,
    variables: Mapping[str, str],
    nodes: Sequence[Sequence[int]],
    *,
    interleave: bool = False,
) -> Nodes:
    """Measure the three in turn; the subject's first net alone.

    Args:
        system: starts the workers.
        target: where.
        subject: what they compute.
        variables: of the default setting.
        nodes: the CPUs of each node that are open to this process.
        interleave: whether numactl is there.
    """
    load = subject.loads(DEFAULT)[0]
    plain = {name: value for name, value in variables.items() if name != "OMP_NUM_THREADS"}

    def worker(which: Target, more: Mapping[str, str], cpus: Sequence[int] | None) -> Worker:
        started = Worker(system, which, "bench", {**plain, **more}, affinity=cpus)
        try:
            started.ask(load, timeout_seconds=LOAD_SECONDS)
            _step(started)
        except BaseException:
            started.close()
            raise
        return started

    try:
        with ExitStack() as stack, ThreadPoolExecutor(max_workers=len(nodes)) as pool:
            whole = stack.enter_context(worker(target, variables, None))
            each = [
                stack.enter_context(worker(target, {"OMP_NUM_THREADS": str(len(cpus))}, cpus)) for cpus in nodes if cpus
            ]
            mixed = None
            if interleave:
                mixed = stack.enter_context(worker(replace(target, emulator=INTERLEAVED), variables, None))
            rates: dict[str, list[float]] = {"whole": [], "each": [], "mixed": []}
            for _ in range(_BLOCKS):
                rates["whole"].append(1 / _step(whole))
                rates["each"].append(sum(1 / seconds for seconds in pool.map(_step, each)))
                if mixed is not None:
                    rates["mixed"].append(1 / _step(mixed))
    except (Refusal, WorkerDied, CouldNotCheck) as error:
        return Nodes(why=str(error))
    return Nodes(_ratio(rates["each"], rates["whole"]), _ratio(rates["mixed"], rates["whole"]))


def _step(worker: Worker) -> float:
    """Seconds of a step: the median of three."""
    answer = worker.ask({"do": "steps", "count": 3}, timeout_seconds=LOAD_SECONDS)
    return statistics.median(whole_steps(answer["forward"], answer["backward"]))


def _ratio(over: Sequence[float], under: Sequence[float]) -> Interval | None:
    blocks = range(len(over))
    return ratio_interval(Series(over, blocks), Series(under, blocks)) if over else None
