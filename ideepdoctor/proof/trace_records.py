"""Reads what payload/trace.py recorded. What is cut or cannot be read is counted, never fatal: programs die at will."""

from __future__ import annotations

import array
import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROW, ROWS, FIRST = 16, 512, 8
"""Numbers in a row, rows in a file, rows before the first one: as in payload/trace_records.py."""
_OWN, _LAST, _STARTED, _LOST, _SKIPPED = range(5)
_FACTS_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Counts:
    """What a row counted in one direction; MKL-DNN's own times are milliseconds there, seconds here."""

    calls: int = 0
    seconds: float = 0.0
    executed: int = 0
    executed_seconds: float = 0.0
    reorders: int = 0
    reorder_seconds: float = 0.0
    weight_reorders: int = 0
    weight_reorder_seconds: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.calls + other.calls,
            self.seconds + other.seconds,
            self.executed + other.executed,
            self.executed_seconds + other.executed_seconds,
            self.reorders + other.reorders,
            self.reorder_seconds + other.reorder_seconds,
            self.weight_reorders + other.weight_reorders,
            self.weight_reorder_seconds + other.weight_reorder_seconds,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """A function at a line with one kind of input, in one thread.

    Attributes:
        number: names it within its process.
        facts: see payload/trace.py; whatever is missing was not recorded.
        forward: counts of the forward passes, or of an optimizer's updates.
        backward: counts of the backward passes.
        heads: lines of MKL-DNN that were seen in it, without their times; each with its direction (1: backward).
    """

    number: int
    facts: Mapping[str, Any]
    forward: Counts
    backward: Counts
    heads: tuple[tuple[int, str], ...] = ()

    def text(self, name: str) -> str:
        """A fact that is text; empty where it is not there."""
        value = self.facts.get(name)
        return value if isinstance(value, str) else ""

    def count(self, name: str) -> int:
        """A fact that is a whole number; 0 where it is not there."""
        value = self.facts.get(name)
        return value if isinstance(value, int) else 0

    def table(self, name: str) -> Mapping[str, Any]:
        """A fact that is a table; empty where it is not there."""
        value = self.facts.get(name)
        return value if isinstance(value, dict) else {}

    def rows(self, name: str) -> list[Any]:
        """A fact that is a list; empty where it is not there."""
        value = self.facts.get(name)
        return value if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Records:
    """What one process recorded.

    Attributes:
        base: path of its files, without their endings.
        process: facts of its start.
        chainer: facts of the import of Chainer; empty: none.
        rows: the work.
        setups: facts of each ``optimizer.setup``.
        watching: whether recording began.
        no_lines: why MKL-DNN's lines could not be had; empty: they could, or there is no iDeep.
        guard: what the guard said at the end; empty: nothing.
        problems: what failed there, in words.
        ended: whether it came to its end in the ordinary way.
        busy: rows that threads were in at the end; negative: backward.
        own_seconds: what recording took.
        last_seconds: from ``started`` to the end of the last call.
        started: when recording began, seconds since 1970.
        lost_lines: lines of MKL-DNN that found no room.
        skipped_events: calls that are not in the file of events.
    """

    base: Path
    process: Mapping[str, Any] = field(default_factory=dict)
    chainer: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    setups: tuple[Mapping[str, Any], ...] = ()
    watching: bool = False
    no_lines: str = ""
    guard: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    ended: bool = False
    busy: tuple[int, ...] = ()
    own_seconds: float = 0.0
    last_seconds: float = 0.0
    started: float = 0.0
    lost_lines: int = 0
    skipped_events: int = 0

    @property
    def pid(self) -> int:
        """Number of the process."""
        return int(self.base.name.split("-")[0])


def read_folder(folder: str) -> tuple[Records, ...]:
    """The records of every process, in the order of their starts."""
    found = [_read(path.with_suffix("")) for path in sorted(Path(folder).glob("*-*.txt"))]
    return tuple(sorted(found, key=lambda item: (float(item.process.get("time", 0.0)), item.base.name)))


def read_events(records: Records) -> Iterator[tuple[int, int, float, float]]:
    """Each call that was recorded one by one: row, 1 for backward, microseconds from ``started``, and of duration."""
    path = records.base.with_suffix(".events")
    if not path.is_file():
        return
    with path.open("r", encoding="ascii", errors="replace") as stream:
        for line in stream:
            words = line.split()
            try:
                row, backward, start, duration = int(words[0]), int(words[1]), float(words[2]), float(words[3])
            except (IndexError, ValueError):
                continue
            if line.endswith("\n"):  # the last one may be cut
                yield row, backward, start, duration


def _read(base: Path) -> Records:
    told: dict[str, list[tuple[Any, ...]]] = {}
    unread = 0
    for line in _lines(base.with_suffix(".txt")):
        try:
            fields = ast.literal_eval(f"({line},)")
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            unread += 1
            continue
        told.setdefault(str(fields[0]), []).append(fields[1:])
    numbers = _numbers(base)
    heads: dict[int, list[tuple[int, str]]] = {}
    for number, backward, head in _of(told, "line", 3):
        heads.setdefault(number, []).append((backward, str(head)))
    rows = [
        Row(
            number, facts, _counts(numbers, number, 0), _counts(numbers, number, ROW // 2), tuple(heads.get(number, ()))
        )
        for number, facts in _of(told, "row", 2)
        if isinstance(number, int) and isinstance(facts, dict)
    ]
    problems = [str(text) for (text,) in _of(told, "problem", 1)]
    if unread:
        problems.append(f"{unread} lines of the records could not be read")
    header = numbers[:ROW] or [0.0] * ROW
    return Records(
        base=base,
        process=_facts(told, "process"),
        chainer=_facts(told, "chainer"),
        rows=tuple(rows),
        setups=tuple(facts for (facts,) in _of(told, "setup", 1) if isinstance(facts, dict)),
        watching="watching" in told,
        no_lines=next((str(text) for (text,) in _of(told, "no lines", 1)), ""),
        guard=_facts(told, "guard"),
        problems=tuple(problems),
        ended="end" in told,
        busy=tuple(int(number) for number in numbers[ROW : FIRST * ROW] if number),
        own_seconds=header[_OWN],
        last_seconds=header[_LAST],
        started=header[_STARTED],
        lost_lines=int(header[_LOST]),
        skipped_events=int(header[_SKIPPED]),
    )


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            data = stream.read(_FACTS_LIMIT)
    except OSError:
        return []
    # A line that was being written when the process ended has no end.
    return data.decode("ascii", "replace").split("\n")[:-1]


def _numbers(base: Path) -> list[float]:
    """The numbers of all rows, as one list; the files end where one is missing."""
    found: list[float] = []
    for index in range(10_000):
        path = Path(f"{base}.rows{index}")
        if not path.is_file():
            break
        values = array.array("d")
        data = path.read_bytes()[: ROW * ROWS * 8]
        values.frombytes(data.ljust(ROW * ROWS * 8, b"\0"))
        found += [value if math.isfinite(value) else 0.0 for value in values]
    return found


def _counts(numbers: list[float], row: int, offset: int) -> Counts:
    start = row * ROW + offset
    values = numbers[start : start + ROW // 2]
    if row < FIRST or len(values) < ROW // 2:
        return Counts()
    return Counts(
        int(values[0]), values[1], int(values[2]), values[3] / 1e3, int(values[4]), values[5] / 1e3, int(values[6]),
        values[7] / 1e3,
    )  # fmt: skip


def _of(told: Mapping[str, list[tuple[Any, ...]]], kind: str, count: int) -> list[tuple[Any, ...]]:
    return [fields for fields in told.get(kind, []) if len(fields) == count]


def _facts(told: Mapping[str, list[tuple[Any, ...]]], kind: str) -> Mapping[str, Any]:
    return next((facts for (facts,) in _of(told, kind, 1) if isinstance(facts, dict)), {})
