"""``trace``: run a program and say afterwards what iDeep computed of it, what NumPy, why, and what to change."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ideepdoctor.commands.run import cannot_start, prepare
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import UsageError
from ideepdoctor.options import Format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ideepdoctor.model.facts import Facts
    from ideepdoctor.model.trace import Trace
    from ideepdoctor.proof.trace_records import Records

EVENTS = 300_000
"""Calls of each process that are recorded one by one for ``--chrome``; about 100 bytes of the file for each."""
_SOURCE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """What ``trace`` was asked.

    Attributes:
        target: which Python; without one, the program itself where it is a path to a Python.
        words: the program and its arguments.
        auto: call to_intel64() for the program, as ``run`` does, with the guard. Off by default: the question is why
            the program as it stands is slow.
        guard: leave a guard of the environment as it is; False: switch it off.
        output: file for the report; None: standard error.
        form: text, or a format for machines, for which ``output`` is needed.
        chrome: file for the calls as a Chrome trace.
    """

    target: TargetOptions
    words: tuple[str, ...]
    auto: bool = False
    guard: bool = True
    output: str | None = None
    form: Format = Format.TEXT
    chrome: str | None = None


def trace(session: Session, options: TraceOptions) -> NoReturn:
    """Run the program, report, and end as it ended.

    Raises:
        UsageError: no program, one that cannot be started, an output file that cannot be.
        CouldNotCheck: the target does not answer, or there is no room for the records.
    """
    from ideepdoctor.errors import CouldNotCheck
    from ideepdoctor.facts.collect import Scope

    _check(options)
    modules = ["trace", *(["guard", "auto"] if options.auto and options.guard else [])]
    scope = Scope(imports=False, libraries=False, interpreters=False)
    prepared = prepare(session, options.target, options.words, "trace", scope, modules)
    environ = prepared.environ
    if not options.guard:
        environ["IDEEPDOCTOR_GUARD"] = "off"
    try:
        folder = session.system.make_temporary_folder()
    except OSError as error:
        hint = "set TMPDIR to a folder that you can write"
        raise CouldNotCheck(f"there is no room for the records: {error.strerror}", hint=hint) from error
    environ["IDEEPDOCTOR_TRACE"] = folder
    if options.chrome is not None:
        environ["IDEEPDOCTOR_TRACE_EVENTS"] = str(EVENTS)
    session.progress.close()
    try:
        try:
            ended = session.system.attend(prepared.argv, environ)
        except OSError as error:
            raise cannot_start(prepared.argv[0], error) from error
        # From here on nothing may hide how the program ended.
        with _told_on_error():
            _report(session, options, prepared.facts, folder, ended.returncode, ended.seconds)
    finally:
        with contextlib.suppress(OSError):
            session.system.remove_tree(folder)
    session.system.end_as(ended.returncode)


@contextlib.contextmanager
def _told_on_error() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the program's own exit code is more than our fault
        _say(f"trace could not report: {type(error).__name__}: {error}\n")


def _check(options: TraceOptions) -> None:
    """Refuse before the program runs what would only be found after it."""
    if options.form.for_machines and options.output is None:
        hint = f"name a file: ideepdoctor trace --format {options.form} -o FILE -- python train.py"
        raise UsageError(f"--format {options.form} needs -o: standard output is the program's", hint=hint)
    for name, path in (("-o", options.output), ("--chrome", options.chrome)):
        if path is None:
            continue
        target = Path(path).absolute()
        if target.is_dir() or not os.access(target.parent, os.W_OK | os.X_OK):
            raise UsageError(f"{name} {path} cannot be written", hint="name a file in a folder that you can write")


def _report(
    session: Session, options: TraceOptions, facts: Facts, folder: str, returncode: int, seconds: float
) -> None:
    from ideepdoctor.proof.trace_records import read_folder
    from ideepdoctor.proof.trace_summary import summarize

    records = read_folder(folder)
    found = summarize(
        records,
        options.words,
        returncode,
        seconds,
        shown=lambda path: _shown(path, session.cwd),
        content=_content,
        set_here=_set_here(session, facts),
    )
    if options.chrome is not None:
        _write_chrome(session, options.chrome, found, records)
    text = _document(found, facts, options.form) if options.form.for_machines else _text(found)
    if options.output is None:
        _say(text)
        return
    try:
        session.system.write_file(str(Path(options.output).absolute()), text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        _say(f"{options.output} could not be written: {error.strerror}\n{text}")


def _text(found: Trace) -> str:
    from ideepdoctor.render.trace_text import render

    return render(found)


def _document(found: Trace, facts: Facts, form: Format) -> str:
    from ideepdoctor.model.report import Report
    from ideepdoctor.model.summary import FailOn
    from ideepdoctor.render.formats import renderer
    from ideepdoctor.render.trace_json import as_data

    report = Report("trace", facts=facts, body=tuple(_text(found).splitlines()), extra={"trace": as_data(found)})
    return renderer(form)(report, FailOn.ERROR) + "\n"


def _write_chrome(session: Session, path: str, found: Trace, records: Sequence[Records]) -> None:
    from ideepdoctor.proof.trace_events import timelines
    from ideepdoctor.render.trace_chrome import render

    try:
        text = render(timelines(records, shown=lambda name: _shown(name, session.cwd)))
        session.system.write_file(str(Path(path).absolute()), text.encode("ascii"))
    except OSError as error:
        _say(f"{path} could not be written: {error.strerror}\n")


def _say(text: str) -> None:
    """Write to standard error, if there is one and somebody reads it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()


def _set_here(session: Session, facts: Facts) -> bool:
    """Whether a program of the user's has no CHAINER_USE_IDEEP without trace."""
    name = "CHAINER_USE_IDEEP"
    return name not in session.environ and name not in (facts.variables.effective or {})


def _shown(path: str, cwd: str) -> str:
    """A path relative to the current folder where it is in it."""
    if not path or path.startswith("<"):
        return path
    with contextlib.suppress(ValueError):
        return str(Path(path).relative_to(cwd))
    return path


def _content(path: str) -> bytes | None:
    try:
        file = Path(path)
        return file.read_bytes() if file.is_file() and file.stat().st_size <= _SOURCE_BYTES else None
    except OSError:
        return None
