"""Events of ansible-runner as ends of tasks."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.fleet.tasks import TaskEnd, task_end


def event(kind: str, **result: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": {"host": "n1", "task": "Ask", "duration": 2, "res": result}}


@pytest.mark.parametrize(
    ("kind", "result", "status"),
    [
        ("runner_on_ok", {}, "ok"),
        ("runner_on_failed", {}, "failed"),
        ("runner_on_failed", {"timedout": {"period": 5}}, "timeout"),
        ("runner_on_unreachable", {}, "unreachable"),
    ],
)
def test_an_end_has_a_status(kind, result, status):
    end = task_end(event(kind, **result))
    assert end == TaskEnd("n1", status, "Ask", 2.0, result)


@pytest.mark.parametrize(
    "other",
    [{}, {"event": "playbook_on_stats", "event_data": {}}, event("runner_on_start"), {"event": "runner_on_ok"}],
)
def test_other_events_are_none(other):
    assert task_end(other) is None


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            'Task failed: Data could not be sent to remote host "shut". Make sure this host can be reached over ssh: '
            "ssh: connect to host 198.18.0.6 port 22: Connection refused",
            "ssh: connect to host 198.18.0.6 port 22: Connection refused",
        ),
        ("Failed to connect to the host via ssh: Permission denied (publickey).", "Permission denied (publickey)."),
        ("Task failed: no room", "no room"),
        ("plain", "plain"),
    ],
)
def test_the_words_of_ssh_are_what_is_told(message, shown):
    end = task_end(event("runner_on_unreachable", msg=message))
    assert end is not None
    assert end.message == shown
