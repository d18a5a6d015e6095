"""The log of ``--log-file``: JSON lines, appended, one write a line, without secrets.

Each line has ``time`` (UTC), ``level``, ``event``, ``run`` and ``pid``; the rest belongs to the event. Runs that write
into the same file at the same time stay apart by ``run``.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ideepdoctor.errors import UsageError
from ideepdoctor.locale import tr
from ideepdoctor.masks import Mask
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.system import System
from ideepdoctor.trail import tell

_HINT = "--log-file FILE (or IDEEPDOCTOR_LOG_FILE): a file in a folder that exists and that you may write to"


class LogFile:
    """A listener of ``trail`` that appends to a file.

    Args:
        system: writes the file.
        path: of the file; made where there is none.
        mask: hides what must not be in it.
        details: also lines of the level debug.
    """

    def __init__(self, system: System, path: str, mask: Mask, *, details: bool = False) -> None:
        self._system, self._mask, self._details = system, mask, details
        self._path = str(Path(path).expanduser().absolute())
        self._run = uuid.uuid4().hex[:12]
        self._begun = self._lost = False

    def __call__(self, level: str, event: str, data: dict[str, Any]) -> None:
        """Append a line; a file that takes nothing more is said once, and the run goes on without it.

        Raises:
            UsageError: the file took not even the first line.
        """
        if self._lost or (level == "debug" and not self._details):
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": level,
            "event": event,
            "run": self._run,
            "pid": os.getpid(),
            **self._mask.value(data),
        }
        text = json.dumps(line, ensure_ascii=False, default=str)
        # A byte of a path that is no UTF-8 becomes an escape of JSON.
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        try:
            self._system.append_text(self._path, f"{text}\n")
            self._begun = True
        except OSError as error:
            self._lost = True
            if not self._begun:
                raise UsageError(f"cannot write the log file {self._path}: {error.strerror}", hint=_HINT) from error
            told = tr(f"the log file takes nothing more, the run goes on without it: {error}")
            sys.stderr.write(f"{told}\n")


def refuse_shared(path: str, others: Iterable[str | None]) -> None:
    """Raise UsageError where a result would replace the log."""
    place = os.path.realpath(Path(path).expanduser())
    for other in others:
        if other is not None and os.path.realpath(other) == place:
            raise UsageError(f"{path} is asked for as the log file and as the result", hint="give them two names")


def tell_start(command: str, words: list[str], environ: Mapping[str, str]) -> None:
    """Tell what was started, and with what."""
    from ideepdoctor.about import about

    settings = {name: value for name, value in sorted(environ.items()) if name.startswith("IDEEPDOCTOR_")}
    tell("info", "start", command=command, argv=["ideepdoctor", *words], cwd=_cwd(), variables=settings, **about())


def tell_report(report: Report | None, code: int, seconds: float, traceback: str = "") -> None:
    """Tell what came out: findings, what is unknown, an error with its traceback; and the end."""
    if report is not None and report.judgement is not None:
        for finding in report.judgement.findings:
            tell(
                str(finding.severity),
                "finding",
                code=finding.code,
                title=finding.title,
                found=finding.found,
                needed=finding.needed,
                consequence=finding.consequence,
                next=finding.next_step,
            )
        for unknown in report.judgement.unknown:
            tell("warning", "unknown", code=unknown.code, title=unknown.title, reason=unknown.reason)
    if report is not None and report.failure is not None:
        tell_failure(report.failure, traceback)
    level = {0: "info", 1: "warning"}.get(code, "error")
    tell(level, "end", exit_code=code, seconds=round(seconds, 6))


def tell_failure(failure: Failure, traceback: str = "") -> None:
    """Tell an error."""
    context = dict(failure.context)
    told = context.pop("traceback", "") or traceback
    tell(
        "error",
        "error",
        code=failure.code,
        message=failure.message,
        hint=failure.hint,
        context=context,
        **({"traceback": told} if told else {}),
    )


def _cwd() -> str | None:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return None
