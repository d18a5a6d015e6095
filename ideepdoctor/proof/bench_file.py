"""The result file of ``bench``: JSON to dataclasses and back, with errors that say what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ideepdoctor.errors import CouldNotCheck, DoctorError, UsageError
from ideepdoctor.facts.serialize import plain, validated
from ideepdoctor.model.bench import BENCH_SCHEMA, BENCH_SCHEMA_VERSION, Result

__all__ = ["Result", "as_data", "dumps", "from_data", "loads", "read"]

STATUSES = ("measured", "skipped", "failed")
_HINT = "make one with: ideepdoctor bench -o FILE.json --format json"


def as_data(result: Result) -> dict[str, Any]:
    """The run as JSON-ready data: the fields of Result under a ``schema`` and a ``schema_version``."""
    return {"schema": BENCH_SCHEMA, "schema_version": BENCH_SCHEMA_VERSION, **plain(asdict(result))}


def dumps(result: Result) -> str:
    """The run as text of a result file: sorted keys, two spaces, a newline at the end.

    Raises:
        ValueError: a number that JSON lacks (inf, nan).
    """
    return json.dumps(as_data(result), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def from_data(data: Any) -> Result:
    """The run that the data hold; fields that this version does not know are ignored.

    The document that ``bench --format json`` prints holds a run under ``bench``: that is taken too.

    Raises:
        UsageError: no result, one of another version, or a field that is missing, has another type or cannot be.
    """
    if isinstance(data, dict) and isinstance(data.get("bench"), dict) and data.get("schema") != BENCH_SCHEMA:
        data = data["bench"]
    if not isinstance(data, dict) or data.get("schema") != BENCH_SCHEMA:
        found = json.dumps(data.get("schema")) if isinstance(data, dict) else f"a {type(data).__name__}"
        raise UsageError(f'no result of bench: field schema must be "{BENCH_SCHEMA}", found {found}', hint=_HINT)
    _check_version(data)
    try:
        text = json.dumps(data, allow_nan=False)
    except ValueError as error:
        raise UsageError(f"a result of bench has a number that cannot be: {error}", hint=_HINT) from None
    result = validated(Result, text, "a result of bench", _HINT)
    problem = next(_impossible(result), None)
    if problem is not None:
        raise UsageError(f"a result of bench that cannot be: {problem}", hint=_HINT)
    return result


def loads(text: str | bytes) -> Result:
    """The run that the text of a result file holds. Raises UsageError: it is no JSON, or see ``from_data``."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"no JSON: {error}", hint=_HINT) from None
    return from_data(data)


def read(path: str) -> Result:
    """Read a result file.

    Raises:
        UsageError: there is no such file, it is no JSON, or it holds no result that this doctor knows.
        CouldNotCheck: it is there and cannot be read.
    """
    try:
        text = Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"there is no file {path}", hint=_HINT) from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a result file", hint=_HINT) from None
    except (OSError, ValueError) as error:
        raise CouldNotCheck(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        return loads(text)
    except DoctorError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint, context=error.context) from None


def _check_version(data: dict[str, Any]) -> None:
    version = data.get("schema_version")
    if isinstance(version, str) and re.fullmatch(rf"{BENCH_SCHEMA_VERSION}(\.[0-9]+)*", version):
        return
    tool = data.get("tool")
    writer = tool.get("version") if isinstance(tool, dict) else None
    newer = isinstance(version, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)*", version)
    if newer and int(str(version).split(".")[0]) > int(BENCH_SCHEMA_VERSION):
        by = f", written by ideepdoctor {writer}" if writer else ""
        raise UsageError(
            f'a result of bench in a newer version: schema_version "{version}"{by}; '
            f'this doctor knows "{BENCH_SCHEMA_VERSION}"',
            hint=f"update ideepdoctor{f' to {writer} or newer' if writer else ''}, or measure again with this one",
        )
    raise UsageError(
        f'a result of bench in another version: field schema_version must be "{BENCH_SCHEMA_VERSION}", '
        f"found {json.dumps(version)}",
        hint="measure again with this doctor: ideepdoctor bench",
    )


def _impossible(result: Result) -> Iterator[str]:
    """What no measurement can be: later arithmetic relies on times above zero and on a block for each step."""
    seen = set()
    for row in result.results:
        name = f"{row.engine}, {row.net} batch {row.batch}"
        if (row.engine, row.key) in seen:
            yield f"{name} is there twice"
        seen.add((row.engine, row.key))
        if row.status not in STATUSES:
            yield f"{name}: status {row.status!r} is none of {', '.join(STATUSES)}"
        times = [*row.forward, *row.backward, row.median, row.low, row.high, row.forward_median, row.backward_median]
        if any(time is not None and not 0 < time < float("inf") for time in times):
            yield f"{name}: a time is not above zero"
        if row.status == "measured" and row.median is None:
            yield f"{name}: measured, and no median"
        if row.backward and len(row.backward) != len(row.forward):
            yield f"{name}: {len(row.forward)} steps forward, {len(row.backward)} backward"
        if row.blocks and len(row.blocks) != len(row.forward):
            yield f"{name}: {len(row.forward)} steps, {len(row.blocks)} block numbers"
    for item in result.scaling:
        if not item.median > 0 or item.threads < 1:
            yield f"scaling of {item.engine}, {item.net}: a time or a number of threads is not above zero"
    for layer in result.layers:
        if layer.milliseconds < 0:
            yield f"layers of {layer.engine}, {layer.net}: a time is below zero"
