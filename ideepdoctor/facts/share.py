"""Facts for strangers: every word that is not known to be harmless is replaced, and rules still judge them alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ideepdoctor.facts.redact import NOBODY, redact
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json
from ideepdoctor.facts.vocabulary import vocabulary
from ideepdoctor.model.facts import Facts

_PIECE = re.compile(r"(?:[A-Za-z0-9_]|[^\x00-\x7f\u2018\u2019\u201c\u201d\u2026\u00b7\u00d7\u2013\u2014])+")
"""A word: letters, digits, and everything that is no ASCII but typographic signs (names are written in any script)."""
_NUMBER = re.compile(r"\d{1,8}|v?\d{1,4}[a-z]{0,5}\d{0,4}|0x[0-9a-f]{1,4}")
"""Numbers, parts of versions (``post3``, ``0b4``), of names of processors (``8180``, ``1505M``)."""
_MIXED = re.compile(r"([A-Za-z_]+)(\d{0,4})(?:([A-Za-z_]+)(\d{0,4}))?(?:([A-Za-z_]+))?")
"""Words with numbers in them: ``avx512_common``, ``libiomp5``, ``cp37m``."""
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
"""IPv4; a version of four numbers looks the same and is kept only where a field holds nothing else."""
_WHOLE = re.compile(
    r"(?P<mail>[\w.+%-]+@[\w-]+(?:\.[\w-]+)*)"
    r"|(?P<hex>(?<![\w.])[0-9A-Fa-f]{1,12}(?:[:-][0-9A-Fa-f]{1,12}){2,}(?![\w.]))"
    r"|(?P<ipv6>(?<![\w:.])(?=[0-9A-Fa-f:]*\d)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){0,6}::[0-9A-Fa-f:]{0,35}(?![\w:.]))"
    r"|(?P<escaped>(?:%[0-9A-Fa-f]{2}){2,}|(?:\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})+)"
)
"""What is a name as a whole though its parts are numbers and known words: user@host, MAC and IPv6 addresses, UUIDs,
letters of another script as escapes."""
_HEX_DIGITS = 10
"""Groups of fewer hexadecimal digits are dates and times."""
_STAND_IN = re.compile(r"w\d{1,5}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_DIGESTS = frozenset({"sha256", "build_id", "commit", "mkldnn_commit"})
"""Fields that hold a digest of a file: they say which library it is."""


def shareable(facts: Facts, *, home: str, user: str, host: str, names: Iterable[str] = ()) -> Facts:
    """The facts with nothing in them that tells who or where somebody is.

    First what ``redact`` knows of is replaced, then, in every text, each word that neither this program nor the system
    uses, and each long number: by ``w1``, ``w2``... the same word by the same stand-in, so that what belongs together
    still does.

    Args:
        facts: what is.
        home: path of the user's home folder.
        user: login name.
        host: host name.
        names: further names of persons and hosts.
    """
    data = facts_to_json(redact(facts, home=home, user=user, host=host))
    return facts_from_json(_Cleaner((user, host, *names)).value(data, ""))


class _Cleaner:
    """Replaces words; remembers what by what."""

    def __init__(self, names: tuple[str, ...]) -> None:
        pieces = {piece.lower() for name in names for piece in _PIECE.findall(name)}
        self._names = frozenset(piece for piece in pieces if len(piece) > 1 and not piece.isdigit()) - NOBODY
        self._words = vocabulary() - self._names
        self._known: dict[str, str] = {}

    def value(self, value: Any, field: str) -> Any:
        """A JSON value without what must not be seen."""
        if isinstance(value, str):
            return self._text(value, field)
        if isinstance(value, Mapping):
            return {self._text(key, ""): self.value(item, key) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, field) for item in value]
        return value

    def _text(self, text: str, field: str) -> str:
        if (field in _DIGESTS and _DIGEST.fullmatch(text)) or (field == "collected_at" and _TIME.fullmatch(text)):
            return text
        if field != "version" or not _ADDRESS.fullmatch(text):
            text = _ADDRESS.sub(lambda found: self._stand_in(found[0]), text)
        text = _WHOLE.sub(self._whole, text)
        return _PIECE.sub(lambda found: self._piece(found[0]), text)

    def _piece(self, piece: str) -> str:
        known = piece.lower() in self._words or _NUMBER.fullmatch(piece) or self._is_mixed(piece)
        if _STAND_IN.fullmatch(piece) or (known and piece.lower() not in self._names):
            return piece
        return self._stand_in(piece)

    def _whole(self, found: re.Match[str]) -> str:
        if found["hex"] and sum(letter not in ":-" for letter in found["hex"]) < _HEX_DIGITS:
            return found[0]
        return self._stand_in(found[0])

    def _stand_in(self, text: str) -> str:
        return self._known.setdefault(text, f"w{len(self._known) + 1}")

    def _is_mixed(self, piece: str) -> bool:
        found = _MIXED.fullmatch(piece)
        if found is None:
            return False
        words = [word for word in (found[1], found[3], found[5]) if word is not None]
        # One letter by itself is that of a version or a processor; several are a code.
        return all(word.lower() in self._words or len(word) <= 1 for word in words) and (
            sum(len(word.strip("_")) == 1 for word in words) <= 1
        )
