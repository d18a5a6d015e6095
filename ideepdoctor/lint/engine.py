"""Run the checks over programs. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ideepdoctor.lint.base import Check, Note
from ideepdoctor.lint.module import Module
from ideepdoctor.lint.registry import LINT_CHECKS
from ideepdoctor.lint.source import Place, Source
from ideepdoctor.model.findings import Evidence, Finding, NotKnown

UNREADABLE = "IDP900"
_WORDS = ("chainer", "ideep", "intel64")
"""A program without any of them is none of ours."""
_LONGEST = 160
"""Characters of a source line that are quoted."""


@dataclass(frozen=True, slots=True)
class Located:
    """A finding and its place."""

    path: str
    place: Place
    finding: Finding


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be linted.

    Attributes:
        path: the file.
        place: where in it; None: the whole.
        reason: one clause, "is a binary file".
    """

    path: str
    place: Place | None
    reason: str

    def unknown(self) -> NotKnown:
        """The same as the report has it."""
        title = next(check.title for check in LINT_CHECKS if check.code() == UNREADABLE)
        return NotKnown(UNREADABLE, title, f"{position(self.path, self.place)}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Linted:
    """What the checks said of one program.

    Attributes:
        found: in the order of the source.
        unread: cells that are no Python, and checks that failed on this program.
        suppressed: findings that a comment silences.
        ignored: the whole file is, by a comment.
    """

    found: tuple[Located, ...] = ()
    unread: tuple[Unread, ...] = ()
    suppressed: int = 0
    ignored: bool = False


def position(path: str, place: Place | None) -> str:
    """``train.py:12:5``; ``book.ipynb:cell 3:1:5`` where the lines are those of a code cell."""
    if place is None:
        return path
    cell = "" if place.cell is None else f":cell {place.cell}"
    return f"{path}{cell}:{place.line}:{place.column}"


def lint(
    source: Source,
    checks: Sequence[type[Check]] = LINT_CHECKS,
    converting: frozenset[str] = frozenset(),
) -> Linted:
    """Apply the checks to one program.

    Args:
        source: what was read.
        checks: those to apply.
        converting: names, without folder and ending, of the modules given with it whose code says ``to_intel64``.
    """
    unread = [Unread(source.path, place, reason) for place, reason in source.unread]
    if source.ignored:
        return Linted(ignored=True)
    found: list[Located] = []
    suppressed = 0
    if not any(word in line.lower() for line in source.lines for word in _WORDS):
        return Linted(unread=tuple(unread))
    try:
        module = Module(source, converting)
        for check in checks:
            for note in check().check(module):
                if source.suppressed(note.node, check.code()):
                    suppressed += 1
                else:
                    found.append(_located(source, check, note))
    except RecursionError:
        return Linted(unread=(Unread(source.path, None, "is nested too deeply to be looked through"),))
    found.sort(key=lambda item: (item.place.cell or 0, item.place.line, item.place.column, item.finding.code))
    return Linted(tuple(found), tuple(unread), suppressed)


def _located(source: Source, check: type[Check], note: Note) -> Located:
    place = source.place(note.node)
    text = source.text_of(note.node)
    quoted = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    where = f"line {place.line}, column {place.column}"
    where = where if place.cell is None else f"code cell {place.cell}, {where}"
    finding = Finding(
        code=check.code(),
        severity=note.severity or check.severity,
        title=check.title,
        found=note.found,
        needed=check.needed,
        consequence=note.consequence,
        next_step=note.next_step,
        evidence=(Evidence(f"{where}: {quoted}", source.path, line=place.line if place.cell is None else None),),
        fix=check.fix,
    )
    return Located(source.path, place, finding)
