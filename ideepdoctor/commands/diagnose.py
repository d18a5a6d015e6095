"""``diagnose``: facts and findings of a target, or of facts that were saved."""

from __future__ import annotations

from dataclasses import dataclass

from ideepdoctor.commands.session import (
    Session,
    TargetOptions,
    examine,
    find_target,
    judge_all,
    persons,
    wanted_codes,
)
from ideepdoctor.errors import UsageError
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.report import Report
from ideepdoctor.targets.target import Target


@dataclass(frozen=True, slots=True)
class DiagnoseOptions:
    """What ``diagnose`` was asked.

    Attributes:
        target: which Python.
        facts_file: judge these saved facts instead of a target.
        save_facts: write the (redacted) facts to this file too.
        quick: static facts only; nothing is imported.
        select: codes or families to report; empty: all.
        ignore: codes or families to leave out.
    """

    target: TargetOptions
    facts_file: str | None = None
    save_facts: str | None = None
    quick: bool = False
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def diagnose(session: Session, options: DiagnoseOptions) -> Report:
    """Say what is wrong with a target; changes nothing.

    Raises:
        UsageError: a target that is no Python, a facts file that is none, options that exclude each other.
        CouldNotCheck: the target does not answer.
    """
    wanted, target = wanted_codes(options.select, options.ignore), None
    if options.facts_file is not None:
        if options.target.named:
            raise UsageError("--facts excludes --python and --target", hint="saved facts have their target already")
        from ideepdoctor.facts.serialize import load_facts

        facts = load_facts(options.facts_file)
    else:
        from ideepdoctor.facts.collect import QUICK

        target = find_target(session, options.target)
        facts = examine(session, target, QUICK if options.quick else None)
    if options.save_facts is not None:
        _save(session, options.save_facts, facts, target)
    return Report("diagnose", facts=facts, judgement=judge_all(facts, wanted))


def bare() -> Report:
    """The bare probe: one script for where no doctor runs."""
    from ideepdoctor.targets.bare import bare_probe

    return Report("probe", text=bare_probe().decode("ascii"))


def _save(session: Session, path: str, facts: Facts, target: Target | None) -> None:
    """Write the facts so that they may be shown to strangers."""
    from pathlib import Path

    from ideepdoctor.facts.redact import redact
    from ideepdoctor.facts.serialize import facts_to_json
    from ideepdoctor.render.json import document

    clean = facts
    for person in persons(session, target):
        clean = redact(clean, home=person.home, user=person.user, host=person.host)
    where = Path(session.cwd) / path
    try:
        session.system.write_file(str(where), document(facts_to_json(clean)).encode("utf-8") + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write {where}: {error.strerror}", hint="choose another --save-facts FILE") from error
