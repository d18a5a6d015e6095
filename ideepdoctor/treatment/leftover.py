"""What the doctor leaves in an environment, from its facts: variables, an order of imports, the guard. Pure."""

from __future__ import annotations

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.plan import WriteFile
from ideepdoctor.rules.compat import guarded
from ideepdoctor.rules.installed import installed_pair
from ideepdoctor.treatment.order import packages_first
from ideepdoctor.treatment.startup import startup_files
from ideepdoctor.treatment.variables import choices


def startup_steps(
    facts: Facts, *, pair: tuple[str, str] | None = None, guard: bool | None = None
) -> tuple[WriteFile, ...]:
    """The start-up files for a target; none where its site-packages folder is not known.

    Args:
        facts: of the target.
        pair: releases of Chainer and ideep4py that it is about to have; None: those that it has.
        guard: what somebody decided about the guard now; None: what was decided before, else what the pair needs.
    """
    folder = facts.python.purelib or facts.python.platlib
    if folder is None:
        return ()
    wanted = wants_guard(facts, pair) if guard is None else guard
    return startup_files(choices(facts), folder, packages_first(facts), wanted)


def wants_guard(facts: Facts, pair: tuple[str, str] | None = None) -> bool | None:
    """Whether the import of Chainer is to load the guard; False where somebody disabled it, None: it knows no fault."""
    if facts.guard is not None and facts.guard.choice is False:
        return False
    return True if guarded(*(pair or installed_pair(facts))) else None


def guard_holds(facts: Facts) -> bool:
    """Whether the target's start-up file loads this doctor's guard already."""
    return facts.guard is not None and facts.guard.choice is True and facts.guard.current is True
