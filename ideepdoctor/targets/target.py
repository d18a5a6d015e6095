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
from ideepdoctor.system import System

PRELOADING = ("LD_PRELOAD", "LD_AUDIT")
"""What can keep every program from starting. A payload starts without them and gives them back to its children, so
that a library that kills the interpreter is found and not suffered."""

_PART = re.compile(rb"^from (\w+) import (?:\([^)]*\)|[^(\n]+)[^\n]*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where Chainer and ideep4py live.

    Attributes:
        python: path of the interpreter on the machine that it runs on.
        transport: words that reach that machine (``ssh HOST``, ``docker exec -i NAME``); empty for this one.
        emulator: words that the interpreter runs under there (``qemu-x86_64 -cpu Haswell``); children get them too.
        reason: why this target was chosen, for the reader.
    """

    python: str
    transport: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()
    reason: str = ""

    def argv(self, *arguments: str) -> list[str]:
        """The command line that starts the interpreter with these arguments."""
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
    argv = target.argv("-B", "-E", "-s", "-", cookie, encoded)
    done = system.run(argv, stdin=payload_source(name), timeout_seconds=timeout_seconds, env=env)
    parts = done.text().split(cookie)
    if len(parts) >= 3:
        with contextlib.suppress(ValueError):  # a program that is no Python may print its own arguments
            answer = json.loads(parts[1])
            if isinstance(answer, dict):
                return answer
    if done.timed_out:
        problem = f"did not answer within {timeout_seconds:.0f} s"
    elif done.error:
        problem = f"could not be started: {done.error}"
    else:
        problem = f"ended with {done.returncode} and no answer"
    raise CouldNotCheck(
        f"{target.python} {problem}",
        hint=f"try it yourself: {' '.join(target.argv('-c', 'pass'))}",
        context={
            "payload": name,
            "ended": "timeout" if done.timed_out else "not started" if done.error else str(done.returncode),
            "standard error": done.error_text()[-2000:],
            "standard output": done.text()[:2000].replace(cookie, "COOKIE"),
        },
    )
