"""Plans as data: what setup, fix and install would do. Pure: facts, findings and locks in, steps out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import FixSafety, Judgement
from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    Plan,
    Requirement,
    Step,
    WriteFile,
)
from ideepdoctor.rules.compat import guarded
from ideepdoctor.rules.installed import installed_pair
from ideepdoctor.stacks.catalog import Lock, Stack
from ideepdoctor.treatment.leftover import guard_holds, startup_steps, wants_guard
from ideepdoctor.treatment.merge import ORDER
from ideepdoctor.treatment.merge import merge as merge
from ideepdoctor.treatment.order import packages_first
from ideepdoctor.treatment.startup import startup_files
from ideepdoctor.treatment.variables import recommended

_TOOL = {"uv": "uv", "virtualenv": "pip"}
"""What installs into an environment, by what made it: uv knows no Python older than 3.6."""


def setup_plan(
    facts: Facts,
    stack: Stack,
    lock: Lock,
    env_dir: str,
    base_python: str,
    site_packages: str,
    *,
    guard: bool = True,
) -> Plan:
    """Make a new environment with a stack, its variables and the guard.

    Args:
        facts: of the base interpreter and the machine.
        stack: what to install.
        lock: the one for the interpreter's ABI.
        env_dir: absolute path of the environment's folder.
        base_python: interpreter to make it from.
        site_packages: absolute path that the new environment's site-packages will have.
        guard: False: it is disabled, and stays so.
    """
    wanted = (True if guarded(stack.chainer, stack.ideep4py) else None) if guard else False
    install = Install(
        python=f"{env_dir}/bin/python",
        requirements=lock.requirements,
        tool=_TOOL[lock.installer],
        size_bytes=lock.installed_bytes,
    )
    return Plan(
        title=f"set up {stack.name} for Python {lock.python} in {env_dir}",
        steps=(
            CreateEnv(env_dir, base_python, lock.installer),
            install,
            *startup_files(recommended(facts), site_packages, guard=wanted),
        ),
    )


def in_place_plan(facts: Facts, stack: Stack, lock: Lock, *, guard: bool | None = None) -> Plan:
    """Turn an existing environment into a stack: what differs is installed, everything else is left alone.

    The plan has no steps where nothing differs, the variables and the guard hold already and every order of import
    works.

    Args:
        facts: of the target.
        stack: what it is to become.
        lock: the one for its ABI.
        guard: False: it is disabled, and stays so; None: as was decided before.

    Raises:
        NotPossibleHere: the interpreter is managed by its system (PEP 668), or its ABI is not the lock's.
    """
    steps: list[Step] = list(install_steps(facts, lock, [item.name for item in lock.requirements]))
    pair = stack.chainer, stack.ideep4py
    wanted = wants_guard(facts, pair) if guard is None else guard
    held = guard_holds(facts) if wanted else facts.guard is not None and facts.guard.choice is wanted
    if not (_variables_hold(facts) and _order_holds(facts) and held):
        steps += startup_steps(facts, pair=pair, guard=guard)
    return Plan(f"turn {facts.python.prefix} into {lock.stack}", tuple(steps))


def install_plan(facts: Facts, lock: Lock, requirement_names: Sequence[str]) -> Plan:
    """Install some distributions of a lock into the target. Raises as install_steps."""
    steps = install_steps(facts, lock, requirement_names)
    title = f"install {', '.join(requirement_names)} of {lock.stack} into {facts.python.prefix}"
    return Plan(title, _with_guard(facts, steps))


def install_steps(facts: Facts, lock: Lock, requirement_names: Iterable[str]) -> tuple[Install, ...]:
    """The one step that installs those of the named distributions that differ from the lock; none where none does.

    A distribution whose files were altered is installed anew. A pip that is there stays as it is: it is in a lock for
    new environments, and iDeep does not depend on it. Where Chainer is built, what it is built with comes along.

    Args:
        facts: of the target, with its packages.
        lock: of the target's ABI.
        requirement_names: normalised names.

    Raises:
        UsageError: a name that the lock does not have.
        NotPossibleHere: the interpreter is managed by its system, or its ABI is not the lock's.
    """
    _refuse_unless_changeable(facts, lock)
    names = set(requirement_names)
    unknown = names - {item.name for item in lock.requirements}
    if unknown:
        raise UsageError(f"{lock.stack} does not hold {', '.join(sorted(unknown))}")
    if "chainer" in names and _differs(facts, lock.requirement("chainer")):
        names |= {"setuptools", "wheel"}
    wanted, again = [], []
    for item in lock.requirements:
        if item.name not in names or (item.name == "pip" and facts.package("pip") is not None):
            continue
        package = facts.package(item.name)
        altered = package is not None and bool(package.altered)
        if altered or _differs(facts, item):
            wanted.append(item)
        if altered and not _differs(facts, item):
            again.append(item.name)
    if not wanted:
        return ()
    return (
        Install(
            python=facts.python.executable,
            requirements=tuple(wanted),
            tool=_TOOL[lock.installer],
            snapshot=_snapshot(facts),
            reinstall=tuple(again),
        ),
    )


def packages_plan(facts: Facts, title: str, requirements: Sequence[Requirement], reinstall: Sequence[str]) -> Plan:
    """Install releases that no lock holds (a build) into the target, with the start-up files that they need.

    Raises:
        NotPossibleHere: the interpreter is managed by its system.
    """
    refuse_where_managed(facts)
    step = Install(
        python=facts.python.executable,
        requirements=tuple(requirements),
        tool="pip" if facts.python.minor in ("2.7", "3.5") else "uv",
        snapshot=_snapshot(facts),
        reinstall=tuple(reinstall),
    )
    return Plan(title, _with_guard(facts, [step]))


def removal_step(facts: Facts, lock: Lock, names: Sequence[str]) -> Install:
    """Uninstall some distributions of the target, and nothing else."""
    return Install(facts.python.executable, (), _TOOL[lock.installer], snapshot=_snapshot(facts), remove=tuple(names))


def fix_plan(facts: Facts, judgement: Judgement, *, unsafe: bool = False) -> Plan:
    """Put together what the rules would do about the findings.

    Where two findings want different versions of one distribution, the first (findings are sorted by severity) is
    treated and the other is not: half of its treatment could leave a pair that nobody has tried. The check after the
    fix shows what is left.

    Args:
        facts: of the target.
        judgement: what is wrong with it.
        unsafe: also treatments marked unsafe.

    Raises:
        NotPossibleHere: there is something to do, and the interpreter is managed by its system.
    """
    from ideepdoctor.rules import RULES

    rules = {rule.code(): rule for rule in RULES}
    allowed = {FixSafety.SAFE, FixSafety.UNSAFE} if unsafe else {FixSafety.SAFE}
    treatments = [
        (finding, rules[finding.code]().treat(finding, facts))
        for finding in judgement.findings
        if finding.fix in allowed and finding.code in rules
    ]
    plan = merge(f"fix {facts.python.prefix}", treatments)
    # Lines of a shell's start-up files are the user's own, whoever manages the interpreter.
    if any(not isinstance(step, DisableLine | EditBlock) for step in plan.steps):
        refuse_where_managed(facts)
    return replace(plan, steps=_with_guard(facts, plan.steps))


def _with_guard(facts: Facts, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, and the start-up files that the releases need which they bring: those are not installed yet."""
    brought = {item.name: item.version for step in steps if isinstance(step, Install) for item in step.requirements}
    files = {step.path for step in startup_steps(facts)}
    if not brought.keys() & {"chainer", "ideep4py"} and not any(
        isinstance(step, WriteFile) and step.path in files for step in steps
    ):
        return tuple(steps)
    chainer, ideep4py = installed_pair(facts)
    pair = brought.get("chainer", chainer or ""), brought.get("ideep4py", ideep4py or "")
    if wants_guard(facts, pair) is not True or guard_holds(facts):
        return tuple(steps)
    wanted = startup_steps(facts, pair=pair)
    paths = {step.path for step in wanted}
    kept = [step for step in steps if not (isinstance(step, WriteFile) and step.path in paths)]
    return tuple(sorted((*kept, *wanted), key=lambda step: ORDER.index(type(step))))


def _differs(facts: Facts, item: Requirement | None) -> bool:
    """Whether the target has another version of a requirement, or none."""
    if item is None:
        return False
    package = facts.package(item.name)
    return package is None or package.version != item.version


def _snapshot(facts: Facts) -> tuple[str, ...]:
    """The folders that an installation changes, each once."""
    python = facts.python
    return tuple(dict.fromkeys(folder for folder in (python.purelib, python.platlib, python.scripts) if folder))


def refuse_where_managed(facts: Facts) -> None:
    """Raise NotPossibleHere for an interpreter that belongs to its system's package manager (PEP 668)."""
    python = facts.python
    if python.externally_managed is not None:
        raise NotPossibleHere(
            f"{python.executable} is managed by its system ({python.externally_managed}); nothing is installed into it",
            hint="make an environment of your own: ideepdoctor setup",
        )


def _refuse_unless_changeable(facts: Facts, lock: Lock) -> None:
    """Raise NotPossibleHere for an interpreter that must not, or cannot, hold the lock."""
    refuse_where_managed(facts)
    python = facts.python
    if python.abi not in lock.abis:
        raise NotPossibleHere(
            f"{python.executable} has the ABI {python.abi}; {lock.stack} for Python {lock.python} needs "
            f"{' or '.join(lock.abis)}",
            hint="make an environment with the right Python: ideepdoctor setup",
        )


def _variables_hold(facts: Facts) -> bool:
    """Whether the target's own start-up file sets every recommended variable already."""
    effective = facts.variables.effective
    return effective is not None and all(
        variable.name in facts.variables.set_by_doctor and effective.get(variable.name) == variable.value
        for variable in recommended(facts)
    )


def _order_holds(facts: Facts) -> bool:
    """Whether each package that must not come before ideep4py was tried before it and got on with it."""
    tried = {} if facts.native is None else {pair.module: pair.before.ok for pair in facts.native.pairs or ()}
    return all(tried.get(module, False) for module in packages_first(facts))
