"""``undo`` and ``history``: walk the journal back, and read it."""

from __future__ import annotations

from ideepdoctor.commands.session import Session
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


def history(session: Session) -> Report:
    """List the runs that changed something, newest first."""
    from dataclasses import asdict

    from ideepdoctor.treatment.journal import history as entries
    from ideepdoctor.treatment.state import state_folder

    found = entries(state_folder(session.environ))
    return Report("history", extra={"history": [asdict(entry) for entry in found]})
