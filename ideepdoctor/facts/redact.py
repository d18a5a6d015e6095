"""Facts that may be shown to strangers: no home folder, no user, no host, no credentials."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from ideepdoctor.model.facts import Facts

_CREDENTIALS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@]+@")
NOBODY = frozenset({"", "root", "user", "localhost"})
"""Names that tell nothing; "root" is a folder's and an option's name besides."""


def redact(facts: Facts, *, home: str, user: str, host: str) -> Facts:
    """Return the facts with every text cleaned.

    The home folder becomes ``~``, the user's name USER, the host's HOST, credentials in a URL ``***``. A name that
    stands alone (a package that is called as the user is) stays: only paths and sentences give people away.

    Args:
        facts: what is.
        home: path of the user's home folder.
        user: login name.
        host: host name, with or without its domain.
    """
    return cast(Facts, _mapped(facts, lambda text: redact_text(text, home=home, user=user, host=host)))


def redact_text(text: str, *, home: str, user: str, host: str) -> str:
    """Return one text cleaned (see ``redact``)."""
    text = _CREDENTIALS.sub(r"\1***@", text)
    folder = home.rstrip("/")
    if folder:
        text = re.sub(rf"(?<![\w.-]){re.escape(folder)}(?![\w.-])", "~", text)
    if not re.search(r"[/@:\s]", text):
        return text
    short = host.partition(".")[0]
    for name, stand_in in ((host, "HOST"), (short, "HOST"), (user, "USER")):
        if name not in NOBODY:
            text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", stand_in, text)
    return text


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value with every text in it changed, keys of mappings too (paths); names of fields stay."""
    if isinstance(value, str):
        return change(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _mapped(getattr(value, field.name), change) for field in fields(value)}
        return replace(value, **changed)
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    return value
