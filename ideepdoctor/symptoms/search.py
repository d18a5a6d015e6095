"""Reads a log once and ranks what can be behind it. Pure; see the package's docstring for the order.

Nothing of the log is kept but one line of each cause, so its length does not matter. What a build from source says
(``rules/signatures.py``) is looked for in the same pass. A line that both know (a process was killed, a library is not
found) is a build's where the log is one of a build, and a run's where it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ideepdoctor.rules.signatures import SHOWN_CHARACTERS, Reading, Tally, Telling, cleaned, match, spelled
from ideepdoctor.symptoms.base import Cause, Strength
from ideepdoctor.symptoms.endings import ENDINGS, ending_of
from ideepdoctor.symptoms.table import CLUES, INSTALLING, RUNNING

NEAR_LINES = 50
"""A clue counts for a symptom that is no farther away: a traceback, a report of a crash."""
TABLE = (*INSTALLING, *RUNNING)
_OF_A_BUILD = re.compile(
    r"(?:^|[\s/'])(?:setup\.py|cmake|gcc|g\+\+|cc1plus|swig|make(?:\[\d+\])?:)(?:$|[\s':)])"
    r"|^-- |virtual memory exhausted|\brunning (?:build|install)|CMake Error|\bBuilding wheel for ideep4py\b"
    r"|ideepdoctor (?:build|setup --build)|\.(?:cc|cpp|hpp|h):\d+:"
)
_BUILD_WORDS = (
    *("setup.py", "make", "gcc", "g++", "cc1plus", "swig", "-- ", "running ", "CMake", "Building", "ideepdoctor"),
    *(".cc:", ".cpp:", ".hpp:", ".h:", "virtual memory"),
)
"""One of them is in every line that the pattern fits."""
_NOT_TELLING = frozenset({"IDP808", "IDP810"})
"""Signatures of builds that every program makes: no network, no room. They do not make a log one of a build."""


@dataclass(frozen=True, slots=True)
class Named:
    """A cause, and what names it.

    Attributes:
        cause: which.
        strength: of the strongest text that names it.
        support: different texts and clues.
        line_number: of the strongest text; 0: it stands nowhere, an ending was named.
        line: that text, cut.
    """

    cause: Cause
    strength: Strength
    support: int
    line_number: int
    line: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a log says.

    Attributes:
        causes: what can be behind it, the first is the likeliest; one for each code that a cause is called by.
        build: what is known to be wrong with a build in it; its ``telling`` where nothing at all is known.
    """

    causes: tuple[Named, ...]
    build: Reading


@dataclass(slots=True)
class _Seen:
    """What names a cause until now."""

    strength: Strength
    place: int
    line_number: int
    line: str
    last: int
    support: set[str] = field(default_factory=set)

    @property
    def order(self) -> tuple[int, int, int, int]:
        return (-self.strength, -len(self.support), self.place, self.line_number)


class Ranking:
    """Causes as they are named, line by line."""

    def __init__(self) -> None:
        self._seen: dict[Cause, _Seen] = {}
        self._clues: dict[str, int] = {}

    def name(
        self, causes: tuple[Cause, ...], strength: Strength, why: str, number: int, line: str, *, at: int | None = None
    ) -> None:
        """Causes are named by a text.

        Args:
            causes: the likeliest first.
            strength: how much the text says.
            why: the same for the same kind of text; the name of an ending.
            number: of the line; 0: it stands nowhere.
            line: the text.
            at: where it belongs, if it stands nowhere.
        """
        where = number if at is None else at
        for place, cause in enumerate(causes):
            seen = self._seen.get(cause)
            if seen is None:
                seen = self._seen[cause] = _Seen(strength, place, number, line[:SHOWN_CHARACTERS], where)
            elif (-strength, place) < (-seen.strength, seen.place):
                seen.strength, seen.place, seen.line_number = strength, place, number
                seen.line = line[:SHOWN_CHARACTERS]
            seen.last = where
            seen.support.add(why)
            for clue, helped in CLUES:
                if cause in helped and where - self._clues.get(clue, where + 1) in range(NEAR_LINES + 1):
                    seen.support.add(clue)

    def clues(self, met: Sequence[tuple[str, tuple[Cause, ...]]], number: int) -> None:
        """Note the clues of a line, for causes that are named and for those that will be."""
        for clue, helped in met:
            self._clues[clue] = number
            for cause in helped:
                seen = self._seen.get(cause)
                if seen is not None and number - seen.last <= NEAR_LINES:
                    seen.support.add(clue)

    def claims(self, causes: tuple[Cause, ...], number: int) -> bool:
        """Whether a line that a build may have written is a run's: a clue for one of its causes stands before it."""
        return any(
            clue in self._clues and number - self._clues[clue] <= NEAR_LINES
            for clue, helped in CLUES
            if not set(causes).isdisjoint(helped)
        )

    def ranked(self) -> tuple[Named, ...]:
        """The likeliest first; of causes that are called by the same code the first.

        Where a text tells why a process ended with a signal, what else ends so is no cause.
        """
        named: dict[str, Named] = {}
        told = {cause: seen for cause, seen in self._seen.items() if seen.strength >= Strength.GENERAL}
        for cause, seen in sorted(self._seen.items(), key=lambda item: item[1].order):
            if seen.strength is Strength.SIGNAL and _explained(seen, told):
                continue
            one = Named(cause, seen.strength, len(seen.support), seen.line_number, seen.line)
            named.setdefault(cause.code, one)
        return tuple(named.values())


def _explained(ending: _Seen, told: Mapping[Cause, _Seen]) -> bool:
    """Whether a text names a cause of the same ending, or stands near it."""
    same = {cause for name in ending.support if name in ENDINGS for cause in ENDINGS[name].causes}
    return any(cause in same or abs(seen.last - ending.last) <= NEAR_LINES for cause, seen in told.items())


def search(lines: Iterable[str], ending: str | None = None) -> Found:
    """Everything that a log names: of a run, and of a build.

    Args:
        lines: in order; with or without their line ends.
        ending: how it ended, a name of ``ENDINGS``, where that is known besides.
    """
    run, either = Ranking(), Ranking()  # without and with the lines that a build may have written
    build, anyway = Tally(), Tally()  # the same of signatures of a build
    telling = Telling()
    of_a_build = False
    number = 0
    for number, raw in enumerate(lines, 1):
        line = cleaned(raw)
        telling.take(number, line)
        if not line:
            continue
        of_a_build = of_a_build or _says_build(line)
        if met := [one for one in CLUES if one[0] in line]:
            either.clues(met, number)
            run.clues(met, number)
        signature, known = match(line), _known(line)
        if signature is not None and known is not None and known[1] >= Strength.GENERAL:
            signature = None if either.claims(known[0], number) else signature
        if signature is not None:
            build.take(number, line, signature)
        if known is None:
            if signature is not None:
                anyway.take(number, line, signature)
                of_a_build = of_a_build or signature.code not in _NOT_TELLING
            continue
        either.name(*known, number, line)
        if signature is None:
            run.name(*known, number, line)
    if ending is not None:
        for each in (run, either):
            each.name(ENDINGS[ending].causes, Strength.SIGNAL, ending, 0, "", at=number)
    ranking, hits = (run, build) if of_a_build else (either, anyway)
    causes, found = ranking.ranked(), hits.hits()
    shown = () if causes or found else telling.lines()
    return Found(causes, Reading(found, shown, number, telling.own))


def _known(line: str) -> tuple[tuple[Cause, ...], Strength, str] | None:
    """Causes that a line names, how strongly, and by which text."""
    line = line if line.isascii() else spelled(line)
    for one in TABLE:
        if one.mark in line and one.fits(line):
            return one.causes, one.strength, f"{one.mark} {one.strength}"
    ending = ending_of(line)
    return None if ending is None else (ENDINGS[ending].causes, Strength.SIGNAL, ending)


def _says_build(line: str) -> bool:
    return any(word in line for word in _BUILD_WORDS) and _OF_A_BUILD.search(line) is not None
