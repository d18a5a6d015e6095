"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(?<![\w/])IDP\d{3}(?![\w.])")
_KEPT = re.compile(r"(```.*?```|^ {4,}[^\n]*$|`+[^`\n]+?`+|\[[^\]\n]*\]\([^)\n]*\))", re.DOTALL | re.MULTILINE)


def cell(text: str) -> str:
    """A text in a table."""
    return " ".join(text.split()).replace("|", r"\|")


def literal(text: str) -> str:
    """A text as a program would print it, in a line: between as many backquotes as it needs."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table and the empty line after it."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(cell(item) for item in row)} |" for row in rows), ""]


def with_codes(text: str, known: frozenset[str], place: str) -> str:
    """A text in which every code of a rule links to its page, but in headings, programs and links.

    Args:
        text: Markdown.
        known: codes that have a page.
        place: of the folder of rules as seen from the page: ``rules/``; empty: the page is in it.
    """

    def linked(part: str) -> str:
        lines = part.split("\n")
        return "\n".join(line if line.startswith("#") else _CODE.sub(link, line) for line in lines)

    def link(found: re.Match[str]) -> str:
        return f"[{found[0]}]({place}{found[0]}.md)" if found[0] in known else found[0]

    parts = _KEPT.split(text)
    return "".join(part if number % 2 else linked(part) for number, part in enumerate(parts))


def plain(text: str) -> str:
    """A paragraph whose characters are all its own: what Markdown would take for its language is escaped."""
    pieces = re.split(r"(`+[^`\n]+?`+)", text)
    return "".join(
        piece if number % 2 else re.sub(r"([<>*_\[\]])", r"\\\1", piece) for number, piece in enumerate(pieces)
    )
