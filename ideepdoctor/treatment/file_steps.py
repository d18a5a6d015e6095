"""Steps on single files: written whole, a marked block, a line made a comment, a file renamed."""

from __future__ import annotations

import difflib
import glob
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from ideepdoctor.errors import UsageError
from ideepdoctor.model.plan import DisableLine, EditBlock, RenameFile, WriteFile
from ideepdoctor.treatment import snapshot
from ideepdoctor.treatment.action import (
    Surroundings,
    missing_parents,
    path_of_link,
    refuse_unwritable,
    remove_if_empty,
)
from ideepdoctor.treatment.journal import Note
from ideepdoctor.treatment.lines import disable
from ideepdoctor.treatment.shellrc import put_block

_NOT_AGAIN = "nothing was changed; look at the machine again, then plan again"


class ReplaceFile:
    """A file that gets new content at once; what it was is copied before.

    Args:
        path: of the file; a caller that wants links followed has followed them.
        index: of the step; names its backup.
        around: of the run.
        new_mode: permission bits where there is no file yet.
        backup: name of the copy, for a step that replaces two files.
    """

    def __init__(
        self, path: str, index: int, around: Surroundings, *, new_mode: int = 0o644, backup: str = "file"
    ) -> None:
        self._path, self._index, self._around, self._new_mode = path, index, around, new_mode
        self._folder = Path(around.backup) / str(index)
        self._backup = str(self._folder / backup)

    def content(self) -> bytes:
        """The new content, from what is there now. Raises DoctorError where it cannot be made; changes nothing."""
        raise NotImplementedError

    def verify(self) -> None:
        """See Action."""
        path = Path(self._path)
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="name a file")
        refuse_unwritable(str(path.parent))

    def prepare(self) -> Note:
        """See Action."""
        path, system = Path(self._path), self._around.system
        new = self.content()
        # The target as it is now: a link may point elsewhere by the time of the undo.
        note: Note = {"target": self._path, "existed": path.exists(), "parents": missing_parents(self._path)}
        if path.exists():
            system.make_folder(str(self._folder))
            system.remove_file(self._backup)
            system.copy_file(self._path, self._backup)
        note["before"] = digest(self._path)
        note["after"] = hashlib.sha256(new).hexdigest()
        return note

    def execute(self, before: Note) -> Note:
        """See Action."""
        path, system = Path(self._path), self._around.system
        if before["before"] == before["after"]:
            return {"sha256": before["after"]}
        new = self.content()
        mode = path.stat().st_mode & 0o7777 if path.exists() else self._new_mode
        system.make_folder(str(path.parent))
        system.write_file(self._path, new, mode)
        return {"sha256": hashlib.sha256(new).hexdigest()}

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """See Action."""
        path = str(before["target"])
        later = self._around.will_hold
        now = later[path] if path in later else digest(path)
        if now in (before["before"], before["after"]) or now is None:
            return []
        return [f"{path} was changed since{self.difference(path)}"]

    def difference(self, path: str) -> str:
        """What undo would do to the file, as a unified diff."""
        now = Path(path).read_bytes().decode("utf-8", "replace").splitlines()
        backup = Path(self._backup)
        then = backup.read_bytes().decode("utf-8", "replace").splitlines() if backup.exists() else []
        lines = difflib.unified_diff(now, then, f"{path} (now)", f"{path} (after undo)", lineterm="", n=1)
        return "\n".join([":", *lines])

    def reverse(self, before: Note) -> None:
        """See Action."""
        system, path = self._around.system, Path(before["target"])
        # What a write that was killed has left beside the file.
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.ideepdoctor"):
            system.remove_file(str(left))
        if not before["existed"]:
            system.remove_file(str(path))
            remove_if_empty(system, before["parents"])
        elif digest(str(path)) != before["before"]:
            fresh = f"{path}.ideepdoctor-new"
            system.make_folder(str(path.parent))
            # A copy of a link is a link, and no link can be made where one is.
            system.remove_file(fresh)
            system.copy_file(self._backup, fresh)
            system.rename(fresh, str(path))


class WriteWhole(ReplaceFile):
    """A file written whole. Links are followed: the file behind them is written."""

    def __init__(self, step: WriteFile, index: int, around: Surroundings) -> None:
        super().__init__(os.path.realpath(step.path), index, around, new_mode=step.mode)
        self._content = step.content.encode("utf-8")

    def content(self) -> bytes:
        """See ReplaceFile."""
        return self._content


class EditText(ReplaceFile):
    """A text file edited. Links are followed; bytes that are no UTF-8 and line ends stay as they are."""

    def __init__(self, path: str, edit: Callable[[str], str], index: int, around: Surroundings) -> None:
        super().__init__(os.path.realpath(path), index, around)
        self._edit = edit

    def content(self) -> bytes:
        """See ReplaceFile."""
        path = Path(self._path)
        old = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
        return self._edit(old).encode("utf-8", "surrogateescape")


class PutBlock(EditText):
    """A marked block put in, or replaced."""

    def __init__(self, step: EditBlock, index: int, around: Surroundings) -> None:
        super().__init__(step.path, lambda text: put_block(text, step.block), index, around)


class CommentLine(EditText):
    """A line made a comment."""

    def __init__(self, step: DisableLine, index: int, around: Surroundings) -> None:
        super().__init__(step.path, lambda text: disable(around.system, step, text), index, around)

    def verify(self) -> None:
        """See Action."""
        super().verify()
        self.content()

    def content(self) -> bytes:
        """See ReplaceFile."""
        if not Path(self._path).is_file():
            raise UsageError(f"{self._path} is not there any more", hint=_NOT_AGAIN)
        return super().content()


class Rename:
    """A file with another name in the same folder. Nothing is copied: undo gives the name back."""

    def __init__(self, step: RenameFile, around: Surroundings) -> None:
        self._old, self._around = path_of_link(step.path), around
        self._new = self._old + step.suffix

    def verify(self) -> None:
        """See Action."""
        old = Path(self._old)
        if not os.path.lexists(old):
            raise UsageError(f"{old} is not there any more", hint=_NOT_AGAIN)
        if old.is_dir() and not old.is_symlink():
            raise UsageError(f"{old} is a folder; only files are renamed", hint="nothing was changed")
        if os.path.lexists(self._new):
            raise UsageError(
                f"{self._new} exists already: {old.name} cannot get that name",
                hint="move it elsewhere; nothing was changed",
            )
        refuse_unwritable(str(old.parent))

    def prepare(self) -> Note:
        """See Action."""
        self.verify()
        return {"target": self._old, "renamed": self._new, "identity": _identity(self._old)}

    def execute(self, before: Note) -> Note:
        """See Action."""
        self._around.system.rename(before["target"], before["renamed"])
        return {}

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """See Action."""
        old, new = before["target"], before["renamed"]
        if not os.path.lexists(new):
            # Not renamed yet, or renamed back already.
            return [] if _identity(old) == before["identity"] else [f"{new} is gone: {old} cannot be put back"]
        if os.path.lexists(old):
            return [f"{old} is there again: something made it since, and undo would put {new} in its place"]
        return []

    def reverse(self, before: Note) -> None:
        """See Action."""
        system, old, new = self._around.system, before["target"], before["renamed"]
        if os.path.lexists(new) and _identity(old) != before["identity"]:
            # There is nothing at the old path unless undo is forced.
            if os.path.lexists(old):
                system.remove_tree(old)
            system.rename(new, old)


def _identity(path: str) -> str | None:
    """What a file keeps under another name: device, inode, size and time of change. None: there is nothing."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def digest(path: str) -> str | None:
    """SHA-256 of a file (links followed), None where there is none."""
    return snapshot.sha256_of(path) if Path(path).is_file() else None
