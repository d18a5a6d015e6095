"""``tune``: the fastest setting that is also right, for a net or the user's own model."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ideepdoctor import __version__
from ideepdoctor.commands.session import Session, TargetOptions, carry_out, examine, find_target
from ideepdoctor.commands.tune_environ import TunedEnviron
from ideepdoctor.commands.tune_report import as_data, lines, proposals, sentence
from ideepdoctor.errors import CouldNotCheck, Interrupted, UsageError
from ideepdoctor.model.bench import Noise
from ideepdoctor.model.facts import Facts, Profile
from ideepdoctor.model.plan import Plan, Step
from ideepdoctor.model.report import Report
from ideepdoctor.proof.tune_certify import Certifier
from ideepdoctor.proof.tune_data import Choice, Effort
from ideepdoctor.proof.tune_measure import Bench, Subject
from ideepdoctor.proof.tune_nodes import measure_nodes, parse_cpus
from ideepdoctor.proof.tune_search import Search
from ideepdoctor.proof.tune_space import ALLOCATORS, DEFAULT, Setting, dimensions, quick_dimensions
from ideepdoctor.targets.target import Target

BATCH = 8
BUDGET = "5m"
_MEASURING = 0.7
"""Part of the budget that measuring may take; the rest is for certifying."""
_QUICK_MEASURING = 0.7
_LEAST_CERTIFY_SECONDS = 7.0
_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/lib64",
    "/usr/local/lib",
    "/usr/lib",
)
_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What ``tune`` was asked.

    Attributes:
        target: which Python.
        nets: names; empty: AlexNet.
        batch: images in a step; None: 8.
        model: ``FILE:FUNCTION``: the user's own model instead of nets.
        budget: length of time in which all is to be done.
        dry_run: write nothing.
    """

    target: TargetOptions
    nets: tuple[str, ...] = ()
    batch: int | None = None
    model: str | None = None
    budget: str = BUDGET
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a search came to.

    Attributes:
        facts: of the target.
        subject: what was made fast.
        choice: the outcome.
        noise: what else the machine did meanwhile.
        seconds: that it took.
        budget: that it had.
    """

    facts: Facts
    subject: Subject
    choice: Choice
    noise: Noise
    seconds: float
    budget: float


def tune(session: Session, options: TuneOptions) -> Report:
    """Search, certify, write the result into the environment.

    Raises:
        UsageError: a net, a model or a length of time that is none; a target that is no Python or no environment.
        CouldNotCheck: the target does not answer, iDeep is not used there, or the net does not fit in memory.
        Interrupted: by the user.
        ApplyFailed, NeedsAttention, Busy: see treatment.apply.
    """
    from ideepdoctor.commands.session import model_place
    from ideepdoctor.facts.collect import BARE
    from ideepdoctor.proof.bench_plan import nets_from
    from ideepdoctor.proof.certify_order import seconds_of
    from ideepdoctor.treatment.plan import refuse_where_managed

    budget = seconds_of(options.budget)
    place = None if options.model is None else model_place(session, options.model)
    subject = (
        Subject((), 0, place) if place else Subject(nets_from(options.nets or ("alexnet",)), options.batch or BATCH)
    )
    target = find_target(session, options.target)
    if target.transport or target.emulator:
        raise UsageError("tune measures this machine alone", hint="leave out --target and --emulator")
    facts = examine(session, target, BARE)
    if not options.dry_run:
        _refuse_unless_own(facts)
        refuse_where_managed(facts)
    tuned = search(session, target, facts, subject, budget)
    steps = steps_for(tuned)
    extra = {"tune": as_data(*told(tuned), tuned.seconds, tuned.budget), "applied": False}
    body = lines(*told(tuned)) + _proposals(session, target, tuned)
    if not steps:
        return Report("tune", facts=facts, body=body, extra={**extra, "verdict": sentence(*told(tuned))})
    plan = Plan(f"tune {facts.python.prefix} for {subject.text}", steps)
    found = Report("tune", facts=facts, body=body, plan=plan, extra={**extra, "verdict": sentence(*told(tuned))})
    if options.dry_run:
        return replace(found, extra={**found.extra, "next": ["the same without --dry-run writes it"]})
    try:
        agreed = session.agrees(found)
    except UsageError as error:  # what was measured is worth more than a question that nobody answers
        return replace(found, extra={**found.extra, "next": [f"not written: {error.message}; again with --yes"]})
    if not agreed:
        return replace(found, extra={**found.extra, "next": ["nothing was changed"]})
    journal = carry_out(session, plan)
    undo = {"applied": True, "journal": journal, "next": [f"take it back: ideepdoctor undo {journal}"]}
    return replace(found, plan=None, extra={**found.extra, **undo})


def search(
    session: Session, target: Target, facts: Facts, subject: Subject, budget: float, *, quick: bool = False
) -> Tuned:
    """Search the settings of a target for the fastest that is right.

    Args:
        session: this run.
        target: where.
        facts: of it.
        subject: what is to be fast.
        budget: seconds for all of it.
        quick: MKL's kind of processor and threads alone, few blocks.

    Raises:
        CouldNotCheck: the default could not be measured.
        Interrupted: by the user.
    """
    from ideepdoctor.proof.noise import Monitor
    from ideepdoctor.targets.cache import cache_folder
    from ideepdoctor.treatment.state import state_folder

    started, monitor, before = time.monotonic(), Monitor(), sum(os.times()[:4])
    environ = TunedEnviron(session.environ, facts)
    bench = Bench(session.system, target, subject, environ.variables, 0.12 if quick else 0.5)
    bench.keep = _keep(session, target, facts, subject)
    identity = {"python": facts.python.executable, "packages": _versions(facts), "cpu": facts.cpu.model_name}
    folders = cache_folder(session.environ), state_folder(session.environ)
    certifier = Certifier(session.system, target, subject, identity, *folders)

    def left() -> float:
        return started + (_QUICK_MEASURING if quick else _MEASURING) * budget - time.monotonic()

    def certified(setting: Setting) -> str:
        bench.close()
        rest = max(_LEAST_CERTIFY_SECONDS, started + budget - time.monotonic())
        return certifier.wrong(environ.whole(setting), setting.to_intel64, rest)

    space = quick_dimensions(facts) if quick else dimensions(facts, _allocators(), model=subject.model is not None)
    effort = Effort(blocks=6, last=0, pairs=False) if quick else Effort()
    run = Search(
        space, bench.measure, certified, left, effort, lambda text: session.progress.step(1, 1, f"tune: {text}")
    )
    try:
        choice = run.go()
    except KeyboardInterrupt as error:
        raise Interrupted("interrupted; nothing was written", hint="a shorter search: --budget 60s") from error
    finally:
        bench.close()
    if DEFAULT in run.failed:
        raise CouldNotCheck(f"{subject.text} could not be measured: {run.failed[DEFAULT]}", hint="ideepdoctor diagnose")
    noise = monitor.verdict(sum(os.times()[:4]) - before)
    return Tuned(facts, subject, choice, noise, time.monotonic() - started, budget)


def steps_for(tuned: Tuned) -> tuple[Step, ...]:
    """The steps that leave the result in the environment; none where the default stays.

    A profile that is there already is replaced by one that changes nothing, where it is certain that nothing is faster.
    """
    from ideepdoctor.commands.variables import holds
    from ideepdoctor.treatment.leftover import startup_steps
    from ideepdoctor.treatment.profile import profile_step

    facts, setting = tuned.facts, tuned.choice.setting
    kept = setting == DEFAULT and (facts.profile is None or not tuned.choice.telling)
    profile = profile_of(tuned)
    if kept or profile is None:
        return ()
    after = replace(facts, profile=profile)
    return tuple(step for step in (profile_step(profile), *startup_steps(after)) if not holds(step))


def told(tuned: Tuned) -> tuple[str, Choice, Noise]:
    """What the functions of ``tune_report`` want to know."""
    return tuned.subject.text, tuned.choice, tuned.noise


def _proposals(session: Session, target: Target, tuned: Tuned) -> tuple[str, ...]:
    """One process for each node of memory, measured, where there are several nodes."""
    allowed = set(tuned.facts.limits.affinity_cpus or ())
    nodes = []
    for path in sorted(_NODES.glob("node[0-9]*/cpulist")):
        cpus = [cpu for cpu in parse_cpus(path.read_text("ascii")) if cpu in allowed]
        nodes += [cpus] if cpus else []
    if len(nodes) < 2:
        return ()
    session.progress.step(1, 1, "tune: one process on each node of memory")
    variables = TunedEnviron(session.environ, tuned.facts).variables(DEFAULT)
    there = shutil.which("numactl") is not None
    found = measure_nodes(session.system, target, tuned.subject, variables, nodes, interleave=there)
    return proposals(tuned.subject.text, nodes, found)


def profile_of(tuned: Tuned) -> Profile | None:
    """The result as a profile; None where the target's site-packages folder is not known."""
    from ideepdoctor.treatment.profile import PROFILE_FILE, open_cpus

    facts, choice = tuned.facts, tuned.choice
    folder = facts.python.purelib or facts.python.platlib
    if folder is None:
        return None
    layouts = choice.setting.option("layouts")
    return Profile(
        f"{folder.rstrip('/')}/{PROFILE_FILE}",
        cpu=facts.cpu.model_name or "",
        cpus=open_cpus(facts) or 0,
        subject=tuned.subject.text,
        variables=choice.setting.tuned(),
        to_intel64=None if layouts is None else layouts.to_intel64,
        ratio=None if choice.gain is None else round(choice.gain.median, 4),
        ratio_low=None if choice.gain is None else round(choice.gain.low, 4),
        ratio_high=None if choice.gain is None else round(choice.gain.high, 4),
        date=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        tool_version=__version__,
    )


def _refuse_unless_own(facts: Facts) -> None:
    if facts.python.kind not in ("venv", "conda"):
        raise UsageError(
            f"{facts.python.executable} is no environment of its own: tune would have nowhere to write",
            hint="--dry-run measures all the same; an environment: ideepdoctor setup",
        )


def _keep(session: Session, target: Target, facts: Facts, subject: Subject) -> int:
    """How many settings may be held at once. Raises NoRoom where the nets do not fit in memory twice."""
    from ideepdoctor.proof.bench_engines import own_engines
    from ideepdoctor.proof.bench_plan import choose_batch, free_bytes, needed, needs_of

    if subject.model is not None:
        return 3  # what it takes is not known
    engine, free = own_engines(target)[1], free_bytes(facts.limits)
    needs = needs_of(session.system, target, subject.nets, [subject.batch])
    choose_batch(needs, subject.nets, [engine, engine], free, subject.batch)
    if free is None:
        return 8
    return max(2, min(8, int(0.8 * free / sum(needed(item, [engine]) for item in needs.values()))))


def _allocators() -> tuple[str, ...]:
    """Other allocators in the folders where the loader looks."""
    found: dict[str, str] = {}
    for folder in _LIBRARIES:
        for name in ALLOCATORS:
            for path in sorted(Path(folder).glob(f"{name}.so*")):
                found.setdefault(name, str(path))
    return tuple(found.values())


def _versions(facts: Facts) -> dict[str, str | None]:
    return {name: getattr(facts.package(name), "version", None) for name in ("chainer", "ideep4py", "numpy")}
