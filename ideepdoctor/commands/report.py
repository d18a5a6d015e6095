"""``report``: what is wrong here, fit to be shown to strangers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all, persons
from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import facts_to_json, load_facts
from ideepdoctor.facts.share import shareable
from ideepdoctor.model.report import Report
from ideepdoctor.render.markdown import render


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What ``report`` was asked.

    Attributes:
        target: which Python.
        facts_file: report on these saved facts instead of a target.
        share: write the report to this file, after it was shown.
    """

    target: TargetOptions
    facts_file: str | None = None
    share: str | None = None


def report(session: Session, options: ReportOptions) -> Report:
    """Examine a target and say what is wrong with it, without anything that tells who or where somebody is.

    The text is Markdown: findings, then the facts as JSON, which ``diagnose --facts`` takes (from a file that ends in
    ``.json`` alone).

    Raises:
        UsageError: a target that is no Python, a file of facts that is none, a file that cannot be written; or
            nobody can be asked and ``--yes`` was not given.
        CouldNotCheck: the target does not answer.
    """
    if options.facts_file is not None and options.target.named:
        raise UsageError("--facts excludes --python and --target", hint="saved facts have their target already")
    target = None
    if options.facts_file is not None:
        facts = load_facts(options.facts_file)
    else:
        target = find_target(session, options.target)
        facts = examine(session, target)
    clean = facts
    for person in persons(session, target):
        clean = shareable(clean, home=person.home, user=person.user, host=person.host)
    judged = Report("diagnose", facts=clean, judgement=judge_all(clean))
    data = facts_to_json(clean)
    text = _markdown(judged, data)
    if options.share is None:
        return Report("report", facts=clean, judgement=judged.judgement, text=text, extra={"share": _data(None, data)})
    where = Path(session.cwd) / Path(options.share).expanduser()
    shown = json.dumps(data, indent=2, sort_keys=True) + "\n" if where.suffix == ".json" else text
    if not _seen(session, shown):
        return Report("report", text="nothing was written\n", extra={"share": _data(None, data)})
    try:
        session.system.write_file(str(where), shown.encode("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot write {where}: {error.strerror}", hint="choose another --share FILE") from error
    note = f"written: {where}\nnothing in it tells who or where you are; look once more before you send it\n"
    return Report("report", text=note, extra={"share": _data(str(where), data)})


def _seen(session: Session, text: str) -> bool:
    """Whether a person has seen it and agrees. Raises UsageError where there is nobody."""
    try:
        return session.agrees(Report("report", body=tuple(text.splitlines())))
    except UsageError as error:
        raise UsageError(
            "nobody can be shown the report here, so it is not written", hint="look at it without --share; then --yes"
        ) from error


def _markdown(judged: Report, data: dict[str, object]) -> str:
    facts = json.dumps(data, indent=1, sort_keys=True)
    return f"{render(judged)}\n\n<details><summary>facts</summary>\n\n```json\n{facts}\n```\n\n</details>\n"


def _data(file: str | None, data: dict[str, object]) -> dict[str, object]:
    return {"file": file, "facts": data}
