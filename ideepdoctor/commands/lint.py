"""``lint``: advice on programs from their source alone; nothing of them is run."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, TypeVar

from ideepdoctor.commands.lint_files import Given, gather
from ideepdoctor.commands.session import Session, wanted_codes
from ideepdoctor.commands.settings import baseline_of, project_of
from ideepdoctor.errors import UsageError
from ideepdoctor.lint.demands import read_demands
from ideepdoctor.lint.engine import UNREADABLE, Linted, Located, Unread, lint, position
from ideepdoctor.lint.notebook import read_notebook
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.lint.source import Place, Source, Unreadable, read
from ideepdoctor.model.accept import Accepted, accept, compared, fingerprints
from ideepdoctor.model.findings import Finding, Judgement, NotKnown, Severity
from ideepdoctor.model.project import Project
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted

Kind = TypeVar("Kind", Located, Unread)
_SHOWN = 20
"""Unreadable files that an error names; more are counted."""
_WORDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What ``lint`` was asked.

    Attributes:
        paths: files, folders, ``-``.
        select: codes or families to report; empty: all.
        ignore: codes or families to leave out.
        baseline: a report of ``lint``, as ``--format json`` writes it, whose findings are known.
    """

    paths: tuple[str, ...]
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: str | None = None


def lint_sources(session: Session, options: LintOptions) -> Report:
    """Say what a person who wants iDeep should change in these programs; changes nothing.

    Raises:
        UsageError: nothing that was named could be read, no check is left, or the baseline is none.
    """
    project = project_of(session.cwd, session.environ)
    known = None if options.baseline is None else baseline_of(Path(session.cwd, options.baseline))
    codes = [check.code() for check in LINT_CHECKS]
    wanted = wanted_codes(options.select, options.ignore, codes)
    # What was not read is said whatever was selected: it is no clean file. Only its own code silences it.
    tell_unread = not {UNREADABLE, UNREADABLE[3:]} & {word.strip().upper() for word in options.ignore}
    given, unread = gather(options.paths, session.cwd)
    checks = [check for check in LINT_CHECKS if wanted is None or check.code() in wanted]
    converting = _converting(given)
    programs: list[_Program] = []
    for item in given:
        session.progress.detail(f"looking at {item.path}")
        try:
            source = _parse(item)
        except Unreadable as error:
            unread.append(Unread(item.path, None if error.line is None else Place(error.line, 1), error.reason))
            continue
        language = None if source.demanded is not None else 2 if source.python2 else 3
        programs.append(_Program(source.path, language, lint(source, checks, converting)))
    if not programs:
        raise _nothing_read(unread)
    unread += [item for program in programs for item in program.linted.unread]
    located = [item for program in programs for item in program.linted.found]
    told = unread if tell_unread else []
    judgement = Judgement(
        findings=tuple(item.finding for item in located),
        unknown=tuple(item.unknown() for item in told),
        ok=tuple(
            check.code() for check in checks if check.code() not in {UNREADABLE, *(i.finding.code for i in located)}
        ),
    )
    old = frozenset() if known is None else known.fingerprints
    judgement = accept(judgement, Accepted(baseline=known, project=project), datetime.now(tz=UTC).date())
    new = [pair for pair in _printed(project, located, [item.finding for item in located]) if pair[1] not in old]
    unsaid = [pair for pair in _printed(project, unread, [item.unknown() for item in unread]) if pair[1] not in old]
    shown, left = [item for item, _ in new], [item for item, _ in unsaid] if tell_unread else []
    extra: dict[str, Any] = {"lint": _data(programs, new, unsaid)}
    if known is not None:
        extra["baseline"] = compared(known, judgement, "lint", "")
        for doubt in extra["baseline"]["doubts"]:
            session.progress.note(doubt)
    counts = _Counts(
        files=len(programs),
        silenced=sum(program.linted.suppressed for program in programs),
        ignored=sum(program.linted.ignored for program in programs),
        accepted=len(judgement.suppressed),
    )
    return Report(
        "lint",
        judgement=judgement,
        text="\n".join([*_finding_lines(shown), *_unread_lines(left), _closing(shown, left, counts)]) + "\n",
        extra=extra,
    )


def _printed(project: Project, items: Sequence[Kind], judged: Sequence[Finding | NotKnown]) -> list[tuple[Kind, str]]:
    """Each with its fingerprint."""
    return list(zip(items, fingerprints(judged, project), strict=True))


@dataclass(frozen=True, slots=True)
class _Counts:
    """Of the last line: files that were read, findings silenced by a comment, files ignored by one, accepted."""

    files: int
    silenced: int
    ignored: int
    accepted: int


@dataclass(frozen=True, slots=True)
class _Program:
    """A program that was read, its Python, and what was said of it; its syntax tree is not kept."""

    path: str
    language: int | None
    linted: Linted


def _converting(given: Sequence[Given]) -> frozenset[str]:
    """Names of the modules that call ``to_intel64``: whoever imports them may leave it to them."""
    names: set[str] = set()
    for item in given:
        with contextlib.suppress(Unreadable):
            if b"to_intel64" in item.read():
                names.add(PurePath(item.path).stem)
    return frozenset(names)


def _parse(item: Given) -> Source:
    if item.demands is not None:
        return read_demands(item.path, item.demands, item.read())
    return read_notebook(item.path, item.read()) if item.notebook else read(item.path, item.read())


def _nothing_read(unread: Sequence[Unread]) -> UsageError:
    lines = [f"{position(item.path, item.place)}: {item.reason}" for item in unread]
    if len(lines) == 1:
        return UsageError(
            lines[0],
            hint="lint takes Python files, notebooks, files of requirements, folders, and - for standard input",
        )
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return UsageError(f"none of these {len(lines)} could be read", hint="\n".join([*lines[:_SHOWN], *more]))


def _finding_lines(located: Sequence[Located]) -> list[str]:
    lines: list[str] = []
    for item in located:
        finding = item.finding
        lines += [
            f"{position(item.path, item.place)}: {finding.severity} {finding.code} "
            f"{finding.found}: {finding.consequence}",
            f"  do: {finding.next_step}",
        ]
    return lines


def _unread_lines(unread: Sequence[Unread]) -> list[str]:
    return [f"{position(item.path, item.place)}: unknown {UNREADABLE} {item.reason}" for item in unread]


def _closing(located: Sequence[Located], unread: Sequence[Unread], counts: _Counts) -> str:
    numbers = {severity: sum(item.finding.severity is severity for item in located) for severity in Severity}
    parts = [counted(number, _WORDS[severity]) for severity, number in numbers.items() if number]
    rest = [
        *([f"{counts.silenced} silenced by noqa"] if counts.silenced else []),
        *([f"{counted(counts.ignored, 'file')} ignored by a comment"] if counts.ignored else []),
        *([f"{counts.accepted} in the baseline"] if counts.accepted else []),
        *([f"{len(unread)} NOT read"] if unread else []),
    ]
    return "; ".join([f"{', '.join(parts) or 'no fault seen'} in {counted(counts.files, 'file')}", *rest])


def _data(
    programs: Sequence[_Program], located: Sequence[tuple[Located, str]], unread: Sequence[tuple[Unread, str]]
) -> dict[str, Any]:
    return {
        "files": [{"path": item.path, "python": item.language, "ignored": item.linted.ignored} for item in programs],
        "findings": [
            {
                "path": item.path,
                **_where(item.place),
                "code": item.finding.code,
                "severity": str(item.finding.severity),
                "message": f"{item.finding.found}: {item.finding.consequence}",
                "do": item.finding.next_step,
                "fingerprint": digest,
            }
            for item, digest in located
        ],
        "unread": [
            {"path": item.path, **_where(item.place), "reason": item.reason, "fingerprint": digest}
            for item, digest in unread
        ],
        "suppressed": sum(program.linted.suppressed for program in programs),
    }


def _where(place: Place | None) -> dict[str, int | None]:
    if place is None:
        return {"line": None, "column": None, "cell": None}
    return {"line": place.line, "column": place.column, "cell": place.cell}
