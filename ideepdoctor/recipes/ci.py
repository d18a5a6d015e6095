"""What the recipes for CI services and clusters share. Pure."""

from __future__ import annotations

import hashlib

from ideepdoctor.stacks.data import Lock


def lock_digest(lock: Lock) -> str:
    """Sixteen hexadecimal digits that change when anything in a lock does: the key of a cache."""
    lines = "".join(f"{item.line()}\n" for item in lock.requirements)
    return hashlib.sha256(f"{lock.python}\n{lines}".encode()).hexdigest()[:16]
