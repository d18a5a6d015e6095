"""SIGKILL before every single change: undo gives back every byte, resume ends as an undisturbed run does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.journal import runs
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import Manifest, manifest
from ideepdoctor.treatment.undo import undo
from tests.treatment.killed import prepare

ROOT = Path(__file__).parents[2]
MOST = 45


def run(folder: Path, command: str, number: int = 0) -> int:
    env = {**os.environ, "IDEEPDOCTOR_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "tests.treatment.killed", str(folder / "world"), str(folder / "state"), command]
    return subprocess.run([*argv, str(number)], env=env, cwd=ROOT, capture_output=True, timeout=60).returncode


def world(folder: Path) -> Manifest:
    """Everything in the world with its bytes and modes; times too, but for files that were written anew."""
    return manifest(str(folder / "world"))


def contents(found: Manifest) -> dict[str, object]:
    return {name: {key: value for key, value in item.items() if key != "mtime_ns"} for name, item in found.items()}


def prepared(tmp_path: Path, name: str) -> tuple[Path, Manifest]:
    folder = tmp_path / name
    prepare(folder / "world")
    return folder, world(folder)


def undisturbed(tmp_path: Path, command: str) -> dict[str, object]:
    folder, _ = prepared(tmp_path, f"whole-{command}")
    assert run(folder, command) == 0
    return contents(world(folder))


def killed_at(tmp_path: Path, command: str, number: int, whole: dict[str, object]) -> bool:
    """Kill a run before its N-th change, take one world back and finish another; False: the run was over before."""
    back, before = prepared(tmp_path, f"{command}-back-{number}")
    code = run(back, command, number)
    if code == 0:
        return False
    assert code == -signal.SIGKILL
    state = str(back / "state")
    if not runs(state):
        with pytest.raises(UsageError):
            undo(RealSystem(), state, None, force=False, sink=Quiet())
    else:
        assert run(back, "undo") == 0, number
    assert world(back) == before, number

    on, _ = prepared(tmp_path, f"{command}-on-{number}")
    assert run(on, command, number) == -signal.SIGKILL
    if runs(str(on / "state")) and runs(str(on / "state"))[0].status == "unfinished":
        assert run(on, "resume") == 0, number
        assert contents(world(on)) == whole, number
    return True


@pytest.mark.parametrize("command", ["apply", "setup"])
def test_killed_before_every_change(tmp_path, command):
    whole = undisturbed(tmp_path, command)
    with ThreadPoolExecutor(max_workers=4) as pool:
        outcomes = list(pool.map(lambda number: killed_at(tmp_path, command, number, whole), range(1, MOST)))
    count = outcomes.index(False)
    assert count > 15, "the run must have that many changes to be killed before"
    assert not any(outcomes[count:])


@pytest.mark.parametrize("command", ["apply", "setup"])
def test_undo_that_is_killed_can_be_called_again(tmp_path, command):
    def attempt(number: int) -> bool:
        folder, before = prepared(tmp_path, f"{command}-undo-{number}")
        assert run(folder, command) == 0
        code = run(folder, "undo", number)
        if code == 0:
            return False
        assert code == -signal.SIGKILL
        if runs(str(folder / "state"))[0].status != "undone":
            assert run(folder, "undo") == 0, number
        assert world(folder) == before, number
        return True

    with ThreadPoolExecutor(max_workers=4) as pool:
        outcomes = list(pool.map(attempt, range(1, 40)))
    assert outcomes.index(False) > 5
