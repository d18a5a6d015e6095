"""Choose the interpreter to examine, and the one to make a new environment from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from packaging.version import Version

from ideepdoctor.errors import CouldNotCheck, NotPossibleHere, UsageError
from ideepdoctor.model.facts import Interpreter
from ideepdoctor.system import System, is_executable_file
from ideepdoctor.targets.advice import WHEEL_ABIS, needed, way_to_build, ways_to_get
from ideepdoctor.targets.asked import ASKED_TIMEOUT_SECONDS, listing, look_up, minor_asked
from ideepdoctor.targets.find import Found, Place, discover, identify, identify_one, place_of, places, version_key
from ideepdoctor.targets.sources import (
    ACTIVE_CONDA,
    ACTIVE_VIRTUAL,
    ON_PATH,
    Candidate,
    current_folder,
    is_folder,
    python_of,
)
from ideepdoctor.targets.target import Target

PLATFORM = "linux-x86_64"
SOUGHT = ("chainer", "ideep4py")


def resolve(system: System, environ: Mapping[str, str], asked: str | None, *, emulator: Sequence[str] = ()) -> Target:
    """The interpreter that a command is about.

    Args:
        system: starts interpreters, writes the cache.
        environ: the user's environment variables.
        asked: a path, a version, a command on PATH or the folder of an environment. None: the active conda or virtual
            environment unless it is the doctor's own; else ``./.ideep``; else the first interpreter that has Chainer
            or ideep4py, those on PATH first; else the best one for a new environment; else the newest one.
        emulator: words that the interpreter is started under.

    Raises:
        UsageError: what was asked for is no Python.
        CouldNotCheck: it does not answer in time, or not under the emulator.
        NotPossibleHere: none was asked for and there is none.
    """
    if asked is not None:
        found = look_up(system, environ, asked, emulator=emulator)
        reason = f"asked for: {asked}"
    else:
        found, reason = _default(system, environ)
    if emulator:
        identify(system, environ, found.place.path, emulator=emulator, timeout_seconds=ASKED_TIMEOUT_SECONDS)
    return Target(found.place.path, emulator=tuple(emulator), reason=reason)


def base_for_new_environment(
    system: System, environ: Mapping[str, str], asked: str | None, wanted_abis: Sequence[str] | None = None
) -> Interpreter:
    """The interpreter to make a new environment from.

    Args:
        system: starts interpreters, writes the cache.
        environ: the user's environment variables.
        asked: as for ``resolve``; of an environment, the interpreter that it was made from is taken. None: the best,
            that is 3.7, then 3.6, 2.7 and 3.5, of each the newest.
        wanted_abis: ABI tags that are good; None: all that an ideep4py wheel exists for.

    Raises:
        UsageError: what was asked for is no Python.
        NotPossibleHere: what was asked for, or everything found, has no ideep4py wheel.
    """
    wanted = tuple(WHEEL_ABIS) if wanted_abis is None else tuple(wanted_abis)
    if asked is None:
        everything = discover(system, environ)
        best = _best(system, environ, everything, wanted)
        if best is None:
            raise _nothing_suitable(environ, everything, wanted)
        return best.interpreter
    try:
        found = _base_of(system, environ, look_up(system, environ, asked, suitable=wanted))
    except UsageError as error:
        everything = discover(system, environ)
        hint = [error.hint, *_instead(system, environ, everything, wanted)]
        missing = [abi for abi in wanted if WHEEL_ABIS.get(abi) == minor_asked(asked)]
        if missing and _best(system, environ, everything, wanted) is not None:
            hint += _ways(environ, everything, missing)
        raise UsageError(error.message, hint="\n".join(hint), context=error.context) from error
    why_not = _why_not(found, wanted)
    if why_not:
        raise _not_this_one(system, environ, found, why_not, wanted)
    return found.interpreter


def _default(system: System, environ: Mapping[str, str]) -> tuple[Found, str]:
    note = ""
    for variable, source in (("VIRTUAL_ENV", ACTIVE_VIRTUAL), ("CONDA_PREFIX", ACTIVE_CONDA)):
        folder = environ.get(variable)
        if folder:
            found = _environment(system, environ, folder, source)
            if found is None:
                note = f" ({variable} names {folder}, which holds no working Python)"
            elif not found.place.is_own:
                return found, source
    here = current_folder()
    if here is not None:
        found = _environment(system, environ, str(here / ".ideep"), "current folder")
        if found is not None:
            return found, f"./.ideep in the current folder{note}"
    for place, packages in _with_chainer(environ, places(system, environ)):
        found = _answering(system, environ, place)
        if found is not None:
            where = (
                "first interpreter on PATH" if place.source == ON_PATH else f"first interpreter found ({place.source})"
            )
            return found, f"{where} that has {' and '.join(packages)}{note}"
    everything = discover(system, environ)
    best = _best(system, environ, everything, tuple(WHEEL_ABIS))
    if best is not None:
        return best, f"best interpreter for a new environment; none found has Chainer or ideep4py{note}"
    others = [each for each in everything if not each.place.is_own] or list(everything)
    if not others:
        raise _nothing_suitable(environ, everything, tuple(WHEEL_ABIS))
    newest = max(others, key=lambda each: version_key(each.identity.version))
    return newest, f"newest interpreter found; none here has an ideep4py wheel{note}"


def _environment(system: System, environ: Mapping[str, str], folder: str, source: str) -> Found | None:
    python = python_of(folder)
    return (
        None
        if python is None
        else _answering(system, environ, place_of(Candidate(str(Path(python).absolute()), source)))
    )


def _answering(system: System, environ: Mapping[str, str], place: Place) -> Found | None:
    try:
        return Found(place, identify_one(system, environ, place))
    except CouldNotCheck:
        return None


def _with_chainer(environ: Mapping[str, str], found: Sequence[Place]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Those that have Chainer or ideep4py installed, by the names of folders: nothing is started."""
    for place in found:
        folders = list(_package_folders(environ, place))
        packages = tuple(name for name in SOUGHT if any(is_folder(folder / name) for folder in folders))
        if packages:
            yield place, packages


def _package_folders(environ: Mapping[str, str], place: Place) -> Iterator[Path]:
    """Folders that an interpreter imports packages from, guessed from its paths."""
    known = re.fullmatch(r"python(\d+\.\d+)[a-z]*", Path(place.real_path).name)
    version = known[1] if known else "*"
    if place.environment is not None:
        prefixes = [Path(place.environment)]
    else:
        prefix = Path(place.real_path).parent.parent
        prefixes = [prefix, prefix / "local"]  # Debian: /usr/bin/python3 and /usr/local/lib
        user = environ.get("PYTHONUSERBASE") or (f"{environ['HOME']}/.local" if environ.get("HOME") else None)
        if user is not None and known:
            prefixes.append(Path(user))
    for prefix in dict.fromkeys(prefixes):
        for library in ("lib", "lib64"):
            for kind in ("site-packages", "dist-packages"):
                yield from prefix.glob(f"{library}/python{version}/{kind}")


def _best(system: System, environ: Mapping[str, str], found: Sequence[Found], wanted: Sequence[str]) -> Found | None:
    """The best interpreter for a new environment; of an environment's, the one that it was made from."""
    preferred = [abi for abi in WHEEL_ABIS if abi in wanted] + [abi for abi in wanted if abi not in WHEEL_ABIS]
    usable = [each for each in found if not _why_not(each, wanted)]
    if not usable:
        return None
    newest_first = sorted(usable, key=lambda each: version_key(each.identity.version), reverse=True)
    best = min(newest_first, key=lambda each: (preferred.index(each.identity.abi), each.identity.is_virtual))
    return _base_of(system, environ, best)


def _base_of(system: System, environ: Mapping[str, str], found: Found) -> Found:
    """The interpreter that a virtual environment was made from, where it is still there; else the given one."""
    if not found.identity.is_virtual:
        return found
    major_minor = ".".join(found.identity.version.split(".")[:2])
    for name in (f"python{major_minor}", f"python{major_minor[0]}", "python", f"pypy{major_minor[0]}"):
        path = Path(found.identity.base_prefix) / "bin" / name
        if is_executable_file(path):
            base = _answering(system, environ, place_of(Candidate(str(path), f"base of {found.identity.prefix}")))
            if base is not None and base.identity.abi == found.identity.abi:
                return base
    return found


def _why_not(found: Found, wanted: Sequence[str]) -> str:
    """Why this interpreter cannot hold iDeep; empty where it can."""
    who = found.identity
    if who.implementation != "CPython":
        return f"it is {who.implementation}, and the wheels are for CPython"
    if who.platform != PLATFORM:
        return f"it is for {who.platform}, and the wheels are for Linux x86_64"
    if who.bits != 64:
        return f"it is a {who.bits}-bit program, and the wheels are for 64 bits"
    if who.libc is not None and not who.libc.startswith("glibc"):
        return f"its C library is {who.libc}, and the wheels need glibc"
    if who.abi not in wanted:
        if who.abi in WHEEL_ABIS:
            return "what was asked for is not known to work on it"
        return f"no ideep4py wheel exists for {who.abi}"
    return ""


def _instead(
    system: System,
    environ: Mapping[str, str],
    everything: Sequence[Found],
    wanted: Sequence[str],
    asked: Found | None = None,
) -> list[str]:
    """What is needed, and the nearest interpreter that would do, else how to get one; and the build."""
    nearest = _best(system, environ, everything, wanted)
    lines = [f"needed: {needed(wanted)}"]
    if nearest is None:
        return [*lines, *_ways(environ, everything, wanted), *_builds(everything, asked)]
    minor = ".".join(nearest.identity.version.split(".")[:2])
    return [
        *lines,
        f"nearest usable interpreter: Python {nearest.identity.version} at {nearest.place.path}",
        f"use it: ideepdoctor setup --python {minor}",
        *(_builds(everything, asked) if asked else []),
    ]


def _not_this_one(
    system: System, environ: Mapping[str, str], found: Found, why_not: str, wanted: Sequence[str]
) -> NotPossibleHere:
    everything = discover(system, environ)
    hint = _instead(system, environ, everything, wanted, found)
    if _best(system, environ, everything, wanted) is None:
        hint.insert(1, listing(everything))
    who = found.identity
    return NotPossibleHere(
        f"{who.implementation} {who.version} ({who.abi}) at {found.place.path} cannot hold iDeep: {why_not}",
        hint="\n".join(hint),
        context={"python": found.place.path, "version": who.version, "abi": who.abi},
    )


def _nothing_suitable(environ: Mapping[str, str], found: Sequence[Found], wanted: Sequence[str]) -> NotPossibleHere:
    seen = f"none of the {len(found)} found has an ideep4py wheel" if found else "there is none"
    return NotPossibleHere(
        f"no Python on this machine can hold iDeep: {seen}",
        hint="\n".join([f"needed: {needed(wanted)}", listing(found), *_ways(environ, found, wanted), *_builds(found)]),
    )


def _ways(environ: Mapping[str, str], found: Sequence[Found], wanted: Sequence[str]) -> list[str]:
    platforms = {each.identity.platform for each in found}
    if platforms and PLATFORM not in platforms:
        return [
            f"no other Python helps here: the wheels are for Linux x86_64, and this is {', '.join(sorted(platforms))}"
        ]
    minor = next((WHEEL_ABIS[abi] for abi in WHEEL_ABIS if abi in wanted), None)
    if minor is None:
        return []
    glibc = not found or any((each.identity.libc or "glibc").startswith("glibc") for each in found)
    return ways_to_get(environ, minor, glibc=glibc)


def _builds(everything: Sequence[Found], asked: Found | None = None) -> list[str]:
    """The way to build ideep4py: for what was asked for, else for the best Python here that has no wheel; or none."""
    from ideepdoctor.stacks.catalog import all_stacks

    locked = {abi: lock.python for stack in all_stacks() for lock in stack.locks if lock.built for abi in lock.abis}
    usable = [each for each in ([asked] if asked else everything) if not _why_not(each, tuple(locked))]
    # What Chainer runs on without help comes first: 3.12 and later need the start-up file.
    order = sorted({each.identity.abi for each in usable}, key=lambda abi: _build_order(locked[abi]), reverse=True)
    return way_to_build(locked[order[0]]) if order else []


def _build_order(minor: str) -> tuple[bool, Version]:
    number = version_key(minor)
    return number < version_key("3.12"), number
