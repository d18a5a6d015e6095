"""The quick tune at the end of ``setup``: AlexNet at batch 8, MKL's kind of processor and threads alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ideepdoctor.commands.session import Session, carry_out, judge_all
from ideepdoctor.commands.tune import BATCH, Tuned, search, steps_for, told
from ideepdoctor.commands.tune_report import as_data, ratio
from ideepdoctor.errors import DoctorError, Interrupted
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.model.plan import Plan
from ideepdoctor.model.report import Report
from ideepdoctor.proof.tune_measure import Subject
from ideepdoctor.targets.target import Target

SECONDS = 20.0


def with_quick_tune(session: Session, report: Report, *, ask: bool) -> Report:
    """The report of a setup with what a quick tune found; a faster setting is written as a plan of its own.

    Nothing is measured where iDeep was not proved to be used and right, under an emulator, or where a profile is in
    force already. A tune that fails says so and takes nothing from the setup.

    Args:
        session: this run.
        report: of the setup, with its smoke test.
        ask: whether to ask before writing: the environment was there before.
    """
    from ideepdoctor.treatment.profile import in_force

    facts = report.facts
    proved = report.smoke is not None and report.smoke.used and report.judgement is not None
    if facts is None or not proved or facts.target.emulator or facts.target.transport or facts.cpu.emulated:
        return report
    wrong = any(item.severity is Severity.ERROR for item in report.judgement.findings) if report.judgement else True
    if wrong or in_force(facts) is not None:
        return report
    target = Target(facts.target.python, reason=facts.target.reason)
    try:
        tuned = search(session, target, facts, Subject(("alexnet",), BATCH), SECONDS, quick=True)
        return _said(session, report, tuned, ask=ask)
    except Interrupted:
        return _with(report, "Tuning was interrupted: the default variables stay.", {"tune": None})
    except DoctorError as error:
        return _with(report, f"It could not be tuned: {error.message}.", {"tune": None})


def _said(session: Session, report: Report, tuned: Tuned, *, ask: bool) -> Report:
    choice = tuned.choice
    extra: dict[str, Any] = {"tune": as_data(*told(tuned), tuned.seconds, tuned.budget)}
    steps = steps_for(tuned) if choice.gain is not None else ()
    if choice.gain is None or not steps:
        return _with(report, _kept(tuned), extra)
    what = f"{choice.setting.label} makes {tuned.subject.text} {ratio(choice.gain)} as fast as the default"
    plan = Plan(f"tune {tuned.facts.python.prefix} for {tuned.subject.text}", steps)
    if ask and not _agreed(session, report, plan):
        return _with(report, f"{what}: ideepdoctor tune writes that.", extra)
    journal = carry_out(session, plan)
    after: Facts = replace(tuned.facts, smoke=report.smoke)
    done = replace(report, judgement=judge_all(after))
    undo = [f"take the tuning back: ideepdoctor undo {journal}", *report.extra.get("next", ())]
    return _with(done, f"Tuned: {what}, and is certified.", {**extra, "tune_journal": journal, "next": undo})


def _agreed(session: Session, report: Report, plan: Plan) -> bool:
    from ideepdoctor.errors import UsageError

    try:
        return session.agrees(replace(report, plan=plan))
    except UsageError:
        return False


def _kept(tuned: Tuned) -> str:
    count = 1 + sum(len(item.trials) for item in tuned.choice.looked)
    refused = f" ({tuned.choice.refused[0].why})" if tuned.choice.refused else ""
    if tuned.choice.refused:
        return f"Tuned: {tuned.choice.refused[0].setting.label} is faster and was refused{refused}."
    if count == 1:
        return ""
    if not tuned.choice.telling:
        return "Tuned: too noisy to tell a faster setting; the default variables stay (ideepdoctor tune looks again)."
    return f"Tuned: of {count} settings none is faster for {tuned.subject.text} than these variables."


def _with(report: Report, sentence: str, extra: dict[str, Any]) -> Report:
    verdict = " ".join(part for part in (str(report.extra.get("verdict", "")), sentence) if part)
    return replace(report, extra={**report.extra, "verdict": verdict, **extra})
