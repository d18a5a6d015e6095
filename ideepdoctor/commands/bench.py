"""``bench``: networks forward and backward, engines side by side, an honest comparison."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.commands.bench_report import report_of
from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, model_place
from ideepdoctor.errors import CouldNotCheck, Interrupted, UsageError
from ideepdoctor.model.bench import Ceiling, Layer, Method, Reorder, Result, Scaling, Tool
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.report import Report
from ideepdoctor.proof.bench_engines import EngineSpec, own_engines
from ideepdoctor.proof.bench_history import Store, parse_percent, verdict
from ideepdoctor.proof.bench_layers import record_layers
from ideepdoctor.proof.bench_machine import machine_of, theoretical, widths
from ideepdoctor.proof.bench_plan import BATCHES, choose_batch, free_bytes, needs_of, nets_from
from ideepdoctor.proof.bench_run import Bench, Measured, Plan
from ideepdoctor.proof.noise import Monitor
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.profile import open_cpus
from ideepdoctor.treatment.state import state_folder

OWN_MODEL = "model"
"""Name of the net that a user's own model is."""
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What decides how many threads iDeep and the BLAS of a NumPy use."""


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What ``bench`` was asked.

    Attributes:
        target: which Python.
        nets: names; empty: the usual ones.
        batch: images in a step; None: the largest of 128, 64... that fits in memory.
        engines: ids of the environment's own engines to take; empty: all three.
        peers: ``NAME`` or ``NAME=PYTHON`` of others to measure beside them.
        model: ``FILE:FUNCTION``: measure that model instead of the nets.
        blocks: turns of each engine at each net.
        seconds: length of a turn.
        name: label of this machine in charts; None: its processor's name.
        details: also where the time of a step goes, and other numbers of threads.
        baseline: id or file of the run to compare with; None: the last one here.
        limit: ``10%``: end with 1 where an engine is slower by more than that; None: do not compare.
        chart: file to draw the result into (.html, .svg, .png); None: none.
        keep: put the result into the history.
    """

    target: TargetOptions
    nets: tuple[str, ...] = ()
    batch: int | None = None
    engines: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    model: str | None = None
    blocks: int = 5
    seconds: float = 1.0
    name: str | None = None
    details: bool = True
    baseline: str | None = None
    limit: str | None = None
    chart: str | None = None
    keep: bool = True


def bench(session: Session, options: BenchOptions) -> Report:
    """Measure, keep, compare.

    Raises:
        UsageError: a net, an engine, a model, a peer, a baseline or a limit that is none; a target that is no Python.
        CouldNotCheck: the target does not answer, nothing could be measured, or (NoRoom) a net does not fit in memory.
        Interrupted: by the user; what was measured is in the history.
    """
    limit = None if options.limit is None else parse_percent(options.limit)
    nets = (OWN_MODEL,) if options.model is not None else nets_from(options.nets)
    place = None if options.model is None else model_place(session, options.model)
    if options.chart is not None:
        from ideepdoctor.commands.bench_files import check_chart

        check_chart(options.chart)
    target = find_target(session, options.target)
    facts = _look(session, target)
    store = Store(session.system, state_folder(session.environ))
    specs = _specs(session, target, facts, options)
    batch = 1 if place else _batch(session, target, facts, specs, nets, options.batch)
    cpus = facts.limits.affinity_cpus
    plan = Plan(specs, tuple((net, batch) for net in nets), options.blocks, options.seconds, affinity=cpus, model=place)
    run = _Run(session, facts, plan, options)
    try:
        run.measure()
    except KeyboardInterrupt as error:
        raise _interrupted(run.result(complete=False), store, keep=options.keep) from error
    result = run.result(complete=True)
    if not any(row.measured for row in result.results):
        why = next((f"{row.engine}: {row.why}" for row in result.results if row.why), "no engine took a step")
        raise CouldNotCheck(f"nothing was measured; {why}", hint="ideepdoctor diagnose says what is wrong")
    baseline = {} if limit is None else store.baseline(result, options.baseline)
    if options.keep:
        store.add(result)
    if options.chart is not None:
        from ideepdoctor.commands.bench_files import draw

        draw(session, [result], options.chart)
    return report_of(result, facts, () if limit is None else verdict(result, baseline, limit), limit, run.unused())


def _look(session: Session, target: Target) -> Facts:
    from ideepdoctor.facts.collect import Scope

    return examine(session, target, Scope(interpreters=False))


def _specs(session: Session, target: Target, facts: Facts, options: BenchOptions) -> tuple[EngineSpec, ...]:
    """The engines to measure. Raises UsageError."""
    own = own_engines(target)
    known = [spec.id for spec in own]
    unknown = [word for word in options.engines if word not in known]
    if unknown:
        raise UsageError(
            f"there is no engine {unknown[0]}", hint=f"--engine takes {', '.join(known)}; others are peers: --peer"
        )
    chosen = [spec for spec in own if not options.engines or spec.id in options.engines]
    if options.peers:
        from ideepdoctor.proof.peers import engines

        chosen += engines(session, options.peers, ".".join(facts.python.version.split(".")[:2]))
    return tuple(chosen)


def _batch(
    session: Session,
    target: Target,
    facts: Facts,
    specs: Sequence[EngineSpec],
    nets: Sequence[str],
    asked: int | None,
) -> int:
    batches = sorted({*BATCHES, *([] if asked is None else [asked])}, reverse=True)
    needs = needs_of(session.system, target, nets, batches)
    return choose_batch(needs, nets, specs, free_bytes(facts.limits), asked)


class _Run:
    """A run and what surrounds it: noise, ceiling, details."""

    def __init__(self, session: Session, facts: Facts, plan: Plan, options: BenchOptions) -> None:
        self._session, self._facts, self._plan, self._options = session, facts, plan, options
        self._bench = Bench(session.system, plan, self._told)
        self._started, self._begun = datetime.now(UTC), time.monotonic()
        self._monitor, self._before = Monitor(), sum(os.times()[:4])
        self._noise: Any = None
        self._layers: list[Layer] = []
        self._reorders: list[Reorder] = []
        self._scaling: list[Scaling] = []

    def _told(self, text: str) -> None:
        self._monitor.sample()
        self._session.progress.detail(text)

    def measure(self) -> None:
        """Everything, the comparison first: an interrupted run has that."""
        measured = self._bench.go()
        self._noise = self._monitor.verdict(self._ours(), widths(measured.rows.values()))
        if self._options.details and self._plan.model is None:
            self._record_layers()
            self._scale()

    def _ours(self) -> float:
        """Processor time of the doctor and of the workers that have ended, in seconds."""
        return sum(os.times()[:4]) - self._before

    def unused(self) -> tuple[str, ...]:
        """Engines of iDeep that did not use it."""
        return tuple(self._bench.measured.unused)

    def _best(self) -> EngineSpec | None:
        """The engine of iDeep to look into: the tuned one where it is measured."""
        return next((s for name in ("tuned", "ideep") for s in self._plan.engines if s.id == name), None)

    def _record_layers(self) -> None:
        spec = self._best()
        for net, batch in self._plan.nets if spec is not None else ():
            row = self._bench.measured.rows.get((spec.id, net, batch)) if spec is not None else None
            if spec is None or row is None or not row.measured:
                continue
            self._told(f"{net}: where the time goes")
            layers, reorder = record_layers(self._session.system, spec, net, batch, self._plan.affinity)
            self._layers += layers
            self._reorders += [] if reorder is None else [reorder]

    def _scale(self) -> None:
        """The first net with 1, 2, 4... threads: iDeep, and NumPy, which more threads may make slower."""
        best, cpus = self._best(), open_cpus(self._facts)
        if not cpus or cpus < 2:
            return
        counts = [1 << power for power in range(cpus.bit_length()) if 1 << power < cpus] + [cpus]
        # No more of them at a time than there were engines: their nets fit in memory together.
        some = max(2, len(self._plan.engines))
        for spec in self._plan.engines:
            if spec is not best and spec.kind != "numpy":
                continue
            for start in range(0, len(counts), some):
                self._scale_one(spec, counts[start : start + some])

    def _scale_one(self, spec: EngineSpec, counts: Sequence[int]) -> None:
        threads = {f"{spec.id} with {count}": count for count in counts}
        specs = tuple(
            replace(
                spec,
                id=name,
                label=f"{spec.label}, {count} threads",
                variables={**spec.variables, **dict.fromkeys(THREADS, str(count))},
            )
            for name, count in threads.items()
        )
        plan = replace(self._plan, engines=specs, nets=self._plan.nets[:1], blocks=3)
        for row in Bench(self._session.system, plan, self._told).go().rows.values():
            if row.measured and row.median is not None:
                count = threads[row.engine]
                self._scaling.append(Scaling(spec.id, row.net, row.batch, count, row.median, row.low, row.high))

    def result(self, *, complete: bool) -> Result:
        """What is known by now."""
        measured, facts = self._bench.measured, self._facts
        noise = self._noise or self._monitor.verdict(self._ours(), widths(measured.rows.values()))
        best = max((item.gflops for item in measured.sgemm), default=None)
        ceiling = Ceiling(tuple(measured.sgemm), best, theoretical(facts.cpu, open_cpus(self._facts)))
        rows = [
            replace(row, of_ceiling=None if row.gflops is None or not best else row.gflops / best)
            for row in _in_order(measured, self._plan)
        ]
        return Result(
            id=f"{self._started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}",
            started=f"{self._started:%Y-%m-%dT%H:%M:%SZ}",
            machine=machine_of(facts, open_cpus(self._facts), self._options.name),
            tool=Tool(version=__version__),
            seconds=round(time.monotonic() - self._begun, 1),
            complete=complete,
            noise=noise,
            ceiling=ceiling,
            method=Method(self._plan.warmup, self._plan.blocks, tuple(self._plan.affinity or ()), self._plan.seconds),
            engines=tuple(measured.engines[spec.id] for spec in self._plan.engines if spec.id in measured.engines),
            nets=tuple(measured.nets),
            results=tuple(rows),
            layers=tuple(self._layers),
            reorders=tuple(self._reorders),
            scaling=tuple(self._scaling),
        )


def _in_order(measured: Measured, plan: Plan) -> list[Any]:
    keys = [(spec.id, net) for net, _ in plan.nets for spec in plan.engines]
    return [row for key in keys for name, row in measured.rows.items() if name[:2] == key]


def _interrupted(result: Result, store: Store, *, keep: bool) -> Interrupted:
    done = sum(1 for row in result.results if row.measured)
    if not done or not keep:
        return Interrupted("interrupted before anything was measured" if not done else "interrupted; nothing is kept")
    store.add(result)
    return Interrupted(
        f"interrupted; what was measured by then is kept as {result.id}",
        hint=f"ideepdoctor bench history {result.id} shows it",
    )
