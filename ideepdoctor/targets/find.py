"""Find the Python interpreters of this machine and ask each, once, which Python it is.

Own search rather than a library's: shims of pyenv are seen as such and never started, a broken or hanging file costs
a bounded time, once, and a warm cache makes the search cost milliseconds.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.facts import Interpreter
from ideepdoctor.system import System
from ideepdoctor.targets.cache import Cache, Identity, fingerprint
from ideepdoctor.targets.sources import Candidate, candidates, environment_of, is_script
from ideepdoctor.targets.target import Target, payload_source, run_payload

IDENTIFY_TIMEOUT_SECONDS = 5.0
# Starting an interpreter waits for the disk about as long as it computes.
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Place:
    """An interpreter before it is asked: paths only.

    Attributes:
        path: absolute, links not followed.
        key: what tells it from others: the folder of its virtual environment, else its real path.
        environment: that folder, or None.
        source: where it was found.
    """

    path: str
    key: str
    environment: str | None
    source: str

    @property
    def real_path(self) -> str:
        """Path of the file itself, all links followed."""
        return os.path.realpath(self.path)

    @property
    def prefix(self) -> str:
        """The folder that it is installed in, as far as paths tell: its environment, or two levels above the file."""
        return self.environment or str(Path(self.path).parent.parent)

    @property
    def is_own(self) -> bool:
        """Whether this doctor itself runs in it."""
        return os.path.realpath(self.prefix) == os.path.realpath(sys.prefix)


@dataclass(frozen=True, slots=True)
class Found:
    """An interpreter that has answered."""

    place: Place
    identity: Identity

    @property
    def interpreter(self) -> Interpreter:
        """The same as a fact."""
        who = self.identity
        return Interpreter(
            path=self.place.path,
            real_path=self.place.real_path,
            version=who.version,
            implementation=who.implementation,
            abi=who.abi,
            bits=who.bits,
            libc=who.libc,
            source=self.place.source,
        )


def find_interpreters(
    system: System, environ: Mapping[str, str], *, extra: Sequence[str] = ()
) -> tuple[Interpreter, ...]:
    """All Python interpreters that can be found: PATH, pyenv, conda, uv, virtual environments.

    Args:
        system: starts them, each for at most ``IDENTIFY_TIMEOUT_SECONDS``, and writes the cache.
        environ: the user's environment variables.
        extra: further interpreters or environment folders to look at.

    Returns:
        Each once: the active environment's first, then by where they were found, the newest version first. Several
        names of one file are one interpreter; a virtual environment's is one of its own. Files that do not answer as a
        Python does are left out.
    """
    return tuple(found.interpreter for found in discover(system, environ, extra=extra))


def discover(system: System, environ: Mapping[str, str], *, extra: Sequence[str] = ()) -> tuple[Found, ...]:
    """As ``find_interpreters``, with all that is known of each."""
    found = identify_all(system, environ, places(system, environ, extra=extra))
    sources = list(dict.fromkeys(each.place.source for each in found))
    # Two stable sorts: newest version first, and within that order by source.
    newest_first = sorted(found, key=lambda each: version_key(each.identity.version), reverse=True)
    return tuple(sorted(newest_first, key=lambda each: sources.index(each.place.source)))


def places(system: System, environ: Mapping[str, str], *, extra: Sequence[str] = ()) -> tuple[Place, ...]:
    """What there is to ask, each interpreter once, in the order of discovery; nothing but pyenv is started."""
    seen: dict[str, Place] = {}
    for candidate in candidates(system, environ, extra=extra):
        place = place_of(candidate)
        seen.setdefault(place.key, place)
    return tuple(seen.values())


def place_of(candidate: Candidate) -> Place:
    """Tell apart interpreters whose files are links to one another."""
    environment = environment_of(candidate.path)
    key = os.path.realpath(environment or candidate.path)
    return Place(candidate.path, key, environment, candidate.source)


def identify_all(system: System, environ: Mapping[str, str], wanted: Iterable[Place]) -> tuple[Found, ...]:
    """Ask these interpreters, those that the cache does not know in parallel; the order is kept."""
    wanted = tuple(wanted)
    cache = Cache(system, environ, payload_source("identify"))
    answers: dict[str, Identity | None] = {}
    unknown = []
    for place in wanted:
        seen = fingerprint(place.path, place.environment)
        remembered = cache.get(place.key, seen)
        if remembered is None:
            unknown.append((place, seen))
        else:
            answers[place.key] = remembered.identity
    if unknown:
        from concurrent.futures import ThreadPoolExecutor  # 16 ms that a warm cache saves

        with ThreadPoolExecutor(min(AT_ONCE, len(unknown))) as pool:
            try:
                identities = list(pool.map(lambda pair: _identify_or_none(system, environ, pair[0]), unknown))
            except BaseException:
                pool.shutdown(cancel_futures=True)  # Ctrl-C: wait for those that run, start no more
                raise
        for (place, seen), identity in zip(unknown, identities, strict=True):
            answers[place.key] = identity
            cache.put(place.key, seen, identity, lasting=not is_script(place.path))
        cache.save()
    return _without_wrappers(
        [Found(place, identity) for place in wanted if (identity := answers[place.key]) is not None]
    )


def identify_one(
    system: System, environ: Mapping[str, str], place: Place, *, timeout_seconds: float = IDENTIFY_TIMEOUT_SECONDS
) -> Identity:
    """Ask one interpreter; of the cache only a good answer counts, so that what failed before is tried again.

    Raises:
        CouldNotCheck: it is no Python, or does not answer.
    """
    cache = Cache(system, environ, payload_source("identify"))
    seen = fingerprint(place.path, place.environment)
    remembered = cache.get(place.key, seen)
    if remembered is not None and remembered.identity is not None:
        return remembered.identity
    identity = identify(system, environ, place.path, timeout_seconds=timeout_seconds)
    cache.put(place.key, seen, identity, lasting=not is_script(place.path))
    cache.save()
    return identity


def identify(
    system: System, environ: Mapping[str, str], python: str, *, emulator: Sequence[str] = (), timeout_seconds: float
) -> Identity:
    """Ask one interpreter, past the cache.

    Raises:
        CouldNotCheck: it is no Python, or does not answer.
    """
    target = Target(python, emulator=tuple(emulator))
    answer = run_payload(system, target, "identify", {}, timeout_seconds=timeout_seconds, env=environ)
    identity = Identity.from_data(answer)
    if identity is None:
        raise CouldNotCheck(f"{python} gave an incomplete answer", context={"answer": repr(answer)[:2000]})
    return identity


def version_key(version: str) -> Version:
    """For sorting; a version that no one can read is older than all others."""
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0.dev0")


def _identify_or_none(system: System, environ: Mapping[str, str], place: Place) -> Identity | None:
    try:
        return identify(system, environ, place.path, timeout_seconds=IDENTIFY_TIMEOUT_SECONDS)
    except CouldNotCheck:
        return None


def _without_wrappers(found: Sequence[Found]) -> tuple[Found, ...]:
    """Leave out scripts that start an interpreter which was found itself."""
    real = {each.place.key for each in found if not is_script(each.place.path)}

    def behind(each: Found) -> str:
        return place_of(Candidate(each.identity.executable, each.place.source)).key

    return tuple(each for each in found if not (is_script(each.place.path) and behind(each) in real))
