"""The end of a task of a playbook on one host, as Ansible tells it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ENDS = {"runner_on_ok": "ok", "runner_on_failed": "failed", "runner_on_unreachable": "unreachable"}
_AROUND = re.compile(r"^(Task failed: )?((Data could not be sent|Failed to connect) to .*? (over|via) (ssh|SSH): )?")
"""What Ansible says around the words of ssh."""
_SAYS_NOTHING = "non-zero return code"


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """A task of a playbook has ended on a host.

    Attributes:
        host: its name in the inventory.
        status: ``ok``, ``failed``, ``unreachable`` or ``timeout``.
        task: the name of the task.
        seconds: how long it took.
        result: what the task's module answered.
    """

    host: str
    status: str
    task: str
    seconds: float | None
    result: Mapping[str, Any]

    @property
    def message(self) -> str:
        """Why it failed: the last line that says something."""
        for name in ("msg", "module_stderr", "stderr", "stdout"):
            lines = [line.strip() for line in str(self.result.get(name) or "").splitlines() if line.strip()]
            if lines and lines[-1] != _SAYS_NOTHING:
                return _AROUND.sub("", lines[-1])
        return ""


def task_end(event: Mapping[str, Any]) -> TaskEnd | None:
    """An event of ansible-runner as the end of a task; None: it is about something else."""
    status = _ENDS.get(str(event.get("event")))
    data = event.get("event_data")
    if status is None or not isinstance(data, dict) or "host" not in data:
        return None
    result = data.get("res")
    result = result if isinstance(result, dict) else {}
    if status == "failed" and result.get("timedout"):
        status = "timeout"
    seconds = data.get("duration")
    return TaskEnd(
        str(data["host"]),
        status,
        str(data.get("task") or ""),
        float(seconds) if isinstance(seconds, int | float) else None,
        result,
    )
