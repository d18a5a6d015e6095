"""``explain`` and ``schema``: documents that the doctor carries with it; and what the log of a build says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ideepdoctor.errors import UsageError
from ideepdoctor.locale import columns, tr, translating
from ideepdoctor.model.report import Report

if TYPE_CHECKING:
    from ideepdoctor.rules.signatures import Reading

_LINE_BYTES = 1 << 16
"""Of a line, at most: a log may be one line without an end."""


def explain(code: str | None, log: str | None = None) -> Report:
    """Return a rule as a document, or (None) the list of all rules; or what the log of a build says.

    Raises:
        UsageError: no rule has this code; the log cannot be read; both were asked for.
    """
    if log is not None:
        if code is not None:
            raise UsageError(
                "a code and --log at once", hint="ideepdoctor explain CODE, or ideepdoctor explain --log FILE"
            )
        return explain_log(log)
    from ideepdoctor.rules.explain import EVERYTHING, document, find

    if code is not None:
        rule = find(code)
        text = document(rule)
        data = {"code": rule.code(), "title": rule.title, "severity": str(rule.severity), "text": text}
        told = document(rule, tr) if translating() else text
        return Report("explain", text=told.rstrip("\n") + "\n", extra={"rule": data})
    rows = [{"code": rule.code(), "severity": str(rule.severity), "title": rule.title} for rule in EVERYTHING]
    lines = [f"{row['code']}  {columns.ljust(tr(row['severity']), 8)} {tr(row['title'])}" for row in rows]
    return Report("explain", text="\n".join(lines) + "\n", extra={"rules": rows})


def explain_log(path: str) -> Report:
    """Name the cause and the cure of every known signature in the log of a build, the first cause first.

    Args:
        path: of the log; ``-``: standard input.

    Raises:
        UsageError: it cannot be read, or is empty.
    """
    from ideepdoctor.facts.build import facts_of_log
    from ideepdoctor.model.findings import Judgement
    from ideepdoctor.rules import BUILD_RULES
    from ideepdoctor.rules.engine import judge
    from ideepdoctor.rules.signatures import read

    with _opened(path) as stream:
        try:
            reading = read(lines_of(stream))
        except OSError as error:
            raise _unreadable(path, error) from None
    name = "standard input" if path == "-" else path
    if reading.line_count == 0:
        raise UsageError(f"{name} is empty", hint="write a log with: COMMAND 2>&1 | tee build.log")
    codes = list(dict.fromkeys(hit.code for hit in reading.hits))
    judgement = judge(facts_of_log(reading.hits, own=reading.own), BUILD_RULES, frozenset(codes))
    ordered = sorted(judgement.findings, key=lambda item: codes.index(item.code))
    data = {
        "path": None if path == "-" else path,
        "lines": reading.line_count,
        "hits": [{"code": hit.code, "line": hit.line_number, "text": hit.line} for hit in reading.hits],
        "telling": [{"line": number, "text": text} for number, text in reading.telling],
    }
    body = _heading(name, reading)
    if not codes:
        return Report("explain", body=body, extra={"log": data})
    judged = Judgement(tuple(ordered), unknown=judgement.unknown)
    return Report("explain", judgement=judged, body=body, extra={"log": data})


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """The lines of a log as text, each cut to 64 KB; what is no UTF-8 is replaced. Raises OSError."""
    begun = False
    while chunk := stream.readline(_LINE_BYTES):
        if not begun:
            yield chunk.decode("utf-8", "replace")
        begun = not chunk.endswith(b"\n")


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 (its own error is told apart)
    except OSError as error:
        raise _unreadable(path, error) from None
    with stream:
        yield stream


def _unreadable(path: str, error: OSError) -> UsageError:
    return UsageError(f"cannot read {path}: {error.strerror or error}", hint="--log FILE, or - for standard input")


def _heading(name: str, reading: Reading) -> tuple[str, ...]:
    """What was read; where nothing in it is known, what looks like an error, and what to send."""
    lines = f"{reading.line_count} line{'' if reading.line_count == 1 else 's'}"
    if reading.hits:
        more = "" if len({hit.code for hit in reading.hits}) == 1 else "; cure the first before the next"
        return (f"{name}: {lines}{more}", "")
    return (
        f"{name}: {lines}, and nothing in it is known to be wrong with a build of ideep4py.",
        "Its last lines that look like errors, or its last lines:",
        *(f"  {number}: {text}" for number, text in reading.telling),
        "If the build failed: ask with the whole log, the commands, and what c++ --version, cmake --version,",
        "swig -version and ideepdoctor diagnose say; or try ideepdoctor build, which brings its own tools.",
    )


def schema() -> Report:
    """Return the JSON Schema of the envelope."""
    return Report("schema", text=(files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
