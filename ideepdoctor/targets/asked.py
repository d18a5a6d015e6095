"""The interpreter that a person named: a path, a version, a command or the folder of an environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.system import System, is_executable_file
from ideepdoctor.targets.find import Found, discover, identify, identify_one, place_of, version_key
from ideepdoctor.targets.sources import ACTIVE_CONDA, ACTIVE_VIRTUAL, Candidate, is_shim, program_on_path, python_of

ASKED = "asked for"
# A person who names an interpreter waits for it, also on a slow disk or under an emulator.
ASKED_TIMEOUT_SECONDS = 20.0

_VERSION = re.compile(r"(?P<name>python|cpython|pypy)?-?(?P<number>\d+(\.\d+){0,2}((a|b|rc)\d+)?)(?P<threads>t?)")
# Names whose meaning PATH decides: ``python3`` is whatever the shell starts, not the newest Python there is.
_COMMAND = re.compile(r"(python|pypy)\d?")


def look_up(
    system: System,
    environ: Mapping[str, str],
    asked: str,
    *,
    suitable: Sequence[str] = (),
    emulator: Sequence[str] = (),
) -> Found:
    """Find the interpreter that ``asked`` means.

    Args:
        system: starts it.
        environ: PATH, HOME and the like.
        asked: a path (``~`` and relative ones too), a version (``3.7``, ``3.7.16``, ``python3.7``: the newest match), a
            command on PATH (``python3``), or the folder of an environment.
        suitable: ABI tags that win over newer versions where a version matches several interpreters.
        emulator: words to start it under.

    Raises:
        UsageError: there is no such interpreter, or it is no Python; names what was looked at and lists what there is.
        CouldNotCheck: it does not answer in time.
    """
    try:
        path = _as_path(environ, asked)
        if path is None and (version := _VERSION.fullmatch(asked)):
            return _by_version(discover(system, environ), asked, version, suitable)
        if path is None:
            raise UsageError(f"no such interpreter: {asked!r} is no file or folder here, no version and not on PATH")
        return _at(system, environ, path, emulator)
    except UsageError as error:
        raise UsageError(error.message, hint=listing(discover(system, environ)), context=error.context) from error


def minor_asked(asked: str) -> str | None:
    """``3.7`` where ``asked`` is a version of Python 3.7; None for paths and commands."""
    version = _VERSION.fullmatch(asked)
    return None if version is None else ".".join(version["number"].split(".")[:2])


def listing(found: Sequence[Found]) -> str:
    """The interpreters that there are, one a line, for a hint."""
    if not found:
        return "no Python interpreter was found on PATH, in pyenv, conda or uv"
    lines = [
        f"  {each.identity.implementation} {each.identity.version} ({each.identity.abi}) {each.place.path}"
        for each in found
    ]
    return "\n".join(["interpreters found here:", *lines])


def _as_path(environ: Mapping[str, str], asked: str) -> str | None:
    """The path that was meant, absolute; None for what is a version, or nothing."""
    if not asked.strip():
        return None
    if asked == "~" or asked.startswith("~/"):
        asked = environ.get("HOME", "~") + asked[1:]
    elif asked.startswith("~"):
        asked = os.path.expanduser(asked)  # noqa: PTH111 (Path.expanduser raises for an unknown user)
    if "/" in asked:
        return _absolute(asked)
    on_path = program_on_path(environ, asked)
    if _COMMAND.fullmatch(asked) and on_path is not None:
        return on_path
    if _VERSION.fullmatch(asked):
        return None
    return _absolute(asked) if os.path.lexists(asked) else on_path


def _absolute(path: str) -> str:
    try:
        # Not resolved: the links of a virtual environment's python are what makes it one.
        return os.path.abspath(path)  # noqa: PTH100
    except OSError:
        raise UsageError(f"no such interpreter: {path}: the current folder has been deleted") from None


def _at(system: System, environ: Mapping[str, str], path: str, emulator: Sequence[str]) -> Found:
    python = _file_at(path)
    place = place_of(Candidate(python, ASKED))
    try:
        if emulator or is_shim(python):
            identity = identify(system, environ, python, emulator=emulator, timeout_seconds=ASKED_TIMEOUT_SECONDS)
        else:
            identity = identify_one(system, environ, place, timeout_seconds=ASKED_TIMEOUT_SECONDS)
    except CouldNotCheck as error:
        if error.context.get("ended") == "timeout" or (emulator and error.context.get("ended") == "not started"):
            raise
        not_started = error.context.get("ended") == "not started"
        message = error.message if not_started else f"{python} is not a Python: {_what_it_did(error)}"
        raise UsageError(message, context=error.context) from error
    if is_shim(python) and is_executable_file(Path(identity.executable)):
        # The shim chooses anew at every start; the doctor must go on with the one that it found.
        place = place_of(Candidate(identity.executable, ASKED))
    return Found(place, identity)


def _file_at(path: str) -> str:
    """The file to start for a path that was asked for. Raises UsageError."""
    try:
        Path(path).stat()
    except FileNotFoundError:
        if Path(path).is_symlink():
            raise UsageError(f"no such interpreter: {path} is a link to {Path(path).readlink()}, not there") from None
        raise UsageError(f"no such interpreter: {path} does not exist") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be looked at: {error.strerror}") from error
    if Path(path).is_dir():
        if not os.access(path, os.X_OK):
            raise UsageError(f"{path} cannot be looked at: permission denied")
        python = python_of(path)
        link = Path(path) / "bin" / "python"
        if python is None and os.path.islink(link):  # noqa: PTH114 (Path.is_symlink raises where bin is closed)
            raise UsageError(
                f"{path} is a broken environment: its bin/python is a link to {link.readlink()}, not there"
            )
        if python is None:
            raise UsageError(f"{path} is a folder but holds no bin/python: not an environment")
        return python
    if not is_executable_file(Path(path)):
        raise UsageError(f"{path} is not an interpreter: it is not an executable file")
    return path


def _what_it_did(error: CouldNotCheck) -> str:
    """In a few words, from what ``run_payload`` saw."""
    for stream in ("standard output", "standard error"):
        lines = [line.strip() for line in error.context.get(stream, "").splitlines() if line.strip()]
        if lines:
            return f"it printed {lines[0][:200]!r}"
    return "it printed nothing" if error.context.get("ended", "").isdecimal() else error.message


def _by_version(found: Sequence[Found], asked: str, version: re.Match[str], suitable: Sequence[str]) -> Found:
    wanted = version_key(version["number"])
    matching = [each for each in found if _matches(each, version)]
    if not matching:
        kind = "PyPy" if version["name"] == "pypy" else "Python"
        raise UsageError(f"no such interpreter: no {kind} {wanted} was found (asked for: {asked})")
    return max(matching, key=lambda each: _claim(each, suitable))


def _matches(each: Found, version: re.Match[str]) -> bool:
    if version["name"] == "pypy" and each.identity.implementation != "PyPy":
        return False
    if version["name"] == "cpython" and each.identity.implementation != "CPython":
        return False
    if version["threads"] and not each.identity.abi.endswith("t"):
        return False
    wanted, has = version_key(version["number"]), version_key(each.identity.version)
    if wanted.is_prerelease:
        return has == wanted
    return has.release[: len(wanted.release)] == wanted.release


def _claim(each: Found, suitable: Sequence[str]) -> tuple[object, ...]:
    """The greatest is taken: suitable, ordinary, newest; then the active environment, then what is no environment."""
    return (
        each.identity.abi in suitable,
        each.identity.implementation == "CPython" and not each.identity.abi.endswith("t"),
        version_key(each.identity.version),
        each.place.source in (ACTIVE_VIRTUAL, ACTIVE_CONDA) and not each.place.is_own,
        not each.identity.is_virtual,
    )
