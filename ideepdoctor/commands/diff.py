"""``diff``: what changed between two machines or two days, and which change explains a new finding."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ideepdoctor.commands.session import judge_all
from ideepdoctor.facts.compare import Change, Difference, Explained, compare
from ideepdoctor.facts.serialize import load_facts
from ideepdoctor.model.findings import Finding, Judgement
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import versions

_LONGEST = 60
_INSIDE = 3
"""Lines about what is inside one change."""
_UNSET = "(none)"


def diff(first: str, second: str) -> Report:
    """Compare two files of facts, as ``diagnose --save-facts`` writes them.

    Args:
        first: of the earlier day, or of the machine where it works.
        second: of the later day, or of the machine where it does not.

    Returns:
        A report on the second machine whose findings are those that the first does not have.

    Raises:
        UsageError: a file that cannot be read or holds no facts.
    """
    before, after = load_facts(first), load_facts(second)
    found = compare(before, after, judge_all)
    new = tuple(item.finding for item in found.new)
    return Report(
        "diff",
        facts=after,
        judgement=Judgement(findings=new, unknown=found.judgement.unknown, ok=found.judgement.ok),
        body=(f"  compared {first}: {versions(before)}", f"  with     {second}: {versions(after)}", *_lines(found)),
        extra={"diff": _data(found, first, second)},
    )


def _lines(found: Difference) -> list[str]:
    lines = [_heading("changed", len(found.changes))]
    width = min(36, max((len(item.what) for item in found.changes), default=0))
    lines += [f"  {item.what:<{width}}  {text}" for item in found.changes if not item.symptom for text in _rows(item)]
    seen = [item.what for item in found.changes if item.symptom]
    lines += [f"  {'seen when run':<{width}}  {', '.join(seen)}"] if seen else []
    if found.gone:
        lines.append(_heading("no longer", len(found.gone)))
        lines += [f"  {item.code}  {item.title}: {item.found}" for item in found.gone]
    if found.same:
        lines.append(f"in both: {', '.join(dict.fromkeys(item.code for item in found.same))}")
    lines.append(_heading("new", len(found.new)))
    lines += [line for item in found.new for line in (f"  {item.finding.code}  {item.finding.found}", _why(item))]
    return lines


def _heading(word: str, number: int) -> str:
    return f"{word}: {number or 'nothing'}"


def _why(item: Explained) -> str:
    if not item.because:
        return "    because: no single recorded change; look at what is listed as changed"
    return f"    because: {' or '.join(' with '.join(names) for names in item.because)}"


def _rows(change: Change) -> list[str]:
    """Before and after of a change in words, a line each of what is inside."""
    if change.what == "native":
        before, after = _libraries(change.before), _libraries(change.after)
    else:
        before, after = _plain(change.before, change.after), _plain(change.after, change.before)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        inside = [
            f"{name}: {_short(before.get(name))} -> {_short(after.get(name))}"
            for name in sorted({*before, *after})
            if before.get(name) != after.get(name)
        ]
        more = [f"and {len(inside) - _INSIDE} more"] if len(inside) > _INSIDE else []
        return [*inside[:_INSIDE], *more] or ["details that are not shown (--format json has them)"]
    if isinstance(before, list) and isinstance(after, list):
        parts = (
            ("lost", [item for item in before if item not in after]),
            ("got", [x for x in after if x not in before]),
        )
        return [_short(f"{word} {', '.join(map(_short, items))}") for word, items in parts if items]
    return [f"{_short(before)} -> {_short(after)}"]


def _plain(value: Any, other: Any) -> Any:
    """A package by its version (where that changed), a variable by what a program gets; else as it is."""
    if isinstance(value, Mapping) and "version" in value and "integrity" in value:
        same = isinstance(other, Mapping) and other.get("version") == value["version"]
        return value if same else value["version"]
    if isinstance(value, Mapping) and value.keys() <= {"inherited", "effective"}:
        return value.get("effective", value.get("inherited"))
    return value


def _libraries(value: Any) -> Any:
    """Names of the native libraries that were found, by their paths."""
    if not isinstance(value, Mapping) or not isinstance(value.get("files"), list):
        return value
    return {item["file"]["path"]: item["name"] for item in value["files"]}


def _short(value: Any) -> str:
    if value is None:
        return _UNSET
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _data(found: Difference, first: str, second: str) -> dict[str, Any]:
    return {
        "first": first,
        "second": second,
        "changes": [
            {"what": item.what, "before": item.before, "after": item.after, "symptom": item.symptom}
            for item in found.changes
        ],
        "new": [
            {"code": item.finding.code, "found": item.finding.found, "because": [list(names) for names in item.because]}
            for item in found.new
        ],
        "gone": _codes(found.gone),
        "same": _codes(found.same),
    }


def _codes(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [{"code": item.code, "found": item.found} for item in findings]
