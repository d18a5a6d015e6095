"""The code cells of a Jupyter notebook as one program. Pure."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from ideepdoctor.lint.python2 import Converted
from ideepdoctor.lint.source import Place, Source, Unreadable, parse

_MAGIC = re.compile(r"^(\s*)(?:%|!|\?).*$|^(\s*)[\w.]+\?{1,2}\s*$")
_ASSIGNED = re.compile(r"^(\s*[\w,. ]+=\s*)[%!].*$")
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%python", "%%python2", "%%python3", "%%pypy", "%%px")
"""Cell magics whose cell is Python; of any other (%%bash, %%html) it is not."""


def read_notebook(path: str, data: bytes) -> Source:
    """Read the code cells of a notebook (format 3 or 4), in the order of the document.

    A cell that is no Python is left out and listed in ``Source.unread``.

    Raises:
        Unreadable: no notebook, not of Python, or none of its code cells is Python.
    """
    cells = _code_cells(data)
    lines: list[str] = []
    read_lines: list[str] = []
    body: list[ast.stmt] = []
    starts: list[tuple[int, int]] = []
    converted: dict[int, Converted] = {}
    unread: list[tuple[Place, str]] = []
    for number, text in enumerate(cells, 1):
        start = len(lines)
        starts.append((start, number))
        lines += text.split("\n")
        try:
            tree, read_text, mapped = _parse_cell(text)
        except Unreadable as error:
            read_lines += text.split("\n")
            unread.append((Place(error.line or 1, 1, number), error.reason))
            continue
        read_lines += read_text.split("\n")
        if mapped is not None:
            converted[start] = mapped
        body += ast.increment_lineno(tree, start).body
    if unread and len(unread) == len(cells):
        place, reason = unread[0]
        raise Unreadable(f"none of its code cells is Python; cell {place.cell}: {reason}", place.line)
    return Source(
        path,
        ast.Module(body, []),
        tuple(lines) or ("",),
        tuple(read_lines) or ("",),
        bool(converted),
        converted,
        tuple(starts),
        tuple(unread),
    )


def _code_cells(data: bytes) -> list[str]:
    try:
        book = json.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise Unreadable(f"is no notebook: it is not JSON ({error})") from error
    if not isinstance(book, dict) or not isinstance(book.get("cells", book.get("worksheets")), list):
        raise Unreadable("is no notebook: it has no cells")
    language = _language(book.get("metadata"))
    if language is not None and not language.lower().startswith(("python", "ipython")):
        raise Unreadable(f"is a notebook of {language}, not of Python")
    sheets = [sheet for sheet in book.get("worksheets", ()) if isinstance(sheet, dict)]
    cells = book["cells"] if "cells" in book else [cell for sheet in sheets for cell in sheet.get("cells", ())]
    return [_text(cell) for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]


def _language(metadata: Any) -> str | None:
    """What the notebook says of its language; None where it says nothing."""
    if not isinstance(metadata, dict):
        return None
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        inner = metadata.get(part)
        if isinstance(inner, dict) and isinstance(inner.get(key), str):
            return str(inner[key])
    return None


def _text(cell: dict[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = "".join(str(part) for part in source) if isinstance(source, list) else str(source)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parse_cell(text: str) -> tuple[ast.Module, str, Converted | None]:
    first = text.lstrip().split("\n", 1)[0]
    if first.startswith("%%") and first.split()[0] not in _PYTHON_CELLS:
        blank = "\n" * text.count("\n")
        return ast.Module([], []), blank, None
    try:
        return parse(text)
    except Unreadable as error:
        plain = "\n".join(_plain(line) for line in text.split("\n"))
        if plain == text:
            raise
        try:
            return parse(plain)
        except Unreadable as other:
            raise other from error


def _plain(line: str) -> str:
    """A line without IPython's own syntax: ``%matplotlib inline``, ``files = !ls``, ``model?``."""
    if found := _MAGIC.match(line):
        return f"{found.group(1) or found.group(2) or ''}pass"
    return _ASSIGNED.sub(r"\1None", line)
