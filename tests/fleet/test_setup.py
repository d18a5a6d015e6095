"""What the role's tasks did on a host, as one line of the fleet."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ideepdoctor.errors import Exit
from ideepdoctor.fleet import setup
from ideepdoctor.fleet.setup import HostSetup, closing, host_document, host_lines
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.recipes.ansible import RECIPE
from ideepdoctor.recipes.base import settings_for
from ideepdoctor.recipes.render import render

READY = "READY: Python 3.7.16; iDeep is used."


def end(task: str, status: str = "ok", **result: Any) -> TaskEnd:
    return TaskEnd("n1", status, task, 1.0, result)


def answer(code: int = 0, **more: Any) -> str:
    return json.dumps({"summary": {"exit_code": code}, "error": None, "plan": None, "verdict": READY, **more})


def played(*ends: TaskEnd) -> HostSetup:
    host = HostSetup("n1")
    for item in ends:
        host = host.after(item)
    return host.ended(interrupted=False)


def test_the_tasks_that_say_something_are_tasks_of_the_role():
    texts = render(RECIPE, settings_for(RECIPE, doctor_version="0.1.0"))
    names: set[str] = set()
    for path, text in texts.items():
        if "/tasks/" in path:
            for task in yaml.safe_load(text):
                names |= {task["name"], *(inner["name"] for inner in task.get("block", ()))}
    told = {getattr(setup, name) for name in vars(setup) if name.isupper() and isinstance(getattr(setup, name), str)}
    assert told <= names
    assert len(told) == 7


def test_a_host_that_was_set_up():
    host = played(
        end(setup.VENV, changed=True),
        end(setup.INSTALLED, changed=True),
        end("Note where it came from", changed=True),
        end(setup.SET_UP, changed=True, stdout=answer(applied=True)),
        end(setup.CLOSING),
    )
    assert (host.status, host.exit_code, host.message) == ("ok", Exit.OK, READY)
    assert host.steps == ("an environment for the doctor", "the doctor", "the environment for Chainer")
    assert host_document(host, 2.0)["host"] == {"name": "n1", "status": "ok", "message": "", "seconds": 2.0}
    again = played(end(setup.VENV, changed=False), end(setup.SET_UP, changed=False, stdout=answer()))
    assert (again.steps, again.row()["changed"]) == ((), False)


def test_a_host_that_refuses_says_why():
    error = {"message": "no Python on this machine can hold iDeep"}
    host = played(
        end(setup.SET_UP, changed=False, stdout=answer(1, error=error)), end(setup.CLOSING, "failed", msg="again")
    )
    assert (host.status, host.exit_code, host.message) == ("ok", Exit.FINDINGS, error["message"])


@pytest.mark.parametrize(
    ("ends", "status", "words"),
    [
        ([], "failed", "not done: Ansible stopped before"),
        ([end(setup.VENV, changed=True)], "failed", "not done: Ansible stopped before"),
        ([end("Find", "unreachable", msg="no route")], "unreachable", "no route"),
        ([end(setup.SET_UP, "timeout", msg="x")], "timeout", "no end of the task"),
        ([end("Refuse a host without one", "failed", msg="no Python 3.11")], "failed", "no Python 3.11 (task 'Refuse"),
        ([end(setup.SET_UP, stdout="Killed")], "failed", "setup answered something else"),
    ],
)
def test_a_host_that_did_not_come_to_its_end_is_not_ready(ends, status, words):
    host = played(*ends)
    assert (host.status, host.exit_code, host.message[: len(words)]) == (status, Exit.COULD_NOT_CHECK, words)


def test_what_would_be_done():
    fresh = played(
        end(setup.VENV, changed=True),
        end(setup.WOULD_INSTALL, changed=True, msg="install X into Y"),
        end(setup.WOULD_SET_UP, changed=True, msg="ideepdoctor setup"),
    )
    assert fresh.steps == ("an environment for the doctor", "install X into Y", "run ideepdoctor setup")
    there = played(end(setup.ASKED, changed=True, stdout=answer(plan={"title": "make /env"})))
    assert there.steps == ("make /env",)
    assert closing([fresh, there], check=True) == "2 hosts: 2 would change, nothing was changed"


def test_hosts_with_the_same_outcome_share_lines():
    hosts = [HostSetup(f"n{number}", "ok", (), READY, 0) for number in range(1, 4)]
    hosts.append(HostSetup("n9", "unreachable", (), "no route"))
    assert host_lines(hosts, check=False) == [
        "n9 (1 host)",
        "  unreachable: no route",
        "n[1-3] (3 hosts)",
        "  READY: Python 3.7.16",
        "  nothing to change",
    ]
    assert closing(hosts, check=False) == "4 hosts: 3 ready, 0 changed"
