"""Asks a library of vector functions in a process of its own; what its draws must be, by the public description."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.builder.vector_library import floats, numbers

__all__ = ["SPECIAL", "A", "M", "ask", "expected_draws", "floats", "numbers", "same", "single", "ulps"]

PROGRAM = Path(__file__).with_name("vector_library.py")
A, M = 1132489760, (1 << 31) - 1
"""MCG31m1: x' = A x mod M, u = x / M; x of the first draw is the seed mod M, or 1 (reference of MKL's generators)."""
SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, -3.0, 1e-38, 3.4e38, -3.4e38),
    *(math.inf, -math.inf, math.nan, 1.401298464324817e-45, -1.401298464324817e-45),
)


def ask(library: Path | str, requests: list[dict[str, Any]], needed: tuple[Path | str, ...] = ()) -> list[Any]:
    argv = [sys.executable, "-I", str(PROGRAM), str(library), *map(str, needed)]
    given = json.dumps(requests).encode("ascii")
    done = subprocess.run(argv, input=given, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr.decode()[-2000:]}"
    answers: list[Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return answers


def single(value: float) -> float:
    """The nearest number of single precision."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def expected_draws(seed: int, count: int, p: float, skip: int = 0) -> str:
    """A draw is 1 unless u >= p, both in single precision."""
    x = (seed % M or 1) * pow(A, skip % (1 << 64), M) % M
    limit, found = single(p), []
    for _ in range(count):
        found.append("0" if single(x / M) >= limit else "1")
        x = x * A % M
    return "".join(found)


def same(one: float, other: float) -> bool:
    """Equal with their signs, or both no number."""
    return struct.pack("<f", one) == struct.pack("<f", other) or (math.isnan(one) and math.isnan(other))


def ulps(found: float, exact: float) -> float:
    """Distance in units of the last place of single precision; 0 where both are beyond its range."""
    if single(exact) == found or (math.isnan(exact) and math.isnan(found)):
        return abs(found - exact) / _spacing(exact) if math.isfinite(found) and math.isfinite(exact) else 0.0
    return abs(found - exact) / _spacing(exact)


def _spacing(value: float) -> float:
    _, exponent = math.frexp(value)
    return math.ldexp(1.0, max(exponent - 24, -149))
