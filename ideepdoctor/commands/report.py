"""``report``: what is wrong here, fit to be shown to strangers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target, judge_all, persons
from ideepdoctor.errors import UsageError
from ideepdoctor.facts.serialize import facts_to_json, load_facts
from ideepdoctor.facts.share import shareable
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.report import Report
from ideepdoctor.render.markdown import render

_NAMING = (
    *("USER", "LOGNAME", "USERNAME", "SUDO_USER", "EMAIL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "SLURM_JOB_USER"),
    *("HOSTNAME", "HOST", "COMPUTERNAME", "SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURMD_NODENAME"),
    *("SLURM_SUBMIT_HOST", "PBS_O_HOST", "SSH_CONNECTION", "KUBERNETES_SERVICE_HOST"),
)
"""Variables whose values are names of persons and hosts."""
_MOST_NAMES = 10_000


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
    names = names_of(session.environ, facts)
    for person in persons(session, target):
        clean = shareable(clean, home=person.home, user=person.user, host=person.host, names=names)
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


def names_of(environ: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    """Names of persons and hosts that variables of the doctor and the target's address tell."""
    from ideepdoctor.fleet.names import unfold

    found = [facts.target.address.partition(":")[2], *facts.target.transport[1:]]
    for name in _NAMING:
        value = environ.get(name, "")
        try:
            found += [value, *islice(unfold(value), _MOST_NAMES)]
        except ValueError:  # brackets that fold nothing
            found.append(value)
    return tuple(word for word in found if not word.startswith("-"))


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
