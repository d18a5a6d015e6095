"""A worker of bench in a target: it lives as long as the run and answers one request after another."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.system import System
from ideepdoctor.targets.target import Target, payload_source

BOOT = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; "
    "given = getattr(sys.stdin, 'buffer', sys.stdin); "
    "exec(compile(given.read(int(given.readline())), 'ideepdoctor', 'exec'), {'__name__': '__main__'})"
)
"""The program comes over standard input, which stays open for requests. The first act: no json.py of this folder."""
_VERBOSE = re.compile(r"mkldnn_verbose,[^\n]*")
_GUARD_SWITCH = "IDEEPDOCTOR_GUARD"


class WorkerDied(Exception):
    """A worker ended, or was ended because it did not answer; its text says how."""


class Refusal(Exception):
    """A request that could not be done; the worker lives on.

    Attributes:
        kind: memory, import, refused or raised.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Worker:
    """A payload that was started in a target and waits for requests.

    Args:
        system: starts it.
        target: the interpreter; it is started as the user's Python would be, with the user's variables.
        payload: its name: bench, bench_torch...
        variables: what is set besides; None as a value: unset.
        bare: take back what an environment's start-up file sets, and correct nothing: what pip alone installs.
        affinity: CPUs to stay on; None: all that are open to it.

    Raises:
        CouldNotCheck: the interpreter cannot be started.
    """

    def __init__(
        self,
        system: System,
        target: Target,
        payload: str,
        variables: Mapping[str, str | None] | None = None,
        *,
        bare: bool = False,
        affinity: Sequence[int] | None = None,
    ) -> None:
        self._cookie = secrets.token_hex(16)
        self.lines: tuple[str, ...] = ()
        """What MKL-DNN printed during the last request, under MKLDNN_VERBOSE=1."""
        given = {**(variables or {}), **({_GUARD_SWITCH: "off"} if bare else {})}
        env = {name: value for name, value in {**os.environ, **given}.items() if value is not None}
        options = json.dumps({"bare": bare, "affinity": None if affinity is None else list(affinity)})
        argv = target.argv("-B", "-c", BOOT, self._cookie, options)
        try:
            self._talk = system.converse(argv, env=env)
        except OSError as error:
            raise CouldNotCheck(
                f"{target.python} could not be started: {error}", hint=f"try it yourself: {target.python} -c pass"
            ) from error
        source = payload_source(payload)
        with contextlib.suppress(OSError):  # the first request tells how it ended
            self._talk.send(b"%d\n%s" % (len(source), source))

    def ask(self, request: Mapping[str, Any], *, timeout_seconds: float) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            Refusal: it could not be done.
            WorkerDied: there is no answer; the worker is ended.
        """
        mark = self._cookie.encode("ascii")
        with contextlib.suppress(OSError):
            self._talk.send(json.dumps(dict(request)).encode("ascii") + b"\n")
        data = self._talk.receive(mark, 2, timeout_seconds)
        if data is None:
            raise WorkerDied(self._how_it_ended(timeout_seconds))
        before, answered, _ = data.decode("utf-8", "replace").split(self._cookie)
        self.lines = tuple(_VERBOSE.findall(before))
        answer: dict[str, Any] = json.loads(answered)
        if "error" in answer:
            raise Refusal(str(answer["error"]["kind"]), str(answer["error"]["message"]))
        return answer

    def _how_it_ended(self, timeout_seconds: float) -> str:
        if self._talk.ended() is None:
            self._talk.close(0.0)
            return f"did not answer within {timeout_seconds:.0f} s"
        code, errors = self._talk.close(), self._talk.errors()
        last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
        if code < 0:
            name = signal.Signals(-code).name
            why = "; the system had no memory left, most likely" if code == -signal.SIGKILL else ""
            return f"ended by {name}{why}{': ' + last if last else ''}"
        return f"ended with exit code {code}{': ' + last if last else ''}"

    def close(self) -> None:
        """End it."""
        self._talk.close()

    def __enter__(self) -> Worker:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()
