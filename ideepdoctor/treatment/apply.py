"""Carry out a plan: lock, journal, steps; on any failure everything done is taken back."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Iterator

from ideepdoctor.errors import ApplyFailed, DoctorError, NeedsAttention, UsageError
from ideepdoctor.model.plan import CreateEnv, DisableLine, Install, Plan, RenameFile, SetRpath, Step
from ideepdoctor.system import System
from ideepdoctor.treatment.action import Surroundings
from ideepdoctor.treatment.journal import (
    FAILED,
    OK,
    ROLLED_BACK,
    UNFINISHED,
    Journal,
    Note,
    Run,
    new_id,
    read,
    unfinished,
)
from ideepdoctor.treatment.progress import Progress
from ideepdoctor.treatment.state import cache_folder, locked
from ideepdoctor.treatment.steps import MakeEnvironment, action
from ideepdoctor.treatment.strays import wait_for_installers

_HISTORY = "see: ideepdoctor history"


def apply_plan(system: System, plan: Plan, state: str, sink: Progress, *, command: str = "") -> str:
    """Carry out a plan.

    Args:
        system: starts processes and writes files.
        plan: the steps.
        state: the state folder.
        sink: told of each step.
        command: the command line, for the history.

    Returns:
        The name of the run, for ``undo``.

    Raises:
        Busy: another doctor is at work.
        NeedsAttention: an earlier run was killed and must be resumed or undone first; or taking back failed.
        UsageError, CouldNotCheck: a step refused; nothing was changed (or everything was taken back).
        ApplyFailed: a step failed; everything was taken back.
        KeyboardInterrupt: Ctrl-C; everything was taken back.
    """
    with locked(system, state):
        earlier = unfinished(state)
        if earlier is not None:
            raise _in_the_way(earlier)
        journal = Journal(system, state, new_id())
        around = _around(system, journal, sink)
        try:
            _verify(plan, around)
            journal.begin(plan, command)
        except OSError as error:
            raise ApplyFailed(
                f"could not begin: {_words(error)}; nothing was changed", hint=_way_out(error), context={"state": state}
            ) from error
        _carry_out(plan, journal, around, sink, frozenset())
        return journal.id


def _in_the_way(run: Run) -> NeedsAttention:
    back = f"take it back: ideepdoctor undo {run.id}"
    if run.status == UNFINISHED:
        what, hint = "did not finish", f"finish it: ideepdoctor resume {run.id}\nor {back}"
    else:
        what, hint = "is half taken back", back
    return NeedsAttention(f"an earlier run {what}: {run.plan.title} ({run.id}, {run.started})", hint=hint)


def _words(error: OSError) -> str:
    return f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}"


def _way_out(error: OSError) -> str:
    # Copying a tree reports the errors of its files as text.
    full = error.errno in (errno.ENOSPC, errno.EDQUOT) or f"[Errno {errno.ENOSPC}]" in str(error)
    return "make room on the disk, then try again" if full else "see -v; nothing was left behind"


def resume(system: System, state: str, run_id: str | None, sink: Progress) -> str:
    """Finish a run that was killed: its half-done step is taken back and done again, then the others.

    Args:
        system: starts processes and writes files.
        state: the state folder.
        run_id: which run; None: the unfinished one.
        sink: told of each step.

    Raises:
        UsageError: there is no such unfinished run, or it is half taken back.
        NeedsAttention: somebody made another environment in place of the one that was begun.
        Others as ``apply_plan``.
    """
    with locked(system, state):
        run = unfinished(state) if run_id is None else read(state, run_id)
        if run is None or run.status != UNFINISHED:
            raise UsageError(
                "there is no unfinished run" if run is None else f"the run {run.id} is {run.status}",
                hint=f"take it back: ideepdoctor undo {run.id}" if run and run.status == FAILED else _HISTORY,
            )
        journal = Journal(system, state, run.id)
        around = _around(system, journal, sink)
        again = _to_be_done_again(run)
        wait_for_installers(journal.backup, run.paths, sink.detail)
        _refuse_where_replaced(run, again, around)
        try:
            for index in again:
                step = run.plan.steps[index]
                if isinstance(step, CreateEnv) or not is_in_new_environment(step, run.plan):
                    action(step, index, around).reverse(run.intents[index])
                journal.note("reversed", step=index)
        except OSError as error:
            raise NeedsAttention(
                f"could not go on with {run.id}: {_words(error)}",
                hint=f"remove what is in the way, then again: ideepdoctor resume {run.id}",
            ) from error
        _carry_out(run.plan, journal, around, sink, frozenset(run.results.keys() - set(again)))
        return run.id


def _to_be_done_again(run: Run) -> tuple[int, ...]:
    """The steps that were begun and not done, in the order of their reversal.

    Nobody knows what an installer that was killed left in a new environment: packages that look installed and are not
    whole. So the environment itself is made again, with all in it. The half-done step comes last, because as long as
    it is there a resume that is killed too makes the environment again.
    """
    half = [index for index in run.to_reverse if index not in run.results]
    inside = [index for index in run.to_reverse if is_in_new_environment(run.plan.steps[index], run.plan)]
    if not set(half) & set(inside):
        return tuple(half)
    done = [index for index in inside if index not in half]
    made = [index for index in run.to_reverse if isinstance(run.plan.steps[index], CreateEnv)]
    return (*done, *made, *(index for index in half if index not in made))


def _refuse_where_replaced(run: Run, again: tuple[int, ...], around: Surroundings) -> None:
    """Raise NeedsAttention where an environment that would be made again is not the one that the run made."""
    for index in again:
        step = run.plan.steps[index]
        if isinstance(step, CreateEnv):
            found = action(step, index, around).obstacles(run.intents[index], run.results.get(index))
            if found:
                raise NeedsAttention(found[0], hint=f"move it elsewhere, then again: ideepdoctor resume {run.id}")


def _around(system: System, journal: Journal, sink: Progress) -> Surroundings:
    return Surroundings(system, journal.backup, cache_folder(os.environ), sink.detail)


def _verify(plan: Plan, around: Surroundings) -> None:
    for index, step in enumerate(plan.steps):
        # What changes a file that the plan has yet to bring can be looked at only when its turn comes.
        to_come = isinstance(step, RenameFile | SetRpath | DisableLine) and is_in_new_environment(step, plan)
        if not to_come:
            action(step, index, around).verify()


def _carry_out(plan: Plan, journal: Journal, around: Surroundings, sink: Progress, done: frozenset[int]) -> None:
    """Do the steps that are not done; take everything back on failure."""
    title = plan.title
    try:
        for index, step in enumerate(plan.steps):
            if index in done:
                continue
            title = step.title
            sink.step(index + 1, len(plan.steps), title)
            act = action(step, index, around)
            before = act.prepare()
            journal.note("intent", step=index, note=before)
            after = act.execute(before)
            journal.note("done", step=index, note=after)
        journal.end(OK, _finished(plan, around))
    except BaseException as error:
        with _undisturbed():
            _take_back(journal, around, sink, error)
        if isinstance(error, OSError):
            raise ApplyFailed(f"{title}: {_words(error)}; everything was taken back", hint=_way_out(error)) from error
        raise


def _finished(plan: Plan, around: Surroundings) -> Note:
    """What the whole plan left in the environment that it made."""
    for step in plan.steps:
        if isinstance(step, CreateEnv):
            return MakeEnvironment(step, around).finished()
    return {}


def _take_back(journal: Journal, around: Surroundings, sink: Progress, error: BaseException) -> None:
    """Reverse what was begun, the last step first, and note it. Raises NeedsAttention where that fails."""
    run = read(journal.state, journal.id)
    sink.detail("taking back what was done")
    try:
        with contextlib.suppress(OSError):
            journal.begin_undo()
        reverse_all(run, journal, around)
    except (OSError, DoctorError) as second:
        with contextlib.suppress(OSError):
            journal.end(FAILED, {"error": str(error)[:500], "reversal": str(second)[:500]})
        raise NeedsAttention(
            f"{error}; and taking it back failed: {second}",
            hint=f"remove what is in the way, then: ideepdoctor undo {journal.id}",
        ) from second
    # Where not even this line has room, the run stays unfinished: taking it back once more does no harm.
    with contextlib.suppress(OSError):
        journal.end(ROLLED_BACK, {"error": f"{type(error).__name__}: {error}"[:500]})
        journal.drop_backup()


def reverse_all(run: Run, journal: Journal, around: Surroundings) -> None:
    """Reverse the steps of a run that were begun, the last one first, noting each.

    Steps within an environment that the same run made are not reversed one by one: it is deleted whole. A journal that
    cannot be written (a full disk) does not stop what makes room.
    """
    for index in run.to_reverse:
        step = run.plan.steps[index]
        if isinstance(step, CreateEnv) or not is_in_new_environment(step, run.plan):
            action(step, index, around).reverse(run.intents[index])
        with contextlib.suppress(OSError):
            journal.note("reversed", step=index)


def is_in_new_environment(step: Step, plan: Plan) -> bool:
    """Whether the step works in a folder that the same plan makes."""
    where = step.python if isinstance(step, Install) else step.path
    made = [other.path.rstrip("/") for other in plan.steps if isinstance(other, CreateEnv)]
    return any(where.startswith(f"{folder}/") for folder in made)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits while things are put back. (Signals belong to the main thread; elsewhere there is nothing to do.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in held:
            signal.signal(number, handler)
