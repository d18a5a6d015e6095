"""What each kind of step does: check before anything changes, prepare, execute, reverse."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    RenameFile,
    SetRpath,
    Step,
    WriteFile,
)
from ideepdoctor.treatment import installers, pythons, snapshot
from ideepdoctor.treatment.action import Action, Surroundings, missing_parents, refuse_unwritable, remove_if_empty
from ideepdoctor.treatment.file_steps import CommentLine, PutBlock, Rename, WriteWhole
from ideepdoctor.treatment.journal import Note
from ideepdoctor.treatment.native_steps import ChangeRpath
from ideepdoctor.treatment.state import existing_ancestor
from ideepdoctor.wheelhouse.offline import refuse_incomplete, refuse_without_virtualenv

MARGIN_BYTES = 50_000_000
"""Left free on a disk beside what is installed: bytecode, temporary files."""


def action(step: Step, index: int, around: Surroundings) -> Action:
    """The action of a step; ``index`` names its backups."""
    match step:
        case CreateEnv():
            return MakeEnvironment(step, around)
        case Install():
            return InstallPackages(step, index, around)
        case RenameFile():
            return Rename(step, around)
        case SetRpath():
            return ChangeRpath(step, index, around)
        case WriteFile():
            return WriteWhole(step, index, around)
        case DisableLine():
            return CommentLine(step, index, around)
        case EditBlock():
            return PutBlock(step, index, around)


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
        refuse_unwritable(str(path if path.is_dir() else path.parent))
        if not os.access(self._step.python, os.X_OK):
            raise UsageError(f"{self._step.python} cannot be started", hint="name another Python: --python")
        if self._step.tool == "virtualenv":
            refuse_without_virtualenv(self._step.source, self._around.cache)

    def prepare(self) -> Note:
        """See Action."""
        path = self._step.path
        return {"existed": Path(path).is_dir(), "parents": missing_parents(path)}

    def execute(self, before: Note) -> Note:
        """See Action."""
        around = self._around
        step = self._step
        around.system.make_folder(str(Path(step.path).parent))
        if step.release:
            pythons.get_python(around.system, step, around.tell)
            return {"identity": self._identity()}
        installers.create_environment(
            around.system, step.path, step.python, step.tool, around.cache, around.tell, step.source
        )
        return {"identity": self._identity()}

    def _identity(self) -> snapshot.Manifest:
        """What tells this environment from another one that somebody made in its place."""
        telling = "bin/python" if self._step.release else "pyvenv.cfg"
        return snapshot.quick_manifest(str(Path(self._step.path) / telling))

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
        remove_if_empty(system, before["parents"])
        if self._step.release:
            pythons.forget_python(system, self._step, self._around.tell)


class InstallPackages:
    """An installation; in an environment that is not ours the folders that it changes are copied before."""

    def __init__(self, step: Install, index: int, around: Surroundings) -> None:
        self._step, self._around = step, around
        self._folder = Path(around.backup) / str(index)

    def verify(self) -> None:
        """See Action."""
        refuse_incomplete(self._step.source, self._step.requirements)
        for source in self._step.snapshot:
            refuse_unwritable(source)
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
