"""The SQLite file of the history: its tables and what is asked of them. Raises sqlite3.Error throughout."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.bench import Engine, Machine, Result, Row

SCHEMA_VERSION = 1
WAIT_SECONDS = 30.0
"""For another doctor that writes."""

_TABLES = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    started TEXT NOT NULL,
    machine TEXT NOT NULL,
    machine_key TEXT NOT NULL,
    complete INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE TABLE rows (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    machine TEXT NOT NULL,
    machine_key TEXT NOT NULL,
    environment TEXT NOT NULL,
    engine TEXT NOT NULL,
    net TEXT NOT NULL,
    batch INTEGER NOT NULL,
    median REAL NOT NULL,
    low REAL,
    high REAL,
    started TEXT NOT NULL,
    complete INTEGER NOT NULL,
    PRIMARY KEY (run, engine, net, batch)
);
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX rows_by_what ON rows (machine_key, engine, net, batch, complete, started);
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """A run in the list; engines and nets (with their batch) are those that have a time."""

    id: str
    started: str
    machine: str
    complete: bool
    engines: tuple[str, ...]
    nets: tuple[str, ...]


@contextmanager
def opened(path: str) -> Iterator[sqlite3.Connection]:
    """The file, with its tables made where it is new.

    Raises:
        sqlite3.Error: it cannot be opened, is no database, or is one of something else.
        CouldNotCheck: it is of a newer version.
    """
    # closing: a connection's own "with" ends transactions and leaves the file open.
    with closing(sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)) as base:
        base.execute("PRAGMA foreign_keys = ON")
        if _version(base) == 0:
            _transaction(base, lambda: _make_tables(base))
            with suppress(sqlite3.OperationalError):  # another doctor is in it just now; it works without, too
                base.execute("PRAGMA journal_mode = WAL")
        if (version := _version(base)) > SCHEMA_VERSION:
            raise CouldNotCheck(
                f"the history {path} was written by a newer ideepdoctor (version {version}, this one knows "
                f"{SCHEMA_VERSION})",
                hint="update ideepdoctor; nothing was changed in the file",
            )
        yield base


def _version(base: sqlite3.Connection) -> int:
    return int(base.execute("PRAGMA user_version").fetchone()[0])


def _make_tables(base: sqlite3.Connection) -> None:
    if _version(base):  # another doctor was first
        return
    if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise sqlite3.DatabaseError("it is a database of something else")
    for statement in filter(str.strip, _TABLES.split(";")):
        base.execute(statement)
    base.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _transaction(base: sqlite3.Connection, act: Callable[[], None]) -> None:
    """All of it or nothing; IMMEDIATE waits for another writer instead of failing half way."""
    base.execute("BEGIN IMMEDIATE")
    try:
        act()
    except BaseException:
        base.execute("ROLLBACK")
        raise
    base.execute("COMMIT")


def insert(base: sqlite3.Connection, result: Result, document: str) -> None:
    """Add a run with its rows, in the place of the one of its id."""
    key = machine_key(result.machine)
    run = (result.id, result.started, result.machine.name, key, int(result.complete), document)
    rows = [
        (
            result.id,
            result.machine.name,
            key,
            _environment(result.engine(row.engine)),
            row.engine,
            row.net,
            row.batch,
            row.median,
            row.low,
            row.high,
            result.started,
            int(result.complete),
        )
        for row in result.results
        if row.measured
    ]

    def write() -> None:
        base.execute("DELETE FROM runs WHERE id = ?", (result.id,))
        base.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", run)
        base.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    _transaction(base, write)


def list_runs(base: sqlite3.Connection) -> tuple[Kept, ...]:
    """The runs, newest first."""
    rows: dict[str, list[tuple[str, str]]] = {}
    for run, engine, net, batch in base.execute("SELECT run, engine, net, batch FROM rows ORDER BY rowid"):
        rows.setdefault(run, []).append((engine, f"{net} {batch}"))
    return tuple(
        Kept(
            run,
            started,
            machine,
            bool(complete),
            tuple(dict.fromkeys(engine for engine, _ in rows.get(run, ()))),
            tuple(dict.fromkeys(net for _, net in rows.get(run, ()))),
        )
        for run, started, machine, complete in base.execute(
            "SELECT id, started, machine, complete FROM runs ORDER BY started DESC, id DESC"
        )
    )


def matching(base: sqlite3.Connection, name: str) -> list[tuple[str, str]]:
    """Id and document of the first runs whose id begins so."""
    found: list[Any] = base.execute(
        "SELECT id, document FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 6", (name,)
    ).fetchall()
    return found


def last_run(base: sqlite3.Connection, result: Result, row: Row) -> str | None:
    """Id of the last complete run of this machine, not later than this one, that has the row's engine and net."""
    found = base.execute(
        "SELECT run FROM rows WHERE machine_key = ? AND engine = ? AND net = ? AND batch = ? AND complete = 1 "
        "AND started <= ? AND run <> ? ORDER BY started DESC, run DESC LIMIT 1",
        (machine_key(result.machine), row.engine, row.net, row.batch, result.started, result.id),
    ).fetchone()
    return None if found is None else str(found[0])


def machine_key(machine: Machine) -> str:
    """What makes two runs runs of one machine: its label, its processor and how much of it is used."""
    return "|".join(str(part) for part in (machine.name, machine.cpu, machine.isa, machine.cpus_used, machine.emulated))


def _environment(engine: Engine) -> str:
    return ", ".join(
        [f"Python {engine.python}", *(f"{name} {engine.versions[name]}" for name in sorted(engine.versions))]
    )
