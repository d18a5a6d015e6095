"""A target: an interpreter, how to reach it, and how to run one of our payloads in it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.system import Completed, System
from ideepdoctor.targets.failures import last_line, not_reached
from ideepdoctor.targets.link import ANSWER_SECONDS, Link, run_there

PRELOADING = ("LD_PRELOAD", "LD_AUDIT")
"""What can keep every program from starting. A payload starts without them and gives them back to its children, so
that a library that kills the interpreter is found and not suffered."""

_PART = re.compile(rb"^from (\w+) import (?:\([^)]*\)|[^(\n]+)[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where Chainer and ideep4py live.

    Attributes:
        python: path of the interpreter on the machine that it runs on.
        transport: words that reach that machine, as a person would type them (``ssh HOST``, ``docker exec -i NAME``);
            empty for this one.
        emulator: words that the interpreter runs under there (``qemu-x86_64 -cpu Haswell``); children get them too.
        reason: why this target was chosen, for the reader.
        link: the way to that machine; None for this one.
    """

    python: str
    transport: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    reason: str = ""
    link: Link | None = None

    @property
    def address(self) -> str:
        """Where it is, as ``--target`` takes it; empty for this machine."""
        return "" if self.link is None else self.link.address.text

    def argv(self, *arguments: str) -> list[str]:
        """The command line that starts the interpreter with these arguments."""
        if self.link is not None:
            return self.link.argv([*self.emulator, self.python, *arguments])
        return [*self.transport, *self.emulator, self.python, *arguments]


def payload_source(name: str) -> bytes:
    """The text of a payload, parts included: ``probe`` is payload/probe.py.

    A line ``from lab import (...)`` that names a sibling in payload/ is replaced by that file's text, which may name
    parts of its own; each part comes once, where it is named first. So a payload stays one text in one namespace.
    """
    folder, there = files("ideepdoctor") / "payload", {name}

    def joined(part: str) -> bytes:
        return _PART.sub(part_or_line, (folder / f"{part}.py").read_bytes())

    def part_or_line(found: re.Match[bytes]) -> bytes:
        part = found[1].decode("ascii")
        if part in there:
            return b""
        if not (folder / f"{part}.py").is_file():
            return found[0]
        there.add(part)
        return joined(part)

    return joined(name)


def run_payload(
    system: System,
    target: Target,
    name: str,
    request: Mapping[str, Any],
    *,
    timeout_seconds: float,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run a payload in the target and return the JSON object that it answers with.

    The payload is sent over standard input; its arguments are a random cookie and the request as URL-safe base64 of
    JSON (with ``emulator`` and ``loader_variables`` added: its children need them). It prints ``COOKIE json COOKIE``.
    On another machine it is ended when this process ends (see ``link.run_there``).

    Args:
        system: starts the process.
        target: where.
        name: which payload.
        request: what it shall do, JSON-ready.
        timeout_seconds: for the whole payload, children included.
        env: whole environment of the interpreter; None: the doctor's own.

    Raises:
        CouldNotCheck: the interpreter did not start, timed out, died, or answered without the cookies.
    """
    cookie = secrets.token_hex(16)
    asked = {**request, "emulator": list(target.emulator)}
    if not target.transport:
        given = os.environ if env is None else env
        held = {name: given[name] for name in PRELOADING if name in given}
        if held:
            env = {name: value for name, value in given.items() if name not in held}
            asked["loader_variables"] = held
    encoded = base64.urlsafe_b64encode(json.dumps(asked).encode("ascii")).decode("ascii")
    done = _answer(system, target, payload_source(name), cookie, encoded, timeout_seconds, env)
    parts = done.text().split(cookie)
    if len(parts) >= 3:
        with contextlib.suppress(ValueError):  # a program that is no Python may print its own arguments
            answer = json.loads(parts[1])
            if isinstance(answer, dict):
                return answer
    raise _no_answer(target, name, done, timeout_seconds, cookie)


def _answer(
    system: System,
    target: Target,
    source: bytes,
    cookie: str,
    request: str,
    timeout_seconds: float,
    env: Mapping[str, str] | None,
) -> Completed:
    """How the payload ended. Raises CouldNotCheck where no interpreter answers on the other side of a link."""
    if target.link is None:
        argv = target.argv("-B", "-E", "-s", "-", cookie, request)
        return system.run(argv, stdin=source, timeout_seconds=timeout_seconds, env=env)
    python = [*target.emulator, target.python]
    come = run_there(system, target.link, python, source, cookie, request, timeout_seconds=timeout_seconds, env=env)
    if not come.arrived:
        raise not_reached(target.link.address, come.done, ANSWER_SECONDS, target.python)
    return come.done


def _no_answer(target: Target, name: str, done: Completed, timeout_seconds: float, cookie: str) -> CouldNotCheck:
    """The error for a payload that was started and did not answer."""
    if done.timed_out:
        problem = f"did not answer within {timeout_seconds:.0f} s"
    elif done.error:
        problem = f"could not be started: {done.error}"
    else:
        problem = f"ended with {done.returncode} and no answer"
    where = f"{target.address}: " if target.link is not None else ""
    said = f": {last_line(done.error_text())}" if target.link is not None and last_line(done.error_text()) else ""
    yourself = [*target.transport, *target.emulator, target.python, "-c", "pass"]
    return CouldNotCheck(
        f"{where}{target.python} {problem}{said}",
        hint=f"try it yourself: {' '.join(yourself)}",
        context={
            "payload": name,
            "ended": "timeout" if done.timed_out else "not started" if done.error else str(done.returncode),
            "standard error": done.error_text()[-2000:],
            "standard output": done.text()[:2000].replace(cookie, "COOKIE"),
        },
    )
