"""What a cause and a symptom are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

_BUILD, _SOURCE = "IDP8", "IDP9"
_INSTALLED = ("IDP820", "IDP824")
"""Of the family of builds, and looked at by ``diagnose``."""
_PROVED = "IDP6"
"""The family that rests on computing, which ``diagnose`` does not do."""
_LASTING = ("IDP620", "IDP621", "IDP622")
_SELECTED = 4
"""Codes in one command: the others of a cause are named, and the first tell enough."""


class Strength(IntEnum):
    """How much a text says about its cause."""

    SIGNAL = 1
    """A signal or an exit code: everything that ends so."""
    WARNING = 2
    """The program went on; it may have nothing to do with how it ended."""
    GENERAL = 3
    """Several causes make it."""
    SPECIFIC = 4
    """Nothing else makes it, or nothing else among what is known here."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What may be behind a symptom.

    Attributes:
        codes: of the rules that find it, the one that it is called by first.
        consequence: what happened, one sentence.
        next_step: what to do.
        check: the command that confirms it; empty: ``diagnose`` with the codes.
    """

    codes: tuple[str, ...]
    consequence: str
    next_step: str
    check: str = ""

    @property
    def code(self) -> str:
        """The first code."""
        return self.codes[0]

    @property
    def confirm(self) -> str:
        """The command that confirms the cause where it happened."""
        if self.check:
            return self.check
        if self.code in _LASTING:
            return "ideepdoctor certify --ops memory,fork"
        if self.code.startswith(_PROVED):
            return "ideepdoctor smoke"
        looked_at = [code for code in self.codes if not code.startswith((_BUILD, _SOURCE)) or code in _INSTALLED]
        if looked_at:
            return f"ideepdoctor diagnose --select {','.join(looked_at[:_SELECTED])}"
        return f"ideepdoctor explain {self.code}"


@dataclass(frozen=True, slots=True)
class Symptom:
    """A text by which causes are known.

    Attributes:
        mark: stands in every line (or text) that fits; looked for first, because that is quick.
        causes: the likeliest first.
        strength: how much it says.
        pattern: searched where the mark is; None: the mark is enough.
    """

    mark: str
    causes: tuple[Cause, ...]
    strength: Strength = Strength.SPECIFIC
    pattern: re.Pattern[str] | None = None

    def fits(self, text: str) -> bool:
        """Whether a line, or several, have it."""
        return self.mark in text and (self.pattern is None or self.pattern.search(text) is not None)
