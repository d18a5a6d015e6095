"""Environment variables: what the user has, what a program sees, and which of that is the doctor's."""

from __future__ import annotations

from ideepdoctor.facts.answer import Answer
from ideepdoctor.model.facts import Variables

MARK = "IDEEPDOCTOR_SET"
"""The variable in which the doctor's start-up file lists the names that it has set."""


def read_variables(answer: Answer) -> Variables:
    """The variables of the probe's answer."""
    effective = answer.text_by_name("effective")
    marked = (effective or {}).get(MARK, "").split(",")
    return Variables(
        inherited=answer.text_by_name("inherited") or {},
        effective=effective,
        set_by_doctor=tuple(sorted({name for name in marked if name in (effective or {})})),
    )
