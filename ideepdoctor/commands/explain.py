"""``explain`` and ``schema``: documents that the doctor carries with it; and what something that went wrong says."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ideepdoctor.errors import UsageError
from ideepdoctor.locale import columns, tr, translating
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted

if TYPE_CHECKING:
    from ideepdoctor.model.findings import Judgement
    from ideepdoctor.symptoms.search import Found

_LINE_BYTES = 1 << 16
"""Of a line, at most: a log may be one line without an end."""
_QUIET_SECONDS = 2.0
"""A pipe that says nothing for so long is told of: who did not mean to give one sees why nothing happens."""
_STANDARD_INPUT = "standard input"


@dataclass(frozen=True, slots=True)
class Symptoms:
    """What somebody has of something that went wrong.

    Attributes:
        log: path of a log; ``-``: standard input.
        error: the text of an error.
        exit_code: an exit code or a signal, as a person writes it.
        details: all causes, not the first five.
    """

    log: str | None = None
    error: str | None = None
    exit_code: str | None = None
    details: bool = False

    @property
    def given(self) -> bool:
        """Whether there is anything."""
        return any(one is not None for one in (self.log, self.error, self.exit_code))


def explain(code: str | None, symptoms: Symptoms | None = None) -> Report:
    """Return a rule as a document, or what can be behind symptoms, or (nothing given, nothing piped) all rules.

    Raises:
        UsageError: no rule has this code; the log cannot be read; what was asked does not go together.
    """
    asked = symptoms or Symptoms()
    if code is not None and asked.given:
        raise UsageError(
            "a code and a symptom at once", hint="ideepdoctor explain CODE, or ideepdoctor explain --log FILE"
        )
    if asked.log is not None and asked.error is not None:
        raise UsageError("--log and --error at once", hint="put the text into the log, or ask twice")
    if asked.given:
        return explain_symptoms(asked)
    from ideepdoctor.rules.explain import EVERYTHING, document, find

    if code is not None:
        rule = find(code)
        text = document(rule)
        data = {"code": rule.code(), "title": rule.title, "severity": str(rule.severity), "text": text}
        told = document(rule, tr) if translating() else text
        return Report("explain", text=told.rstrip("\n") + "\n", extra={"rule": data})
    if _is_piped() and (report := _of_pipe(asked)) is not None:
        return report
    rows = [{"code": rule.code(), "severity": str(rule.severity), "title": rule.title} for rule in EVERYTHING]
    lines = [f"{row['code']}  {columns.ljust(tr(row['severity']), 8)} {tr(row['title'])}" for row in rows]
    return Report("explain", text="\n".join(lines) + "\n", extra={"rules": rows})


def explain_symptoms(asked: Symptoms) -> Report:
    """Say what can be behind a log, a text or an exit code, and what in it is wrong with a build.

    Raises:
        UsageError: it cannot be read, is empty, or is no ending that is known.
    """
    if asked.log is not None:
        return explain_log(asked.log, asked)
    from ideepdoctor.symptoms.search import search

    ending = None if asked.exit_code is None else _ending(asked.exit_code)
    if asked.error is not None:
        if not asked.error.strip():
            raise UsageError("the text of --error is empty", hint='ideepdoctor explain --error "TEXT"')
        return _report("the text", None, search(asked.error.splitlines(), ending), asked)
    if ending is None:
        return Report("explain", body=_no_signal(str(asked.exit_code)), extra={"causes": []})
    return _report(f"{asked.exit_code} ({ending})", None, search((), ending), asked)


def explain_log(path: str, asked: Symptoms | None = None) -> Report:
    """Name the cause and the cure of everything in a log that is known, the likeliest first.

    Args:
        path: of the log; ``-``: standard input.
        asked: the exit code besides, and how much to show.

    Raises:
        UsageError: it cannot be read, or is empty.
    """
    wanted = asked or Symptoms(log=path)
    ending = None if wanted.exit_code is None else _ending(wanted.exit_code)
    found = _read(path, ending)
    name = _STANDARD_INPUT if path == "-" else path
    if found.build.line_count == 0:
        raise UsageError(f"{name} is empty", hint="write a log with: COMMAND 2>&1 | tee run.log")
    return _report(name, None if path == "-" else path, found, wanted)


def _of_pipe(asked: Symptoms) -> Report | None:
    """What is behind what was piped; None: it was nothing."""
    found = _read("-")
    return _report(_STANDARD_INPUT, None, found, asked) if found.build.line_count else None


def _read(path: str, ending: str | None = None) -> Found:
    """What a log names; ``-``: standard input. Raises UsageError."""
    from ideepdoctor.symptoms.search import search

    with _opened(path) as stream:
        try:
            return search(lines_of(stream), ending)
        except OSError as error:
            raise _unreadable(_STANDARD_INPUT if path == "-" else path, error) from None


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file: a terminal and /dev/null give nothing, a socket is a service's."""
    try:
        number = sys.stdin.fileno()
        mode = os.fstat(number).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or a stand-in
        return False
    if stat.S_ISFIFO(mode) and not select.select([number], [], [], _QUIET_SECONDS)[0]:
        sys.stderr.write(
            f"{tr('reading standard input to its end; ideepdoctor explain < /dev/null lists the rules')}\n"
        )
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _ending(text: str) -> str | None:
    """The ending that an exit code or a word stands for; None: a code that is no signal. Raises UsageError."""
    from ideepdoctor.symptoms.endings import ending_of_code

    found = ending_of_code(text)
    if found is None and not text.strip().lstrip("+-").isdecimal():
        raise UsageError(
            f"{text!r} is no exit code and no signal that is known here",
            hint="--exit 132, -4, SIGILL or hang; the text of an error is for --error",
        )
    return found


def _no_signal(text: str) -> tuple[str, ...]:
    """What is to be said of an exit code that a program chose itself."""
    return (
        f"{text}: an exit code that a program chooses itself, and no signal; 1 is Python's after an exception.",
        'Give the last line that it printed: ideepdoctor explain --error "TEXT", or --log FILE',
    )


def _report(name: str, path: str | None, found: Found, asked: Symptoms) -> Report:
    from ideepdoctor.render import causes as shown

    titles = _titles() if found.causes else {}
    reading = found.build
    extra: dict[str, Any] = {"causes": shown.as_data(found.causes, titles)}
    if reading.line_count:
        extra["log"] = {
            "path": path,
            "lines": reading.line_count,
            "hits": [{"code": hit.code, "line": hit.line_number, "text": hit.line} for hit in reading.hits],
            "telling": [{"line": number, "text": text} for number, text in reading.telling],
        }
    body = _heading(name, found)
    if found.causes:
        body += shown.lines_of(found.causes, titles, details=asked.details)
        body += ("",) if reading.hits else ()
    return Report("explain", judgement=_judged(found), body=body, extra=extra)


def _titles() -> dict[str, str]:
    from ideepdoctor.rules.explain import EVERYTHING

    return {rule.code(): rule.title for rule in EVERYTHING}


def _judged(found: Found) -> Judgement | None:
    """The findings about a build, in the order of the log; None where there are none."""
    reading = found.build
    if not reading.hits:
        return None
    from ideepdoctor.facts.build import facts_of_log
    from ideepdoctor.model.findings import Judgement
    from ideepdoctor.rules import BUILD_RULES
    from ideepdoctor.rules.engine import judge

    codes = list(dict.fromkeys(hit.code for hit in reading.hits))
    judgement = judge(facts_of_log(reading.hits, own=reading.own), BUILD_RULES, frozenset(codes))
    ordered = sorted(judgement.findings, key=lambda item: codes.index(item.code))
    return Judgement(tuple(ordered), unknown=judgement.unknown)


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


def _heading(name: str, found: Found) -> tuple[str, ...]:
    """What was read; where nothing in it is known, what looks like an error, and what to send."""
    from ideepdoctor.render.causes import how_sure

    reading = found.build
    lines = f": {counted(reading.line_count, 'line')}" if reading.line_count else ""
    if found.causes:
        return (f"{name}{lines}; {how_sure(found.causes)}" if lines else f"{name}: {how_sure(found.causes)}", "")
    if reading.hits:
        more = "" if len({hit.code for hit in reading.hits}) == 1 else "; cure the first before the next"
        return (f"{name}{lines}{more}", "")
    return (
        f"{name}{lines}, and nothing in it is known: no cause is guessed.",
        "Its last lines that look like errors, or its last lines:",
        *(f"  {number}: {text}" for number, text in reading.telling),
        "",
        "Where a program failed: ideepdoctor diagnose may know more; else ask with these",
        "lines and with what ideepdoctor report prints. Where a build of ideep4py failed:",
        "ask with the whole log, the commands and what c++ --version, cmake --version and",
        "swig -version say; or try ideepdoctor build, which brings its own tools.",
    )


def schema() -> Report:
    """Return the JSON Schema of the envelope."""
    return Report("schema", text=(files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
