"""A wheel proved in a fresh environment that is removed afterwards: used, right, and what it says of itself."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from ideepdoctor.builder.inspect import check
from ideepdoctor.builder.wheel_metadata import NAME
from ideepdoctor.commands.session import Session, examine
from ideepdoctor.commands.smoke import prove
from ideepdoctor.errors import CouldNotCheck, NotPossibleHere
from ideepdoctor.model.build import BuiltWheel
from ideepdoctor.model.facts import Facts, Smoke
from ideepdoctor.model.plan import Install, PackageSource, Requirement
from ideepdoctor.model.plan import Plan as Steps
from ideepdoctor.proof.certify import Run, make_plan
from ideepdoctor.proof.certify_data import Case, Plan, Result, Setting
from ideepdoctor.proof.certify_order import ordered, settings_of
from ideepdoctor.proof.certify_store import Store
from ideepdoctor.rules.compat import guarded, lacking
from ideepdoctor.stacks.data import Lock, Stack
from ideepdoctor.targets.target import Target
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.state import cache_folder

if TYPE_CHECKING:
    from ideepdoctor.model.facts import OpCheck

BUDGET_SECONDS = 60.0
"""For the operations beyond the first of each family."""
FIRST_CASES = 4
"""Of each family of operations; these are tried with the person's own number of threads however long it takes."""
OWN_VARIABLES = ("CHAINER_", "IDEEPDOCTOR_GUARD", "PYTHON", "MKLDNN_")
"""Starts of the names of variables that a person may have set to switch iDeep off, or that lead to other packages: the
proof is of the wheel and not of them."""
_SHOWN = 4

Tell = Callable[[str], None]


class VerifyFailed(NotPossibleHere):
    """The wheel is not what it must be; the message names what is wrong with it."""

    code = "verify-failed"


def verify(
    session: Session,
    wheel: BuiltWheel,
    lock: Lock,
    python: str,
    tell: Tell,
    *,
    budget_seconds: float = BUDGET_SECONDS,
    source: PackageSource | None = None,
) -> tuple[str, ...]:
    """Prove a wheel.

    Args:
        session: this run.
        wheel: what was built.
        lock: what it is proved with, with or without an ideep4py of its own, which the wheel stands for.
        python: interpreter to make the environment from.
        tell: told each step.
        budget_seconds: see BUDGET_SECONDS.
        source: where the other distributions come from; None: the index that the machine is set to.

    Returns:
        What was proved, a line each, for people.

    Raises:
        VerifyFailed: the wheel is wrong, by name; or it cannot be run on this processor.
        CouldNotCheck: the network is needed and not there, or the environment does not answer.
        ApplyFailed: the environment could not be made.
        KeyboardInterrupt: Ctrl-C; the environment is removed.
    """
    chainer = lock.requirement("chainer")
    if chainer is None:
        raise ValueError(f"{lock.stack} holds no Chainer")
    _static(wheel, lock, chainer.version)
    with workspace(session) as work:
        own = {name: value for name, value in session.environ.items() if not name.startswith(OWN_VARIABLES)}
        session = replace(session, environ=own)
        facts, target = make_environment(session, wheel, lock, chainer.version, python, work, tell, source)
        tell("smoke test: used, right")
        facts, smoke = prove(session, target, timing=False)
        _is_ours(facts, wheel, work)
        lines = ["check: nothing is wrong with the file", _smoke_line(smoke)]
        tell("certify: every operation that Chainer gives to iDeep")
        plan = make_plan(session.system, target)
        lines += _guard_lines(plan, bool(guarded(chainer.version, Version(wheel.version).public)))
        lines.append(_certify_line(_certified(session, target, plan, work, budget_seconds, tell)))
        return tuple(lines)


def _static(wheel: BuiltWheel, lock: Lock, chainer: str) -> None:
    """What can be seen without running it."""
    problems = list(check(wheel.path, chainer=chainer))
    if not problems and hashlib.sha256(Path(wheel.path).read_bytes()).hexdigest() != wheel.sha256:
        problems.append("the file was changed since it was packed")
    numpy = lock.requirement("numpy")
    if numpy is not None and Version(numpy.version) < Version(wheel.numpy):
        problems.append(f"it was compiled against NumPy {wheel.numpy}, and {lock.stack} has {numpy.version}")
    if problems:
        raise _failed(wheel, "; ".join(problems))


def _failed(wheel: BuiltWheel, what: str, hint: str = "") -> VerifyFailed:
    return VerifyFailed(
        f"{wheel.name}: {what}",
        hint=hint or "the wheel is not handed out; build again with --fresh, or from another --ref",
        context={"wheel": wheel.path, "commit": wheel.commit},
    )


@contextlib.contextmanager
def workspace(session: Session) -> Iterator[str]:
    """A folder that is gone afterwards; those of killed runs go first. Meanwhile there are no OWN_VARIABLES."""
    system, root = session.system, Path(cache_folder(session.environ), "build")
    for old in root.glob("verify-*"):
        if not Path("/proc", old.name.partition("-")[2]).exists():
            system.remove_tree(str(old))
    work = str(root / f"verify-{os.getpid()}")
    try:
        system.make_folder(work)
        with _without_own_variables():
            yield work
    finally:
        system.remove_tree(work)


@contextlib.contextmanager
def _without_own_variables() -> Iterator[None]:
    """What is started meanwhile has none of OWN_VARIABLES."""
    held = {name: value for name, value in os.environ.items() if name.startswith(OWN_VARIABLES)}
    try:
        for name in held:
            del os.environ[name]
        yield
    finally:
        os.environ.update(held)


class _Told(Quiet):
    """Progress of a plan, as lines."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def step(self, index: int, total: int, title: str) -> None:
        """See ``Progress.step``."""
        self._tell(title)

    def detail(self, text: str) -> None:
        """See ``Progress.detail``."""
        self._tell(text)


def make_environment(
    session: Session,
    wheel: BuiltWheel,
    lock: Lock,
    chainer: str,
    python: str,
    work: str,
    tell: Tell,
    source: PackageSource | None = None,
) -> tuple[Facts, Target]:
    """Make the environment as ``setup`` does, with the wheel; the facts are those of the interpreter it comes from."""
    from ideepdoctor.facts.collect import BARE
    from ideepdoctor.treatment.apply import apply_plan
    from ideepdoctor.treatment.plan import setup_plan

    facts = examine(session, Target(python, reason="to prove the wheel with"), BARE)
    if missing := lacking(facts.cpu, wheel.cpu_flags):
        raise _failed(
            wheel,
            f"this processor lacks {', '.join(missing)}, which it is compiled for",
            "verify it on a machine that has them, or build for this one: --march native",
        )
    public = Version(wheel.version).public
    stack = Stack(f"chainer{chainer}-{NAME}{wheel.version}", chainer, public, (), None, (), ())
    others = tuple(item for item in lock.requirements if item.name != NAME)
    pins = (*others, Requirement(NAME, wheel.version, (wheel.sha256,)))
    lock = replace(lock, requirements=tuple(sorted(pins, key=lambda item: item.name)), built=())
    folder = f"{work}/env"
    packages = f"{folder}/lib/python{facts.python.minor}/site-packages"
    plan = setup_plan(replace(facts, planned_ideep4py=public), stack, lock, folder, python, packages)
    given = source or PackageSource()
    given = replace(given, find_links=(str(Path(wheel.path).absolute().parent), *given.find_links))
    steps = [replace(step, source=given) if isinstance(step, Install) else step for step in plan.steps]
    apply_plan(session.system, Steps(plan.title, tuple(steps)), f"{work}/state", _Told(tell))
    return facts, Target(f"{folder}/bin/python", reason="made to prove the wheel")


def _is_ours(facts: Facts, wheel: BuiltWheel, work: str) -> None:
    """What was proved is this wheel and not another ideep4py that comes before it."""
    package = facts.package(NAME)
    if package is None or package.version != wheel.version:
        found = "none" if package is None else package.version
        raise _failed(wheel, f"the environment holds ideep4py {found}, not {wheel.version}")
    binding = None if facts.native is None else facts.native.binding
    if binding is not None and not os.path.realpath(binding).startswith(os.path.realpath(work) + os.sep):
        raise VerifyFailed(
            f"another ideep4py comes before the wheel's: {binding}",
            hint="take it out of PYTHONPATH and of the user's site-packages, then build again",
        )


def _smoke_line(smoke: Smoke) -> str:
    """One line on a smoke test that was passed. Raises VerifyFailed where it was not."""
    if smoke.failure:
        raise VerifyFailed(f"smoke: Chainer with this wheel cannot be imported: {smoke.failure}", hint=_AGAIN)
    tried = [item for item in smoke.checks if item.status != "not-run"]
    bad = [item for item in tried if item.failed]
    if bad:
        what = f"{len(bad)} of {len(tried)} checks are not right"
        what = f"computes nothing: none of {len(tried)} checks is right" if len(bad) == len(tried) else what
        raise VerifyFailed(f"smoke: {what}: {_checks(bad)}", hint=_AGAIN)
    if smoke.used is not True:
        why = next((item.message for item in smoke.checks if item.op == "convolution" and item.message), "")
        said = f" ({why})" if why else ""
        raise VerifyFailed(f"smoke: computes nothing: NumPy did, kernel {smoke.kernel or 'none'}{said}", hint=_AGAIN)
    return f"smoke: used ({smoke.kernel}), {len(tried)} of {len(tried)} checks right"


_AGAIN = "the wheel is not handed out; try another --ref, --march or --mkl. Known faults: ideepdoctor explain"


def _checks(bad: Sequence[OpCheck]) -> str:
    shown = [f"{item.op} {item.case} ({_why(item)})" for item in bad[:_SHOWN]]
    return "; ".join([*shown, *([f"and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else [])])


def _why(item: OpCheck | Result) -> str:
    """What became of a check, short and in one line."""
    return item.hazard or " ".join(item.message.split())[:160] or item.status


def _guard_lines(plan: Plan, wanted: bool) -> list[str]:
    """One line where the guard belongs to this pair. Raises VerifyFailed where it is not on then."""
    if not wanted:
        return []
    if plan.guard is None or not plan.guard["active"]:
        why = "it is not there" if plan.guard is None else plan.guard["why_not"]
        raise VerifyFailed(f"the guard is not on with this wheel: {why}", hint=_AGAIN)
    return [f"guard: on, {len(plan.guard['corrections'])} corrections"]


def _certified(
    session: Session, target: Target, plan: Plan, work: str, budget_seconds: float, tell: Tell
) -> list[tuple[Case, Setting, Result]]:
    """Try the first cases of each family, then as many more as the budget allows; what was tried, and its results."""
    if not plan.available:
        raise VerifyFailed(f"certify: Chainer does not use this wheel: {plan.reason}", hint=_AGAIN)
    settings = settings_of((), plan.threads)
    pairs = ordered(plan.cases, settings)
    count: Counter[str] = Counter()
    first = []
    for case, setting in pairs:
        if setting == settings[0] and count[case.family] < FIRST_CASES:
            count[case.family] += 1
            first.append((case, setting))
    run = Run(session.system, target, Store(session.system, work, {}), first)
    run.told = lambda done, _all, name: tell(f"certify: {done} tries so far, next with threads {name}")
    started = time.monotonic()
    run.go()
    run.pairs, run.deadline = pairs, started + budget_seconds
    run.go()
    found = [(case, setting, run.results.get((case.key, setting.name))) for case, setting in pairs]
    tried = [(case, setting, item) for case, setting, item in found if item is not None and item.status != "not-run"]
    if not tried:
        raise CouldNotCheck("certify: nothing could be tried", hint="the machine is very busy; build again")
    return tried


def _certify_line(tried: Sequence[tuple[Case, Setting, Result]]) -> str:
    """One line on tries that were all right. Raises VerifyFailed where one was not."""
    bad = [(case, setting, item) for case, setting, item in tried if item.failed]
    if bad:
        shown = [
            f"{case.op} {case.text} with threads {setting.name} ({_why(item)})" for case, setting, item in bad[:_SHOWN]
        ]
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        raise VerifyFailed(
            f"certify: {len(bad)} of {len(tried)} tries are not right: {'; '.join(shown)}{more}", hint=_AGAIN
        )
    families = len({case.family for case, _, _ in tried})
    return f"certify: {len(tried)} of {len(tried)} tries right, {families} families of operations"
