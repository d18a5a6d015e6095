"""What the manual page is made of: commands and options as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ManualEntry:
    """An argument or an option.

    Attributes:
        names: as they are typed: ``-p, --python <str>``.
        text: what it is for.
        variable: that sets it too; empty: none.
        notes: what else holds: ``default: text``.
    """

    names: str
    text: str
    variable: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ManualCommand:
    """A command.

    Attributes:
        name: with that of its group.
        usage: what follows the name.
        text: what it is for.
        arguments: in their order.
        options: its own, without those that every command has.
    """

    name: str
    usage: str
    text: str
    arguments: tuple[ManualEntry, ...]
    options: tuple[ManualEntry, ...]
