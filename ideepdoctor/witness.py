"""Who listens to a run of a command: the log file of ``--log-file``, and standard error with ``-v`` and ``-vv``."""

from __future__ import annotations

import sys
import sysconfig
import time
import traceback
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ideepdoctor import trail
from ideepdoctor.system import RealSystem

if TYPE_CHECKING:
    from ideepdoctor.masks import Mask
    from ideepdoctor.model.report import Report
    from ideepdoctor.options import Output
    from ideepdoctor.render.details import Details

_CODE = (".py", ".pyc", ".so", ".pth", ".mo", ".po")
"""Ends of files that Python reads for itself."""


class Witness:
    """One run, listened to.

    Args:
        output: says how much, and where the log is.
        environ: the doctor's variables.
    """

    def __init__(self, output: Output, environ: Mapping[str, str]) -> None:
        self._output, self._environ = output, environ
        self._started = time.monotonic()
        self._stack = ExitStack()
        self._details: Details | None = None
        self._read: dict[str, None] | None = None
        self._traceback = ""

    def begin(self, command: str, words: list[str]) -> None:
        """Listen from now on. Raises UsageError where the log file cannot be written: nothing has been done then."""
        output = self._output
        if output.log_file is None and output.verbose == 0:
            return
        from ideepdoctor.masks import Mask

        mask = Mask(self._environ)
        if output.log_file is not None:
            from ideepdoctor.logfile import LogFile, refuse_shared, tell_start

            refuse_shared(output.log_file, [output.path, *(path for _, path in output.also)])
            log = LogFile(RealSystem(), output.log_file, mask, details=output.verbose > 1)
            self._stack.enter_context(trail.listening(log))
            tell_start(command, words, self._environ)
        if output.verbose and not output.quiet:
            self._speak(mask)
        if output.verbose > 1:
            self._read = _reads()

    def failed(self, error: BaseException) -> None:
        """Keep the traceback of an error for the log."""
        self._traceback = "".join(traceback.format_exception(error))

    def end(self, report: Report | None, code: int) -> None:
        """Say what came out, and listen no more. A second call does nothing."""
        if self._details is not None or self._output.log_file is not None:
            read = list(self._read or ())
            if read:
                trail.tell("debug", "read", paths=read)
            if self._output.log_file is not None:
                from ideepdoctor.logfile import tell_report

                tell_report(report, code, time.monotonic() - self._started, self._traceback)
            if self._details is not None:
                from ideepdoctor.about import about

                self._details.close(read, about())
        self._details = None
        self._stack.close()

    def _speak(self, mask: Mask) -> None:
        from ideepdoctor.render.details import Details

        def hidden(level: str, event: str, data: dict[str, Any]) -> None:
            details(level, event, mask.value(data))

        details = Details(lambda line: _say(f"{line}\n"), self._output.verbose)
        self._details = details
        self._stack.enter_context(trail.listening(hidden))


def _say(text: str) -> None:
    """Write to standard error, whatever its encoding takes."""
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _reads() -> dict[str, None]:
    """The paths that this process opens for reading, or lists, from now on, in their order; filled as it happens."""
    found: dict[str, None] = {}
    package = Path(__file__).parent
    places = (str(package), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode = arguments[0], arguments[1]
            if isinstance(path, bytes):
                path = path.decode("utf-8", "surrogateescape")
            reading = mode is None or (isinstance(mode, str) and not set(mode) & set("wax+"))
            flags = arguments[2] if mode is None and isinstance(arguments[2], int) else 0
            if isinstance(path, str) and reading and not flags & 3 and not path.endswith(_CODE):
                found.setdefault(path)
        elif event in ("os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, str) and not path.startswith(places):
                found.setdefault(path)

    sys.addaudithook(hook)
    return found
