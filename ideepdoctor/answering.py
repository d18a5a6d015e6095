"""Where a report goes: standard output, the file of ``--output``, those of ``--also``; and the exit code.

A file is written whole or not at all. One that cannot be written keeps no other from being written, is one line on
standard error, and makes the exit code 3 where the command itself did not fail.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from pathlib import Path

from ideepdoctor.errors import Exit
from ideepdoctor.locale import tr
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.options import Format, Output
from ideepdoctor.system import RealSystem

STANDARD_OUTPUT = "-"
"""As a file of ``--output``."""


def answer(report: Report, output: Output, fail_on: FailOn) -> int:
    """Write a report everywhere it was asked for; return the exit code.

    Files come first: they are whole when the reader of standard output goes away.
    """
    _buffer()
    report, texts = _texts(report, output, fail_on)
    code = summarize(report, fail_on).exit_code
    failed = int(Exit.COULD_NOT_CHECK) if report.failure is None else code
    for form, path in output.also:
        code = code if _filed(path, texts[form]) else failed
    wants_file = report.failure is None or output.format.for_machines
    if output.path is not None and output.path != STANDARD_OUTPUT and wants_file:
        if _filed(output.path, texts[output.format]):
            return code
        code = failed
    try:
        if output.format.for_machines:
            _write(texts[output.format])
        else:
            _print(report, output, fail_on)
        sys.stdout.flush()
    except BrokenPipeError:
        return finish_broken_pipe(code)
    except OSError as error:
        return cannot_write(error)
    return code


def text_of(report: Report, form: Format, fail_on: FailOn, *, details: bool = False) -> str:
    """The whole document in a format, with its last newline; ``details`` are for people (``-v``)."""
    if form is not Format.TEXT:
        from ideepdoctor.render.formats import renderer

        return renderer(form)(report, fail_on) + "\n"
    if report.text:
        return report.text
    from io import StringIO

    from ideepdoctor.render.text import console, render

    stream = StringIO()
    render(report, console(file=stream), fail_on=fail_on, details=details)
    return stream.getvalue()


def own_fault(error: Exception) -> Failure:
    """An error of the doctor's own as the report has it; of a file that is gone or was altered, where there is one."""
    import traceback

    from ideepdoctor.selftest.record import AGAIN, file_state

    told = {"traceback": "".join(traceback.format_exception(error))}
    state = file_state()
    if state.missing or state.altered:
        files = [*(f"{name} is missing" for name in state.missing), *(f"{name} was altered" for name in state.altered)]
        return Failure(
            "broken-installation",
            f"this installation of ideepdoctor is broken: {type(error).__name__}: {error}",
            "\n".join([AGAIN, *files]),
            int(Exit.COULD_NOT_CHECK),
            told,
        )
    return Failure(
        "internal",
        f"ideepdoctor itself failed: {type(error).__name__}: {error}",
        "this is a fault of the doctor, not of your environment: report it with the output of the same command and -v",
        int(Exit.COULD_NOT_CHECK),
        told,
    )


def cannot_write(error: OSError) -> int:
    """Standard output takes nothing more (a full disk): say so, leave nothing to flush at exit. Returns the code 3."""
    sys.stderr.write(f"{tr('error')}  {tr(f'cannot write the result: {error}')}\n")
    return finish_broken_pipe(int(Exit.COULD_NOT_CHECK))


def finish_broken_pipe(code: int) -> int:
    """The reader went away (``| head``): no message, and nothing more to flush at exit. Returns the code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _texts(report: Report, output: Output, fail_on: FailOn) -> tuple[Report, dict[Format, str]]:
    """The documents that files and machines get; of the fault, where one of the formats cannot be rendered."""
    forms = {form for form, _ in output.also}
    forms |= {output.format} if output.path is not None or output.format.for_machines else set()
    details = output.verbose > 0
    try:
        return report, {form: text_of(report, form, fail_on, details=details) for form in forms}
    except Exception as error:  # noqa: BLE001 - a fault of a renderer is one document and a clear exit code too
        fault = Report(report.command, failure=own_fault(error), project=report.project)
        return fault, {form: text_of(fault, form, fail_on, details=details) for form in forms}


def _filed(name: str, text: str) -> bool:
    """Write one file; False, and a line on standard error, where it cannot be."""
    data = _encoded(text)
    try:
        mode = Path(name).stat().st_mode if Path(name).exists() else None
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            with Path(name).open("wb") as stream:  # a pipe or a device is no file that another can take the place of
                stream.write(data)
        else:
            whole = os.path.realpath(name)  # the file of a link, not the link
            RealSystem().write_file(whole, data, _new_mode() if mode is None else stat.S_IMODE(mode))
    except BrokenPipeError:
        return True
    except OSError as error:
        sys.stderr.write(f"{tr('error')}  {tr(f'cannot write {name}: {error.strerror or error}')}\n")
        return False
    return True


def _buffer() -> None:
    """Standard output writes all or raises: under PYTHONUNBUFFERED it writes what a full disk takes, and is content."""
    stream = sys.__stdout__
    if stream is not None and sys.stdout is stream and isinstance(stream.buffer, io.RawIOBase):
        writer = io.BufferedWriter(stream.buffer)
        sys.stdout = io.TextIOWrapper(writer, stream.encoding, stream.errors, line_buffering=True)


def _new_mode() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _encoded(text: str) -> bytes:
    # Bytes of a path that are no UTF-8 become what JSON takes for an escape.
    return text.encode("utf-8", "backslashreplace")


def _write(text: str) -> None:
    """One document for a machine: UTF-8 whatever the terminal has."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_encoded(text))


def _print(report: Report, output: Output, fail_on: FailOn) -> None:
    # What the terminal's encoding lacks is shown by its number: half a report is worse.
    with contextlib.suppress(AttributeError, ValueError):
        utf8 = sys.stdout.encoding.lower().replace("-", "") == "utf8"
        sys.stdout.reconfigure(errors="surrogateescape" if utf8 else "backslashreplace")  # type: ignore[union-attr]
    if report.text:
        sys.stdout.write(report.text)
    else:
        from ideepdoctor.render.text import console, render

        render(report, console(error=report.failure is not None), fail_on=fail_on, details=output.verbose > 0)
