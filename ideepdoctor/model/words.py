"""English for numbers. Pure."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """``1 CPU``, ``2 CPUs``, ``1.5 CPUs``."""
    shown = str(number) if isinstance(number, int) else f"{number:g}"
    return f"{shown} {noun}{'' if number == 1 else 's'}"
