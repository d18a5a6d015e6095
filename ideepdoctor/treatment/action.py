"""What every action on the machine has in common: its five deeds, what it is given, and checks that several share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ideepdoctor.errors import UsageError
from ideepdoctor.system import System
from ideepdoctor.treatment.installers import Tell
from ideepdoctor.treatment.journal import Note
from ideepdoctor.treatment.state import existing_ancestor


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the actions of a run share.

    Attributes:
        system: starts and writes.
        backup: folder of this run's backups.
        cache: the doctor's cache folder.
        tell: told what happens within a step.
        own_files: files that the run's other steps wrote (links followed): no change of the user's.
        will_hold: by path, the digest (None: no file) that a file will have once the later steps of the run are
            reversed; an action that reverses after them is to look at that and not at what is there now.
    """

    system: System
    backup: str
    cache: str
    tell: Tell
    own_files: frozenset[str] = frozenset()
    will_hold: Mapping[str, str | None] = field(default_factory=dict)


class Action(Protocol):
    """A step that can be carried out and taken back."""

    def verify(self) -> None:
        """Refuse before anything is changed. Raises DoctorError."""
        ...

    def prepare(self) -> Note:
        """Make the backup; return what reversal will need. Nothing of the user's changes."""
        ...

    def execute(self, before: Note) -> Note:
        """Do it; return what it left."""
        ...

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """What changed since and would be lost by a reversal, in words; empty: it is safe."""
        ...

    def reverse(self, before: Note) -> None:
        """Put everything back. May be called again after a crash."""
        ...


def refuse_unwritable(folder: str) -> None:
    """Raise UsageError where a folder, or the one that it would be made in, cannot be written."""
    there = existing_ancestor(folder)
    if not Path(there).is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write to {there}", hint="choose a folder that you can write; nothing was changed")


def missing_parents(path: str) -> list[str]:
    """Folders above a path that do not exist yet, the deepest first."""
    return [str(folder) for folder in Path(path).parents if not folder.exists()]


def remove_if_empty(system: System, folders: list[str]) -> None:
    """Remove those of the folders that hold nothing, in the order given."""
    for folder in folders:
        if Path(folder).is_dir() and not any(Path(folder).iterdir()):
            system.remove_tree(folder)


def path_of_link(path: str) -> str:
    """The path with links in its folders followed, but not the last one: what names the link itself."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - bytes of the name stay as they are
