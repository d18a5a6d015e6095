"""Widths, breaks and columns of lines that hold wide characters. Pure.

A Japanese character takes two columns of a terminal, and a line may break before almost any of them.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata

from ideepdoctor.locale import tr, translating

_NEVER_FIRST = "、。，．・：；？！」』）］｝〕〉》】ーぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ々％,.:;?!)]}%"
"""What does not begin a line (JIS X 4051, 4.3)."""
_NEVER_LAST = "「『（［｛〔〈《【([{"
_ATOM = re.compile(r"\s+|[\u2e80-\uffef]|[^\s\u2e80-\uffef]+")
_CELL = re.compile(r"\s{2,}")


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(_columns(character) for character in text)


def ljust(text: str, columns: int) -> str:
    """The text with blanks up to this many columns."""
    return text + " " * (columns - width(text))


def wrap(text: str, columns: int, *, first: str = "", rest: str = "", verbatim: bool = False) -> list[str]:
    """Translate a text and break it into lines.

    Args:
        text: one paragraph.
        columns: the widest line.
        first: what the first line begins with.
        rest: what the others begin with.
        verbatim: it is not translated.

    Returns:
        The lines; none for an empty text. Words that hold no wide character are broken as textwrap does.
    """
    text = text if verbatim else tr(text)
    if text.isascii():
        return textwrap.wrap(text, columns, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    lines, line, blank = [], first, ""
    empty = True
    for atom in _atoms(text):
        if atom.isspace():
            blank = "" if empty else " "
        elif not empty and width(line + blank + atom) > columns:
            lines.append(line)
            line, blank = rest + atom, ""
        else:
            line, blank, empty = line + blank + atom, "", False
    return lines if empty else [*lines, line]


def line(text: str) -> str:
    """Translate a line as a person reads it: columns apart from each other one by one, and put where they were.

    A column is what two or more blanks set off.
    """
    if not translating():
        return text
    indent = text[: len(text) - len(text.lstrip())]
    if not _CELL.search(text.strip()):
        return tr(text)
    made, position = indent, len(indent)
    for part in re.split(r"(\s{2,})", text.strip()):
        if _CELL.fullmatch(part):
            position += len(part)
            # A wide word may push its neighbour on; the next column is where it was where there is room.
            made += " " * max(2, position - width(made))
        else:
            position += width(part)  # a part may have been told already
            made += tr(part)
    return made if made != text else tr(text)


def lines(text: str) -> str:
    """Translate a text of many lines."""
    return "\n".join(line(each) for each in text.split("\n")) if translating() else text


def _atoms(text: str) -> list[str]:
    """What a line may be broken between."""
    atoms: list[str] = []
    for found in _ATOM.finditer(text):
        atom = found[0]
        before = atoms[-1][-1] if atoms else ""
        if before and not before.isspace() and (atom[0] in _NEVER_FIRST or before in _NEVER_LAST):
            atoms[-1] += atom
        else:
            atoms.append(atom)
    return atoms


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
