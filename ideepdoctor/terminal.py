"""One run of a command as the terminal sees it: the session, the question, the report, the exit code.

Results go to standard output, everything else to standard error; in a machine format standard output is exactly one
document, errors too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from ideepdoctor.answering import answer, own_fault
from ideepdoctor.errors import DoctorError, Exit, UsageError
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.options import Format, Output, said
from ideepdoctor.system import RealSystem
from ideepdoctor.witness import Witness

if TYPE_CHECKING:
    from ideepdoctor.commands.session import Session
    from ideepdoctor.model.accept import Accepted
    from ideepdoctor.treatment.progress import Progress

JUDGING = frozenset(
    {"setup", "diagnose", "fix", "install", "upgrade", "downgrade", "smoke", "certify", "guard", "libs"}
    | {"bench", "tune", "build"}
)
"""Commands whose findings a project may accept (those of ``lint`` are accepted in the program)."""


def run(name: str, command: Callable[[Session], Report], output: Output) -> NoReturn:
    """Run a command, print its report, and leave with its exit code.

    Args:
        name: of the command, for the report.
        command: takes a session, returns the report; may raise DoctorError.
        output: how to answer.

    Raises:
        typer.Exit: always, with the exit code.
    """
    fail_on = FailOn(output.fail_on)
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:  # whoever ignores it has programs do so that we start
        signal.signal(signal.SIGTERM, _interrupted)
    progress = _progress(output)
    if output.watched:
        from ideepdoctor.watched import WatchedProgress

        progress = WatchedProgress(progress)
    witness = Witness(output, os.environ)
    try:
        witness.begin(name, sys.argv[1:])
        from ideepdoctor.commands.settings import project_of

        known = _accepted(name, output)
        session = _session(output, progress)
        # Where a project lies is nothing for strangers.
        project = None if name == "report" else project_of(session.cwd, os.environ)
        report = replace(command(session), project=project)
        report = report if known is None else _without(report, known, progress)
    except DoctorError as error:
        witness.failed(error)
        failure = Failure(error.code, error.message, error.hint, int(error.exit_code), error.context)
        report = Report(name, failure=failure)
    except SystemExit as ended:
        witness.end(None, ended.code if isinstance(ended.code, int) else 1)
        raise
    except (KeyboardInterrupt, typer.Abort):
        failure = Failure("interrupted", "interrupted", "", int(Exit.INTERRUPTED))
        report = Report(name, failure=failure)
    except Exception as error:  # noqa: BLE001 - a fault of our own is one document and a clear exit code too
        report = Report(name, failure=own_fault(error))
    progress.close()
    code = answer(report, output, fail_on)
    witness.end(report, code)
    raise typer.Exit(code)


def _accepted(name: str, output: Output) -> Accepted | None:
    """What was accepted before, read before anything is done; None for commands that judge no environment."""
    if name not in JUDGING:
        return None
    from ideepdoctor.commands.settings import accepted

    return accepted(_cwd(), os.environ, output.baseline)


def _without(report: Report, known: Accepted, progress: Progress) -> Report:
    from datetime import UTC, datetime

    from ideepdoctor.model.accept import accept, as_data, compared, unused

    if report.judgement is None:
        return report
    judgement = accept(report.judgement, known, datetime.now(tz=UTC).date())
    extra = dict(report.extra)
    if left := [as_data(ignore) for ignore in unused(report.judgement, known)]:
        extra["unused_ignores"] = left
    if known.baseline is not None:
        python = "" if report.facts is None else report.facts.target.python
        extra["baseline"] = compared(known.baseline, judgement, report.command, python)
        for doubt in extra["baseline"]["doubts"]:
            progress.note(doubt)
    return replace(report, judgement=judgement, extra=extra)


def _interrupted(_number: int, _frame: object) -> None:
    """A job that is cancelled ends like Ctrl-C: what was begun is taken back."""
    raise KeyboardInterrupt


def usage_failure(message: str, words: list[str], command: str = "ideepdoctor") -> int:
    """Report a command line that cannot be parsed; in a machine format as a document. Returns the exit code 2.

    Args:
        message: what is wrong.
        words: the command line.
        command: as far as it was understood: ``ideepdoctor bench compare``.
    """
    asked = said(words, "--format", "-f")
    asked = os.environ.get("IDEEPDOCTOR_FORMAT", "") if asked is None else asked
    known = Format(asked) if asked in list(Format) else Format.TEXT
    name = command.removeprefix("ideepdoctor ")
    report = Report(name, failure=Failure("usage", message, f"see: {command} --help", int(Exit.USAGE)))
    _log_usage(report, words)
    return answer(report, Output(known), FailOn.ERROR)


def _log_usage(report: Report, words: list[str]) -> None:
    """Put a command line that cannot be parsed into the log that it, or the variable, names."""
    path = said(words, "--log-file")
    path = os.environ.get("IDEEPDOCTOR_LOG_FILE", "") if path is None else path
    if path:
        witness = Witness(Output(Format.TEXT, log_file=path), os.environ)
        with contextlib.suppress(UsageError):  # the line is wrong anyhow, and that is what is said
            witness.begin(report.command, words)
            witness.end(report, int(Exit.USAGE))


def _session(output: Output, progress: Progress) -> Session:
    from ideepdoctor.commands.session import Session
    from ideepdoctor.treatment.sources import shown
    from ideepdoctor.watched import WatchedSystem

    return Session(
        system=WatchedSystem(stays=output.log_file is not None) if output.watched else RealSystem(),
        environ=os.environ,
        cwd=_cwd(),
        progress=progress,
        agrees=lambda report: _agrees(report, output, progress),
        command_line=shown(" ".join(["ideepdoctor", *sys.argv[1:]])),
    )


def _cwd() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError as error:
        raise UsageError("the current folder was removed", hint="change to a folder that exists") from error


def _progress(output: Output) -> Progress:
    """Where steps are shown: a line that moves, in a terminal that can move it; lines with ``-v``; else nowhere."""
    from ideepdoctor.treatment.progress import Quiet

    if output.quiet:
        return Quiet()
    still = bool(os.environ.get("CI")) or os.environ.get("TERM") in ("dumb", "unknown")
    if sys.stderr.isatty() and not still:
        from ideepdoctor.render.text import Spinner

        return Spinner()
    from ideepdoctor.render.progress import Lines, Notes

    if sys.stderr.isatty() or output.verbose:
        return Lines(sys.stderr, details=output.verbose > 0)
    return Quiet() if output.format.for_machines else Notes(sys.stderr)


def _agrees(report: Report, output: Output, progress: Progress) -> bool:
    """Show the plan and ask; where nobody can be asked, refuse."""
    if output.yes:
        return True
    if os.environ.get("CI") or sys.stdin is None or not sys.stdin.isatty() or output.format.for_machines:
        raise UsageError(
            "this changes an existing environment or file, and nobody can be asked here",
            hint="look at the plan with --dry-run, then run it again with --yes",
        )
    from ideepdoctor.render.text import console, render

    progress.close()
    render(report, console(error=True))
    return typer.confirm("Go on?", default=False, err=True)
