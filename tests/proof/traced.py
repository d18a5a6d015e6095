"""Records as a traced program leaves them, made by hand for the tests of what reads and judges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ideepdoctor.proof.trace_records import Counts, Records, Row

CHAINER: Mapping[str, Any] = {"version": "7.8.1", "ideep": "2.0.0.post3", "available": True, "variables": {}}
FILE = "/home/me/net.py"


def array(*shape: int, kind: str = "n", dtype: str = "float32", parameter: bool = False) -> list[Any]:
    """An input as the records tell it."""
    return [kind, dtype, list(shape), parameter]


IMAGES = array(8, 3, 32, 32)
WEIGHTS = array(16, 3, 3, 3, parameter=True)
CONVERTED = array(16, 3, 3, 3, kind="m", parameter=True)


def row(
    number: int,
    function: str,
    *inputs: list[Any],
    line: int = 10,
    calls: int = 4,
    seconds: float = 1.0,
    executed: int = 0,
    backward: Counts | None = None,
    weight_reorders: int = 0,
    weight_reorder_seconds: float = 0.0,
    heads: tuple[tuple[int, str], ...] = (),
    **facts: Any,
) -> Row:
    """A row; ``facts`` are added to those that each one has."""
    told: dict[str, Any] = {"function": function, "thread": 0, "use": "auto", "inputs": list(inputs)}
    if "inside" not in facts:
        told.update(file=FILE, line=line, stack=[[FILE, line, "__call__", 5], [FILE, 40, "main", 30]])
        told["in"] = "__call__"
    forward = Counts(
        calls,
        seconds,
        executed,
        weight_reorders=weight_reorders,
        weight_reorder_seconds=weight_reorder_seconds,
    )
    return Row(number, {**told, **facts}, forward, backward or Counts(), heads)


def update(number: int, optimizer: str, parameters: list[int], *, line: int = 50, seconds: float = 1.0) -> Row:
    """A row of an optimizer: parameters of iDeep, of NumPy that could be, others."""
    return row(number, optimizer, line=line, seconds=seconds, optimizer=True, parameters=parameters)


def records(*rows: Row, **changed: Any) -> Records:
    """What a process that came to its end recorded."""
    made = Records(
        Path("/tmp/records/100-00000001"),
        process={"python": "3.7.16", "executable": "/env/bin/python", "command": ["python", "train.py"], "time": 1.0},
        chainer=CHAINER,
        rows=rows,
        watching=True,
        ended=True,
    )
    return replace(made, **changed)
