"""Find a text's translation by the text, or by the template that it was made from. Pure.

``cannot read net.py: Permission denied`` is no message of a catalogue; ``cannot read {path}: {error}`` is one. The
template that fits with the most words of its own wins, its values are translated in turn, and put into the
translation. A text that is several messages in a row (``2 errors, 1 note``) is translated piece by piece.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

VERBATIM = frozenset({"line", "path", "source_line"})
"""Values that are quoted: lines of programs and logs, and paths."""
FIELD = re.compile(r"(?<!\{)\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SEPARATORS = ("\n", ". ", "; ", " - ", ": ", ", ", " (")
"""Where a text is cut into pieces, the widest first."""
_NEXT_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z0-9])")
_BETWEEN = re.compile("|".join(re.escape(mark) for mark in _SEPARATORS))
_MOST_PLACES = 12
NUMBERS = ("count", "line_number", "index")
_FORMS = {"path": r"(?:(?!; |: |, ).)*?", **dict.fromkeys(NUMBERS, r"[\d.]+")}
"""What values of these names look like; those of other names look like anything."""
_DEEPEST = 6
_LONGEST = 4000
"""Characters; what is longer is nobody's sentence."""


@dataclass(frozen=True, slots=True)
class _Template:
    """A message with values."""

    message: str
    translation: str
    words: int
    """Of its own."""
    pattern: re.Pattern[str] = field(compare=False)


class Translator:
    """Translates texts by a catalogue.

    Args:
        catalogue: messages and translations; ``{name}`` stands for a value, ``{{`` and ``}}`` for braces.
    """

    def __init__(self, catalogue: Mapping[str, str]) -> None:
        self._plain: dict[str, str] = {}
        self._templates: dict[str, list[tuple[str, str]]] = {}
        self._patterns: dict[str, _Template] = {}
        self._known: dict[str, str] = {}
        with_values = []
        for message, translation in catalogue.items():
            if FIELD.search(message):
                if message != translation:  # one that says the same would only be in the way of others
                    with_values.append((message, translation))
            else:
                self._plain[_bare(message)] = _bare(translation)
        # Each template is looked for by the rarest of the words that it always has.
        own = {message: _own_words(message) for message, _ in with_values}
        often = Counter(word for words in own.values() for word in words)
        for message, translation in with_values:
            if own[message]:
                key = min(own[message], key=lambda word: (often[word], -len(word), word))
                self._templates.setdefault(key, []).append((message, translation))

    def __call__(self, text: str) -> str:
        """The translation of a text; the text where there is none. White space around it is kept."""
        if not text or len(text) > _LONGEST or text.isspace():
            return text
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._text(text, 0)
        return found

    def _text(self, text: str, depth: int) -> str:
        inner = text.strip()
        whole = self._sentences(inner, depth) or self._whole(inner, depth)
        if whole is None and depth < _DEEPEST:
            whole = self._pieces(inner, depth)
        return text if whole is None else text.replace(inner, whole, 1)

    def _sentences(self, text: str, depth: int) -> str | None:
        """The translation of several sentences, one by one; None for a single one, and where a message has them all."""
        parts = _NEXT_SENTENCE.split(text)
        if len(parts) < 2 or depth >= _DEEPEST or text in self._plain:
            return None
        if any(_NEXT_SENTENCE.search(template.message) for template, _ in self._fitting(text)):
            return None
        told = []
        for part in parts:
            new = self._text(part, depth + 1)
            if new == part and part.endswith("."):
                new = self._text(part[:-1], depth + 1)
                new += "." if new.isascii() else "。"
            told.append(new)
        whole = told[0]
        for new in told[1:]:
            whole += ("" if whole.endswith("。") else " ") + new
        return whole if told != parts else None

    def _whole(self, text: str, depth: int) -> str | None:
        """The translation of a text that is one message."""
        if text in self._plain:
            return self._plain[text]
        if depth >= _DEEPEST:
            return None
        best = max(self._fitting(text), key=lambda pair: (pair[0].words, len(pair[0].message)), default=None)
        if best is None:
            return None
        template, values = best

        def value(found: re.Match[str]) -> str:
            given, before = values[found[1]], found.string[: found.start()]
            # NAME=value is typed as it stands.
            told = given if before.endswith("=") or found[1] in VERBATIM else self._text(given, depth + 1)
            return told.replace("{", "{{").replace("}", "}}")

        return _bare(FIELD.sub(value, template.translation))

    def _fitting(self, text: str) -> Iterator[tuple[_Template, dict[str, str]]]:
        for word in set(_WORD.findall(text)):
            for message, translation in self._templates.get(word, ()):
                template = self._patterns.get(message)
                if template is None:
                    template = self._patterns[message] = _compiled(message, translation)
                found = template.pattern.fullmatch(text)
                # A value that ends in a mark was cut at the wrong place.
                if found is not None and not any(value.endswith((",", ";")) for value in found.groups()):
                    yield template, found.groupdict()

    def _pieces(self, text: str, depth: int) -> str | None:
        """The translation of several messages in a row; None where none of the pieces has one."""
        for found in list(_BETWEEN.finditer(text))[:_MOST_PLACES]:
            # Some messages begin or end with the mark between them: ", and 3 more"; "also possible:".
            if found[0] == ": ":
                head = self._whole(text[: found.start() + 1], depth + 1)
                if head is not None:
                    return f"{head} {self._text(text[found.end() :], depth + 1)}"
            tail = self._whole(text[found.start() :].strip(), depth + 1)
            if tail is not None:
                return self._text(text[: found.start()], depth + 1) + (" " if tail[0] == "(" else "") + tail
            tail = self._whole(text[found.end() :], depth + 1) if found[0] != " (" else None
            if tail is not None:
                return _joined([self._text(text[: found.start()], depth + 1), tail], found[0])
        for separator in _SEPARATORS:
            if separator not in text:
                continue
            pieces = text.split(separator)
            if separator == " (":
                pieces = [pieces[0], *(f"({piece}" for piece in pieces[1:])]
            done = [self._piece(piece, depth + 1) for piece in pieces]
            if any(new != old for new, old in zip(done, pieces, strict=True)):
                return _joined(done, separator)
        return None

    def _piece(self, piece: str, depth: int) -> str:
        if piece.startswith("(") and piece.endswith(")"):
            return f"({self._text(piece[1:-1], depth)})"
        for end in (".", ":", ",", ")"):
            whole = self._whole(piece.strip(), depth)
            if whole is None and piece.endswith(end) and len(piece) > 1:
                inner = self._text(piece[:-1], depth)
                if inner != piece[:-1]:
                    return inner + ("。" if end == "." and not inner.isascii() else end)
        return self._text(piece, depth)


def _joined(pieces: list[str], separator: str) -> str:
    """Pieces in a row, with the marks of the language between those that were translated."""
    marks = {". ": "。", "; ": "。", ", ": "、"}
    whole = pieces[0]
    for piece in pieces[1:]:
        foreign = whole[-1:] > "\u2fff" or piece[:1] > "\u2fff"
        between = " " if separator == " (" else marks.get(separator, separator) if foreign else separator
        whole += between + piece
    return whole


def _own_words(message: str) -> set[str]:
    """The words that every text of a template has: those that touch no value."""
    marked = FIELD.sub("\x00", message)
    return {
        found[0]
        for found in _WORD.finditer(marked)
        if marked[found.start() - 1 : found.start()] != "\x00" and marked[found.end() : found.end() + 1] != "\x00"
    }


def _compiled(message: str, translation: str) -> _Template:
    parts, end = [], 0
    for found in FIELD.finditer(message):
        value = _FORMS.get(found[1], ".*?")
        parts += [re.escape(_bare(message[end : found.start()])), f"(?P<{found[1]}>{value})"]
        end = found.end()
    parts.append(re.escape(_bare(message[end:])))
    words = len(_WORD.findall(FIELD.sub(" ", message)))
    return _Template(message, translation, words, re.compile("".join(parts), re.DOTALL))


def _bare(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")
