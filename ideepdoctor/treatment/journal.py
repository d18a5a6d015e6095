"""The write-ahead journal: what a run is about to do, has done, and how it ended. JSON lines, each one synced.

A run is one file, ``journal/ID.jsonl``; what it needs to be taken back lies in ``backup/ID``. An intent is written
after its backup is complete and before anything changes, so that whatever has no intent needs no reversal.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ideepdoctor import __version__
from ideepdoctor.errors import NeedsAttention, UsageError
from ideepdoctor.model.plan import CreateEnv, DisableLine, EditBlock, Install, Plan, RenameFile, SetRpath, WriteFile
from ideepdoctor.system import System
from ideepdoctor.treatment.plandata import plan_from_data, plan_to_data

Note = dict[str, Any]

UNFINISHED, OK, ROLLED_BACK, FAILED, UNDONE = "unfinished", "ok", "rolled-back", "failed", "undone"


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its journal tells it."""

    id: str
    started: str
    """UTC, ISO 8601."""
    command: str
    plan: Plan
    status: str
    """unfinished (killed, or still running), ok, rolled-back, failed (half taken back) or undone."""
    intents: Mapping[int, Note] = field(default_factory=dict)
    """By step: what was noted before it."""
    results: Mapping[int, Note] = field(default_factory=dict)
    """By step: what was noted after it."""
    ended: Note = field(default_factory=dict)
    """What was noted at the end of a run that went well."""

    @property
    def to_reverse(self) -> tuple[int, ...]:
        """Steps that were begun, the last one first."""
        return tuple(sorted(self.intents, reverse=True))

    @property
    def paths(self) -> tuple[str, ...]:
        """What the plan changes."""
        found: list[str] = []
        for step in self.plan.steps:
            match step:
                case Install():
                    found += step.snapshot or (step.python,)
                case CreateEnv() | RenameFile() | SetRpath() | WriteFile() | DisableLine() | EditBlock():
                    found.append(step.path)
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the history."""

    id: str
    started: str
    title: str
    command: str
    status: str
    paths: tuple[str, ...]
    backup_bytes: int


class Journal:
    """The journal of one run.

    Args:
        system: writes.
        state: the state folder.
        run_id: of the run.
    """

    def __init__(self, system: System, state: str, run_id: str) -> None:
        self._system = system
        self._path = journal_path(state, run_id)
        self.id, self.state = run_id, state
        self.backup = backup_path(state, run_id)

    def begin(self, plan: Plan, command: str) -> None:
        """Note the whole plan. Raises OSError."""
        self._system.make_folder(str(Path(self._path).parent))
        started = datetime.now(UTC).isoformat(timespec="seconds")
        data = {"plan": plan_to_data(plan), "command": command, "started": started, "tool_version": __version__}
        self.note("plan-begin", **data)

    def note(self, event: str, **data: Any) -> None:
        """Append an event and sync it. Raises OSError."""
        if _is_torn(Path(self._path)):
            self._system.append_line(self._path, "")
        self._system.append_line(self._path, json.dumps({"event": event, **data}, sort_keys=True))

    def begin_undo(self) -> None:
        """Note that from here on the run can only be taken back. Raises OSError."""
        self.note("undo-begin")

    def end(self, status: str, note: Note | None = None) -> None:
        """Note how the run ended. Raises OSError."""
        self.note("plan-end", status=status, note=note or {})

    def drop_backup(self) -> None:
        """Remove what nobody can need any more. Raises OSError."""
        self._system.remove_tree(self.backup)


def new_id() -> str:
    """A name for a run: UTC time to the millisecond, so that names sort by age, and two random letters."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}{secrets.token_hex(1)}"


def journal_path(state: str, run_id: str) -> str:
    """The journal's file."""
    return str(Path(state) / "journal" / f"{run_id}.jsonl")


def backup_path(state: str, run_id: str) -> str:
    """The folder of what is needed to take the run back."""
    return str(Path(state) / "backup" / run_id)


def read(state: str, run_id: str) -> Run:
    """Read a run. A last line that was cut off by a crash does not count.

    Raises:
        UsageError: no run has this name; the hint lists those that there are.
        NeedsAttention: the journal cannot be read.
    """
    path = Path(journal_path(state, run_id))
    known = _names(state)
    if run_id not in known:
        names = ", ".join(known[:5]) or "none: nothing was changed yet"
        raise UsageError(f"no run is called {run_id}", hint=f"known runs: {names}")
    events = _events(path)
    if not events or events[0].get("event") != "plan-begin":
        raise NeedsAttention(f"the journal {path} has no beginning", hint="look at it; then remove it by hand")
    first = events[0]
    try:
        plan = plan_from_data(first["plan"])
    except (KeyError, ValueError, TypeError) as error:
        raise NeedsAttention(
            f"the journal {path} was written by another version ({first.get('tool_version')}): {error}",
            hint="use that version of ideepdoctor to take it back",
        ) from error
    intents: dict[int, Note] = {}
    results: dict[int, Note] = {}
    status = UNFINISHED
    ended: Note = {}
    for event in events[1:]:
        kind = event["event"]
        if kind == "intent":
            intents[event["step"]] = event["note"]
        elif kind == "done":
            results[event["step"]] = event["note"]
        elif kind == "reversed":
            intents.pop(event["step"], None)
            results.pop(event["step"], None)
        elif kind == "plan-end":
            status = event["status"]
            ended = event.get("note") or {} if status == OK else ended
        elif kind == "undo-begin":
            # Until its end is noted it is half put back: no run to go on with, and in the way of the next.
            status = FAILED
    return Run(run_id, first["started"], first["command"], plan, status, intents, results, ended)


def _events(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            found.append(event)
    return found


def _is_torn(path: Path) -> bool:
    """Whether a crash cut the last line off: what is appended must not continue it."""
    try:
        with path.open("rb") as stream:
            stream.seek(-1, 2)
            return stream.read(1) != b"\n"
    except OSError:
        return False


def _names(state: str) -> list[str]:
    return sorted((path.stem for path in (Path(state) / "journal").glob("*.jsonl")), reverse=True)


def runs(state: str) -> tuple[Run, ...]:
    """All runs, newest first; those that cannot be read are left out."""
    found = []
    for name in _names(state):
        try:
            found.append(read(state, name))
        except NeedsAttention:
            continue
    return tuple(found)


def history(state: str) -> tuple[Entry, ...]:
    """All runs for display, newest first."""
    from ideepdoctor.treatment.snapshot import tree_size

    return tuple(
        Entry(
            run.id,
            run.started,
            run.plan.title,
            run.command,
            run.status,
            run.paths,
            tree_size(backup_path(state, run.id)),
        )
        for run in runs(state)
    )


def unfinished(state: str) -> Run | None:
    """The newest run that was killed, or that is half taken back; None where there is none."""
    return next((run for run in runs(state) if run.status in (UNFINISHED, FAILED)), None)
