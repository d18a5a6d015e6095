"""Payloads as they are sent: parts joined, loaded in this process or compiled in another Python."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any

from ideepdoctor.targets.target import payload_source

PAYLOADS = tuple(
    sorted(
        item.name.removesuffix(".py")
        for item in (files("ideepdoctor") / "payload").iterdir()
        if item.name.endswith(".py") and item.name != "__init__.py"
    )
)
"""Names of all payloads and parts."""


def load(name: str) -> dict[str, Any]:
    """The names that a payload defines, parts included. It is not run: its ``__name__`` is ``payload``."""
    names: dict[str, Any] = {"__name__": "payload"}
    before = list(sys.path)
    try:
        exec(compile(payload_source(name), f"{name}.py and its parts", "exec"), names)
    finally:
        sys.path[:] = before
    return names
