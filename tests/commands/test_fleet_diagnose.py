"""``fleet diagnose`` with an engine that plays Ansible: files, summary, exit codes, what an interrupted run leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.commands.fleet_diagnose import FleetOptions, diagnose
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.fleet.engine import Play, PlayEnd
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.bare import bare_probe
from ideepdoctor.treatment.progress import Quiet

Acting = Callable[[Play, Callable[[TaskEnd], None]], PlayEnd]


class FakeEngine:
    """An Ansible whose hosts a function answers for."""

    def __init__(self, names: tuple[str, ...], acting: Acting) -> None:
        self.names, self.acting, self.plays = names, acting, []

    def hosts(self, inventory: str, limit: str) -> tuple[str, ...]:
        return self.names

    def run(self, play: Play, on_end: Callable[[TaskEnd], None]) -> PlayEnd:
        self.plays.append(play)
        return self.acting(play, on_end)


@pytest.fixture(scope="module")
def answer() -> str:
    done = subprocess.run([sys.executable, "-B", "-"], input=bare_probe(), capture_output=True, timeout=120)
    return done.stdout.decode().strip()


def answered(play: Play, name: str, text: str) -> TaskEnd:
    """A host that answered: the file that the action leaves, with the cookie of this very run."""
    cookie = play.variables["ideepdoctor_command"][0].split()[-2]
    path = Path(play.variables["ideepdoctor_folder"], f"{name}.answer")
    path.write_text(f"{cookie} begin /p\n{text}\n{cookie} end 0\n")
    return TaskEnd(name, "ok", "Ask the probe", 1.0, {"answer": str(path)})


def run(folder: Path, engine: FakeEngine, **options: object) -> Report:
    session = Session(RealSystem(), os.environ, str(folder), Quiet(), lambda report: True)
    return diagnose(session, FleetOptions("hosts", **options), engine)


def host_of(folder: Path, name: str) -> dict[str, object]:
    return json.loads((folder / "fleet-reports" / f"{name}.json").read_text())["host"]


def test_each_host_has_a_file_as_soon_as_it_ends_and_nothing_else_is_left(tmp_path, answer):
    names = ("good", "gone")
    scratch = []

    def acting(play, on_end):
        scratch.append(play.folder)
        on_end(answered(play, "good", answer))
        assert host_of(tmp_path, "good")["status"] == "ok"
        assert list(Path(play.folder).glob("*.answer")) == []
        on_end(TaskEnd("gone", "unreachable", "Ask the probe", 2.0, {"msg": "no route"}))
        return PlayEnd()

    engine = FakeEngine(names, acting)
    report = run(tmp_path, engine, timeout_seconds=7, forks=3, limit="g*", python="3.7")
    assert host_of(tmp_path, "gone") == {"name": "gone", "status": "unreachable", "message": "no route", "seconds": 2.0}
    assert report.command == "fleet diagnose"
    assert report.extra["reports"] == str(tmp_path / "fleet-reports")
    [play] = engine.plays
    assert (play.limit, play.forks, play.connect_seconds) == ("g*", 3, 7)
    assert (play.variables["ideepdoctor_seconds"], play.variables["ideepdoctor_python"]) == (7, "3.7")
    assert not Path(scratch[0]).exists()


def test_findings_come_first_and_a_host_that_was_not_checked_is_never_healthy(tmp_path, answer):
    def both(play, on_end):
        on_end(answered(play, "good", answer))  # no Chainer in it: an error
        on_end(TaskEnd("gone", "unreachable", "Ask the probe", 2.0, {"msg": "no route"}))
        return PlayEnd()

    def gone(play, on_end):
        on_end(TaskEnd("gone", "timeout", "Ask the probe", 2.0, {}))
        return PlayEnd()

    assert summarize(run(tmp_path, FakeEngine(("good", "gone"), both))).exit_code == 1
    only = run(tmp_path, FakeEngine(("gone",), gone))
    assert summarize(only).exit_code == 3
    assert summarize(only, FailOn.WARNING).status == "unknown"
    # Files of an earlier run in the same folder are not part of this one.
    assert "good" not in json.dumps(only.extra["fleet"])


def test_an_interrupted_run_keeps_what_came_and_names_the_rest(tmp_path, answer):
    def acting(play, on_end):
        on_end(answered(play, "a", answer))
        return PlayEnd(interrupted=True)

    report = run(tmp_path, FakeEngine(("a", "b"), acting))
    assert summarize(report).exit_code == 130
    assert (host_of(tmp_path, "a")["status"], host_of(tmp_path, "b")["status"]) == ("ok", "failed")
    assert report.failure is not None
    assert str(tmp_path / "fleet-reports") in report.failure.message


def test_ansible_that_fails_is_told_in_its_own_words(tmp_path):
    engine = FakeEngine(("a",), lambda play, on_end: PlayEnd(problem="no such plugin"))
    with pytest.raises(CouldNotCheck, match="no such plugin"):
        run(tmp_path, engine)
    assert list((tmp_path / "fleet-reports").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_usage_error(tmp_path):
    (tmp_path / "fleet-reports").write_text("a file")
    with pytest.raises(UsageError, match="cannot make the folder"):
        run(tmp_path, FakeEngine(("a",), lambda play, on_end: PlayEnd()))
