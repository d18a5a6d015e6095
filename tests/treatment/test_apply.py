"""Apply and undo in one process: failures are taken back, and nothing of the user's is lost."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, Busy, CouldNotCheck, NeedsAttention, UsageError
from ideepdoctor.model.plan import CreateEnv, EditBlock, Install, Plan, Requirement, WriteFile
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment import installers
from ideepdoctor.treatment.apply import apply_plan, resume
from ideepdoctor.treatment.journal import history, journal_path, read, runs, unfinished
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.state import state_folder
from ideepdoctor.treatment.undo import undo
from tests.treatment.killed import fake_install, plan, plan_of_setup

PIN = (Requirement("one", "2", ("0" * 64,)),)


pytestmark = pytest.mark.usefixtures("no_network")


def apply(steps: Plan, state: str, system: RealSystem | None = None) -> str:
    return apply_plan(system or RealSystem(), steps, state, Quiet(), command="ideepdoctor test")


def take_back(state: str, run: str | None = None, *, force: bool = False) -> None:
    undo(RealSystem(), state, run, force=force, sink=Quiet())


def failing(error: BaseException):
    def fail(*_arguments: object) -> None:
        raise error

    return fail


def test_applied_noted_and_taken_back(world, state):
    before = manifest(str(world))
    run = apply(plan(world), state)
    assert (world / "home" / "settings").read_text() == "new\n"
    assert (world / "home" / "settings").stat().st_mode & 0o777 == 0o640
    [entry] = history(state)
    assert (entry.id, entry.status, entry.command) == (run, "ok", "ideepdoctor test")
    assert entry.backup_bytes > 0
    take_back(state)
    assert manifest(str(world)) == before
    assert history(state)[0].status == "undone"
    assert history(state)[0].backup_bytes == 0


@pytest.mark.parametrize(
    ("error", "expected", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), ApplyFailed, 4),
        (ApplyFailed("pip failed"), ApplyFailed, 4),
        (CouldNotCheck("no network"), CouldNotCheck, 3),
        (KeyboardInterrupt(), KeyboardInterrupt, None),
    ],
)
@pytest.mark.parametrize("make", [plan, plan_of_setup])
def test_a_step_that_fails_leaves_nothing(world, state, monkeypatch, make, error, expected, code):
    before = manifest(str(world))
    monkeypatch.setattr(installers, "install", failing(error))
    with pytest.raises(expected) as caught:
        apply(make(world), state)
    assert getattr(caught.value, "exit_code", None) == code
    assert manifest(str(world)) == before
    assert runs(state)[0].status == "rolled-back"
    assert unfinished(state) is None


def test_a_reversal_that_fails_needs_a_person_and_can_be_tried_again(world, state, monkeypatch):
    class NoRename(RealSystem):
        def rename(self, source: str, destination: str) -> None:
            raise OSError(errno.EACCES, "Permission denied", destination)

    before = manifest(str(world))
    broken = Plan("x", (*plan(world).steps, Install("/p", PIN, "uv", snapshot=(str(world / "env" / "site"),))))
    calls = iter([fake_install, failing(ApplyFailed("second"))])
    monkeypatch.setattr(installers, "install", lambda *arguments: next(calls)(*arguments))
    with pytest.raises(NeedsAttention) as caught:
        apply(broken, state, NoRename())
    assert caught.value.exit_code == 5
    assert "ideepdoctor undo" in caught.value.hint
    take_back(state)
    assert manifest(str(world)) == before


def test_an_unfinished_run_blocks_the_next_and_both_ways_out_are_named(world, state):
    run = apply(plan(world), state)
    lines = Path(journal_path(state, run)).read_text().splitlines()
    Path(journal_path(state, run)).write_text("\n".join(lines[:-1]) + '\n{"event": "plan-e')
    with pytest.raises(NeedsAttention) as caught:
        apply(plan_of_setup(world), state)
    assert f"ideepdoctor resume {run}" in caught.value.hint
    assert f"ideepdoctor undo {run}" in caught.value.hint
    assert resume(RealSystem(), state, None, Quiet()) == run
    assert read(state, run).status == "ok"
    with pytest.raises(UsageError):
        resume(RealSystem(), state, None, Quiet())


def test_two_at_once(world, state):
    holder = (
        "import sys, time; from ideepdoctor.system import RealSystem; from ideepdoctor.treatment.state import locked\n"
        "with locked(RealSystem(), sys.argv[1]): print('held', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", holder, state], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(Busy) as caught:
            apply(plan(world), state)
        assert (caught.value.exit_code, str(other.pid) in caught.value.message) == (6, True)
    finally:
        other.kill()
        other.wait()
    apply(plan(world), state)


def test_undo_refuses_what_changed_since_and_shows_it(world, state):
    run = apply(plan(world), state)
    (world / "home" / "settings").write_text("mine\n")
    (world / "env" / "site" / "mine.py").write_text("mine\n")
    (world / "env" / "site" / "__pycache__").mkdir()
    (world / "env" / "site" / "__pycache__" / "one.pyc").write_bytes(b"x")
    with pytest.raises(NeedsAttention) as caught:
        take_back(state)
    assert "-mine" in caught.value.context["changed"]
    assert "mine.py was added since" in caught.value.context["changed"]
    assert "pyc" not in caught.value.context["changed"]
    assert (world / "home" / "settings").read_text() == "mine\n"
    assert read(state, run).status == "ok"
    take_back(state, force=True)
    assert (world / "home" / "settings").read_text() == "old\n"
    assert not (world / "env" / "site" / "mine.py").exists()


def test_undo_of_a_new_environment_lists_what_is_not_ours(world, state):
    apply(plan_of_setup(world), state)
    env = world / "made" / "env"
    (env / "lib" / "model.npz").write_bytes(b"weights")
    (env / "lib" / "x.pyc").write_bytes(b"")
    with pytest.raises(NeedsAttention) as caught:
        take_back(state)
    assert "model.npz was added since" in caught.value.hint
    assert env.exists()
    (env / "lib" / "model.npz").unlink()
    take_back(state)
    assert not (world / "made").exists()


def test_an_environment_that_somebody_deleted_can_be_taken_back(world, state):
    apply(plan_of_setup(world), state)
    RealSystem().remove_tree(str(world / "made"))
    take_back(state)
    assert runs(state)[0].status == "undone"


def test_a_folder_that_was_empty_stays(world, state):
    (world / "made" / "env").mkdir(parents=True)
    apply(plan_of_setup(world), state)
    take_back(state)
    assert list((world / "made" / "env").iterdir()) == []


def test_a_link_stays_a_link(world, state):
    real, link = world / "home" / "dotfiles-rc", world / "home" / ".kshrc"
    real.write_text("alias x=y\n")
    link.symlink_to("dotfiles-rc")
    before = manifest(str(world))
    apply(Plan("rc", (EditBlock(str(link), "export B=2", "variables"),)), state)
    assert link.is_symlink()
    assert "export B=2" in real.read_text()
    take_back(state)
    assert manifest(str(world)) == before


@pytest.mark.parametrize("wrong", ["nothing-like-it", "../journal"])
def test_unknown_runs_are_a_usage_error_that_lists_the_known_ones(world, state, wrong):
    run = apply(plan(world), state)
    with pytest.raises(UsageError) as caught:
        take_back(state, wrong)
    assert run in caught.value.hint
    take_back(state, run)
    with pytest.raises(UsageError):
        take_back(state, run)
    with pytest.raises(UsageError):
        take_back(state)


def test_verify_refuses_before_anything_is_done(world, state):
    before = manifest(str(world))
    occupied = Plan("x", (WriteFile(str(world / "new"), "x", "x"), CreateEnv(str(world / "env"), sys.executable, "uv")))
    with pytest.raises(UsageError, match="not empty"):
        apply(occupied, state)
    huge = Plan("x", (CreateEnv(str(world / "e"), sys.executable, "uv"), Install("/p", PIN, "uv", size_bytes=10**18)))
    with pytest.raises(CouldNotCheck, match="disk is too small"):
        apply(huge, state)
    assert manifest(str(world)) == before
    assert runs(state) == ()


def test_a_state_folder_that_cannot_be_written_names_the_variable():
    with pytest.raises(CouldNotCheck) as caught:
        state_folder({"XDG_STATE_HOME": __file__})
    assert "IDEEPDOCTOR_STATE_DIR" in caught.value.hint


def test_the_journal_is_written_before_the_deed(world, state):
    seen: list[list[str]] = []

    class Watching(RealSystem):
        def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
            if path.startswith(str(world / "home")):
                text = Path(journal_path(state, runs(state)[0].id)).read_text()
                seen.append([json.loads(line)["event"] for line in text.splitlines()])
            super().write_file(path, data, mode)

    apply(plan(world), state, Watching())
    assert seen
    assert all(events[-1] == "intent" for events in seen)
