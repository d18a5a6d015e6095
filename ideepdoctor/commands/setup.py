"""``setup``: from an unprepared machine to a Chainer that uses iDeep, with proof."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ideepdoctor.commands.fix import DRY_RUN, apply_and_check
from ideepdoctor.commands.session import Session, TargetOptions, carry_out, examine, find_target, judge_all
from ideepdoctor.commands.setup_stack import asked_abis, chosen, differences, stack_data
from ideepdoctor.commands.smoke import prove
from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.commands.verdict import verdict
from ideepdoctor.errors import DoctorError, UsageError
from ideepdoctor.model.findings import Severity
from ideepdoctor.model.plan import PackageSource, with_source
from ideepdoctor.model.report import Report
from ideepdoctor.targets.target import Target

if TYPE_CHECKING:
    from ideepdoctor.commands.setup_base import Base
    from ideepdoctor.stacks.catalog import Lock, Stack

DEFAULT_ENV = ".ideep"
_HOST_FAMILIES = ("IDP1", "IDP201")


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """What ``setup`` was asked.

    Attributes:
        target: the interpreter to make the environment from (or, in place, the environment).
        env: folder of the new environment; None: ./.ideep.
        in_place: change the existing environment ``target`` instead of making one.
        stack: name of a stack; None: the newest right one.
        chainer: version of Chainer that the stack must have.
        ideep4py: version of ideep4py that the stack must have.
        dry_run: show the plan and stop.
        guard: False: leave the guard out, for good; None: as was decided before, which is to have it.
        tune: look for a faster setting at the end, which takes up to 20 seconds.
        source: where distributions come from.
        build: build ideep4py for the interpreter, where no wheel of the wheelhouse fits it.
        get_python: ``conda`` or ``pyenv``: get an older Python with it.
    """

    target: TargetOptions
    env: str | None = None
    in_place: bool = False
    stack: str | None = None
    chainer: str | None = None
    ideep4py: str | None = None
    dry_run: bool = False
    guard: bool | None = None
    tune: bool = True
    source: SourceOptions = field(default_factory=SourceOptions)
    build: bool = False
    get_python: str | None = None


def setup(session: Session, options: SetupOptions) -> Report:
    """Make (or, in place, mend) an environment in which Chainer uses iDeep, and prove it.

    Raises:
        UsageError: no such interpreter, stack or version; the folder holds something else.
        NotPossibleHere: nothing on this machine can hold iDeep, or the stack cannot be right on it.
        ApplyFailed, NeedsAttention, CouldNotCheck, Busy: see treatment.apply.
    """
    _refuse_contradictions(options)
    if options.in_place:
        return _in_place(session, options)
    env_dir = Path(session.cwd) / Path(options.env or DEFAULT_ENV).expanduser()
    if (env_dir / "bin" / "python").exists():
        return _again(session, options, env_dir)
    return _new(session, options, env_dir)


def _refuse_contradictions(options: SetupOptions) -> None:
    """Raise UsageError where options exclude each other."""
    given = {"--in-place": options.in_place, "--build": options.build, "--get-python": options.get_python}
    both = [name for name, value in given.items() if value]
    if len(both) > 1:
        raise UsageError(f"{' and '.join(both)} exclude each other", hint="leave one of them out")
    if options.build and options.target.emulator:
        raise UsageError("what is built is built for this machine, and --emulator plays another", hint="leave it out")


def _new(session: Session, options: SetupOptions, env_dir: Path) -> Report:
    from ideepdoctor.commands.setup_base import find_base, with_way_back

    source = package_source(options.source, session.cwd)
    base = find_base(session, options, asked_abis(options), source.find_links)
    if isinstance(base, Report):
        return base
    try:
        return _made(session, options, env_dir, base, source)
    except DoctorError as error:
        raise with_way_back(error, base.journal) from error.__cause__


def _made(session: Session, options: SetupOptions, env_dir: Path, base: Base, source: PackageSource) -> Report:
    from ideepdoctor.commands.setup_built import from_folder, whole_lock
    from ideepdoctor.facts.collect import BARE
    from ideepdoctor.rules.compat import built_version
    from ideepdoctor.treatment.plan import setup_plan

    who = base.interpreter
    origin = Target(who.path, emulator=options.target.emulator, reason=f"to make the environment from: {who.source}")
    facts = examine(session, origin, BARE)
    stack, lock = chosen(options, who.abi, facts, built=base.built)
    planned = built_version(stack.ideep4py) if base.built else stack.ideep4py
    facts = replace(facts, planned_ideep4py=planned)
    judgement = judge_all(facts, _host_codes())
    if any(item.severity is Severity.ERROR for item in judgement.findings):
        return Report("setup", facts=facts, judgement=judgement, extra={"verdict": "nothing was changed"})
    ready = whole_lock(session, options, base, facts, stack, lock, source)
    if isinstance(ready, Report):
        return ready
    lock = ready.lock
    site_packages = str(env_dir / "lib" / f"python{facts.python.minor}" / "site-packages")
    plan = setup_plan(facts, stack, lock, str(env_dir), who.path, site_packages, guard=options.guard is not False)
    plan = from_folder(with_source(plan, source), ready.folder)
    extra = {"stack": stack_data(stack, lock), **ready.extra}
    if options.dry_run:
        return Report("setup", facts=facts, plan=plan, body=ready.body, extra={**extra, **DRY_RUN})
    journal = carry_out(session, plan)
    made = Target(str(env_dir / "bin" / "python"), emulator=options.target.emulator, reason="made by this run")
    report = _proved(session, made, env_dir, journal, stack, lock)
    steps = list(report.extra["next"])
    if base.journal is not None:
        steps.append(f"take the Python that was got back, too: ideepdoctor undo {base.journal}")
    report = replace(report, body=ready.body, extra={**report.extra, **extra, "next": steps})
    return _tuned(session, options, report, ask=False)


def _tuned(session: Session, options: SetupOptions, report: Report, *, ask: bool) -> Report:
    """The report with a quick tune, where one is wanted."""
    if not options.tune:
        return report
    from ideepdoctor.commands.tune_quick import with_quick_tune

    return with_quick_tune(session, report, ask=ask)


def _again(session: Session, options: SetupOptions, env_dir: Path) -> Report:
    """The environment is there already: prove it again if it is what was asked for, else refuse."""
    from ideepdoctor.facts.collect import BARE
    from ideepdoctor.targets.asked import minor_asked

    target = Target(str(env_dir / "bin" / "python"), emulator=options.target.emulator, reason="set up before")
    # Only versions are compared here; the proof examines everything.
    facts = examine(session, target, BARE)
    minor = None if options.target.python is None else minor_asked(options.target.python)
    if minor is not None and not f"{facts.python.minor}.".startswith(f"{minor}."):
        raise UsageError(
            f"{env_dir} exists and has Python {facts.python.minor}, not {minor}",
            hint="choose another folder: ideepdoctor setup --env DIR",
        )
    stack, lock = chosen(options, facts.python.abi, facts, built=True)
    differing = differences(facts, stack, lock)
    if differing:
        shown = shlex.quote(str(env_dir))
        raise UsageError(
            f"{env_dir} exists and is not the stack {stack.name} ({differing})",
            hint=f"choose another folder: ideepdoctor setup --env DIR\n"
            f"or mend this one: ideepdoctor setup --in-place --python {shown}",
        )
    if options.guard is False and facts.guard is not None and facts.guard.choice is not False:
        raise UsageError(
            f"{env_dir} exists, and its guard is not disabled",
            hint=f"disable it: ideepdoctor guard disable --python {shlex.quote(str(env_dir))}",
        )
    return _proved(session, target, env_dir, None, stack, lock)


def _proved(
    session: Session,
    target: Target,
    env_dir: Path,
    journal: str | None,
    stack: Stack,
    lock: Lock,
) -> Report:
    facts, result = prove(session, target)
    judgement = judge_all(facts)
    shown = _short(env_dir, session.cwd)
    steps = [f"run a script: {shown}/bin/python your_script.py", f"or activate it: . {shown}/bin/activate"]
    if journal is not None:
        steps.append(f"take it back: ideepdoctor undo {journal}")
    return Report(
        "setup",
        facts=facts,
        judgement=judgement,
        smoke=result,
        extra={
            "verdict": verdict(facts, judgement, result),
            "applied": journal is not None,
            "journal": journal,
            "stack": stack_data(stack, lock),
            "next": steps,
        },
    )


def _short(path: Path, cwd: str) -> str:
    try:
        return shlex.quote(str(path.relative_to(cwd)))
    except ValueError:
        return shlex.quote(str(path))


def _in_place(session: Session, options: SetupOptions) -> Report:
    from ideepdoctor.stacks.catalog import choose, nearest
    from ideepdoctor.treatment.plan import in_place_plan

    if options.env is not None:
        raise UsageError(
            "--env and --in-place exclude each other", hint="name the environment to change with --python DIR"
        )
    target = find_target(session, options.target)
    facts = examine(session, target)
    chainer = facts.package("chainer")
    asked = options.stack or options.chainer or options.ideep4py
    near = None if asked or chainer is None else nearest(facts.python.abi, facts.cpu, chainer.version)
    stack, lock = near or choose(
        facts.python.abi, facts.cpu, name=options.stack, chainer=options.chainer, ideep4py=options.ideep4py
    )
    judgement = judge_all(replace(facts, planned_ideep4py=stack.ideep4py), _host_codes())
    if any(item.severity is Severity.ERROR for item in judgement.findings):
        return Report("setup", facts=facts, judgement=judgement, extra={"verdict": "nothing was changed"})
    plan = in_place_plan(facts, stack, lock, guard=options.guard)
    plan = with_source(plan, package_source(options.source, session.cwd))
    before = Report("setup", facts=facts, judgement=judge_all(facts), plan=plan if plan.steps else None)
    if not plan.steps:
        return _proved(session, target, Path(facts.python.prefix), None, stack, lock)
    if options.dry_run:
        return replace(before, extra=DRY_RUN)
    return _tuned(session, options, apply_and_check(session, target, before, plan), ask=True)


def _host_codes() -> frozenset[str]:
    from ideepdoctor.rules import RULES

    return frozenset(rule.code() for rule in RULES if rule.code().startswith(_HOST_FAMILIES))
