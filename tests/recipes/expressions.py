"""The few expressions of GitHub Actions that the recipes use, evaluated: contexts, comparisons, ``&&``, ``||``, ``!``,
status functions and ``hashFiles``. What GitHub would not evaluate either raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<op>&&|\|\||==|!=|!|\(|\)|,)|(?P<word>[A-Za-z_][\w.-]*|\d+))")
_LITERALS = {"true": True, "false": False, "null": None}
Functions = Mapping[str, Callable[..., Any]]


def substitute(text: str, contexts: Mapping[str, Any], functions: Functions | None = None) -> str:
    """A text with each ``${{ }}`` replaced."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: _shown(evaluate(match[1], contexts, functions)), text, flags=re.S)


def evaluate(expression: str, contexts: Mapping[str, Any], functions: Functions | None = None) -> Any:
    """The value of one expression, without its ``${{ }}``."""
    parser = _Parser(_tokens(expression), contexts, functions or {})
    value = parser.either()
    if parser.left:
        raise ValueError(f"{expression!r}: {parser.left[0]!r} is not expected")
    return value


def truth(value: Any) -> bool:
    """As GitHub takes it: false, 0, the empty text and null are false."""
    return value not in (False, 0, "", None)


def _tokens(text: str) -> list[str]:
    found, place = [], 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"{text!r} is not understood at {text[place:]!r}")
        found.append(match.group().strip())
        place = match.end()
    return found


class _Parser:
    def __init__(self, left: list[str], contexts: Mapping[str, Any], functions: Functions):
        self.left, self.contexts, self.functions = left, contexts, functions

    def either(self) -> Any:
        value = self.both()
        while self.taken("||"):
            other = self.both()
            value = value if truth(value) else other
        return value

    def both(self) -> Any:
        value = self.compared()
        while self.taken("&&"):
            other = self.compared()
            value = other if truth(value) else value
        return value

    def compared(self) -> Any:
        value = self.single()
        while self.left and self.left[0] in ("==", "!="):
            same, other = self.left.pop(0) == "==", self.single()
            value = (_same(value, other)) == same
        return value

    def single(self) -> Any:
        if self.taken("!"):
            return not truth(self.single())
        if self.taken("("):
            value = self.either()
            self.expect(")")
            return value
        word = self.left.pop(0)
        if word.startswith("'"):
            return word[1:-1].replace("''", "'")
        if self.taken("("):
            return self.call(word)
        return _LITERALS[word] if word in _LITERALS else int(word) if word.isdigit() else self.looked_up(word)

    def call(self, name: str) -> Any:
        given = []
        while not self.taken(")"):
            given.append(self.either())
            self.taken(",")
        if name not in self.functions:
            raise ValueError(f"{name}() is not known")
        return self.functions[name](*given)

    def looked_up(self, word: str) -> Any:
        first, *names = word.split(".")
        if first not in self.contexts:
            raise ValueError(f"the context {first} is not known")
        value: Any = self.contexts[first]
        for name in names:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def taken(self, token: str) -> bool:
        if self.left and self.left[0] == token:
            self.left.pop(0)
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.taken(token):
            raise ValueError(f"{token!r} is missing before {self.left[:1]}")


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, str) and isinstance(other, str):
        return one.lower() == other.lower()
    return _number(one) == _number(other) if type(one) is not type(other) else one == other


def _number(value: Any) -> float:
    if value is None or value == "":
        return 0
    try:
        return float(value)
    except ValueError:
        return float("nan")


def _shown(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
