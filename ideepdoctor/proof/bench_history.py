"""The runs of ``bench`` that were kept: an SQLite file in the state folder, and the verdict against a baseline.

Rows are only added, or replaced by the same run; a file that cannot be used is left as it is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.bench import Key, Result, Row
from ideepdoctor.proof.bench_database import Kept, insert, last_run, list_runs, matching, opened
from ideepdoctor.proof.bench_file import dumps, loads, read
from ideepdoctor.proof.bench_verdict import Baseline, Earlier, Regression, parse_percent, verdict
from ideepdoctor.system import System

__all__ = ["Baseline", "Kept", "Regression", "Store", "parse_percent", "verdict"]

FILE = "bench.sqlite3"
Answer = TypeVar("Answer")


class Store:
    """The runs that were kept.

    Args:
        system: makes the state folder.
        folder: the state folder; nothing is made in it before the first run is added.
    """

    def __init__(self, system: System, folder: str) -> None:
        self._system = system
        self._folder = folder
        self.path = str(Path(folder) / FILE)

    def add(self, result: Result) -> None:
        """Keep a run; one of the same id is replaced (the same run, later).

        Raises:
            CouldNotCheck: the history cannot be written. It is left as it is, and the run is put beside it where that
                can be done; the message says where.
        """
        document = dumps(result)
        try:
            self._system.make_folder(self._folder)
            self._with(lambda base: insert(base, result, document))
        except OSError as error:
            raise self._not_kept(result, document, f"cannot write to {self._folder}: {error.strerror}") from error
        except CouldNotCheck as error:
            raise self._not_kept(result, document, error.message, error.hint) from error

    def runs(self) -> tuple[Kept, ...]:
        """The runs, newest first. Raises CouldNotCheck: the history cannot be read."""
        if not Path(self.path).exists():
            return ()
        return self._with(list_runs)

    def get(self, name: str) -> Result:
        """The run of this id, or the only one whose id begins so.

        Raises:
            UsageError: there is none, or there are several.
            CouldNotCheck: the history cannot be read.
        """
        found = self._with(lambda base: matching(base, name)) if Path(self.path).exists() else []
        exact = [item for item in found if item[0] == name]
        if len(exact or found) == 1:
            return loads((exact or found)[0][1])
        if not found:
            raise UsageError(f"no run of bench is called {name!r}", hint="all of them: ideepdoctor bench history")
        names = ", ".join(item[0] for item in found[:5])
        raise UsageError(f"{name!r} may be {names}", hint="give more of the id")

    def baseline(self, result: Result, named: str | None = None) -> Baseline:
        """What a run is held against, for each of its engines and nets.

        Args:
            result: the later run.
            named: id of a run that was kept, or a result file; None: for each row the last complete run of the same
                machine that has it.

        Raises:
            UsageError: no such run and no such file.
            CouldNotCheck: the history cannot be read.
        """
        if named is not None:
            earlier = read(named) if _is_file(named) else self.get(named)
            return {(row.engine, row.key): _earlier(earlier, row) for row in earlier.results if row.measured}
        if not Path(self.path).exists():
            return {}
        measured = [row for row in result.results if row.measured]
        names = self._with(lambda base: [last_run(base, result, row) for row in measured])
        runs = {name: self.get(name) for name in dict.fromkeys(names) if name is not None}
        found: dict[tuple[str, Key], Earlier] = {}
        for row, name in zip(measured, names, strict=True):
            before = None if name is None else runs[name].row(row.engine, row.key)
            if name is not None and before is not None:
                found[row.engine, row.key] = _earlier(runs[name], before)
        return found

    def _with(self, act: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            with opened(self.path) as base:
                return act(base)
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.Error) -> CouldNotCheck:
        text = str(error)
        if "locked" in text:
            hint = "another ideepdoctor is writing to it: try again"
        elif "readonly" in text or "unable to open" in text:
            hint = "set IDEEPDOCTOR_STATE_DIR to a folder that you can write"
        elif "full" in text:
            hint = "make room on the disk"
        else:
            hint = f"nothing was changed in it; to begin anew: mv {self.path} {self.path}.broken"
        return CouldNotCheck(f"the history {self.path} cannot be used: {text}", hint=hint)

    def _not_kept(self, result: Result, document: str, why: str, hint: str = "") -> CouldNotCheck:
        beside = str(Path(self._folder) / f"bench-{result.id}.json")
        try:
            self._system.write_file(beside, document.encode("utf-8"))
        except OSError:
            return CouldNotCheck(
                f"this run is not in the history: {why}",
                hint=hint or "set IDEEPDOCTOR_STATE_DIR to a folder that you can write",
            )
        return CouldNotCheck(f"this run is not in the history but in {beside}: {why}", hint=hint)


def _earlier(run: Result, row: Row) -> Earlier:
    return Earlier(run.id, run.started, run.noise.quiet, run.engine(row.engine), row)


def _is_file(name: str) -> bool:
    return name.endswith(".json") or "/" in name or Path(name).is_file()
