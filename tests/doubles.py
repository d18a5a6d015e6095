"""Test doubles of ``ideepdoctor.system.System``.

``FakeSystem`` touches nothing: programs are answered from a table, writes go into a dictionary. ``CountingSystem``
does the real thing and remembers what it did.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NoReturn

from ideepdoctor.system import Completed, Ended, Observer, RealSystem, TreeEntry


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a System: ``kind`` is the method's name."""

    kind: str
    argv: tuple[str, ...] = ()
    path: str = ""
    destination: str = ""
    data: bytes = b""
    stdin: bytes = b""
    env: Mapping[str, str] | None = None
    cwd: str | None = None
    timeout_seconds: float | None = None


Answer = Completed | bytes | str | OSError | Callable[[Call], "Answer"]
Pattern = str | Sequence[str] | Callable[[Call], bool]


def completed(
    stdout: bytes | str = b"",
    *,
    returncode: int = 0,
    stderr: bytes | str = b"",
    timed_out: bool = False,
    error: str = "",
) -> Completed:
    """A ``Completed`` without the parts that a test does not care about."""
    out = stdout.encode() if isinstance(stdout, str) else stdout
    err = stderr.encode() if isinstance(stderr, str) else stderr
    return Completed((), returncode, out, err, 0.0, timed_out, error)


def payload_answer(answer: Mapping[str, Any]) -> Callable[[Call], Answer]:
    """An answer as a payload gives it: JSON between the cookies of the very call (``... - COOKIE REQUEST``)."""

    def reply(call: Call) -> Answer:
        cookie = call.argv[-2]
        return f"a banner\n{cookie}{json.dumps(dict(answer))}{cookie}\n"

    return reply


def _matches(pattern: Pattern, call: Call) -> bool:
    if callable(pattern):
        return pattern(call)
    wanted = (pattern,) if isinstance(pattern, str) else tuple(pattern)
    return call.argv[: len(wanted)] == wanted


class Became(BaseException):
    """A ``FakeSystem`` would have become another program here."""


class EndedAs(BaseException):
    """A ``FakeSystem`` would have ended this process here, as a program with this return code."""

    def __init__(self, returncode: int) -> None:
        super().__init__(returncode)
        self.returncode = returncode


Handler = Callable[[Call, Mapping[str, Any]], Mapping[str, Any] | int]
"""Answers a request to a worker; an int: the worker ends with that code instead. ``verbose`` is printed before."""


class FakeDialogue:
    """A worker of bench that a function answers for."""

    def __init__(self, call: Call, handler: Handler) -> None:
        self.call, self.handler = call, handler
        self.code: int | None = None
        self._ready = b""
        self._begun = False

    def send(self, data: bytes) -> None:
        if not self._begun:
            size, _, source = data.partition(b"\n")
            assert int(size) == len(source)
            self._begun = True
            return
        if self.code is not None:
            raise BrokenPipeError(32, "Broken pipe")
        answer = self.handler(self.call, json.loads(data))
        if isinstance(answer, int):
            self.code = answer
            return
        cookie = self.call.argv[-2]
        lines = "\n".join(answer.get("verbose", ()))
        self._ready += f"{lines}\n{cookie}{json.dumps(dict(answer))}{cookie}".encode()

    def receive(self, mark: bytes, count: int, timeout_seconds: float) -> bytes | None:
        ready, self._ready = self._ready, b""
        return ready if ready.count(mark) == count else None

    def ended(self) -> int | None:
        return self.code

    def errors(self) -> str:
        return "its last words\n"

    def close(self, grace_seconds: float = 2.0) -> int:
        self.code = 0 if self.code is None else self.code
        return self.code


@dataclass
class FakeSystem:
    """A ``System`` that records every call and answers programs from a table.

    Args:
        answers: pairs of a pattern and an answer; the first pattern that fits wins. A pattern is a program's name,
            the first words of a command line, or a function of the ``Call``. An answer is a ``Completed``, standard
            output (bytes or str, exit code 0), an ``OSError`` (the program cannot be started), or a function of the
            ``Call`` that returns one of these.
        files: what ``write_file`` and the others act on: path to bytes.
        fail_writes: raised by every method that writes, where it is not None.

    A program that no pattern fits cannot be started (``Completed`` with 127), as on a machine without it.
    """

    answers: list[tuple[Pattern, Answer]] = field(default_factory=list)
    workers: list[tuple[Pattern, Handler]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    fail_writes: OSError | None = None
    calls: list[Call] = field(default_factory=list)
    modes: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def on(self, pattern: Pattern, answer: Answer) -> FakeSystem:
        """Add a line to the table; returns itself, so that calls can be chained."""
        self.answers.append((pattern, answer))
        return self

    def commands(self) -> list[tuple[str, ...]]:
        """The command lines that were started, in order."""
        return [call.argv for call in self.calls if call.kind == "run"]

    def writes(self) -> list[Call]:
        """Everything but ``run``, in order."""
        return [call for call in self.calls if call.kind not in ("run", "attend", "end_as")]

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_line: Observer = lambda _text: None,
        on_output: Observer | None = None,
    ) -> Completed:
        call = Call("run", tuple(argv), stdin=stdin, env=env, cwd=cwd, timeout_seconds=timeout_seconds)
        self._record(call)
        nothing = completed(returncode=127, error=f"No such file or directory: {call.argv[0]!r}")
        answer = next((answer for pattern, answer in self.answers if _matches(pattern, call)), nothing)
        while callable(answer):
            answer = answer(call)
        if isinstance(answer, OSError):
            return Completed(call.argv, 127, b"", b"", 0.0, error=str(answer))
        if isinstance(answer, (bytes, str)):
            answer = completed(answer)
        out, err = answer.stdout, answer.stderr
        if on_output is not None:
            out, err = out + err, b""
        for line in (err if on_output is None else out).decode("utf-8", "replace").splitlines():
            (on_output or on_line)(line)
        return Completed(call.argv, answer.returncode, out, err, answer.seconds, answer.timed_out, answer.error)

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> FakeDialogue:
        """A worker whose requests are answered by the first of ``workers`` that fits; else it cannot be started."""
        call = Call("converse", tuple(argv), env=env)
        self._record(call)
        handler = next((handler for pattern, handler in self.workers if _matches(pattern, call)), None)
        if handler is None:
            raise FileNotFoundError(2, "No such file or directory", call.argv[0])
        return FakeDialogue(call, handler)

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        self._record(Call("become", tuple(argv), env=env))
        raise Became

    def attend(self, argv: Sequence[str], env: Mapping[str, str]) -> Ended:
        """Answered from the table as ``run`` is; a program that no pattern fits cannot be started."""
        call = Call("attend", tuple(argv), env=env)
        self._record(call)
        answer = next((answer for pattern, answer in self.answers if _matches(pattern, call)), None)
        while callable(answer):
            answer = answer(call)
        if answer is None:
            raise FileNotFoundError(2, "No such file or directory", call.argv[0])
        if isinstance(answer, OSError):
            raise answer
        return Ended(answer.returncode if isinstance(answer, Completed) else 0, 1.0)

    def end_as(self, returncode: int) -> NoReturn:
        self._record(Call("end_as"))
        raise EndedAs(returncode)

    def make_temporary_folder(self) -> str:
        path = f"/tmp/made-{sum(call.kind == 'make_temporary_folder' for call in self.calls) + 1}"
        self._write(Call("make_temporary_folder", path=path))
        self.folders.add(path)
        return path

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._write(Call("write_file", path=path, data=data))
        self.files[path] = data
        self.modes[path] = mode

    def append_line(self, path: str, line: str) -> None:
        self._write(Call("append_line", path=path, data=line.encode("utf-8") + b"\n"))
        self.files[path] = self.files.get(path, b"") + line.encode("utf-8") + b"\n"

    def append_text(self, path: str, text: str) -> None:
        self._write(Call("append_text", path=path, data=text.encode("utf-8")))
        self.files[path] = self.files.get(path, b"") + text.encode("utf-8")

    def make_folder(self, path: str) -> None:
        self._write(Call("make_folder", path=path))
        self.folders.add(path)

    def write_tree(self, folder: str, entries: Iterable[TreeEntry]) -> None:
        self._write(Call("write_tree", path=folder))
        for entry in entries:
            if entry.data is not None:
                self.files[f"{folder}/{entry.path}"] = entry.data
                self.modes[f"{folder}/{entry.path}"] = entry.mode
            elif entry.link is None:
                self.folders.add(f"{folder}/{entry.path}")

    def remove_file(self, path: str) -> None:
        self._write(Call("remove_file", path=path))
        self.files.pop(path, None)

    def remove_tree(self, path: str) -> None:
        self._write(Call("remove_tree", path=path))
        for name in self._under(path):
            del self.files[name]
        self.folders = {name for name in self.folders if not _is_under(name, path)}

    def copy_tree(self, source: str, destination: str) -> None:
        self._write(Call("copy_tree", path=source, destination=destination))
        for name in self._under(source):
            self.files[destination + name[len(source) :]] = self.files[name]

    def copy_file(self, source: str, destination: str) -> None:
        self._write(Call("copy_file", path=source, destination=destination))
        self.files[destination] = self._content(source)

    def rename(self, source: str, destination: str) -> None:
        self._write(Call("rename", path=source, destination=destination))
        names = self._under(source)
        if not names:
            raise FileNotFoundError(2, "No such file or directory", source)
        for name in names:
            self.files[destination + name[len(source) :]] = self.files.pop(name)

    def _record(self, call: Call) -> None:
        with self._lock:
            self.calls.append(call)

    def _write(self, call: Call) -> None:
        self._record(call)
        if self.fail_writes is not None:
            raise self.fail_writes

    def _under(self, path: str) -> list[str]:
        return [name for name in self.files if _is_under(name, path)]

    def _content(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]


def _is_under(name: str, folder: str) -> bool:
    return PurePosixPath(name).is_relative_to(folder)


class CountingSystem(RealSystem):
    """The machine itself, with a memory: ``commands`` is what was started, ``ended`` how that ended (in the order of
    ending), ``written`` which files were written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.commands: list[tuple[str, ...]] = []
        self.ended: list[Completed] = []
        self.written: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_line: Observer = lambda _text: None,
        on_output: Observer | None = None,
    ) -> Completed:
        self.commands.append(tuple(argv))
        done = super().run(
            argv,
            timeout_seconds=timeout_seconds,
            stdin=stdin,
            env=env,
            cwd=cwd,
            on_line=on_line,
            on_output=on_output,
        )
        self.ended.append(done)
        return done

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        super().write_file(path, data, mode)
        self.written.append(path)
