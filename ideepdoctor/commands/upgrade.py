"""``upgrade`` and ``downgrade``: move an existing environment to another stack, so that it can be taken back."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ideepdoctor.commands.fix import DRY_RUN, apply_and_check
from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all
from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.model.plan import Install, Plan, with_source
from ideepdoctor.model.report import Report

if TYPE_CHECKING:
    from ideepdoctor.stacks.catalog import Lock, Stack
    from ideepdoctor.treatment.move import Move


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """What ``upgrade`` or ``downgrade`` was asked.

    Attributes:
        target: the environment.
        to: name of a stack; None: the newest one that is right there.
        prune: also uninstall what only the old stack needed.
        dry_run: show the plan, change nothing.
        source: where distributions come from.
    """

    target: TargetOptions
    to: str | None = None
    prune: bool = False
    dry_run: bool = False
    source: SourceOptions = field(default_factory=SourceOptions)


def upgrade(session: Session, options: MoveOptions) -> Report:
    """Move an environment to a newer stack, after asking; then check again, smoke test included.

    Raises:
        UsageError: no such stack, an older one, or an environment without Chainer.
        NotPossibleHere: the stack cannot be right here, or the interpreter is managed by its system.
        Others as ``treatment.apply``.
    """
    return _moved(session, options, "upgrade", 1)


def downgrade(session: Session, options: MoveOptions) -> Report:
    """Move an environment to an older stack, and say what that loses. Raises as ``upgrade``."""
    return _moved(session, options, "downgrade", -1)


def _moved(session: Session, options: MoveOptions, command: str, direction: int) -> Report:
    from ideepdoctor.stacks.catalog import choose
    from ideepdoctor.treatment.move import move

    origin = package_source(options.source, session.cwd)
    target = find_target(session, options.target)
    facts = examine(session, target)
    if facts.package("chainer") is None:
        raise UsageError(
            f"{facts.python.prefix} has no Chainer to {command}",
            hint=f"install one: ideepdoctor setup --in-place --python {shlex.quote(facts.python.prefix)}",
        )
    try:
        stack, lock = choose(facts.python.abi, facts.cpu, name=options.to)
    except NotPossibleHere as error:
        hint = error.hint.replace("--stack ", "--to ")
        raise NotPossibleHere(error.message, hint=hint, context=error.context) from None
    meant = move(facts, stack, lock)
    _refuse_other_way(facts, stack, meant, command, direction)
    judgement = judge_all(replace(facts, planned_ideep4py=stack.ideep4py), _host_codes())
    if any(item.severity is Severity.ERROR for item in judgement.findings):
        return Report(command, facts=facts, judgement=judgement, extra={"verdict": "nothing was changed"})
    plan = with_source(_plan(facts, stack, lock, meant, command, options.prune), origin)
    data, body = _data(facts, stack, meant, prune=options.prune), _lines(stack, meant, prune=options.prune)
    before = Report(command, facts=facts, judgement=judge_all(facts), plan=plan, body=body, extra=data)
    ideep4py = facts.package("ideep4py")
    built = ideep4py is not None and "+" in ideep4py.version
    # A build is not exchanged for the release that it is a build of.
    differs = meant.direction != 0 or (not built and any(isinstance(step, Install) for step in plan.steps))
    if not differs:
        note = f"{facts.python.prefix} is {stack.name} already"
        note += f", with a build: ideep4py {ideep4py.version}" if built and ideep4py is not None else ""
        return replace(before, plan=None, body=(), extra={**data, "verdict": note, "applied": False})
    if options.dry_run:
        return replace(before, extra={**data, **DRY_RUN})
    after = apply_and_check(session, target, before, plan)
    return replace(after, body=(*after.body, *body), extra={**data, **after.extra})


def _host_codes() -> frozenset[str]:
    """Rules about the machine: a stack that cannot run here is refused before anything is changed."""
    from ideepdoctor.rules import RULES

    return frozenset(rule.code() for rule in RULES if rule.code().startswith(("IDP1", "IDP201")))


def _plan(facts: Facts, stack: Stack, lock: Lock, meant: Move, command: str, prune: bool) -> Plan:
    """The plan of an in-place set-up, which also uninstalls what is left over where that was asked for."""
    from ideepdoctor.treatment.plan import in_place_plan, removal_step

    plan = in_place_plan(facts, stack, lock)
    steps = list(plan.steps)
    if prune and meant.left_over:
        at = next((number for number, step in enumerate(steps) if isinstance(step, Install)), None)
        if at is None:
            steps.insert(0, removal_step(facts, lock, meant.left_over))
        else:
            step = steps[at]
            assert isinstance(step, Install)
            steps[at] = replace(step, remove=meant.left_over)
    return Plan(f"{command} {facts.python.prefix} to {stack.name}", tuple(steps))


def _refuse_other_way(facts: Facts, stack: Stack, meant: Move, command: str, direction: int) -> None:
    """Raise UsageError for a stack on the other side of the one that is there."""
    if meant.direction * direction >= 0:
        return
    other = "downgrade" if direction > 0 else "upgrade"
    chainer, ideep4py = facts.package("chainer"), facts.package("ideep4py")
    has = ", ".join(f"{item.name} {item.version}" for item in (chainer, ideep4py) if item is not None)
    where = shlex.quote(facts.python.prefix)
    raise UsageError(
        f"{stack.name} is {'older' if direction > 0 else 'newer'} than what is there ({has})",
        hint=f"if that is what you want: ideepdoctor {other} --to {stack.name} --python {where}",
    )


def _lines(stack: Stack, meant: Move, *, prune: bool) -> tuple[str, ...]:
    """What a reader must know beside the steps."""
    lines = [f"lost: {phrase}" for phrase in meant.lost]
    lines += [f"conflict: {phrase}" for phrase in meant.conflicts]
    if meant.left_over:
        names = ", ".join(meant.left_over)
        left = f"left over, {stack.name} does not need it: {names} (--prune removes it)"
        lines.append(f"uninstalled: {names}" if prune else left)
    if meant.kept:
        lines.append(f"stays: {', '.join(meant.kept)}")
    if meant.own:
        lines.append(f"yours, left alone: {', '.join(meant.own)}")
    return tuple(lines)


def _data(facts: Facts, stack: Stack, meant: Move, *, prune: bool) -> dict[str, Any]:
    names = ("chainer", "ideep4py", "numpy")
    was = {name: found.version for name in names if (found := facts.package(name)) is not None}
    return {
        "move": {
            "from": was,
            "to": stack.name,
            "lost": list(meant.lost),
            "conflicts": list(meant.conflicts),
            "left_over": list(meant.left_over),
            "kept": list(meant.kept),
            "own": list(meant.own),
            "prune": prune,
        }
    }
