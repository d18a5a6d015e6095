"""The ideep4py of ``setup`` where no index has one: a wheel of the wheelhouse, or one that is built now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideepdoctor.commands.session import Session
from ideepdoctor.commands.setup_wheels import fitting_wheel
from ideepdoctor.errors import CouldNotCheck, NotPossibleHere, UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.model.plan import Install, PackageSource, Plan, Requirement
from ideepdoctor.model.report import Report
from ideepdoctor.rules.compat import lacking
from ideepdoctor.stacks.catalog import Lock, Stack, with_built

if TYPE_CHECKING:
    from ideepdoctor.commands.build import BuildOptions
    from ideepdoctor.commands.setup import SetupOptions
    from ideepdoctor.commands.setup_base import Base

NETWORK = "IDP808"


@dataclass(frozen=True, slots=True)
class Ready:
    """A lock that is whole.

    Attributes:
        lock: with ideep4py; in a dry run of a build it waits for it still.
        folder: that holds the wheel; None: an index has all of it, or nothing is built in a dry run.
        body: lines about the build, for people.
        extra: about the wheel or the build, for the report.
    """

    lock: Lock
    folder: str | None = None
    body: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def whole_lock(
    session: Session,
    options: SetupOptions,
    base: Base,
    facts: Facts,
    stack: Stack,
    lock: Lock,
    source: PackageSource,
) -> Ready | Report:
    """The lock with its ideep4py, built where that was asked for."""
    if not base.built:
        return Ready(lock)
    from ideepdoctor.treatment.state import cache_folder

    output = f"{cache_folder(session.environ)}/wheels"
    asked = _build_options(session.environ, output, dry_run=options.dry_run) if options.build else None
    links, offline = source.find_links, options.source.offline
    return provide_ideep4py(session, base, facts, stack, links, asked, offline=offline)


def _build_options(environ: Mapping[str, str], output: str, *, dry_run: bool) -> BuildOptions:
    """How to build: as the variables of ``build`` say, where they are set. Raises UsageError."""
    from ideepdoctor.commands.build import BuildOptions

    names = ("source", "ref", "march", "mkl", "mkldnn_source")
    given: dict[str, Any] = {
        name: value for name in names if (value := environ.get(f"IDEEPDOCTOR_{name.upper()}", "").strip())
    }
    jobs = environ.get("IDEEPDOCTOR_JOBS", "").strip()
    if jobs and not (jobs.isdecimal() and 1 <= int(jobs) <= 1024):
        raise UsageError(f"IDEEPDOCTOR_JOBS={jobs} is no number of compilers", hint="a whole number from 1")
    return replace(BuildOptions(output=output, jobs=int(jobs) if jobs else None, dry_run=dry_run), **given)


def provide_ideep4py(
    session: Session,
    base: Base,
    facts: Facts,
    stack: Stack,
    folders: Sequence[str],
    asked: BuildOptions | None,
    *,
    offline: bool,
) -> Ready | Report:
    """Find or build the wheel.

    Args:
        session: this run.
        base: the interpreter.
        facts: of the machine.
        stack: what the environment will be.
        folders: wheelhouses, which are looked through first.
        asked: how to build; None: nothing is built.
        offline: no network is used, so nothing is built.

    Returns:
        The lock with it; or the report that ends the command: the build cannot be, by its preflight.

    Raises:
        NotPossibleHere: Chainer is not locked for the interpreter; the wheel is for another processor, or was refused.
        CouldNotCheck: nothing fits, and no network may be used, or there is none.
        Others as ``commands.build.build``.
    """
    who = base.interpreter
    lock = stack.lock_to_build(who.abi)
    if lock is None:
        raise NotPossibleHere(
            f"{stack.name} is not locked for Python {who.version} ({who.abi})", hint="leave --stack and --chainer out"
        )
    wheel = fitting_wheel(folders, who.abi, stack.ideep4py, facts.cpu)
    if wheel is not None:
        lock = with_built(lock, Requirement("ideep4py", wheel.version, (wheel.sha256,)))
        about = {"wheel": Path(wheel.path).name, "built": "before"}
        body = (f"ideep4py that was built: {wheel.path}", f"  runs on  processors with {' '.join(wheel.cpu_flags)}")
        return Ready(lock, str(Path(wheel.path).parent), body, {"ideep4py": about})
    if asked is None or offline:
        raise _nothing_fits(base, stack, folders, offline=offline)
    from ideepdoctor.commands.build import build

    report = build(session, replace(asked, python=who.path, chainer=stack.chainer))
    errors = [] if report.judgement is None else report.judgement.findings
    errors = [item for item in errors if item.severity is Severity.ERROR]
    network = next((item for item in errors if item.code == NETWORK), None)
    if network is not None and len(errors) == 1:
        raise CouldNotCheck(
            f"ideep4py cannot be built: {network.found}",
            hint=f"{network.next_step}\nwithout a network: {_elsewhere(base)}",
        )
    if errors:
        return replace(report, command="setup")
    made = report.extra.get("build", {}).get("wheel")
    if made is None:
        then = f"  then     ideep4py {stack.ideep4py} of this build is installed with what the plan names"
        return Ready(lock, body=(*report.body, then), extra={"build": report.extra["build"]})
    return _whole(lock, made, facts, report)


def _whole(lock: Lock, made: Mapping[str, Any], facts: Facts, report: Report) -> Ready:
    missing = lacking(facts.cpu, tuple(made["cpu_flags"]))
    if missing:
        raise NotPossibleHere(
            f"{made['name']} was built for a processor with {', '.join(missing)}, which the target lacks",
            hint="build for the target: --march x86-64-v3",
        )
    lock = with_built(lock, Requirement("ideep4py", str(made["version"]), (str(made["sha256"]),)))
    about = {"wheel": made["name"], "built": "now", "proof": list(made["proof"])}
    return Ready(lock, str(Path(made["path"]).parent), report.body, {"build": report.extra["build"], "ideep4py": about})


def from_folder(plan: Plan, folder: str | None) -> Plan:
    """The same plan, whose packages are looked for in a folder, too."""
    if folder is None:
        return plan
    steps = []
    for step in plan.steps:
        if isinstance(step, Install) and folder not in step.source.find_links:
            step = replace(step, source=replace(step.source, find_links=(folder, *step.source.find_links)))
        steps.append(step)
    return replace(plan, steps=tuple(steps))


def _nothing_fits(base: Base, stack: Stack, folders: Sequence[str], *, offline: bool) -> CouldNotCheck:
    who = base.interpreter
    where = f"{', '.join(folders)} holds" if folders else "there is"
    why = ", and nothing can be built without a network" if offline else ""
    return CouldNotCheck(
        f"{where} no ideep4py {stack.ideep4py} built for Python {who.version} ({who.abi}){why}",
        hint=f"{_elsewhere(base)}" + ("" if offline else "\nor build it now: --build"),
        context={"abi": who.abi},
    )


def _elsewhere(base: Base) -> str:
    minor = ".".join(base.interpreter.version.split(".")[:2])
    return (
        f"where there is internet: ideepdoctor wheelhouse DIR --python {minor} --with-build\n"
        f"and there: ideepdoctor build --python {minor} --march x86-64-v3 -o DIR\n"
        f"then here: ideepdoctor setup --offline --python {minor} --wheelhouse DIR"
    )
