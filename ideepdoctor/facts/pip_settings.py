"""What pip is told by its files and variables, from the probe's rows."""

from __future__ import annotations

from ideepdoctor.facts.answer import Answer
from ideepdoctor.model.facts import PipSetting

_VARIABLE = ":env:"
"""What pip calls the section that variables make up."""


def read_pip_settings(answer: Answer) -> tuple[PipSetting, ...] | None:
    """The settings of the probe's answer, what counts more after what counts less; None where it did not look.

    Those of variables come last and hold for every command.
    """
    if answer.values.get("pip_settings") is None:
        return None
    rows = (tuple(str(value) for value in row) for row in answer.rows("pip_settings", 4))
    return tuple(
        PipSetting(name, value, source, "global" if command == _VARIABLE else command)
        for name, value, source, command in rows
    )
