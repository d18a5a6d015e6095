"""Undo that met something: changes made after it was killed, lost backups, full disks, folders that were there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, NeedsAttention, UsageError
from ideepdoctor.model.plan import EditBlock, Plan, WriteFile
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment import installers, steps
from ideepdoctor.treatment.apply import apply_plan, resume
from ideepdoctor.treatment.journal import backup_path, runs, unfinished
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.undo import undo
from tests.treatment.killed import fake_install, in_child, plan, plan_of_setup, prepare

pytestmark = pytest.mark.usefixtures("no_network")


def apply(steps: Plan, state: str, system: RealSystem | None = None) -> str:
    return apply_plan(system or RealSystem(), steps, state, Quiet())


def take_back(state: str, *, force: bool = False) -> None:
    undo(RealSystem(), state, None, force=force, sink=Quiet())


@pytest.mark.parametrize("number", range(3, 12))
def test_what_somebody_does_after_a_killed_undo_is_not_lost(world, state, tmp_path, number):
    apply(plan(world), state)
    assert in_child(tmp_path, "undo", number) < 0
    (world / "home" / ".bashrc").write_text("mine\n")
    with pytest.raises(NeedsAttention, match="changed since") as caught:
        take_back(state)
    assert "-mine" in caught.value.hint
    assert (world / "home" / ".bashrc").read_text() == "mine\n"
    take_back(state, force=True)
    assert (world / "home" / ".bashrc").read_text() == "export A=1"


def test_a_failed_undo_blocks_the_next_run_and_is_only_to_be_undone(world, state):
    before = manifest(str(world))
    run = apply(plan(world), state)

    class NoRename(RealSystem):
        def rename(self, source: str, destination: str) -> None:
            raise OSError(errno.EBUSY, "Device or resource busy", destination)

    with pytest.raises(NeedsAttention, match="Device or resource busy") as caught:
        undo(NoRename(), state, None, force=False, sink=Quiet())
    assert f"ideepdoctor undo {run}" in caught.value.hint
    with pytest.raises(NeedsAttention, match="half taken back") as blocked:
        apply(plan_of_setup(world), state)
    assert f"undo {run}" in blocked.value.hint
    assert "resume" not in blocked.value.hint
    with pytest.raises(UsageError) as refused:
        resume(RealSystem(), state, run, Quiet())
    assert f"undo {run}" in refused.value.hint
    take_back(state)
    assert manifest(str(world)) == before


@pytest.mark.parametrize("make", [plan, plan_of_setup])
def test_a_lost_backup_changes_nothing_and_says_which_file(world, state, make):
    run = apply(make(world), state)
    after = manifest(str(world))
    shutil.rmtree(backup_path(state, run))
    with pytest.raises(NeedsAttention) as caught:
        take_back(state)
    assert backup_path(state, run) in caught.value.message
    assert manifest(str(world)) == after
    assert unfinished(state) is None, "a refusal is in nobody's way"


def test_a_folder_of_the_rc_file_that_is_gone_comes_back(world, state):
    rc = world / "home" / "config" / "rc"
    rc.parent.mkdir()
    rc.write_text("a\n")
    apply(Plan("rc", (EditBlock(str(rc), "b", "why"),)), state)
    shutil.rmtree(rc.parent)
    take_back(state)
    assert rc.read_text() == "a\n"


def test_an_empty_folder_keeps_its_mode_and_itself(world, state):
    env = world / "made" / "env"
    env.mkdir(parents=True)
    env.chmod(0o700)
    before, number = manifest(str(world)), env.stat().st_ino
    apply(plan_of_setup(world), state)
    take_back(state)
    assert manifest(str(world)) == before
    assert env.stat().st_ino == number


def test_folders_made_by_us_stay_where_somebody_else_uses_them(world, state):
    apply(Plan("x", (WriteFile(str(world / "new" / "deep" / "file"), "x", "why"),)), state)
    (world / "new" / "mine").write_text("mine")
    take_back(state)
    assert [str(path.relative_to(world / "new")) for path in (world / "new").rglob("*")] == ["mine"]


def test_a_tree_that_does_not_fit_is_a_full_disk(world, state):
    class Full(RealSystem):
        def copy_tree(self, source: str, destination: str) -> None:
            raise shutil.Error([(source, destination, "[Errno 28] No space left on device")])

    before = manifest(str(world))
    with pytest.raises(ApplyFailed) as caught:
        apply(plan(world), state, Full())
    assert "make room" in caught.value.hint
    assert manifest(str(world)) == before


def test_a_journal_that_cannot_be_begun_changes_nothing(world, state):
    class Full(RealSystem):
        def append_line(self, path: str, line: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device", path)

    before = manifest(str(world))
    with pytest.raises(ApplyFailed, match="nothing was changed") as caught:
        apply(plan(world), state, Full())
    assert "make room" in caught.value.hint
    assert (manifest(str(world)), runs(state)) == (before, ())


def test_a_state_folder_that_cannot_be_made_names_the_variable(world, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CouldNotCheck) as caught:
        apply(plan(world), str(tmp_path / "file" / "state"))
    assert "IDEEPDOCTOR_STATE_DIR" in caught.value.hint


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("make", [plan, plan_of_setup])
@pytest.mark.parametrize("where", ["world", "state and world"])
def test_a_disk_that_gets_full(small_disk, tmp_path, monkeypatch, make, where):
    world, state = small_disk / "world", str((small_disk if "state" in where else tmp_path) / "state")
    prepare(world)
    before = manifest(str(world))

    def install_too_much(system, step, *_rest):
        fake_install(system, step)
        site = Path(step.snapshot[0] if step.snapshot else Path(step.python).parents[1] / "lib")
        for number in range(100):
            # So large that what is left of the disk holds the small files that are put back.
            system.write_file(str(site / f"large{number}"), b"x" * 500_000)

    monkeypatch.setattr(steps, "MARGIN_BYTES", 0)
    monkeypatch.setattr(installers, "install", install_too_much)
    with pytest.raises(ApplyFailed, match="No space left") as caught:
        apply(make(world), state)
    assert "make room" in caught.value.hint
    assert manifest(str(world)) == before
    assert runs(state)[0].status == "rolled-back"
    monkeypatch.setattr(installers, "install", fake_install)
    apply(make(world), state)


def test_a_disk_that_is_too_small_is_refused_before_anything_is_done(small_disk, tmp_path):
    world = small_disk / "world"
    prepare(world)
    before = manifest(str(world))
    with pytest.raises(CouldNotCheck, match=r"has \d+ MB free, 50 MB are needed"):
        apply(plan(world), str(tmp_path / "state"))
    assert manifest(str(world)) == before
