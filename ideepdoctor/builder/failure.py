"""A build that failed, put into words: the stage, the known signature in the log and its cure, else the last lines."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from ideepdoctor.errors import BuildFailed, DoctorError
from ideepdoctor.model.build import BuildFacts, BuildRequest, Stage
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding
from ideepdoctor.rules.signatures import read

_FULL = "IDP810"
_LINES = 6

Judge = Callable[[Facts], Sequence[Finding]]


def explained(
    error: BuildFailed,
    stage: Stage | None,
    lines: Sequence[str],
    log: str,
    facts: Facts,
    judge: Judge,
    request: BuildRequest,
) -> BuildFailed:
    """The same failure with what the log says.

    Args:
        error: as the stage raised it.
        stage: that ran.
        lines: of the log since it began.
        log: path of the whole.
        facts: of the target.
        judge: the rules, by which a signature is explained.
        request: of the build.
    """
    reading = read(lines)
    context = {**error.context, "log": log, "stage": str(stage or "")}
    hints = [error.hint] if error.hint else []
    message = error.message if stage is None else f"the build failed ({stage}): {error.message}"
    if reading.hits:
        codes = list(dict.fromkeys(hit.code for hit in reading.hits))
        context["codes"] = ",".join(codes)
        context["signature"] = reading.hits[0].line
        message += f"\n{reading.hits[0].line}"
        build = BuildFacts(request=request, hits=reading.hits)
        found = [item for item in judge(replace(facts, build=build)) if item.code in codes]
        found.sort(key=lambda item: codes.index(item.code))
        hints = [f"{item.code} {item.title}: {item.next_step}" for item in found] + hints
        hints += [] if found else [f"ideepdoctor explain {code}" for code in codes]
    else:
        message += "".join(f"\n{line}" for _, line in reading.telling[-_LINES:])
    hints.append(f"the whole log: {log} (ideepdoctor explain --log {shlex.quote(log)})")
    failed = BuildFailed(message, hint="\n".join(hints), context=context)
    failed.__cause__ = error
    return failed


def of_system(error: OSError) -> BuildFailed:
    """A failed write of the doctor's own as a failure of the build."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return BuildFailed(
            f"No space left on device: {error.filename or ''}".rstrip(": "),
            hint=f"make room (1.5 GB) or set IDEEPDOCTOR_CACHE_DIR; ideepdoctor explain {_FULL}",
        )
    return BuildFailed(f"{error.strerror or error}: {error.filename or 'a file of the build'}")


def with_log(error: DoctorError, log: str) -> DoctorError:
    """Any other error, which keeps its kind and exit code, with the path of the log."""
    error.context.setdefault("log", log)
    if log not in error.hint:
        error.hint = "\n".join(part for part in (error.hint, f"the log: {log}") if part)
    return error
