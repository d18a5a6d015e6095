"""Work folders of interrupted builds."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from ideepdoctor.builder.works import FORGOTTEN_SECONDS, at_work, sweep
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.state import locked


def test_who_is_at_work(tmp_path: Path) -> None:
    (tmp_path / "work" / "tree").mkdir(parents=True)
    (tmp_path / "workshop").mkdir()
    inside = subprocess.Popen(["sleep", "60"], cwd=tmp_path / "work" / "tree")
    beside = subprocess.Popen(["sleep", "60"], cwd=tmp_path / "workshop")
    try:
        assert at_work(str(tmp_path / "work")) == (inside.pid,)
    finally:
        for process in (inside, beside):
            process.kill()
            process.wait()
    assert at_work(str(tmp_path / "work")) == ()


def test_what_was_left_for_two_weeks_goes_unless_it_is_held(tmp_path: Path) -> None:
    for name in ("old", "held", "new"):
        (tmp_path / "work" / name / "tree").mkdir(parents=True)
    for name in ("old", "held"):
        before = time.time() - FORGOTTEN_SECONDS - 60
        os.utime(tmp_path / "work" / name, (before, before))
    with locked(RealSystem(), str(tmp_path / "locks" / "held")):
        assert sweep(RealSystem(), str(tmp_path)) == (str(tmp_path / "work" / "old"),)
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["held", "new"]
    assert sweep(RealSystem(), str(tmp_path / "nothing")) == ()
