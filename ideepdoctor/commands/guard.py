"""``guard``: what corrects the known faults of a target, switched on and off reversibly."""

from __future__ import annotations

from typing import Any

from ideepdoctor.commands.session import Session, TargetOptions, carry_out, examine, find_target, judge_all
from ideepdoctor.errors import CouldNotCheck, NotPossibleHere
from ideepdoctor.locale import columns
from ideepdoctor.model.facts import Facts, Guard
from ideepdoctor.model.plan import Plan
from ideepdoctor.model.report import Report

_CODES = frozenset({"IDP610", "IDP611"})


def status(session: Session, options: TargetOptions) -> Report:
    """Tell what the guard corrects in a program of the target that imports Chainer; changes nothing.

    Raises:
        UsageError: the target is no Python.
        CouldNotCheck: it does not answer.
    """
    facts = _facts(session, options)
    found = _guard(facts)
    return Report(
        "guard",
        facts=facts,
        judgement=judge_all(facts, _CODES),
        body=tuple(_table(found)),
        extra={"guard": data(found), "verdict": _verdict(facts, found)},
    )


def switch(session: Session, options: TargetOptions, *, on: bool) -> Report:
    """Put the guard into a target, or leave it out for good, as a journalled plan.

    Args:
        session: this run.
        options: which Python.
        on: enable; else disable.

    Raises:
        UsageError: the target is no Python.
        NotPossibleHere: the guard knows no fault of these releases, or nothing may be written there.
        ApplyFailed, NeedsAttention, CouldNotCheck, Busy: see treatment.apply.
    """
    from ideepdoctor.commands.variables import holds
    from ideepdoctor.rules.compat import guarded
    from ideepdoctor.rules.installed import installed_pair
    from ideepdoctor.treatment.leftover import startup_steps
    from ideepdoctor.treatment.plan import refuse_where_managed

    facts = _facts(session, options)
    chainer, ideep4py = installed_pair(facts)
    if on and not guarded(chainer, ideep4py):
        raise NotPossibleHere(
            f"the guard knows no fault of Chainer {chainer or '(not installed)'} "
            f"with ideep4py {ideep4py or '(not installed)'}",
            hint="what is wrong here: ideepdoctor diagnose; a stack that it knows: ideepdoctor setup",
        )
    refuse_where_managed(facts)
    word = "enable" if on else "disable"
    steps = tuple(step for step in startup_steps(facts, guard=on) if not holds(step))
    if not steps:
        return Report("guard", facts=facts, extra={"verdict": f"the guard is {word}d already", "applied": False})
    plan = Plan(f"{word} the guard of {facts.python.prefix}", steps)
    if not session.agrees(Report("guard", facts=facts, plan=plan)):
        return Report("guard", facts=facts, extra={"verdict": "nothing was changed", "applied": False})
    journal = carry_out(session, plan)
    after = _facts(session, options)
    found = _guard(after)
    undo = [f"take it back: ideepdoctor undo {journal}"]
    return Report(
        "guard",
        facts=after,
        judgement=judge_all(after, _CODES) if on else None,
        body=tuple(_table(found)) if on else (),
        extra={
            "guard": data(found),
            "verdict": _verdict(after, found),
            "applied": True,
            "journal": journal,
            "next": undo if on else [f"again: ideepdoctor guard enable --python {after.python.executable}", *undo],
        },
    )


def data(found: Guard) -> dict[str, Any]:
    """What is known of the guard, JSON-ready."""
    rows = found.corrections
    return {
        "enabled": found.choice is True,
        "disabled": found.choice is False,
        "path": found.path,
        "current": found.current,
        "why_not": found.why_not,
        "problems": list(found.problems),
        "corrections": None
        if rows is None
        else [
            {"name": row.name, "rule": row.rule, "corrects": row.what, "active": row.active, "why_not": row.why_not}
            for row in rows
        ],
    }


def _facts(session: Session, options: TargetOptions) -> Facts:
    from ideepdoctor.facts.collect import Scope

    return examine(session, find_target(session, options), Scope(libraries=False, interpreters=False))


def _guard(facts: Facts) -> Guard:
    if facts.guard is None:
        raise CouldNotCheck(f"{facts.python.executable} did not say whether it has the guard")
    return facts.guard


def _table(found: Guard) -> list[str]:
    """The corrections, one a line, those that are made first."""
    rows = sorted(found.corrections or (), key=lambda row: not row.active)
    if not rows:
        return []
    width = max(len(row.name) for row in rows)
    lines = ["corrections"]
    for row in rows:
        text = row.what if row.active else f"{row.what} ({row.why_not})"
        head = f"  {'on ' if row.active else 'off'} {row.name:{width}}  {row.rule}  "
        lines += columns.wrap(text, 80, first=head, rest=" " * len(head))
    return lines


def _verdict(facts: Facts, found: Guard) -> str:
    """One sentence: at work, disabled, or not there, and why."""
    active = sum(row.active for row in found.corrections or ())
    if found.choice is False:
        return "the guard is disabled: the known faults of this ideep4py are not corrected"
    if active:
        return f"the guard is at work: {active} corrections are made when a program imports Chainer"
    if found.choice is True and found.corrections is None:
        outcome = (facts.imports or {}).get("chainer")
        why = "Chainer could not be imported" if outcome is None or not outcome.ok else "it was not loaded"
        return f"the guard is enabled, but {why}: ideepdoctor diagnose"
    if found.choice is True:
        return f"the guard corrects nothing: {found.why_not or 'nothing is wrong with these versions'}"
    return "there is no guard"
