"""Take back a run: only where nothing of the user's would be lost, or by force."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace

from ideepdoctor.errors import NeedsAttention, UsageError
from ideepdoctor.model.plan import CreateEnv, changed_files
from ideepdoctor.system import System
from ideepdoctor.treatment.action import Surroundings
from ideepdoctor.treatment.apply import is_in_new_environment, reverse_all
from ideepdoctor.treatment.journal import FAILED, OK, UNDONE, UNFINISHED, Journal, Note, Run, read, runs
from ideepdoctor.treatment.progress import Progress
from ideepdoctor.treatment.state import locked
from ideepdoctor.treatment.steps import action
from ideepdoctor.treatment.strays import wait_for_installers

_CAN_BE_UNDONE = (OK, UNFINISHED, FAILED)


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What was taken back."""

    journal: str
    title: str
    paths: tuple[str, ...]

    def summary(self) -> str:
        """One sentence."""
        return f"taken back: {self.title} ({self.journal})"


def undo(system: System, state: str, run_id: str | None, *, force: bool, sink: Progress) -> UndoResult:
    """Take back a run, also one that was killed. May itself be killed and called again.

    Args:
        system: writes.
        state: the state folder.
        run_id: which run; None: the newest one that can be taken back.
        force: also where files changed since; those changes are lost.
        sink: told of each step.

    Raises:
        UsageError: there is no such run, or it was taken back before.
        NeedsAttention: something changed since (without ``force``), or could not be put back.
        Busy: another doctor is at work.
    """
    with locked(system, state):
        run = _wanted(state, run_id)
        journal = Journal(system, state, run.id)
        files = [path for step in run.plan.steps for path in changed_files(step)]
        files += [note["target"] for intent in run.intents.values() for note in _files(intent)]
        # The cache is for making environments; undo must not need one.
        around = Surroundings(system, journal.backup, "", sink.detail, frozenset(map(os.path.realpath, files)))
        wait_for_installers(journal.backup, run.paths, sink.detail)
        sink.step(1, 1, f"taking back: {run.plan.title}")
        try:
            if not force:
                _refuse_where_changed(run, around)
            with contextlib.suppress(OSError):
                journal.begin_undo()
            reverse_all(run, journal, around)
            journal.end(UNDONE)
        except OSError as error:
            raise NeedsAttention(
                f"could not take back {run.id}: {error.strerror or error} ({error.filename or ''})",
                hint=f"remove what is in the way, then again: ideepdoctor undo {run.id}",
            ) from error
        with contextlib.suppress(OSError):
            journal.drop_backup()
        return UndoResult(run.id, run.plan.title, run.paths)


def _files(intent: Note) -> list[Note]:
    """The notes about single files in what was noted before a step."""
    return [note for note in (intent, *intent.get("also", ())) if "target" in note]


def _wanted(state: str, run_id: str | None) -> Run:
    if run_id is not None:
        run = read(state, run_id)
        if run.status not in _CAN_BE_UNDONE:
            raise UsageError(
                f"the run {run.id} is {run.status}: there is nothing to take back",
                hint="see: ideepdoctor history",
            )
        return run
    found = next((run for run in runs(state) if run.status in _CAN_BE_UNDONE), None)
    if found is None:
        raise UsageError("there is nothing to take back", hint="see: ideepdoctor history")
    return found


def _refuse_where_changed(run: Run, around: Surroundings) -> None:
    """Raise NeedsAttention where a reversal would lose what somebody did since."""
    found: list[str] = []
    will_hold: dict[str, str | None] = {}
    for index in run.to_reverse:
        step, before = run.plan.steps[index], run.intents[index]
        if isinstance(step, CreateEnv):
            after = {**run.results.get(index, {}), **run.ended}
            found += action(step, index, around).obstacles(before, after)
        elif not is_in_new_environment(step, run.plan):
            then = replace(around, will_hold=dict(will_hold))
            found += action(step, index, then).obstacles(before, run.results.get(index))
            will_hold.update({note["target"]: note["before"] for note in _files(before) if "before" in note})
    if found:
        shown = "\n".join(found[:10]) + (f"\nand {len(found) - 10} more" if len(found) > 10 else "")
        raise NeedsAttention(
            f"{len(found)} file{'s' if len(found) > 1 else ''} changed since {run.id}; nothing was taken back",
            hint=f"{shown}\nto lose these changes: ideepdoctor undo --force {run.id}",
            context={"changed": "\n".join(found)},
        )
