"""Names of hosts as cluster tools fold them: ``node[001-117,200]``. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby

_DIGITS = re.compile(r"(?<![0-9])([0-9]{1,9})(?![0-9])")
"""Longer runs of digits are text: no cluster counts that far."""
_SPECIAL = re.compile(r"[\s,\[\]%\x00-\x1f\x7f]")
_EACH = re.compile(r"[^,\[\]]*(?:\[[^\]]*\][^,\[\]]*)*")
_BRACKET = re.compile(r"\[([^\]]*)\]")


def printable(name: str) -> str:
    """A name without what has a meaning in folded names: blanks, commas, brackets as ``%20``.

    Different names stay different; a usual name stays as it is.
    """
    clean = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", clean)


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """A key to sort names by as people do: node2 before node10."""
    parts = _DIGITS.split(name)
    padded = [*parts, ""] if len(parts) % 2 else parts
    pairs = zip(padded[0::2], padded[1::2], strict=True)
    return tuple((text, int(digits) if digits else -1, digits) for text, digits in pairs)


def fold(names: Iterable[str]) -> str:
    """Fold names: each once, in natural order, runs of numbers as ranges.

    Where several numbers differ (``r1n2``), the one with most values is folded and the others stand as they are.
    """
    shapes: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for name in names:
        parts = _DIGITS.split(name)
        shapes[tuple(parts[0::2])].add(tuple(parts[1::2]))
    folded = [item for texts, rows in shapes.items() for item in _folded(texts, rows)]
    return ",".join(text for _key, text in sorted(folded))


def unfold(folded: str) -> Iterator[str]:
    """The names that ``fold`` folded."""
    for item in _EACH.findall(folded):
        if not item:
            continue
        found = _BRACKET.search(item)
        if found is None:
            yield item
            continue
        before, after = item[: found.start()], item[found.end() :]
        for part in found[1].split(","):
            low, _, high = part.partition("-")
            for number in range(int(low), int(high or low) + 1):
                yield f"{before}{number:0{len(low)}d}{after}"


def _folded(
    texts: tuple[str, ...], rows: set[tuple[str, ...]]
) -> Iterator[tuple[tuple[tuple[str, int, str], ...], str]]:
    """Names of one shape: text, number, text... Yields a sort key and the folded name."""
    width = len(texts) - 1
    if width == 0:
        yield natural(texts[0]), texts[0]
        return
    varied = [len({row[column] for row in rows}) for column in range(width)]
    column = max(range(width), key=lambda index: (varied[index], index))
    others: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows:
        others[row[:column] + row[column + 1 :]].append(row[column])
    for rest, values in others.items():
        spans = _spans(values)
        single = len(values) == 1
        shown = values[0] if single else f"[{','.join(spans)}]"
        numbers = (*rest[:column], shown, *rest[column:])
        first = (*rest[:column], min(values, key=lambda value: (int(value), value)), *rest[column:])
        yield natural(_joined(texts, first)), _joined(texts, numbers)


def _joined(texts: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    return texts[0] + "".join(f"{number}{text}" for number, text in zip(numbers, texts[1:], strict=True))


def _spans(values: list[str]) -> list[str]:
    """Ranges of numbers; those with leading zeros keep their width, and take in longer numbers of the same series."""
    widths = sorted({len(value) for value in values if value.startswith("0")}, reverse=True)
    series: dict[int, list[int]] = defaultdict(list)
    for value in values:
        width = next((width for width in widths if width <= len(value)), 1) if not value.startswith("0") else len(value)
        series[width].append(int(value))
    spans = []
    for width, numbers in sorted(series.items()):
        for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
            whole = [number for _index, number in run]
            spans += _span(whole[0], whole[-1], width)
    return spans


def _span(low: int, high: int, width: int) -> list[str]:
    if low == high:
        return [f"{low:0{width}d}"]
    return [f"{low:0{width}d}-{high:0{width}d}"]
