"""A marked block in a shell's start-up file, put in and taken out without touching another byte. Pure: str to str.

Texts must be read and written with their line ends as they are (``newline=""``).
"""

from __future__ import annotations

import re

START = "# >>> ideepdoctor >>>"
END = "# <<< ideepdoctor <<<"
_JOINED = "# (the file did not end with a newline)"
"""Stands in the block where the newline before it is ours too."""

_BLOCK = re.compile(
    # A start that is followed by another start before any end is a leftover, not the start of this block.
    rf"(?m)^{re.escape(START)}\r?\n(?P<body>(?:(?!{re.escape(START)}).*\n)*?){re.escape(END)}(?:\r?\n|\r?\Z)"
)


def has_block(text: str) -> bool:
    """Whether the text holds a complete block."""
    return _BLOCK.search(text) is not None


def put_block(text: str, block: str) -> str:
    """Put the block at the end of the text, or in place of the one that is there.

    Args:
        text: the file; may be empty, lack a newline at its end, or use CRLF.
        block: the lines between the markers, without them.

    Raises:
        ValueError: the block itself holds a marker.
    """
    lines = block.replace("\r\n", "\n").strip("\n").split("\n")
    if START in block or END in block:
        raise ValueError("a block cannot hold its own markers")
    there = _BLOCK.search(text)
    newline = "\r\n" if "\r\n" in (there[0] if there else text) else "\n"
    joined = _is_joined(there["body"]) if there else bool(text) and not text.endswith("\n")
    whole = newline.join([START, *([_JOINED] if joined else []), *lines, END]) + newline
    if there:
        return text[: there.start()] + whole + text[there.end() :]
    return text + (newline if joined else "") + whole


def remove_block(text: str) -> str:
    """Take the block out; what put_block was given comes back exactly. A text without one comes back as it is."""
    there = _BLOCK.search(text)
    if there is None:
        return text
    before, after = text[: there.start()], text[there.end() :]
    if _is_joined(there["body"]) and not after:
        # A lone \r before our \n is the text's own, unless the block has CRLF throughout.
        before = before.removesuffix("\r\n" if "\r\n" in there[0] else "\n")
    return before + after


def _is_joined(body: str) -> bool:
    """Whether the block says that the newline before it is ours."""
    return body.startswith(_JOINED)
