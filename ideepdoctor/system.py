"""The only module that starts processes or writes files: a protocol, and the real thing behind it.

Everything that changes the machine goes through a ``System``, so that a test can hand in a double and so that every
command that was started can be shown (``-v``) and logged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from ideepdoctor.signals import held_back, wait_for
from ideepdoctor.streams import Conversation, Dialogue, kill_group, read_lines

Observer = Callable[[str], None]


def _silent(_text: str) -> None:
    """Observer that observes nothing."""


@dataclass(frozen=True, slots=True)
class Completed:
    """How a process ended.

    ``returncode`` is negative for a signal, as in ``subprocess``; 127 with an ``error`` text where the program could
    not be started at all.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether it ran and ended with 0."""
        return self.returncode == 0 and not self.timed_out

    def text(self) -> str:
        """Standard output as text; bytes that are no UTF-8 are replaced."""
        return self.stdout.decode("utf-8", "replace")

    def error_text(self) -> str:
        """Standard error, or why the program could not be started."""
        return self.error or self.stderr.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One thing in a tree of files: ``data`` of a file, the target of a ``link``, or (neither) a folder.

    ``path`` is relative and has no ``..``; ``mode`` counts for a file only.
    """

    path: str
    mode: int = 0o644
    data: bytes | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended that had this process's own streams; ``returncode`` is negative for a signal."""

    returncode: int
    seconds: float


class System(Protocol):
    """What the rest of the program may do to the world."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_line: Observer = _silent,
        on_output: Observer | None = None,
    ) -> Completed:
        """Start a program without a shell and wait for it.

        Args:
            argv: the program and its arguments.
            timeout_seconds: after this the whole process group is killed and ``timed_out`` is set.
            stdin: what it reads; never the terminal.
            env: its whole environment; None: the doctor's own.
            cwd: its working folder.
            on_line: called with each line of its standard error as it comes (progress).
            on_output: called with each line of both streams as it comes, in the order of writing; they are then one
                in ``stdout``, ``stderr`` is empty and ``on_line`` is not called.

        Raises:
            KeyboardInterrupt: Ctrl-C; the process group has been killed before.
        """
        ...

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Dialogue:
        """Start a program without a shell and talk to it; the caller closes the conversation.

        Args:
            argv: the program and its arguments.
            env: its whole environment; None: the doctor's own.

        Raises:
            OSError: it cannot be started.
        """
        ...

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """Turn this process into another program: its exit code, its signals and its streams are all that is left.

        Args:
            argv: the program (searched on the PATH of ``env``) and its arguments.
            env: its whole environment.

        Raises:
            OSError: it cannot be started; this process goes on.
        """
        ...

    def attend(self, argv: Sequence[str], env: Mapping[str, str]) -> Ended:
        """Start a program that has this process's streams and terminal, hand it the signals that come, and wait.

        The signals stay blocked in this process afterwards: it has little left to do, and to end with ``end_as``.

        Args:
            argv: the program (searched on the PATH of ``env``) and its arguments.
            env: its whole environment.

        Raises:
            OSError: it cannot be started.
        """
        ...

    def end_as(self, returncode: int) -> NoReturn:
        """End this process as a program ended: with its exit code, or by the signal that ended it."""
        ...

    def make_temporary_folder(self) -> str:
        """Make a folder that only this user can read, in the place for temporary files. Raises OSError."""
        ...

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file whole and atomically (temporary file beside it, fsync, rename). Raises OSError."""
        ...

    def append_line(self, path: str, line: str) -> None:
        """Append a line and fsync: a journal entry that is there after a crash. Raises OSError."""
        ...

    def append_text(self, path: str, text: str) -> None:
        """Append to a file that people may read and others append to at the same time (a log): one write, not synced.

        Raises OSError.
        """
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents; no error where it exists. Raises OSError."""
        ...

    def write_tree(self, folder: str, entries: Iterable[TreeEntry]) -> None:
        """Fill a new folder with files, as they come, without waiting for the disk. Raises OSError."""
        ...

    def remove_file(self, path: str) -> None:
        """Remove a file or link; no error where there is none. Raises OSError."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a folder with all it holds, or a file; no error where there is none. Raises OSError."""
        ...

    def copy_tree(self, source: str, destination: str) -> None:
        """Copy a folder with its links, modes and times. Raises OSError."""
        ...

    def copy_file(self, source: str, destination: str) -> None:
        """Copy a file with its mode and times, a link as a link. Raises OSError."""
        ...

    def rename(self, source: str, destination: str) -> None:
        """Rename within one file system, or move across two. Raises OSError."""
        ...


class RealSystem:
    """The machine itself. Every process is told of where ``watched.WatchedSystem`` stands in its place."""

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_seconds: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        on_line: Observer = _silent,
        on_output: Observer | None = None,
    ) -> Completed:
        """See ``System.run``."""
        started = time.monotonic()
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
            given.write(stdin)
            given.seek(0)
            try:
                process = subprocess.Popen(
                    list(argv),
                    stdin=given,
                    stdout=out if on_output is None else subprocess.PIPE,
                    stderr=subprocess.PIPE if on_output is None else subprocess.STDOUT,
                    env=None if env is None else dict(env),
                    cwd=cwd,
                    start_new_session=True,
                )
            except OSError as error:
                return Completed(tuple(argv), 127, b"", b"", time.monotonic() - started, error=str(error))
            try:
                told, timed_out = read_lines(process, started + timeout_seconds, on_output or on_line)
            except BaseException:
                kill_group(process)
                raise
            out.seek(0)
            stdout, stderr = (out.read(), told) if on_output is None else (told, b"")
        seconds = time.monotonic() - started
        return Completed(tuple(argv), process.returncode, stdout, stderr, seconds, timed_out)

    def converse(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Dialogue:
        """See ``System.converse``."""
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (the conversation closes it)
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=None if env is None else dict(env),
                start_new_session=True,
            )
        except BaseException:
            errors.close()
            raise
        return Conversation(process, errors)

    def become(self, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """See ``System.become``."""
        held = [(number, signal.signal(number, signal.SIG_DFL)) for number in _ignored_by_python()]
        try:
            os.execvpe(argv[0], list(argv), dict(env))  # noqa: S606 (no shell is wanted)
        finally:
            for number, handler in held:
                signal.signal(number, handler)

    def attend(self, argv: Sequence[str], env: Mapping[str, str]) -> Ended:
        """See ``System.attend``."""
        program = shutil.which(argv[0], path=env.get("PATH", os.defpath))
        if program is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        started = time.monotonic()
        with held_back() as mask:
            # Not posix_spawn, after which glibc leaves two signals of its own ignored. No other thread runs here.
            process = subprocess.Popen(
                list(argv),
                executable=program,
                env=dict(env),
                close_fds=False,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
            )
            process.returncode = wait_for(process.pid)
            return Ended(process.returncode, time.monotonic() - started)

    def end_as(self, returncode: int) -> NoReturn:
        """See ``System.end_as``."""
        if returncode >= 0:
            raise SystemExit(returncode)
        import resource

        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        number = -returncode
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        with contextlib.suppress(OSError):  # of SIGKILL nothing can be set
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
        raise SystemExit(128 + number)

    def make_temporary_folder(self) -> str:
        """See ``System.make_temporary_folder``."""
        return tempfile.mkdtemp(prefix="ideepdoctor-")

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """See ``System.write_file``."""
        target = Path(path)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".ideepdoctor", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(mode)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def append_line(self, path: str, line: str) -> None:
        """See ``System.append_line``."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8") + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def append_text(self, path: str, text: str) -> None:
        """See ``System.append_text``."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o666)
        try:
            left = text.encode("utf-8", "replace")
            while left:  # one write where the system takes it whole, as it does but on a full disk
                left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)

    def make_folder(self, path: str) -> None:
        """See ``System.make_folder``."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def write_tree(self, folder: str, entries: Iterable[TreeEntry]) -> None:
        """See ``System.write_tree``."""
        for entry in entries:
            target = Path(folder, entry.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.data is not None:
                with target.open("xb") as stream:
                    stream.write(entry.data)
                target.chmod(entry.mode)
            elif entry.link is not None:
                target.symlink_to(entry.link)
            else:
                target.mkdir(exist_ok=True)

    def remove_file(self, path: str) -> None:
        """See ``System.remove_file``."""
        Path(path).unlink(missing_ok=True)

    def remove_tree(self, path: str) -> None:
        """See ``System.remove_tree``."""
        target = Path(path)
        if target.is_symlink() or not target.is_dir():
            target.unlink(missing_ok=True)
        else:
            shutil.rmtree(target)

    def copy_tree(self, source: str, destination: str) -> None:
        """See ``System.copy_tree``."""
        shutil.copytree(source, destination, symlinks=True)

    def copy_file(self, source: str, destination: str) -> None:
        """See ``System.copy_file``."""
        shutil.copy2(source, destination, follow_symlinks=False)

    def rename(self, source: str, destination: str) -> None:
        """See ``System.rename``."""
        try:
            Path(source).rename(destination)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.move(source, destination)


def _ignored_by_python() -> list[signal.Signals]:
    """Signals that Python ignores for itself; a program that is started expects what a shell gives it."""
    return [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]


def is_executable_file(path: Path) -> bool:
    """Whether the path is a regular file (or a link to one) that this user may execute."""
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False
