"""The table of certify as lines of at most 80 columns, from the data that the JSON document has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ideepdoctor.locale import columns

WIDTH = 80
_INDENT = " " * 21
_MARKS = {"wrong": "WRONG", "crashed": "DIES", "raised": "RAISES", "timeout": "HANGS"}


def lines(data: Mapping[str, Any]) -> list[str]:
    """The table: a line for each family of operations, and below it where it is wrong and why iDeep is not used.

    Args:
        data: the document's ``certify``.
    """
    found = [f"{'operation':<18} {'cases':>6} {'right':>6}  {'iDeep':<5}  {'worst error':<11}"]
    for row in data["ops"]:
        found += _row(row, data["threads"])
    found += _memory(data["memory"])
    found += _fork(data["fork"])
    found += _unknown(data["unknown_files"])
    if data["model"] is not None:
        found += _model(data["model"])
    return found


def _row(row: Mapping[str, Any], settings: Sequence[str]) -> list[str]:
    marks = list(dict.fromkeys(_MARKS[fault["status"]] for fault in row["faults"]))
    error = "" if row["worst_error"] is None else f"{row['worst_error']:.1e}"
    tried = f"{row['tried']:>6} {row['right']:>6}  {row['used']:<5}  {error:<11}  {', '.join(marks)}"
    found = [f"{row['op']:<18} {tried}".rstrip()]
    for fault in row["faults"]:
        found += _fault(fault, settings)
    for item in row["why_not"][:3]:
        found += _wrapped(f"not iDeep in {item['count']}: {item['text']}")
    for item in row["not_run"][:2]:
        found += _wrapped(f"not tried in {item['count']}: {item['text']}")
    return found


def _fault(fault: Mapping[str, Any], settings: Sequence[str]) -> list[str]:
    worst = fault["worst"]
    name = f"{fault['hazard']} {fault['code']}" if fault["hazard"] else f"new {fault['code']}"
    what = f"off by {worst['error']:.2g}" if worst["error"] is not None else worst["message"] or fault["status"]
    where = f"{worst['op']} {worst['case']}"
    more = f"; and {fault['cases'] - 1} more" if fault["cases"] > 1 else ""
    return _wrapped(f"{name}: {where}: {what} ({threads(fault['threads'], settings)}){more}")


def threads(names: Sequence[str], settings: Sequence[str]) -> str:
    """``2, 3 threads``, ``1 thread, one processor``; ``every number of threads`` where it is all of many settings."""
    if len(settings) > 2 and set(names) == set(settings):
        return "every number of threads"
    counts = sorted((name for name in names if name.isdigit()), key=int)
    words = [f"{', '.join(counts)} thread{'' if counts == ['1'] else 's'}"] if counts else []
    return ", ".join([*words, *("one processor" for name in names if not name.isdigit())])


def _memory(measured: Mapping[str, Any] | None) -> list[str]:
    found = []
    if measured is not None and measured["step_bytes"] is not None:
        grown = measured["step_bytes"] / 1e6
        found.append(f"note: {measured['steps']} steps with the same shapes made the process grow by {grown:.1f} MB")
    if measured is not None and measured["ideep_bytes"] is not None:
        beside = measured["numpy_bytes"]
        numpy = "" if beside is None else f" (NumPy: {beside / 1e6:.0f} MB)"
        ideep = measured["ideep_bytes"] / 1e6
        found.append(f"note: H13: {measured['shapes']} new shapes made the process grow by {ideep:.0f} MB{numpy}")
    return [line for text in found for line in columns.wrap(text, WIDTH, rest="      ")]


def _fork(ended: Mapping[str, Any] | None) -> list[str]:
    if ended is None or not ended["ok"]:
        return []  # its row tells what happened
    return ["note: children that were forked after iDeep had computed could compute"]


def _unknown(files: Sequence[str]) -> list[str]:
    text = f"note: these files of Chainer speak of iDeep and nothing here tries them: {', '.join(files)}"
    return columns.wrap(text, WIDTH, rest="      ") if files else []


def _model(model: Mapping[str, Any]) -> list[str]:
    found = [f"model {model['file']}:{model['function']}"]
    if model["ended"]:
        found += _wrapped(model["ended"], "  ")
    gradients = model["gradients"]
    if gradients is not None:
        wrong = [row for row in gradients if not row["right"]]
        found += _wrapped(f"outputs and gradients: {len(gradients) - len(wrong)} of {len(gradients)} are right", "  ")
        for row in wrong[:8]:
            off = "not finite" if row["error"] is None else f"off by {row['error']:.2g}"
            found += _wrapped(f"{row['name']}: {off}", "    ")
        if len(wrong) > 8:
            found.append(f"    and {len(wrong) - 8} more")
    for row in model["others"]:
        found += _wrapped(
            f"not for iDeep: {row['name']}, {row['count']} time{'s' if row['count'] > 1 else ''} ({row['why']})", "  "
        )
    for note in model["notes"]:
        found += _wrapped(note, "  ")
    return found


def _wrapped(text: str, indent: str = _INDENT) -> list[str]:
    rest = indent + "  "
    return columns.wrap(text, WIDTH, first=indent, rest=rest)
