"""``fix``, ``install`` and in-place set-up: plan, ask, apply, check again."""

from __future__ import annotations

from dataclasses import replace

from ideepdoctor.commands.session import Session, TargetOptions, carry_out, examine, find_target, judge_all
from ideepdoctor.commands.smoke import prove
from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.commands.verdict import verdict
from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.model.plan import Plan, with_source
from ideepdoctor.model.report import Report
from ideepdoctor.targets.target import Target

DRY_RUN = {"verdict": "dry run: nothing was changed", "applied": False}


def fix(
    session: Session,
    options: TargetOptions,
    *,
    unsafe: bool = False,
    dry_run: bool = False,
    source: SourceOptions | None = None,
) -> Report:
    """Treat what ``diagnose`` finds, after asking; then check again, smoke test included.

    Args:
        session: this run.
        options: which Python.
        unsafe: also treatments that change what the user may rely on (the version of Chainer).
        dry_run: show the plan, change nothing.
        source: where distributions come from; None: the index that the machine is set to.

    Returns:
        The report of the check after it (or of the check before it, where there was nothing to do).
    """
    from ideepdoctor.treatment.plan import fix_plan

    origin = package_source(source or SourceOptions(), session.cwd)
    target = find_target(session, options)
    facts = examine(session, target)
    judgement = judge_all(facts)
    plan = with_source(fix_plan(facts, judgement, unsafe=unsafe), origin)
    before = Report("fix", facts=facts, judgement=judgement, plan=plan if plan.steps else None)
    if plan.steps and not dry_run:
        return apply_and_check(session, target, before, plan)
    if plan.steps:
        return replace(before, extra=DRY_RUN)
    left = [item for item in judgement.findings if item.severity is not Severity.INFO]
    held_back = sorted({item.code for item in left if item.fix is FixSafety.UNSAFE})
    note = "nothing to fix" if not left else "nothing here can be fixed automatically: each finding says what to do"
    if held_back and not unsafe:
        note = f"--unsafe would treat {', '.join(held_back)}, at the price named there"
    return Report("fix", facts=facts, judgement=judgement, extra={"verdict": note})


def apply_and_check(session: Session, target: Target, before: Report, plan: Plan) -> Report:
    """Ask, apply the plan, and examine the same target anew.

    Raises:
        UsageError: nobody could be asked.
        ApplyFailed, NeedsAttention, Busy: see treatment.apply.
    """
    if not session.agrees(before):
        return Report(before.command, extra={"verdict": "nothing was changed", "applied": False})
    return check_again(session, target, before.command, carry_out(session, plan))


def check_again(session: Session, target: Target, command: str, journal: str) -> Report:
    """Examine and prove a target that was just changed."""
    facts, result = prove(session, target)
    judgement = judge_all(facts)
    return Report(
        command,
        facts=facts,
        judgement=judgement,
        smoke=result,
        extra={
            "verdict": verdict(facts, judgement, result),
            "applied": True,
            "journal": journal,
            "next": [f"take it back: ideepdoctor undo {journal}"],
        },
    )
