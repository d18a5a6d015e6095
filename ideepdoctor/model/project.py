"""Where a command was run, and the top of the project that it was run in. Pure."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Project:
    """Where paths of a report begin.

    Attributes:
        cwd: the folder that relative paths refer to; absolute.
        root: top of the repository, or of the checkout of a CI job, that ``cwd`` lies in; empty: there is none.
    """

    cwd: str
    root: str = ""

    def within(self, path: str) -> str | None:
        """The path from the top of the project; None where it is not in it, or there is no project."""
        whole = posixpath.normpath(posixpath.join(self.cwd, path))
        return whole[len(self.root) + 1 :] if self.root and whole.startswith(f"{self.root}/") else None

    def same_anywhere(self, text: str) -> str:
        """The text without the project's own folder, which another checkout of the same project has elsewhere."""
        return text.replace(f"{self.root}/", "") if self.root else text
