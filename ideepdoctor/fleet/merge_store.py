"""What was read of a fleet, in a temporary SQLite file: memory does not grow with the hosts.

The file has no name: the system removes it when this process ends, however it ends.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.fleet.groups import Cause, cause_key, group_key, is_cause
from ideepdoctor.fleet.merge_features import Features
from ideepdoctor.fleet.read import HostReport

_TABLES = """
CREATE TABLE files (real TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE skipped (file TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE texts (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE TABLE hosts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    at TEXT NOT NULL,
    state TEXT NOT NULL,
    cause_group TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    quick INTEGER NOT NULL,
    machine INTEGER,
    versions INTEGER,
    features INTEGER,
    counted INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE causes (
    cause TEXT NOT NULL, host INTEGER NOT NULL, body INTEGER NOT NULL, found INTEGER NOT NULL, place INTEGER NOT NULL,
    PRIMARY KEY (cause, host)
) WITHOUT ROWID;
CREATE TABLE measures (what INTEGER NOT NULL, host INTEGER NOT NULL, value REAL NOT NULL);
"""
_INDEXES = """
CREATE INDEX hosts_by_name ON hosts (name, at, file);
UPDATE hosts SET counted = 0 WHERE id NOT IN (
    SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY name ORDER BY at DESC, file DESC) AS rank FROM hosts)
    WHERE rank = 1
);
CREATE INDEX hosts_by_group ON hosts (counted, cause_group);
CREATE INDEX hosts_by_twins ON hosts (counted, machine, versions, features);
CREATE INDEX causes_by_host ON causes (host, place);
CREATE INDEX measures_by_host ON measures (host, what);
"""
_CACHE_KIB = 4000


class Store:
    """Takes reports in, and answers what is asked of them all. Texts are kept once, whoever has them."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base
        self.ask = base.execute

    def is_new(self, real: str) -> bool:
        """Whether a file was not taken before; it counts as taken from now on."""
        return self._base.execute("INSERT OR IGNORE INTO files VALUES (?)", (_clean(real),)).rowcount == 1

    def skip(self, file: str, reason: str) -> None:
        """Remember a file that says nothing about a host."""
        self._base.execute("INSERT INTO skipped VALUES (?, ?)", (file, reason))

    def add(self, report: HostReport, file: str, features: Features | None) -> None:
        """Remember what a file says of a host."""
        keys = [cause_key(cause, report.name) for cause in report.causes]
        parting = [key for key, cause in zip(keys, report.causes, strict=True) if is_cause(cause)]
        kept: tuple[int | None, ...] = (None, None, None)
        if features is not None:
            kept = (self._text(features.machine), self._text(features.versions), self._text(features.values))
        host = self._base.execute(
            "INSERT INTO hosts (name, file, at, state, cause_group, accepted, quick, machine, versions, features) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                report.name,
                file,
                report.at,
                state_of(report),
                group_key(parting),
                report.accepted,
                int(report.quick),
                *kept,
            ),
        ).lastrowid
        self._base.executemany(
            "INSERT OR IGNORE INTO causes VALUES (?, ?, ?, ?, ?)",
            [
                (key, host, self._text(asdict(cause)), self._text({"found": cause.found}), place)
                for place, (key, cause) in enumerate(zip(keys, report.causes, strict=True))
            ],
        )
        measures = () if features is None else features.measures
        self._base.executemany(
            "INSERT INTO measures VALUES (?, ?, ?)",
            [(self._text({"what": item.what, "unit": item.unit}), host, item.value) for item in measures],
        )

    def settle(self) -> None:
        """After the last file: of a host that came more than once, the newest counts (of equals the last by name)."""
        self._base.executescript(_INDEXES)

    def text(self, number: int) -> Any:
        """Data that were kept under this number."""
        row = self._base.execute("SELECT body FROM texts WHERE id = ?", (number,)).fetchone()
        return json.loads(row[0])

    def names(self, where: str, *values: Any) -> Iterator[str]:
        """Names of the hosts that count and for which an SQL condition (a constant of ours) holds."""
        rows = self._base.execute(f"SELECT name FROM hosts WHERE counted = 1 AND {where}", values)  # noqa: S608
        return (name for (name,) in rows)

    def _text(self, data: Mapping[str, Any]) -> int:
        body = json.dumps(data, sort_keys=True)
        digest = hashlib.sha256(body.encode()).hexdigest()[:32]
        self._base.execute("INSERT OR IGNORE INTO texts (digest, body) VALUES (?, ?)", (digest, body))
        found: int = self._base.execute("SELECT id FROM texts WHERE digest = ?", (digest,)).fetchone()[0]
        return found


def state_of(report: HostReport) -> str:
    """One word for a host: unreachable, timeout, failed, findings, unknown or healthy."""
    if report.status != "ok":
        return report.status
    severities = {cause.severity for cause in report.causes}
    if severities & {"error", "warning"}:
        return "findings"
    return "unknown" if "unknown" in severities else "healthy"


def cause_of(data: Mapping[str, Any]) -> Cause:
    """A cause as it was kept."""
    return Cause(**data)


@contextmanager
def opened_store() -> Iterator[Store]:
    """An empty store. Raises CouldNotCheck: there is no room for it."""
    try:
        # The empty name is SQLite's own for a file that nobody else sees, in memory until it is larger than the cache.
        with closing(sqlite3.connect("", isolation_level=None)) as base:
            base.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            base.execute("PRAGMA journal_mode = OFF")
            base.executescript(_TABLES)
            yield Store(base)
    except sqlite3.Error as error:
        raise CouldNotCheck(
            f"cannot keep what was read of the hosts: {error}",
            hint="TMPDIR=FOLDER names a folder with some megabytes free",
        ) from error


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
