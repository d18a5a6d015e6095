"""What comes from processes that were started, and what goes to them: lines, chunks, conversations."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from typing import IO, Protocol

_KEPT_BYTES = 1 << 24
"""Of what a program prints in one answer: it must not fill the memory."""


class Running(Protocol):
    """What is needed of a process that ``system.py`` started."""

    pid: int
    returncode: int | None
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None:
        """Its exit code once it has ended."""
        ...

    def wait(self) -> int:
        """Wait for its end."""
        ...


class Dialogue(Protocol):
    """A program that is talked to; see Conversation, which is the real one."""

    def send(self, data: bytes) -> None:
        """Write all of it."""
        ...

    def receive(self, mark: bytes, count: int, timeout_seconds: float) -> bytes | None:
        """What it prints up to and with the ``count``-th ``mark``."""
        ...

    def ended(self) -> int | None:
        """How it ended; None while it runs."""
        ...

    def errors(self) -> str:
        """The end of its standard error."""
        ...

    def close(self, grace_seconds: float = 2.0) -> int:
        """End it; return how it ended."""
        ...


class Conversation:
    """A program that reads requests on its standard input and answers on its standard output.

    Args:
        process: with pipes for both; it leads a session of its own.
        errors: a file that holds its standard error.
    """

    def __init__(self, process: Running, errors: IO[bytes]) -> None:
        self._process, self._errors = process, errors
        assert process.stdin is not None and process.stdout is not None
        self._given, self._printed = process.stdin, process.stdout
        os.set_blocking(self._printed.fileno(), False)
        self._rest = b""

    def send(self, data: bytes) -> None:
        """Write all of it. Raises BrokenPipeError where the program has ended."""
        self._given.write(data)
        self._given.flush()

    def receive(self, mark: bytes, count: int, timeout_seconds: float) -> bytes | None:
        """What it prints up to and with the ``count``-th ``mark``.

        Returns:
            The bytes; what comes after them is kept for the next call. None after ``timeout_seconds``, or where the
            program ended without saying so much.
        """
        collected = bytearray(self._rest)
        for chunk in self._chunks(time.monotonic() + timeout_seconds, bool(collected)):
            collected += chunk
            end = _end_of(collected, mark, count)
            if end is not None:
                self._rest = bytes(collected[end:])
                return bytes(collected[:end])
            del collected[: max(0, len(collected) - _KEPT_BYTES)]
        self._rest = bytes(collected)
        return None

    def _chunks(self, deadline: float, begun: bool) -> Iterator[bytes]:
        if begun:
            yield b""
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            ready, _, _ = select.select([self._printed.fileno()], [], [], min(left, 0.2))
            if ready:
                chunk = os.read(self._printed.fileno(), 1 << 20)
                if not chunk:
                    self._wait(5.0)  # it ends now; whoever asks how shall get an answer
                    return
                yield chunk
            elif self._process.poll() is not None:
                yield from _left_over(self._printed.fileno())
                return

    def ended(self) -> int | None:
        """How it ended, negative for a signal; None while it runs."""
        return self._process.poll()

    def errors(self) -> str:
        """The end of what it has written to standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - 4000))
        return self._errors.read().decode("utf-8", "replace")

    def close(self, grace_seconds: float = 2.0) -> int:
        """End its standard input, and the program itself where it goes on; return how it ended."""
        with contextlib.suppress(OSError):
            self._given.close()
        self._wait(grace_seconds)
        if self._process.poll() is None:
            kill_group(self._process)
        self._printed.close()
        return self._process.wait()

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)


def _end_of(data: bytearray, mark: bytes, count: int) -> int | None:
    """Place behind the ``count``-th mark."""
    place = 0
    for _ in range(count):
        found = data.find(mark, place)
        if found < 0:
            return None
        place = found + len(mark)
    return place


def read_lines(process: Running, deadline: float, on_line: Callable[[str], None]) -> tuple[bytes, bool]:
    """Collect its only pipe (standard error, else standard output) line by line until it ends.

    Returns:
        All of it, and whether the process group was killed at the deadline.
    """
    pipe = process.stderr or process.stdout
    assert pipe is not None
    collected = bytearray()
    with contextlib.closing(pipe) as stream:
        os.set_blocking(stream.fileno(), False)
        timed_out = False
        for chunk in _chunks(stream.fileno(), process, deadline):
            if chunk is None:
                timed_out = True
                kill_group(process)
                break
            before = collected.rfind(b"\n") + 1
            collected += chunk
            lines = collected[before:].split(b"\n")
            for line in lines[:-1]:
                on_line(line.decode("utf-8", "replace"))
    process.wait()
    if rest := collected[collected.rfind(b"\n") + 1 :]:
        on_line(rest.decode("utf-8", "replace"))
    return bytes(collected), timed_out


def _chunks(descriptor: int, process: Running, deadline: float) -> Iterator[bytes | None]:
    """Yield what comes on a non-blocking descriptor; None once at the deadline; ends when the process has ended."""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            yield None
            return
        # A short wait, because a grandchild may hold the pipe open after the process itself has ended.
        ready, _, _ = select.select([descriptor], [], [], min(left, 0.05))
        if ready:
            chunk = os.read(descriptor, 65536)
            if not chunk:
                break
            yield chunk
        elif process.poll() is not None:
            yield from _left_over(descriptor)
            return
    while process.poll() is None:
        if time.monotonic() >= deadline:
            yield None
            return
        time.sleep(0.005)


def _left_over(descriptor: int) -> Iterator[bytes]:
    """Yield what an ended process has left in its pipe: it may have written after the last look, and then ended.

    A pipe holds 1 MiB at most (fs.pipe-max-size), so a grandchild that goes on writing is not waited for.
    """
    for _ in range(16):
        try:
            chunk = os.read(descriptor, 65536)
        except BlockingIOError:
            return
        if not chunk:
            return
        yield chunk


def kill_group(process: Running) -> None:
    """Kill the process and all that it started; it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
