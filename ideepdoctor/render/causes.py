"""What can be behind something that went wrong, for people and as data. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ideepdoctor.locale import columns, tr
from ideepdoctor.model.words import counted
from ideepdoctor.symptoms.base import Strength
from ideepdoctor.symptoms.search import Named

SHOWN_CAUSES = 5
"""Without ``-v``: who is tired reads the first two."""
_WIDTH = 78
_LABEL = 8
_INDENT = 3


def lines_of(causes: Sequence[Named], titles: Mapping[str, str], *, details: bool = False) -> tuple[str, ...]:
    """The causes, numbered: code, title, the line that says it, what follows, what to do, what would confirm it.

    Args:
        causes: the likeliest first.
        titles: of the rules, by code.
        details: all of them.
    """
    shown = causes if details else causes[:SHOWN_CAUSES]
    made: list[str] = []
    before = ""
    for number, one in enumerate(shown, 1):
        title = tr(titles.get(one.cause.code, ""))
        head = f"{number}. {one.cause.code}  "
        made += columns.wrap(title, _WIDTH, first=head, rest=" " * len(head), verbatim=True)
        said = _said(one)
        rows = [] if said == before else [("says", said, True)]
        rows += [("so", one.cause.consequence, False), ("next", one.cause.next_step, False)]
        rows.append(("confirm", one.cause.confirm, True))
        for name, text, verbatim in rows:
            made += _row(name, text, verbatim=verbatim)
        before = said
    if len(causes) > len(shown):
        made.append(tr(f"{counted(len(causes) - len(shown), 'cause')} more: -v"))
    made.append("")
    made.append(tr(f"More on one of them: ideepdoctor explain {causes[0].cause.code}"))
    return tuple(made)


def as_data(causes: Sequence[Named], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """The causes for machines, all of them."""
    return [
        {
            "codes": list(one.cause.codes),
            "title": titles.get(one.cause.code, ""),
            "strength": one.strength.name.lower(),
            "support": one.support,
            "line": one.line_number or None,
            "text": one.line,
            "so": one.cause.consequence,
            "next": one.cause.next_step,
            "confirm": one.cause.confirm,
        }
        for one in causes
    ]


def how_sure(causes: Sequence[Named]) -> str:
    """What the order of the causes rests on, a few words."""
    best = causes[0].strength
    if len(causes) == 1:
        return "one cause that makes it is known" if best is Strength.SIGNAL else "the cause"
    if best is Strength.SIGNAL:
        return "a signal alone has several causes, the likeliest first"
    return "the likeliest cause first"


def _said(one: Named) -> str:
    return f"line {one.line_number}: {one.line}" if one.line_number else ""


def _row(name: str, text: str, *, verbatim: bool) -> list[str]:
    if not text:
        return []
    first = " " * _INDENT + columns.ljust(tr(name), _LABEL) + " "
    return columns.wrap(text, _WIDTH, first=first, rest=" " * len(first), verbatim=verbatim)
