"""Surroundings that are not as they were left: what somebody did meanwhile, a full disk, installers that live on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, DoctorError, NeedsAttention
from ideepdoctor.model.plan import CreateEnv, EditBlock, Install, Plan, WriteFile
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.apply import apply_plan, resume
from ideepdoctor.treatment.journal import ROLLED_BACK, journal_path, runs
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.state import locked
from ideepdoctor.treatment.undo import undo

from .scene import SIX, Doubled, die, in_child, make_home, make_plan, put


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path)


def take_back(state: str, run: str | None = None, *, force: bool = False) -> None:
    undo(Doubled(), state, run, force=force, sink=Quiet())


def test_every_kind_of_step_together_is_taken_back_to_the_byte(home, state):
    before = manifest(str(home))
    apply_plan(Doubled(), make_plan(home), state, Quiet())
    take_back(state)
    assert manifest(str(home)) == before


def test_start_up_files_beside_what_was_installed_in_place_are_no_change_of_the_user(home, state):
    before = manifest(str(home))
    site = home / "old" / "lib" / "python3.7" / "site-packages"
    plan = Plan(
        "fix",
        (
            Install(str(home / "old/bin/python"), (SIX,), "uv", snapshot=(str(site), str(home / "old/bin"))),
            WriteFile(str(site / "start.pth"), "import start\n", "starts"),
        ),
    )
    apply_plan(Doubled(), plan, state, Quiet())
    take_back(state)
    assert manifest(str(home)) == before


def test_snapshot_folders_that_are_one_folder_by_a_link_are_kept_once(home, state):
    before = manifest(str(home))
    through_link = home / "old" / "lib64" / "python3.7" / "site-packages"
    site = home / "old" / "lib" / "python3.7" / "site-packages"
    plan = Plan(
        "fix",
        (
            Install(
                str(home / "old/bin/python"),
                (SIX,),
                "uv",
                snapshot=(str(site.parent), str(site), str(through_link), str(home / "old/bin")),
            ),
        ),
    )
    apply_plan(Doubled(), plan, state, Quiet())
    assert manifest(str(home)) != before
    take_back(state)
    assert manifest(str(home)) == before


def test_an_rc_file_outside_of_the_new_environment_is_looked_at_before_it_is_put_back(home, state):
    env = home / "env"
    plan = Plan(
        "setup",
        (
            CreateEnv(str(env), str(home / "old/bin/python"), "uv"),
            EditBlock(str(home / ".bashrc"), "export A=b", "variables"),
        ),
    )
    apply_plan(Doubled(), plan, state, Quiet())
    rc = home / "dotfiles" / "bashrc"
    rc.write_text(rc.read_text() + "\nalias mine=1\n")
    with pytest.raises(NeedsAttention) as seen:
        take_back(state)
    assert "alias mine=1" in seen.value.context["changed"]
    assert "alias mine=1" in rc.read_text()
    assert env.is_dir()


def test_an_environment_that_somebody_made_in_place_of_a_killed_one_is_not_deleted(home, state):
    env = home / "env"
    plan = Plan(
        "setup",
        (
            CreateEnv(str(env), str(home / "old/bin/python"), "uv"),
            Install(str(env / "bin/python"), (SIX,), "uv"),
        ),
    )

    class DiesInstalling(Doubled):
        def run(self, argv, **options):
            if "pip" in argv:
                return die()
            return super().run(argv, **options)

    assert in_child(lambda: apply_plan(DiesInstalling(), plan, state, Quiet())) == -9
    RealSystem().remove_tree(str(env))
    put(env / "pyvenv.cfg", "somebody's own\n")
    os.utime(env / "pyvenv.cfg")
    put(env / "thesis.py", "years of work\n")
    with pytest.raises(NeedsAttention, match="changed"):
        take_back(state)
    assert (env / "thesis.py").exists()
    with pytest.raises(DoctorError):
        resume(Doubled(), state, None, Quiet())
    assert (env / "thesis.py").exists()


def test_a_link_that_points_elsewhere_since_is_not_written_through(home, state):
    plan = Plan("env", (EditBlock(str(home / ".bashrc"), "export A=b", "variables"),))
    apply_plan(Doubled(), plan, state, Quiet())
    other = put(home / "dotfiles" / "other", "precious\n")
    (home / ".bashrc").unlink()
    (home / ".bashrc").symlink_to("dotfiles/other")
    take_back(state)
    assert other.read_text() == "precious\n"
    assert (home / "dotfiles" / "bashrc").read_text() == "alias ls='ls -l'\nno newline at the end"


def test_what_already_is_as_wanted_is_not_touched(home, state):
    settings = home / "settings.ini"
    before = settings.stat()
    apply_plan(Doubled(), Plan("x", (WriteFile(str(settings), "old = yes\n", "x"),)), state, Quiet())
    assert (settings.stat().st_mtime_ns, settings.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_an_empty_folder_that_was_there_stays_the_same_folder(home, state):
    env = home / "env"
    env.mkdir(mode=0o750)
    before = (env.stat().st_ino, env.stat().st_mode)
    apply_plan(Doubled(), Plan("x", (CreateEnv(str(env), str(home / "old/bin/python"), "uv"),)), state, Quiet())
    take_back(state)
    assert list(env.iterdir()) == []
    assert (env.stat().st_ino, env.stat().st_mode) == before


def test_the_lock_is_free_again_after_ctrl_c_in_its_release(state):
    class Impatient(RealSystem):
        def remove_file(self, path):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), locked(Impatient(), state):
        pass
    with locked(RealSystem(), state):
        pass


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("no permission to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as stream, pytest.raises(OSError, match="No space"):
        while True:
            stream.write(b"x" * 4096)


def test_a_disk_that_fills_up_while_installing_is_rolled_back(small_disk):
    # Journal, backups and home share the disk, as they do in most homes.
    home, state = make_home(small_disk), str(small_disk / "state")
    before = manifest(str(home))
    plan = make_plan(home)

    class Filling(Doubled):
        def run(self, argv, **options):
            if "pip" in argv:
                fill(small_disk)
                raise OSError(28, "No space left on device")
            return super().run(argv, **options)

    with pytest.MonkeyPatch.context() as patch:
        _no_margin(patch)
        with pytest.raises(ApplyFailed):
            apply_plan(Filling(), plan, state, Quiet())
    (small_disk / "ballast").unlink()
    assert manifest(str(home)) == before
    assert [run.status for run in runs(state)] in ([ROLLED_BACK], ["unfinished"])


def test_undo_makes_room_on_a_full_disk(small_disk):
    home, state = make_home(small_disk), str(small_disk / "state")
    before = manifest(str(home))
    env = home / "env"
    plan = Plan("x", (CreateEnv(str(env), str(home / "old/bin/python"), "uv"),))
    with pytest.MonkeyPatch.context() as patch:
        _no_margin(patch)
        apply_plan(Doubled(), plan, state, Quiet())
        fill(small_disk)
        # The journal's last page is full too: not one more line fits.
        path = journal_path(state, runs(state)[0].id)
        with Path(path).open("ab", buffering=0) as stream, pytest.raises(OSError, match="No space"):
            while True:
                stream.write(b"\n")
        take_back(state)
    (small_disk / "ballast").unlink()
    assert manifest(str(home)) == before


def _no_margin(patch: pytest.MonkeyPatch) -> None:
    import importlib

    for name in ("places", "steps"):
        try:
            module = importlib.import_module(f"ideepdoctor.treatment.{name}")
        except ModuleNotFoundError:
            continue
        if hasattr(module, "MARGIN_BYTES"):
            patch.setattr(module, "MARGIN_BYTES", 0)


def test_an_installer_that_outlives_a_killed_doctor_is_waited_for(home, state, tmp_path):
    env = home / "env"
    plan = Plan(
        "setup",
        (CreateEnv(str(env), str(home / "old/bin/python"), "uv"), Install(str(env / "bin/python"), (SIX,), "uv")),
    )
    before = manifest(str(home))
    script = put(
        tmp_path / "slow.py",
        "import os, sys, time\n"
        "for number in range(15):\n"
        "    os.makedirs(sys.argv[1], exist_ok=True)\n"
        "    open(os.path.join(sys.argv[1], 'file%d' % number), 'w').close()\n"
        "    time.sleep(0.1)\n",
    )

    class Orphaning(Doubled):
        def run(self, argv, **options):
            if "pip" not in argv:
                return super().run(argv, **options)
            words = [sys.executable, str(script), str(env / "lib" / "late"), *argv]
            subprocess.Popen(words, start_new_session=True)
            time.sleep(0.3)
            return die()

    assert in_child(lambda: apply_plan(Orphaning(), plan, state, Quiet())) == -9
    take_back(state)
    time.sleep(0.5)
    assert manifest(str(home)) == before
