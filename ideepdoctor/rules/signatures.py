"""What the log of a build says when it fails: known signatures and the rule that explains each. Pure.

A log is read once, line by line, and nothing of it is kept but the hits, so its length does not matter. Lines may come
from a terminal, from pip (indented), from a CI service (timestamps, step numbers), with colours, from ``make -j``, from
a compiler that speaks another language (its quotes differ, identifiers do not), and may hold no text at all.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ideepdoctor.model.build import LogHit
from ideepdoctor.rules.signature_table import SIGNATURES, Signature

LINE_CHARACTERS = 4000
"""What is looked at of a line, half of it at its start and half at its end: it may be a whole file of binary junk."""
SHOWN_CHARACTERS = 200
HITS_PER_CODE = 3
_TELLING = 6
"""Lines that are shown where no signature is known."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_PREFIX = re.compile(
    r"(?:\s+"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"  # GitHub, GitLab, Kubernetes, journals
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?"  # Jenkins, Travis
    r"|\[\d{4}-\d\d-\d\dT[^\]\s]*\]"
    r"|#\d+ \d+\.\d+"  # docker build
    r"|##\[\w+\]"  # GitHub, Azure
    r"|\d\d[OE]\+?(?=\s)"  # GitLab
    r"|[|>│╰─]+(?=\s)"  # pip
    r")+"
)
_SPELLING = str.maketrans(dict.fromkeys('‘’‚‛“”„‟«»‹›`´"', "'") | {"：": ": "})
_JUNK = str.maketrans({"\0": "", "\ufeff": ""})
_ERROR_WORDS = (
    *("error", "fatal", "failed", "failure", "cannot", "undefined", "***", "exception", "not found", "no such file"),
    *("traceback", "fehler", "erreur", "エラー", "错误"),
)
"""One of them is in every line that the next pattern fits; looked for first, because that is quick."""
_ERROR_LIKE = re.compile(
    r"(?:\berror\b|\bfatal\b|\bfailed\b|\bfailure\b|\bcannot\b|\bundefined\b|\*\*\*|\b\w+(?:Error|Exception)\b|"
    r"not found|No such file|Traceback|\bfehler\b|\berreur\b|エラー|错误)",
    re.IGNORECASE,
)
_NO_ERROR = re.compile(r"(?:\b0 errors?\b|-W(?:no-)?error\b|error\.(?:c|cc|cpp|h|hpp|o)\b)", re.IGNORECASE)
_OWN = re.compile(r"# (?:\S*/)?ideepdoctor ")
_PLACES: dict[str, list[int]] = {}
"""The words of the signatures, and the numbers of those that have each."""
for _number, _signature in enumerate(SIGNATURES):
    for _word in _signature.words:
        _PLACES.setdefault(_word, []).append(_number)


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in a log.

    Attributes:
        hits: known signatures, the first cause first.
        telling: the last lines that look like errors, or the last lines of the log; empty where there are hits.
        line_count: lines that were read.
        own: it is the log of ``ideepdoctor build`` itself, which begins with the command.
    """

    hits: tuple[LogHit, ...]
    telling: tuple[tuple[int, str], ...]
    line_count: int
    own: bool = False


def find(lines: Iterable[str]) -> tuple[LogHit, ...]:
    """The known signatures in the log of a build.

    Args:
        lines: of the log, in order; with or without their line ends.

    Returns:
        The first cause first: by line, but what only follows from another error comes last, and is left out where its
        own code is there already. At most three of one code.
    """
    return read(lines).hits


def read(lines: Iterable[str]) -> Reading:
    """Like ``find``, and what to show where nothing is known."""
    tally, telling, number = Tally(), Telling(), 0
    for number, raw in enumerate(lines, 1):
        line = cleaned(raw)
        telling.take(number, line)
        signature = match(line) if line else None
        if signature is not None:
            tally.take(number, line, signature)
    hits = tally.hits()
    return Reading(hits, () if hits else telling.lines(), number, telling.own)


class Tally:
    """The hits of a log, as they come."""

    def __init__(self) -> None:
        self._causes: list[LogHit] = []
        self._follow: list[LogHit] = []
        self._counts: dict[tuple[str, bool], int] = {}

    def take(self, number: int, line: str, signature: Signature) -> None:
        """Note a line that has a signature."""
        key = (signature.code, signature.follows)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] <= HITS_PER_CODE:
            kept = self._follow if signature.follows else self._causes
            kept.append(LogHit(signature.code, number, _shown(line, signature)))

    def hits(self) -> tuple[LogHit, ...]:
        """The first cause first."""
        named = {hit.code for hit in self._causes}
        return (*self._causes, *(hit for hit in self._follow if hit.code not in named))


class Telling:
    """What of a log is shown where nothing in it is known; and whether the doctor's own build wrote it."""

    def __init__(self) -> None:
        self.own = False
        self._errors: deque[tuple[int, str]] = deque(maxlen=_TELLING)
        self._last: deque[tuple[int, str]] = deque(maxlen=_TELLING)

    def take(self, number: int, line: str) -> None:
        """Note a cleaned line."""
        if not line:
            return
        self.own = self.own or (number == 1 and _OWN.match(line) is not None)
        self._last.append((number, line[:SHOWN_CHARACTERS]))
        if _is_error_like(line):
            self._errors.append((number, line[:SHOWN_CHARACTERS]))

    def lines(self) -> tuple[tuple[int, str], ...]:
        """The last that look like errors, else the last."""
        return tuple(self._errors or self._last)


def cleaned(raw: str) -> str:
    """A line without colours, times of a CI service, indentation and what cannot be printed; may be empty."""
    if len(raw) > LINE_CHARACTERS:  # a progress bar is one line, and what it ended with stands at its end
        raw = f"{raw[: LINE_CHARACTERS // 2]} {raw[-LINE_CHARACTERS // 2 :]}"
    line = raw.translate(_JUNK)
    if "\x1b" in line:
        line = _ESCAPES.sub("", line)
    line = line[found.end() :] if (found := _PREFIX.match(line)) else line
    line = line.rstrip()
    return line if line.isprintable() else "".join(one if one.isprintable() else " " for one in line).rstrip()


def spelled(line: str) -> str:
    """A line with every kind of quote made ``'``: compilers and web pages have their own."""
    return line.translate(_SPELLING)


def match(line: str) -> Signature | None:
    """The first signature that a cleaned line has, or None; every kind of quote is taken for ``'``."""
    line = spelled(line)
    numbers = [places for word, places in _PLACES.items() if word in line]
    for number in sorted({number for places in numbers for number in places}):
        if SIGNATURES[number].pattern.search(line):
            return SIGNATURES[number]
    return None


def _is_error_like(line: str) -> bool:
    lower = line.lower()
    return (
        any(word in lower for word in _ERROR_WORDS)
        and _ERROR_LIKE.search(line) is not None
        and _NO_ERROR.search(line) is None
    )


def _shown(line: str, signature: Signature) -> str:
    """The line, cut so that the place of the signature is in it."""
    found = signature.pattern.search(spelled(line))
    start = 0 if found is None or found.end() <= SHOWN_CHARACTERS else max(0, found.end() - SHOWN_CHARACTERS)
    return line[start : start + SHOWN_CHARACTERS].strip()
