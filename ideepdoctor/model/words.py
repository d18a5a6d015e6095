"""English for numbers. Pure."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """``1 CPU``, ``2 CPUs``, ``1.5 CPUs``."""
    return f"{number:g} {noun}{'' if number == 1 else 's'}"
