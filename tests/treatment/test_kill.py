"""SIGKILL around every single change: undo gives back every byte, resume ends as an undisturbed run does."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.journal import runs, unfinished
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import Manifest, manifest
from ideepdoctor.treatment.undo import undo
from tests.treatment.killed import in_child, prepare

# In the midst of a change is where most can go wrong; between changes it is the same places more slowly.
MOMENTS = (
    "inside",
    pytest.param("before", marks=pytest.mark.slow),
    pytest.param("after", marks=pytest.mark.slow),
)
MOST = 200
KILLED = -signal.SIGKILL
FAILED = 4


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a disk: thousands of synced writes take minutes on a real one."""
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="ideepdoctor-", dir=memory) as folder:
        yield Path(folder)


def world(folder: Path) -> Manifest:
    """Everything in the world with its bytes, modes and times."""
    return manifest(str(folder / "world"))


def contents(found: Manifest) -> dict[str, object]:
    """Without times: two runs write at two times."""
    return {name: {key: value for key, value in item.items() if key != "mtime_ns"} for name, item in found.items()}


def prepared(folder: Path) -> tuple[Path, Manifest]:
    prepare(folder / "world")
    return folder, world(folder)


def undisturbed(tmp_path: Path, command: str) -> dict[str, object]:
    folder, before = prepared(tmp_path / f"whole-{command}")
    assert in_child(folder, command) == 0
    assert world(folder) != before
    return contents(world(folder))


def state_of(folder: Path) -> str:
    """How the only run is; empty: there is none."""
    return next((run.status for run in runs(str(folder / "state"))), "")


def assert_taken_back(folder: Path, before: Manifest, number: int) -> None:
    """Undo what there is to undo; the world is as it was, and nothing is in the way of the next run."""
    state = str(folder / "state")
    if state_of(folder) in ("", "undone", "rolled-back"):
        with pytest.raises(UsageError):
            undo(RealSystem(), state, None, force=False, sink=Quiet())
    else:
        assert in_child(folder, "undo") == 0, number
    assert world(folder) == before, number
    assert unfinished(state) is None


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", ["apply", "setup"])
def test_undo_of_a_killed_run_gives_back_every_byte(tmp_path, command, moment):
    for number in range(1, MOST):
        folder, before = prepared(tmp_path / str(number))
        code = in_child(folder, command, number, moment)
        if code == 0:
            break
        assert code == KILLED
        assert_taken_back(folder, before, number)
    assert 20 < number < MOST - 1, "the run must have had that many changes, and an end"


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", ["apply", "setup"])
def test_resume_ends_as_an_undisturbed_run(tmp_path, command, moment):
    whole = undisturbed(tmp_path, command)
    resumed = 0
    for number in range(1, MOST):
        folder, before = prepared(tmp_path / str(number))
        if in_child(folder, command, number, moment) == 0:
            break
        if state_of(folder) == "unfinished":
            resumed += 1
            assert in_child(folder, "resume") == 0, number
            assert contents(world(folder)) == whole, number
            # What was resumed can be taken back as if it had never been disturbed.
            assert in_child(folder, "undo") == 0, number
            assert world(folder) == before, number
    assert resumed > 15


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", ["apply", "setup"])
def test_an_undo_that_is_killed_can_be_called_again(tmp_path, command, moment):
    for number in range(1, MOST):
        folder, before = prepared(tmp_path / str(number))
        assert in_child(folder, command) == 0
        code = in_child(folder, "undo", number, moment)
        if code == 0:
            break
        assert code == KILLED
        if state_of(folder) == "failed":
            assert in_child(folder, command) == 5, "half taken back is in the way of the next run"
            assert in_child(folder, "resume") == 2, "half taken back can only be taken back"
        assert_taken_back(folder, before, number)
    assert 5 < number < MOST - 1


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", ["fail", "fail-setup"])
def test_a_rollback_that_is_killed_is_finished_by_undo(tmp_path, command, moment):
    for number in range(1, MOST):
        folder, before = prepared(tmp_path / str(number))
        code = in_child(folder, command, number, moment)
        if code == FAILED:
            break
        assert code == KILLED
        assert_taken_back(folder, before, number)
    assert 20 < number < MOST - 1
    assert world(folder) == before
    assert state_of(folder) == "rolled-back"


@pytest.mark.parametrize("command", ["fail", "fail-setup"])
def test_a_run_whose_rollback_was_begun_is_never_called_whole(tmp_path, command):
    whole = undisturbed(tmp_path, command.replace("fail-setup", "setup").replace("fail", "apply"))
    for number in range(1, MOST):
        folder, _ = prepared(tmp_path / str(number))
        if in_child(folder, command, number) == FAILED:
            break
        if state_of(folder) and in_child(folder, "resume") == 0:
            assert contents(world(folder)) == whole, number


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    ("command", "at"),
    [
        pytest.param("apply", 12, marks=pytest.mark.slow),
        pytest.param("apply", 45, marks=pytest.mark.slow),
        ("setup", 9),
    ],
)
def test_a_resume_that_is_killed_can_be_called_again_or_undone(tmp_path, command, at, moment):
    whole = undisturbed(tmp_path, command)
    for number in range(1, MOST):
        on, _ = prepared(tmp_path / f"on{number}")
        back, before = prepared(tmp_path / f"back{number}")
        for folder in (on, back):
            assert in_child(folder, command, at) == KILLED
            code = in_child(folder, "resume", number, moment)
        if code == 0:
            break
        if state_of(on) == "unfinished":
            assert in_child(on, "resume") == 0
        assert contents(world(on)) == whole, number
        assert_taken_back(back, before, number)
    assert 8 < number < MOST - 1
