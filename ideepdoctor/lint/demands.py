"""A file of requirements as a source that checks can look at: lines and no program. Pure."""

from __future__ import annotations

import ast

from ideepdoctor.lint.pins import kind_of, scopes
from ideepdoctor.lint.source import Source, Unreadable, read


def read_named(path: str, data: bytes) -> Source:
    """Read a file as what its name says: requirements, or a program. Raises Unreadable."""
    *folders, name = path.split("/")
    kind = kind_of(name, folders[-1] if folders else "")
    return read(path, data) if kind is None else read_demands(path, kind, data)


def read_demands(path: str, kind: str, data: bytes) -> Source:
    """Read a file that says what is to be installed (``kind`` as ``pins.kind_of`` tells it).

    Raises:
        Unreadable: binary, no UTF-8, or not the TOML or INI file that its name says.
    """
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable("is no text in UTF-8", data[: error.start].count(b"\n") + 1) from error
    if "\0" in text:
        raise Unreadable("is a binary file, not a list of requirements")
    try:
        demanded = scopes(kind, text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error) or "cannot be parsed") from error
    lines = tuple(text.split("\n"))
    return Source(path, ast.Module([], []), lines, lines, demanded=demanded)
