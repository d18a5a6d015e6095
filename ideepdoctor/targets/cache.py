"""What interpreters said about themselves, kept between runs: starting nine of them takes most of a second.

The cache is a convenience: one that cannot be read, is damaged or cannot be written is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ideepdoctor.system import System

CACHE_FORMAT = 1
# A file that failed, or a script, may behave differently tomorrow although it has not changed itself.
UNSURE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Identity:
    """What the ``identify`` payload answers; see there for the meaning of each field."""

    version: str
    implementation: str
    abi: str
    bits: int
    libc: str | None
    platform: str
    executable: str
    prefix: str
    base_prefix: str

    @classmethod
    def from_data(cls, data: Any) -> Identity | None:
        """The identity in a payload's answer or a cache entry, or None where it is not a complete one."""
        if not isinstance(data, dict):
            return None
        values: dict[str, Any] = {name: data.get(name) for name in cls.__slots__}
        good = isinstance(values["bits"], int) and isinstance(values["libc"], str | None)
        if good and all(isinstance(value, str) for name, value in values.items() if name not in ("bits", "libc")):
            return cls(**values)
        return None

    @property
    def is_virtual(self) -> bool:
        """Whether it is the interpreter of a virtual environment, made from another one."""
        return os.path.realpath(self.prefix) != os.path.realpath(self.base_prefix)


@dataclass(frozen=True, slots=True)
class Remembered:
    """A cache entry that still holds; ``identity`` is None for a file that is known to be no Python."""

    identity: Identity | None


def cache_folder(environ: Mapping[str, str]) -> str:
    """Where the doctor's cache folder is: IDEEPDOCTOR_CACHE_DIR, else the user's (XDG) cache folder; not made here."""
    if environ.get("IDEEPDOCTOR_CACHE_DIR"):
        return str(Path(environ["IDEEPDOCTOR_CACHE_DIR"]).expanduser().absolute())
    # What platformdirs would say, but 28 ms earlier and of the environment that was handed in.
    if environ.get("XDG_CACHE_HOME", "").startswith("/"):
        return str(Path(environ["XDG_CACHE_HOME"]) / "ideepdoctor")
    import platformdirs

    return platformdirs.user_cache_dir("ideepdoctor", appauthor=False)


def fingerprint(path: str, environment: str | None) -> list[Any] | None:
    """What changes when another interpreter lies at this path: real path, time and size; None where it is gone.

    Args:
        path: the interpreter.
        environment: its virtual environment, whose pyvenv.cfg counts too.
    """
    try:
        real = os.path.realpath(path)
        status = Path(real).stat()
        made = 0 if environment is None else (Path(environment) / "pyvenv.cfg").stat().st_mtime_ns
    except OSError:
        return None
    return [real, status.st_mtime_ns, status.st_size, made]


class Cache:
    """Identities by key, read once, written back by ``save`` where something new was learned.

    Args:
        system: writes the file.
        environ: see ``cache_folder``.
        payload: source of the ``identify`` payload: another payload may answer otherwise.
    """

    def __init__(self, system: System, environ: Mapping[str, str], payload: bytes) -> None:
        self._system = system
        self._payload = hashlib.sha256(payload).hexdigest()
        # A home folder may be shared by machines: what the C library is called differs from one to the other.
        machine = f"{os.uname().machine} {_own_libc()}"
        name = f"interpreters-{hashlib.sha256(machine.encode()).hexdigest()[:12]}.json"
        self._path = Path(cache_folder(environ)) / name
        self._entries = self._read()
        self._changed = False

    def get(self, key: str, seen: list[Any] | None) -> Remembered | None:
        """What is known of the interpreter with this key, or None where it must be asked."""
        entry = self._entries.get(key)
        if not isinstance(entry, dict) or seen is None or entry.get("fingerprint") != seen:
            return None
        until = entry.get("until")
        if until is not None and not (isinstance(until, int | float) and 0 <= until - time.time() <= UNSURE_SECONDS):
            return None
        identity = Identity.from_data(entry.get("identity"))
        if identity is None and (entry.get("identity") is not None or until is None):
            return None
        return Remembered(identity)

    def put(self, key: str, seen: list[Any] | None, identity: Identity | None, *, lasting: bool) -> None:
        """Remember an answer.

        Args:
            key: real path, or folder of the environment.
            seen: the ``fingerprint`` from before the interpreter was asked.
            identity: None: it is no Python.
            lasting: whether it holds for as long as the file does not change, or only for ``UNSURE_SECONDS``.
        """
        if seen is not None:
            until = None if lasting and identity is not None else time.time() + UNSURE_SECONDS
            answer = None if identity is None else asdict(identity)
            self._entries[key] = {"fingerprint": seen, "identity": answer, "until": until}
            self._changed = True

    def save(self) -> None:
        """Write what was learned; entries whose interpreter is gone are left out."""
        if not self._changed:
            return
        kept = {key: entry for key, entry in self._entries.items() if _still_there(entry)}
        data = {"format": CACHE_FORMAT, "payload": self._payload, "interpreters": kept}
        with contextlib.suppress(OSError):
            self._system.make_folder(str(self._path.parent))
            self._system.write_file(str(self._path), json.dumps(data, indent=0, sort_keys=True).encode("utf-8"))
        self._changed = False

    def _read(self) -> dict[str, Any]:
        try:
            data = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(data, dict) or data.get("format") != CACHE_FORMAT or data.get("payload") != self._payload:
            return {}
        entries = data.get("interpreters")
        return entries if isinstance(entries, dict) else {}


def _own_libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        return ""


def _still_there(entry: Any) -> bool:
    try:
        return Path(entry["fingerprint"][0]).exists()
    except (KeyError, IndexError, TypeError, OSError):
        return False
