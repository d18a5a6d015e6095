"""What each kind of step does: check before anything changes, prepare, execute, reverse."""

from __future__ import annotations

import difflib
import glob
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.plan import CreateEnv, EditBlock, Install, Step, WriteFile
from ideepdoctor.system import System
from ideepdoctor.treatment import installers, snapshot
from ideepdoctor.treatment.journal import Note
from ideepdoctor.treatment.shellrc import put_block
from ideepdoctor.treatment.state import existing_ancestor

MARGIN_BYTES = 50_000_000
"""Left free on a disk beside what is installed: bytecode, temporary files."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the actions of a run share.

    Attributes:
        system: starts and writes.
        backup: folder of this run's backups.
        cache: the doctor's cache folder.
        tell: told what happens within a step.
        own_files: files that the run's other steps wrote (links followed): no change of the user's.
    """

    system: System
    backup: str
    cache: str
    tell: installers.Tell
    own_files: frozenset[str] = frozenset()


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


def action(step: Step, index: int, around: Surroundings) -> Action:
    """The action of a step; ``index`` names its backups."""
    match step:
        case CreateEnv():
            return MakeEnvironment(step, around)
        case Install():
            return InstallPackages(step, index, around)
        case WriteFile():
            return ReplaceFile(step.path, step.content, step.mode, index, around)
        case EditBlock():
            return ReplaceFile(step.path, step.block, 0o644, index, around, block=True)


def disk_needs(path: str, needed_bytes: int, what: str) -> None:
    """Raise CouldNotCheck where the file system of a path has less room than is needed."""
    there = existing_ancestor(path)
    free = shutil.disk_usage(there).free
    if free < needed_bytes + MARGIN_BYTES:
        raise CouldNotCheck(
            f"the disk is too small for {what}: {there} has {free / 1e6:.0f} MB free, "
            f"{(needed_bytes + MARGIN_BYTES) / 1e6:.0f} MB are needed",
            hint="make room, or choose a folder on another disk (--env DIR); nothing was changed",
        )


def _writable(folder: str) -> None:
    there = existing_ancestor(folder)
    if not Path(there).is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"cannot write to {there}", hint="choose a folder that you can write; nothing was changed")


def _missing_parents(path: str) -> list[str]:
    """Folders above a path that do not exist yet, the deepest first."""
    return [str(folder) for folder in Path(path).parents if not folder.exists()]


def _remove_if_empty(system: System, folders: list[str]) -> None:
    for folder in folders:
        if Path(folder).is_dir() and not any(Path(folder).iterdir()):
            system.remove_tree(folder)


class MakeEnvironment:
    """A new environment; taken back by deleting it whole."""

    def __init__(self, step: CreateEnv, around: Surroundings) -> None:
        self._step, self._around = step, around

    def verify(self) -> None:
        """See Action."""
        path = Path(self._step.path)
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise UsageError(f"{path} is no folder", hint="choose another one: --env DIR")
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(f"{path} is not empty", hint="choose another folder: --env DIR")
        _writable(str(path if path.is_dir() else path.parent))
        if not os.access(self._step.python, os.X_OK):
            raise UsageError(f"{self._step.python} cannot be started", hint="name another Python: --python")

    def prepare(self) -> Note:
        """See Action."""
        path = self._step.path
        return {"existed": Path(path).is_dir(), "parents": _missing_parents(path)}

    def execute(self, before: Note) -> Note:
        """See Action."""
        around = self._around
        around.system.make_folder(str(Path(self._step.path).parent))
        installers.create_environment(
            around.system, self._step.path, self._step.python, self._step.tool, around.cache, around.tell
        )
        return {"identity": self._identity()}

    def _identity(self) -> snapshot.Manifest:
        """What tells this environment from another one that somebody made in its place."""
        return snapshot.quick_manifest(str(Path(self._step.path) / "pyvenv.cfg"))

    def finished(self) -> Note:
        """What the whole plan left in the folder, noted at its end: undo deletes that and nothing else."""
        listed = str(Path(self._around.backup) / "environment.json")
        found = snapshot.quick_manifest(self._step.path)
        self._around.system.make_folder(self._around.backup)
        self._around.system.write_file(listed, json.dumps(found).encode("utf-8"))
        return {"manifest": listed}

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """See Action."""
        if not after or "manifest" not in after:
            # Killed half-way: what the installer left is not known, but whether it is this environment is.
            begun, path = (after or {}).get("identity"), Path(self._step.path)
            same = begun is None or not path.exists() or self._identity() in ({}, begun)
            return [] if same else [f"{path} is not the environment that was begun: another one was made there since"]
        made = json.loads(Path(after["manifest"]).read_bytes())
        now = snapshot.quick_manifest(self._step.path)
        found = [change for change in snapshot.changes(made, now) if change.what != "missing"]
        return [f"{Path(self._step.path) / change.path} was {change.what} since" for change in found]

    def reverse(self, before: Note) -> None:
        """See Action."""
        system, path = self._around.system, Path(self._step.path)
        if before["existed"]:
            # The folder itself was there before: with its mode and owner it stays.
            system.make_folder(str(path))
            for found in path.iterdir():
                system.remove_tree(str(found))
        else:
            system.remove_tree(str(path))
        _remove_if_empty(system, before["parents"])


class InstallPackages:
    """An installation; in an environment that is not ours the folders that it changes are copied before."""

    def __init__(self, step: Install, index: int, around: Surroundings) -> None:
        self._step, self._around = step, around
        self._folder = Path(around.backup) / str(index)

    def verify(self) -> None:
        """See Action."""
        for source in self._step.snapshot:
            _writable(source)
        copies = sum(snapshot.tree_size(source) for source in self._step.snapshot)
        disk_needs(self._step.python, self._step.size_bytes or copies, "the packages")
        if copies:
            disk_needs(str(self._folder), copies, "the copy that undo needs")

    def prepare(self) -> Note:
        """See Action."""
        system, kept = self._around.system, []
        for number, source in enumerate(self._step.snapshot):
            copy, listed = str(self._folder / f"copy{number}"), str(self._folder / f"before{number}.json")
            system.make_folder(str(self._folder))
            system.remove_tree(copy)
            self._around.tell(f"copying {source}, for undo")
            before = snapshot.take(system, source, copy)
            system.write_file(listed, json.dumps(before).encode("utf-8"))
            kept.append({"source": source, "copy": copy, "manifest": listed})
        return {"snapshots": kept}

    def execute(self, before: Note) -> Note:
        """See Action."""
        around = self._around
        installers.install(around.system, self._step, str(self._folder / "requirements"), around.tell)
        after = []
        for number, kept in enumerate(before["snapshots"]):
            listed = str(self._folder / f"after{number}.json")
            found = snapshot.quick_manifest(kept["source"])
            around.system.write_file(listed, json.dumps(found).encode("utf-8"))
            after.append(listed)
        return {"manifests": after}

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """See Action."""
        found = []
        for kept, listed in zip(before["snapshots"], (after or {}).get("manifests", ()), strict=False):
            left = json.loads(Path(listed).read_bytes())
            now = snapshot.quick_manifest(kept["source"])
            if snapshot.is_being_restored(kept["source"], now, json.loads(Path(kept["manifest"]).read_bytes())):
                continue
            for change in snapshot.changes(left, now):
                path = str(Path(kept["source"]) / change.path)
                if os.path.realpath(path) not in self._around.own_files:
                    found.append(f"{path} was {change.what} since")
        return found

    def reverse(self, before: Note) -> None:
        """See Action."""
        for kept in reversed(before["snapshots"]):
            was = json.loads(Path(kept["manifest"]).read_bytes())
            snapshot.restore(self._around.system, kept["copy"], kept["source"], was, self._around.tell)


class ReplaceFile:
    """A file written whole, or a marked block in one. Links are followed: the file behind them is written."""

    def __init__(
        self, path: str, content: str, mode: int, index: int, around: Surroundings, *, block: bool = False
    ) -> None:
        self._path, self._content, self._mode, self._block = os.path.realpath(path), content, mode, block
        self._around = around
        self._backup = str(Path(around.backup) / str(index) / "file")

    def verify(self) -> None:
        """See Action."""
        path = Path(self._path)
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="name a file")
        _writable(str(path.parent))

    def prepare(self) -> Note:
        """See Action."""
        path, system = Path(self._path), self._around.system
        # The target as it is now: a link may point elsewhere by the time of the undo.
        note: Note = {"target": self._path, "existed": path.exists(), "parents": _missing_parents(self._path)}
        if path.exists():
            system.make_folder(str(Path(self._backup).parent))
            system.copy_file(self._path, self._backup)
        note["before"] = _digest(path)
        note["after"] = hashlib.sha256(self._new(path)).hexdigest()
        return note

    def _new(self, path: Path) -> bytes:
        if not self._block:
            return self._content.encode("utf-8")
        old = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
        return put_block(old, self._content).encode("utf-8", "surrogateescape")

    def execute(self, before: Note) -> Note:
        """See Action."""
        path, system = Path(self._path), self._around.system
        new = self._new(path)
        if before["before"] == before["after"]:
            return {"sha256": before["after"]}
        mode = path.stat().st_mode & 0o7777 if path.exists() else self._mode
        system.make_folder(str(path.parent))
        system.write_file(self._path, new, mode)
        return {"sha256": hashlib.sha256(new).hexdigest()}

    def obstacles(self, before: Note, after: Note | None) -> list[str]:
        """See Action."""
        path = str(before["target"])
        now = _digest(Path(path))
        if now in (before["before"], before["after"]) or now is None:
            return []
        return [f"{path} was changed since:\n{self._difference(path)}"]

    def _difference(self, path: str) -> str:
        """What undo would do to the file, as a unified diff."""
        now = Path(path).read_bytes().decode("utf-8", "replace").splitlines()
        backup = Path(self._backup)
        then = backup.read_bytes().decode("utf-8", "replace").splitlines() if backup.exists() else []
        lines = difflib.unified_diff(now, then, f"{path} (now)", f"{path} (after undo)", lineterm="", n=1)
        return "\n".join(lines)

    def reverse(self, before: Note) -> None:
        """See Action."""
        system, path = self._around.system, Path(before["target"])
        # What a write that was killed has left beside the file.
        for left in path.parent.glob(f".{glob.escape(path.name)}.*.ideepdoctor"):
            system.remove_file(str(left))
        if not before["existed"]:
            system.remove_file(str(path))
            _remove_if_empty(system, before["parents"])
        elif _digest(path) != before["before"]:
            fresh = f"{path}.ideepdoctor-new"
            system.make_folder(str(path.parent))
            system.copy_file(self._backup, fresh)
            system.rename(fresh, str(path))


def _digest(path: Path) -> str | None:
    return snapshot.sha256_of(str(path)) if path.is_file() else None
