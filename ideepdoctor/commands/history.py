"""``undo``, ``resume`` and ``history``: walk the journal back, finish it, and read it."""

from __future__ import annotations

from ideepdoctor.commands.session import Session
from ideepdoctor.locale import columns
from ideepdoctor.model.report import Report


def undo(session: Session, journal: str | None, *, force: bool = False) -> Report:
    """Take back one run of the doctor (None: the last one that can be).

    Raises:
        UsageError: no such run, or it was undone before.
        NeedsAttention: a file changed since; the difference is in the error's context.
    """
    from ideepdoctor.treatment.state import state_folder
    from ideepdoctor.treatment.undo import undo as take_back

    result = take_back(session.system, state_folder(session.environ), journal, force=force, sink=session.progress)
    return Report("undo", extra={"verdict": result.summary(), "journal": result.journal})


def resume(session: Session, journal: str | None) -> Report:
    """Finish a run that was killed (None: the unfinished one).

    Raises:
        UsageError: there is none.
        ApplyFailed, NeedsAttention: see treatment.apply.
    """
    from ideepdoctor.treatment.apply import resume as finish
    from ideepdoctor.treatment.state import state_folder

    done = finish(session.system, state_folder(session.environ), journal, session.progress)
    steps = ["prove it: ideepdoctor smoke", f"take it back: ideepdoctor undo {done}"]
    return Report("resume", extra={"verdict": f"finished: {done}", "journal": done, "next": steps})


def history(session: Session) -> Report:
    """List the runs that changed something, newest first."""
    from dataclasses import asdict

    from ideepdoctor.treatment.journal import history as entries
    from ideepdoctor.treatment.state import state_folder

    found = entries(state_folder(session.environ))
    blocks = [
        f"{entry.id}  {entry.status}\n  {entry.title}\n  backup {entry.backup_bytes / 1e6:.0f} MB\n" for entry in found
    ]
    text = "".join(blocks) or "nothing was changed yet\n"
    return Report("history", text=columns.lines(text), extra={"history": [asdict(entry) for entry in found]})
