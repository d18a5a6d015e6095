"""A target on another machine or in a container: find an interpreter there and see that it answers."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.system import System
from ideepdoctor.targets.address import SSH, Address
from ideepdoctor.targets.failures import is_missing, not_reached
from ideepdoctor.targets.link import ANSWER_SECONDS, Link
from ideepdoctor.targets.ssh import ssh_words
from ideepdoctor.targets.target import Target, run_payload

_ARRIVE_SECONDS = 20.0
_VERSION = re.compile(r"(?:python|cpython)?-?(\d)(?:\.(\d+))?(?:\.\d+)*")
_PREFERRED = ("python3.7", "python3.6", "python2.7", "python3.5")
"""Interpreters that ideep4py wheels exist for, best first, as their files are called."""
_TRIES = 4
"""Interpreters that are tried where the first ones do not answer."""
_PLACES = {
    "asked": "",
    "active": "its active environment",
    "folder": "the environment in its folder",
    "path": "on its PATH",
    "pyenv": "its pyenv",
    "conda": "its conda",
    "other": "found there",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """An interpreter that the finder saw.

    Attributes:
        source: where: a key of _PLACES.
        packages: those of Chainer and ideep4py that lie beside it.
        version: ``python3.7``, or ``unknown``.
        path: as it was found.
    """

    source: str
    packages: tuple[str, ...]
    version: str
    path: str


def reach(
    system: System, environ: Mapping[str, str], address: Address, asked: str | None, *, emulator: Sequence[str] = ()
) -> Target:
    """The interpreter at an address that a command is about.

    Args:
        system: starts ssh, docker, podman or kubectl.
        environ: for those programs, which run here; the target's variables are the other side's.
        address: where.
        asked: a path there, the folder of an environment there, a version, or a command on the PATH there. None: the
            active environment, ``./.ideep``, else the first that has Chainer or ideep4py, else the one that an
            ideep4py wheel exists for, else the first.
        emulator: words that the interpreter is started under there.

    Raises:
        CouldNotCheck: the place is not reached, there is no Python, or none that answers.
        UsageError: what was asked for is not there.
    """
    words = ssh_words(system, environ, address) if address.kind == SSH else address.words
    link = Link(address, words)
    path = asked if asked is not None and ("/" in asked or asked.startswith("~")) else None
    seen = _look_around(system, environ, link, path or "")
    if seen is None:  # a container without a shell may still have a Python
        if path is None:
            raise CouldNotCheck(
                f"{address.text}: there is no shell to look for a Python with",
                hint="name the interpreter there by its path: --python PATH",
            )
        seen = [Seen("asked", (), "unknown", path)]
    chosen = _matching(seen, asked, path, address)
    failed: CouldNotCheck | None = None
    for one in chosen[:_TRIES]:
        target = Target(one.path, address.words, tuple(emulator), link=link)
        try:
            told = run_payload(system, target, "arrive", {}, timeout_seconds=_ARRIVE_SECONDS, env=environ)
        except CouldNotCheck as error:
            failed = failed or error
            continue
        return _arrived(target, link, one, asked, told)
    assert failed is not None, "there is something to try"
    raise failed


def _arrived(target: Target, link: Link, one: Seen, asked: str | None, told: Mapping[str, Any]) -> Target:
    """The target, with what it told of itself."""
    home, user, host = (str(told.get(name) or "") for name in ("home", "user", "host"))
    path = one.path
    if path.rpartition("/")[0].endswith("/shims") and told.get("executable"):
        path = str(told["executable"])
    return replace(target, python=path, reason=_reason(one, asked), link=replace(link, home=home, user=user, host=host))


def _reason(one: Seen, asked: str | None) -> str:
    if asked is not None:
        return f"asked for: {asked}"
    place = _PLACES[one.source]
    if one.source in ("active", "folder"):
        return place
    if one.packages:
        return f"{place}, the first that has {' and '.join(one.packages)}"
    return f"{place}; none found there has Chainer or ideep4py"


def _look_around(system: System, environ: Mapping[str, str], link: Link, path: str) -> list[Seen] | None:
    """What the finder sees there; None where there is no shell to run it. Raises CouldNotCheck: not reached."""
    cookie = secrets.token_hex(16)
    script = (files("ideepdoctor") / "payload" / "finder.sh").read_bytes()
    argv = link.argv(["sh", "-s", cookie, path])
    done = system.run(argv, stdin=script, timeout_seconds=ANSWER_SECONDS, env=environ)
    lines = [line.removeprefix(f"{cookie} ") for line in done.text().splitlines() if line.startswith(f"{cookie} ")]
    if not lines or lines[-1] != "end":
        if is_missing(link.address, done):
            return None
        raise not_reached(link.address, done, ANSWER_SECONDS, "sh")
    found: dict[str, Seen] = {}
    for line in lines[:-1]:
        source, packages, version, place = line.split(" ", 3)
        names = () if packages == "none" else tuple(packages.split(","))
        found.setdefault(place, Seen(source, names, version, place))
    return list(found.values())


def _matching(seen: Sequence[Seen], asked: str | None, path: str | None, address: Address) -> list[Seen]:
    """Those that may be what is wanted, the best first; at least one."""
    if path is not None:
        found = list(seen)
    elif asked is None:
        found = _by_claim(seen)
    elif version := _VERSION.fullmatch(asked):
        wanted = f"python{version[1]}" + (f".{version[2]}" if version[2] else "")
        exact = version[2] is not None
        found = [one for one in seen if one.version == wanted or (not exact and one.version.startswith(f"{wanted}."))]
    else:
        found = [one for one in seen if one.path.rpartition("/")[2] == asked]
    if found:
        return found
    if asked is None:
        raise CouldNotCheck(
            f"{address.text}: there is no Python there: not on its PATH, nor in pyenv, conda, /opt or ./.ideep",
            hint="name the interpreter there by its path: --python PATH",
        )
    others = [f"  {one.path} ({one.version})" for one in seen]
    hint = "\n".join(["interpreters found there:", *others])
    if path is not None:
        hint = f"see what is there: {' '.join([*address.words, 'ls', '-l', asked])}; without --python one is looked for"
    raise UsageError(f"{address.text}: no such interpreter there: {asked}", hint=hint)


def _by_claim(seen: Sequence[Seen]) -> list[Seen]:
    """All, in the order in which they are tried."""

    def claim(one: Seen) -> tuple[bool, bool, int]:
        known = _PREFERRED.index(one.version) if one.version in _PREFERRED else len(_PREFERRED)
        own = one.source in ("active", "folder")
        return (not own, not one.packages, 0 if one.packages or own else known)

    return sorted(seen, key=claim)
