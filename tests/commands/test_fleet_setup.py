"""``fleet setup`` with an engine that plays Ansible: what is asked of the role, and what the hosts come to."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ideepdoctor.commands.fleet_diagnose import FleetOptions
from ideepdoctor.commands.fleet_setup import FleetSetupOptions, role_variables, setup
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.fleet.engine import PlayEnd
from ideepdoctor.fleet.setup import SET_UP
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import summarize
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from tests.commands.test_fleet_diagnose import FakeEngine


def session(folder: Path, *, agrees: bool = True) -> Session:
    return Session(RealSystem(), os.environ, str(folder), Quiet(), lambda report: agrees)


def options(**more: object) -> FleetSetupOptions:
    return FleetSetupOptions(FleetOptions("hosts"), **more)


def told(name: str, code: int, **more: object) -> TaskEnd:
    text = json.dumps({"summary": {"exit_code": code}, "verdict": f"verdict {code}", **more})
    return TaskEnd(name, "ok", SET_UP, 3.0, {"changed": code == 0, "stdout": text})


def played(folder: Path, *ends: TaskEnd, **more: object) -> Report:
    def acting(play, on_end):
        assert Path(play.project, play.playbook).is_file()
        assert Path(play.project, "roles/ideepdoctor/tasks/setup.yml").is_file()
        for end in ends:
            on_end(end)
        return PlayEnd()

    names = tuple(dict.fromkeys(end.host for end in ends))
    return setup(session(folder), options(**more), FakeEngine(names, acting))


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [((0, 0), 0), ((0, 1), 1), ((4, 1), 4), ((5, 4), 5), ((2, 0), 2), ((2, 1), 1), ((0, 6), 6)],
)
def test_the_worst_host_decides_the_exit_code(tmp_path, codes, exit_code):
    report = played(tmp_path, *(told(f"n{number}", code) for number, code in enumerate(codes)))
    assert summarize(report).exit_code == exit_code
    assert [row["exit_code"] for row in report.extra["fleet_setup"]["hosts"]] == list(codes)
    assert (report.failure is None) is (exit_code == 0)


def test_a_host_that_was_not_reached_is_not_ready_and_each_answer_is_kept(tmp_path):
    report = played(tmp_path, told("n1", 0), TaskEnd("n2", "unreachable", "Find", 1.0, {"msg": "no route"}))
    assert summarize(report).exit_code == 3
    assert report.failure is not None
    assert report.failure.message == "1 host of 2 not ready: n2"
    assert "n2 (1 host)" in report.body
    kept = json.loads((tmp_path / "fleet-reports" / "n1.json").read_text())
    assert (kept["host"]["name"], kept["verdict"]) == ("n1", "verdict 0")
    assert not (tmp_path / "fleet-reports" / "n2.json").exists()


def test_nothing_is_done_where_a_person_says_no(tmp_path):
    engine = FakeEngine(("n1",), lambda play, on_end: pytest.fail("it ran"))
    report = setup(session(tmp_path, agrees=False), options(), engine)
    assert (report.body, engine.plays, list(tmp_path.iterdir())) == (("nothing was changed",), [], [])


def test_a_check_asks_nobody_and_says_check_to_ansible(tmp_path):
    engine = FakeEngine(("n1",), lambda play, on_end: on_end(told("n1", 0)) or PlayEnd())
    setup(session(tmp_path, agrees=False), options(check=True), engine)
    assert engine.plays[0].check is True


def test_the_command_line_becomes_variables_of_the_role_and_what_is_not_said_is_the_inventorys(tmp_path):
    assert role_variables(session(tmp_path), options()) == {
        "ideepdoctor_setup_seconds": 300,
        "ideepdoctor_reports": "",
    }
    (tmp_path / "x.whl").write_text("")
    said = role_variables(
        session(tmp_path),
        options(requirement="x.whl", env="/e", stack="s", serial="25%", offline=True, wheelhouse="/wh"),
    )
    assert said["ideepdoctor_requirement"] == f"{tmp_path}/x.whl"
    assert (said["ideepdoctor_env"], said["ideepdoctor_stack"], said["ideepdoctor_serial"]) == ("/e", "s", "25%")
    assert said["ideepdoctor_pip_arguments"] == ["--no-index", "--find-links=/wh"]
    assert said["ideepdoctor_setup_arguments"] == ["--offline", "--wheelhouse=/wh"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"requirement": "gone.whl"}, "there is no wheel"),
        ({"requirement": "./folder"}, "is a folder, which the hosts have not"),
        ({"offline": True}, "--offline needs --wheelhouse"),
    ],
)
def test_what_the_hosts_cannot_get_is_refused_before_anything(tmp_path, more, words):
    (tmp_path / "folder").mkdir()
    engine = FakeEngine(("n1",), lambda play, on_end: pytest.fail("it ran"))
    with pytest.raises(UsageError, match=words) as caught:
        setup(session(tmp_path), options(**more), engine)
    assert caught.value.hint
