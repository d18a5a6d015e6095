"""IDP918 at its edges: what is tried, given back, or only looks like a name of NumPy."""

from __future__ import annotations

import pytest

from tests.lint.sources import found

HEAD = "import chainer\nimport numpy\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("x = numpy.int(3)\n", [3]),
        ("x = numpy.bool_(3)\n", []),
        ("from numpy import float\n", [3]),
        ("from numpy import float32\n", []),
        ("try:\n    x = numpy.float\nexcept AttributeError:\n    x = float\n", []),
        ("try:\n    x = numpy.float\nexcept (TypeError, AttributeError):\n    x = float\n", []),
        ("try:\n    x = numpy.float\nexcept:\n    x = float\n", []),
        ("try:\n    x = numpy.float\nexcept ValueError:\n    x = float\n", [4]),
        ("try:\n    x = 1\nexcept AttributeError:\n    x = numpy.float\n", [6]),
        ("try:\n    from numpy import NaN\nexcept ImportError:\n    NaN = float('nan')\n", []),
        ("numpy.int = int\nx = numpy.int(3) + numpy.float(3)\n", [4]),
        ("def f(numpy):\n    return numpy.float\n", []),
        ("x = numpy.random.float\n", []),
    ],
)
def test_uses(text: str, lines: list[int]) -> None:
    seen = found(HEAD + text)
    assert [item.place.line for item in seen] == lines
    assert {item.finding.code for item in seen} <= {"IDP918"}


@pytest.mark.parametrize(
    ("name", "last", "instead"),
    [("unicode", "1.23", "write str"), ("product", "1.26", "write numpy.prod"), ("Inf", "1.26", "write numpy.inf")],
)
def test_how_far_it_goes_and_what_to_write(name: str, last: str, instead: str) -> None:
    [item] = found(f"{HEAD}x = numpy.{name}\n")
    assert item.finding.consequence.startswith(f"it works up to NumPy {last} ")
    assert item.finding.next_step == instead
    assert item.finding.severity == "info"
