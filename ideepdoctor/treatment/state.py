"""The doctor's own folders, and the lock that keeps two doctors apart."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ideepdoctor.errors import Busy, CouldNotCheck
from ideepdoctor.system import System
from ideepdoctor.targets import cache

APP_NAME = "ideepdoctor"
STATE_VARIABLE = "IDEEPDOCTOR_STATE_DIR"
CACHE_VARIABLE = "IDEEPDOCTOR_CACHE_DIR"


def state_folder(environ: Mapping[str, str]) -> str:
    """Where the journal, the backups and the lock are: $XDG_STATE_HOME/ideepdoctor unless IDEEPDOCTOR_STATE_DIR is set.

    Nothing is made here.

    Args:
        environ: the doctor's environment variables.

    Raises:
        CouldNotCheck: the folder cannot be written, or made.
    """
    named, base = environ.get(STATE_VARIABLE, ""), environ.get("XDG_STATE_HOME", "")
    if named:
        folder = Path(named).expanduser().absolute()
    elif Path(base).is_absolute():
        folder = Path(base) / APP_NAME
    else:
        from platformdirs import PlatformDirs

        folder = PlatformDirs(APP_NAME).user_state_path
    return _writable(folder, STATE_VARIABLE)


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where tools are kept that can be fetched again: $XDG_CACHE_HOME/ideepdoctor unless IDEEPDOCTOR_CACHE_DIR is set.

    Raises:
        CouldNotCheck: the folder cannot be written, or made.
    """
    return _writable(Path(cache.cache_folder(environ)), CACHE_VARIABLE)


def _writable(folder: Path, variable: str) -> str:
    """The folder, if it can be written or made; else CouldNotCheck, which names the variable to set."""
    there = existing_ancestor(str(folder))
    if not Path(there).is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise CouldNotCheck(
            f"cannot write to {there}, where the doctor keeps its own files ({folder})",
            hint=f"set {variable} to a folder that you can write",
            context={"folder": str(folder), "not writable": there},
        )
    return str(folder)


def existing_ancestor(path: str) -> str:
    """The path itself if it exists, else the nearest folder above it that does."""
    current = Path(path).absolute()
    while not os.path.lexists(current) and current != current.parent:
        current = current.parent
    return str(current)


@contextlib.contextmanager
def locked(system: System, folder: str) -> Iterator[None]:
    """Hold the doctor's lock.

    Args:
        system: makes the state folder and notes who holds the lock.
        folder: the state folder.

    Raises:
        Busy: another doctor holds it; the message names its process and how long it has been running.
        CouldNotCheck: the state folder cannot be written.
    """
    from filelock import FileLock, Timeout

    try:
        system.make_folder(folder)
        lock = FileLock(str(Path(folder) / "lock"), timeout=0)
        lock.acquire()
    except Timeout as error:
        raise Busy(
            f"another ideepdoctor is at work{_holder(folder)}",
            hint="wait until it has finished, then try again",
            context={"lock": str(Path(folder) / "lock")},
        ) from error
    except OSError as error:
        raise CouldNotCheck(
            f"cannot write to the doctor's own folder {folder}: {error.strerror or error}",
            hint=f"set {STATE_VARIABLE} to a folder that you can write",
        ) from error
    try:
        # The lock file itself is emptied by whoever tries the lock, so the holder's name stands beside it. Not being
        # able to write it (a full disk) must not keep an undo from making room.
        with contextlib.suppress(OSError):
            note = json.dumps({"pid": os.getpid(), "since": time.time()})
            system.write_file(_owner_path(folder), note.encode("ascii"), 0o600)
        yield
    finally:
        try:
            with contextlib.suppress(OSError):
                system.remove_file(_owner_path(folder))
        finally:
            lock.release()  # Also when Ctrl-C comes in the line above.


def is_locked(folder: str) -> bool:
    """Whether another doctor is at work right now."""
    from filelock import FileLock, Timeout

    path = Path(folder) / "lock"
    if not path.exists():
        return False
    lock = FileLock(str(path), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        return True
    except OSError:
        # A folder that cannot be written cannot be in use either.
        return False
    lock.release()
    return False


def _owner_path(folder: str) -> str:
    return str(Path(folder) / "lock.owner")


def _holder(folder: str) -> str:
    """`` (process 12, for 3 s)``; empty where the note is missing or torn."""
    try:
        note = json.loads(Path(_owner_path(folder)).read_bytes())
        seconds = max(0.0, time.time() - float(note["since"]))
        return f" (process {int(note['pid'])}, for {seconds:.0f} s)"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
