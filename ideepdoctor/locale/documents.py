"""Documents: docstrings of rules and commands, translated paragraph by paragraph. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

_ITEM = re.compile(r"([*-]|\d+\.) ")


def paragraphs(document: str) -> tuple[str, ...]:
    """A document's paragraphs, each on one line; the items of a list are paragraphs of their own."""
    return tuple(text for _, text in _blocks(document))


def translated(document: str, tr: Callable[[str], str]) -> str:
    """A document with its paragraphs translated, each on one line, as far as they have a translation."""
    told: list[str] = []
    for after_blank, text in _blocks(document):
        told += [""] * (after_blank and bool(told)) + [tr(text)]
    return "\n".join(told)


def _blocks(document: str) -> list[tuple[bool, str]]:
    """Whether a blank line stands before it, and the paragraph."""
    found: list[tuple[bool, list[str]]] = []
    blank, fresh = False, True
    for line in inspect.cleandoc(document).splitlines():
        text = line.strip()
        if not text:
            blank = fresh = True
            continue
        if fresh or _ITEM.match(text) or text.endswith("::"):
            found.append((blank, [text]))
        else:
            found[-1][1].append(text)
        blank = fresh = False
    return [(before, " ".join(lines)) for before, lines in found]
