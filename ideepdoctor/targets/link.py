"""A way to another machine or into a container: how a command is started there, and a payload that ends with us."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ideepdoctor.system import Completed, System
from ideepdoctor.targets.address import SSH, Address

ANSWER_SECONDS = 30.0
"""For logging in and starting an interpreter there, before anything is sent."""
_END_SECONDS = 3.0

BOOT = (
    'import os,sys;os.write(1,sys.argv[1].encode("ascii"));'
    'f=os.fdopen(os.dup(0),"rb");exec(f.read(int(sys.argv.pop(2))))'
)
"""Says that Python runs there, then reads as many bytes of program as it is told. One line without single quotes,
dollars, backslashes and exclamation marks: it goes through whatever login shell the other side has."""


@dataclass(frozen=True, slots=True)
class Link:
    """A way that is open.

    Attributes:
        address: as the user named it.
        words: what is really started before the command: with options, where they are needed.
        home: home folder of the user there; empty where it is not known.
        user: their name there.
        host: name of the machine.
    """

    address: Address
    words: tuple[str, ...]
    home: str = ""
    user: str = ""
    host: str = ""

    def argv(self, words: Sequence[str]) -> list[str]:
        """The command line, here, that starts these words there."""
        if self.address.kind == SSH:
            # ssh joins its words to one line for the login shell; with exec no shell stands between us and the program.
            return [*self.words, f"exec {shlex.join(words)}"]
        return [*self.words, *words]


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a program that was started over a link ended.

    Attributes:
        arrived: whether an interpreter answered at all.
        done: how it ended; ``timed_out`` counts from its start, or from the moment at which it had arrived.
    """

    arrived: bool
    done: Completed


def run_there(
    system: System,
    link: Link,
    python: Sequence[str],
    source: bytes,
    cookie: str,
    request: str,
    *,
    timeout_seconds: float,
    env: Mapping[str, str] | None = None,
) -> Arrival:
    """Run a payload over a link. Standard input stays open until it has answered: its end ends what runs there.

    Args:
        system: starts the process.
        link: to where.
        python: the interpreter's words, emulator included.
        source: the payload.
        cookie: which the answer stands between.
        request: the payload's second argument.
        timeout_seconds: for the payload, once an interpreter has answered (which it has ANSWER_SECONDS for).
        env: whole environment of the program that reaches the other side; None: the doctor's own.
    """
    lifeline = (files("ideepdoctor") / "payload" / "lifeline.py").read_bytes()
    words = [*python, "-B", "-E", "-s", "-c", BOOT, cookie, str(len(lifeline)), str(len(source)), request]
    argv, mark = link.argv(words), cookie.encode("ascii")
    try:
        talk = system.converse(argv, env=env)
    except OSError as error:
        return Arrival(False, Completed(tuple(argv), 127, b"", b"", 0.0, error=str(error)))
    arrived, answer, code = False, None, None
    try:
        arrived = talk.receive(mark, 1, ANSWER_SECONDS) is not None
        if arrived:
            talk.send(lifeline + source)
            answer = talk.receive(mark, 2, timeout_seconds)
            if answer is not None:
                talk.receive(mark, 1, _END_SECONDS)  # until it has ended by itself
        code = talk.ended()
    except BrokenPipeError:
        code = talk.ended()
    finally:
        ended = talk.close(_END_SECONDS if answer is None else 0.0)
        errors = talk.errors()
    timed_out = answer is None and code is None
    done = Completed(tuple(argv), ended if code is None else code, answer or b"", errors.encode(), 0.0, timed_out)
    return Arrival(arrived, done)
