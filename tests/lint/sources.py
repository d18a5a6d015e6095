"""What the tests of lint share: programs as text, and what lint says of a text."""

from __future__ import annotations

from pathlib import Path

from ideepdoctor.lint.demands import read_named
from ideepdoctor.lint.engine import Located, lint

PROGRAMS = Path(__file__).parent / "programs"
"""Programs end with .txt: they are data, and some are Python 2."""


def program(name: str) -> bytes:
    return (PROGRAMS / f"{name}.txt").read_bytes()


def found(text: str | bytes, file: str = "program.py") -> tuple[Located, ...]:
    data = text.encode() if isinstance(text, str) else text
    result = lint(read_named(file, data))
    assert result.unread == ()
    return result.found


def codes(text: str | bytes) -> list[str]:
    return [item.finding.code for item in found(text)]


def faults(text: str | bytes) -> list[str]:
    """Codes of errors and warnings; notes left out."""
    return [item.finding.code for item in found(text) if item.finding.severity != "info"]


HEAD = """\
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers, serializers, training
"""
