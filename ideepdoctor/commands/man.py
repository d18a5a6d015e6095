"""``man``: the manual page."""

from __future__ import annotations

from collections.abc import Sequence

from ideepdoctor.model.manual import ManualCommand, ManualEntry
from ideepdoctor.model.report import Report
from ideepdoctor.render.man import render


def man(commands: Sequence[ManualCommand], common: Sequence[ManualEntry]) -> Report:
    """Return the manual page of the application."""
    return Report("man", text=render(commands, common))
