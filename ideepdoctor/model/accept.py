"""Findings that somebody has accepted: by a reason in a settings file, or because a baseline had them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.model.findings import Evidence, Finding, Judgement, NotKnown, Suppressed
from ideepdoctor.model.fingerprint import fingerprint, numbered
from ideepdoctor.model.project import Project
from ideepdoctor.model.words import counted

Item = Finding | NotKnown
IN_BASELINE = "in the baseline"


@dataclass(frozen=True, slots=True)
class Ignore:
    """A finding that somebody knows of and lives with.

    Attributes:
        code: of the rule.
        reason: why; never empty.
        path: only findings about a file that matches this pattern; None: all of the rule.
        until: the last day on which it counts; None: for ever.
    """

    code: str
    reason: str
    path: str | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """A report whose findings are known.

    Attributes:
        path: of its file.
        fingerprints: of everything that it found, accepted ones too.
        command: that made it (``diagnose``); empty: it does not say.
        made_by: version of the doctor that made it; empty: it does not say.
        made_for: path of the interpreter that it is about; empty: none.
    """

    path: str
    fingerprints: frozenset[str]
    command: str = ""
    made_by: str = ""
    made_for: str = ""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Everything that was accepted.

    Attributes:
        ignores: in the order of their file.
        baseline: the report whose findings are known; None: there is none.
        origin: file of the ignores, for messages; empty: there is none.
        project: where paths begin, for fingerprints.
    """

    ignores: tuple[Ignore, ...] = ()
    baseline: Baseline | None = None
    origin: str = ""
    project: Project | None = None


def fingerprints(findings: Iterable[Item], project: Project | None = None) -> tuple[str, ...]:
    """The fingerprint of each; equal ones are numbered in their order."""
    seen: dict[str, int] = {}
    made = []
    for item in findings:
        text = item.found if isinstance(item, Finding) else item.reason
        digest = fingerprint(item.code, path_of(item), text, project)
        seen[digest] = seen.get(digest, 0) + 1
        made.append(numbered(digest, seen[digest]))
    return tuple(made)


def path_of(item: Item) -> str | None:
    """The file that a finding is about, as its evidence says; None: none."""
    return position_of(item)[0]


def position_of(item: Item) -> tuple[str | None, int | None]:
    """The file that a finding is about, and the line in it, as its evidence says; None: none."""
    found = item.evidence if isinstance(item, Finding) else ()
    return next(((seen.path, seen.line) for seen in found if seen.path), (None, None))


def accept(judgement: Judgement, accepted: Accepted, today: date) -> Judgement:
    """Take what was accepted out of the findings and the undecided rules; it stays listed as suppressed.

    An ignore that has ended counts no more, and the finding says so. One that names a rule's undecided outcome counts
    only without ``path``.
    """
    told: list[Suppressed] = []
    known = frozenset() if accepted.baseline is None else accepted.baseline.fingerprints

    def keep(items: Sequence[Item]) -> list[Item]:
        left: list[Item] = []
        for item, digest in zip(items, fingerprints(items, accepted.project), strict=True):
            matching = [ignore for ignore in accepted.ignores if _matches(ignore, item)]
            ignore = next((one for one in matching if one.until is None or today <= one.until), None)
            why = ignore.reason if ignore else IN_BASELINE if digest in known else None
            if why is not None:
                found = item.found if isinstance(item, Finding) else item.reason
                severity = item.severity if isinstance(item, Finding) else None
                told.append(Suppressed(item.code, severity, item.title, found, why, digest))
            else:
                left.append(_ended(item, matching[0], accepted.origin) if matching else item)
        return left

    findings = [item for item in keep(judgement.findings) if isinstance(item, Finding)]
    unknown = [item for item in keep(judgement.unknown) if isinstance(item, NotKnown)]
    return replace(judgement, findings=tuple(findings), unknown=tuple(unknown), suppressed=tuple(told))


def unused(judgement: Judgement, accepted: Accepted) -> tuple[Ignore, ...]:
    """Ignores that no finding of this judgement (before ``accept``) fits, though their rule was looked at."""
    looked = {*judgement.ok, *(item.code for item in judgement.findings)}
    items: tuple[Item, ...] = (*judgement.findings, *judgement.unknown)
    return tuple(
        ignore
        for ignore in accepted.ignores
        if ignore.code in looked and not any(_matches(ignore, item) for item in items)
    )


def compared(baseline: Baseline, judgement: Judgement, command: str, python: str) -> Mapping[str, Any]:
    """What a baseline came to, JSON-ready, with the reasons why it may not fit.

    Args:
        baseline: it.
        judgement: what is left, and what was accepted.
        command: that was run.
        python: path of the interpreter that was examined; empty: none.
    """
    return {
        "file": baseline.path,
        "made_by": baseline.made_by or None,
        "made_for": baseline.made_for or None,
        "known": len(baseline.fingerprints),
        "met": sum(item.reason == IN_BASELINE for item in judgement.suppressed),
        "doubts": list(_doubts(baseline, judgement, command, python)),
    }


def _doubts(baseline: Baseline, judgement: Judgement, command: str, python: str) -> Iterator[str]:
    met = sum(item.reason == IN_BASELINE for item in judgement.suppressed)
    gone = len(baseline.fingerprints) - met
    if baseline.made_by not in ("", __version__):
        yield (
            f"the baseline {baseline.path} was made by ideepdoctor {baseline.made_by}, this is {__version__}: "
            "a finding that is worded otherwise now counts as new"
        )
    if baseline.made_for and python and baseline.made_for != python:
        yield (
            f"the baseline {baseline.path} is of another environment, {baseline.made_for}: "
            f"a finding about a file elsewhere counts as new in {python}"
        )
    elif baseline.command and (baseline.command == "lint") != (command == "lint"):
        yield (
            f"the baseline {baseline.path} was made by ideepdoctor {baseline.command}: "
            f"it knows nothing of what ideepdoctor {command} finds"
        )
    elif gone > 0 and baseline.command == command:
        yield (
            f"{gone} of {counted(len(baseline.fingerprints), 'finding')} in the baseline {baseline.path} "
            "did not come back: make it anew, so that they count if they do"
        )


def as_data(ignore: Ignore) -> Mapping[str, str | None]:
    """JSON-ready."""
    return {
        "code": ignore.code,
        "reason": ignore.reason,
        "path": ignore.path,
        "until": None if ignore.until is None else ignore.until.isoformat(),
    }


def _matches(ignore: Ignore, item: Item) -> bool:
    path = path_of(item)
    return ignore.code == item.code and (ignore.path is None or (path is not None and fnmatchcase(path, ignore.path)))


def _ended(item: Item, ignore: Ignore, origin: str) -> Item:
    if not isinstance(item, Finding):
        return item
    text = f"it was ignored until {ignore.until} by {origin or 'the settings'}: {ignore.reason}"
    return replace(item, evidence=(*item.evidence, Evidence(text)))
