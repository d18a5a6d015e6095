"""``install``: pin one release in one environment, by hash, or say why it cannot be right there."""

from __future__ import annotations

from dataclasses import replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_version

from ideepdoctor.commands.fix import DRY_RUN, apply_and_check
from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all
from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.plan import PackageSource, Plan, with_source
from ideepdoctor.model.report import Report
from ideepdoctor.rules.compat import RELEASES, SYSTEMS, Pair, lacking, numpy_window, outside, pair, right_release
from ideepdoctor.rules.installed import build_command


def install(
    session: Session,
    options: TargetOptions,
    spec: str,
    *,
    dry_run: bool = False,
    source: SourceOptions | None = None,
) -> Report:
    """Install a release of ideep4py into an existing environment, after asking.

    Args:
        session: this run.
        options: which Python.
        spec: ``ideep4py==VERSION``; ``VERSION+doctor.LABEL`` for what ``build`` made.
        dry_run: show the plan, change nothing.
        source: where distributions come from; None: the index that the machine is set to.

    Raises:
        UsageError: another name or operator, or a release that does not exist.
        NotPossibleHere: the release cannot be right with this interpreter, processor or Chainer.
    """
    version = wanted_version(spec)
    origin = package_source(source or SourceOptions(), session.cwd)
    target = find_target(session, options)
    facts = examine(session, target)
    plan = _plan(facts, version, origin)
    before = Report("install", facts=facts, judgement=judge_all(facts), plan=plan if plan.steps else None)
    if not plan.steps:
        note = f"ideep4py {version} is installed already"
        return Report("install", facts=facts, judgement=before.judgement, extra={"verdict": note, "applied": False})
    if dry_run:
        return replace(before, extra=DRY_RUN)
    return apply_and_check(session, target, before, plan)


def _plan(facts: Facts, version: str, origin: PackageSource) -> Plan:
    """The plan that pins a release. Raises NotPossibleHere where it cannot be right."""
    from ideepdoctor.stacks.catalog import all_stacks
    from ideepdoctor.treatment.plan import install_plan

    if "+" in version:
        from ideepdoctor.commands.install_built import built_plan

        return with_source(built_plan(facts, version, origin), origin)
    refuse_if_wrong(facts, version)
    lock = next(
        (
            found
            for stack in all_stacks()
            if stack.ideep4py == version and (found := stack.lock_for(facts.python.abi)) is not None
        ),
        None,
    )
    if lock is None:
        raise NotPossibleHere(
            f"no hash of ideep4py {version} is known for the ABI {facts.python.abi}",
            hint="known-good stacks: ideepdoctor setup --dry-run",
        )
    names = ["ideep4py"]
    numpy, window = facts.package("numpy"), numpy_window(facts.python.minor)
    if numpy is None or (window is not None and outside(numpy.version, window)):
        names.append("numpy")
    return with_source(install_plan(facts, lock, names), origin)


def wanted_version(spec: str) -> str:
    """The version in ``ideep4py==VERSION``. Raises UsageError for anything else."""
    example = "such as: ideepdoctor install ideep4py==2.0.0.post3"
    try:
        asked = Requirement(spec)
    except InvalidRequirement as error:
        raise UsageError(f"{spec!r} is no requirement", hint=example) from error
    pins = [item for item in asked.specifier if item.operator == "=="]
    more = asked.extras or asked.marker or asked.url
    if asked.name.lower() != "ideep4py" or len(pins) != 1 or len(asked.specifier) != 1 or more:
        raise UsageError(f"{spec!r} does not pin one release of ideep4py", hint=example)
    version = canonicalize_version(pins[0].version, strip_trailing_zero=False)
    if version.partition("+")[2].startswith("doctor"):
        return version  # a build: the folder that holds it says whether it exists
    if version not in RELEASES:
        raise UsageError(
            f"ideep4py {version} is not on the package index",
            hint=f"it has {', '.join(RELEASES)}; for 2.0.0 and 2.0.0.post1, found in old recipes, take 2.0.0.post3",
        )
    return version


def refuse_if_wrong(facts: Facts, version: str) -> None:
    """Raise NotPossibleHere where the release cannot be right in this environment."""
    release, chainer = RELEASES[version], facts.package("chainer")
    hint = f"right for Chainer {chainer.version}: {right_release(chainer.version)}" if chainer else ""
    why = ""
    if release.broken:
        why = f"it works nowhere: {release.broken}"
    elif (facts.platform.system, facts.platform.machine) not in SYSTEMS or facts.platform.libc == "musl":
        why = "its wheels are for Linux x86_64 with glibc"
    elif facts.python.bits != 64 or facts.python.implementation != "CPython":
        why = f"its wheels are for CPython of 64 bits, this is {facts.python.implementation} of {facts.python.bits}"
    elif facts.python.abi not in release.abis:
        why = f"it has no wheel for Python {facts.python.version} ({facts.python.abi})"
        build = build_command(facts)
        hint = "\n".join(part for part in (hint, build and f"built for this Python: {build}") if part)
    elif release.intel_only and facts.cpu.vendor != "GenuineIntel":
        why = f"it dies at import on a CPU of {facts.cpu.vendor or 'unknown vendor'}"
    elif missing := lacking(facts.cpu, release.cpu_flags):
        why = f"it needs {', '.join(missing)}, which this CPU does not have"
    elif chainer is not None and (verdict := pair(chainer.version, version)) is not Pair.RIGHT:
        words = {Pair.UNUSED: "does not use it", Pair.WRONG: "computes wrong gradients with it"}
        why = f"Chainer {chainer.version} {words.get(verdict, 'was never tried with it')}"
    if why:
        raise NotPossibleHere(f"ideep4py {version} cannot be right in {facts.python.prefix}: {why}", hint=hint)
