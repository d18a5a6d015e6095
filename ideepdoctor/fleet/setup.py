"""One host of ``fleet setup``: what the tasks of the role did on it, or would do, and how it ended. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ideepdoctor.errors import Exit
from ideepdoctor.fleet.names import fold
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.words import counted

SET_UP = "Set up the environment, or prove it again"
ASKED = "Ask what setup would do"
VENV = "Make an environment for the doctor"
INSTALLED = "Install the doctor by pip"
WOULD_INSTALL = "Install the doctor by pip, when it is not only asked"
WOULD_SET_UP = "Make the environment with the doctor that is not there yet"
CLOSING = "Say what came of it"
"""Names of the role's tasks that say something of a host; a test compares them with the role."""


@dataclass(frozen=True, slots=True)
class HostSetup:
    """A host, as far as it is known.

    Attributes:
        name: in the inventory.
        status: ``ok``, ``unreachable``, ``timeout`` or ``failed``; empty while it is under way.
        steps: what was changed, or would be.
        message: why it failed, or the verdict of ``setup`` there.
        code: how ``setup`` ended there; None: it did not run.
        report: what ``setup`` answered, until that is written.
    """

    name: str
    status: str = ""
    steps: tuple[str, ...] = ()
    message: str = ""
    code: int | None = None
    report: Mapping[str, Any] | None = None

    def after(self, end: TaskEnd) -> HostSetup:
        """What is known after a task."""
        if end.status != "ok":
            if end.task == CLOSING:  # it only repeats what setup itself said
                return self
            late = end.status == "timeout"
            message = f"no end of the task {end.task!r} in time" if late else f"{end.message} (task {end.task!r})"
            return replace(self, status=end.status, message=end.message if end.status == "unreachable" else message)
        changed = end.result.get("changed") is True
        if end.task in (SET_UP, ASKED):
            return self._told(end, changed)
        if end.task == WOULD_SET_UP:
            return replace(self, status="ok", steps=(*self.steps, f"run {end.result.get('msg')}"))
        if not changed:
            return self
        words = {VENV: "an environment for the doctor", INSTALLED: "the doctor"}.get(end.task)
        if end.task == WOULD_INSTALL:
            words = str(end.result.get("msg"))
        return self if words is None else replace(self, steps=(*self.steps, words))

    def _told(self, end: TaskEnd, changed: bool) -> HostSetup:
        """What is known after the doctor's own answer."""
        try:
            told = json.loads(str(end.result.get("stdout") or ""))
            code = int(told["summary"]["exit_code"])
        except (ValueError, KeyError, TypeError):
            return replace(self, status="failed", message=f"setup answered something else (task {end.task!r})")
        error, plan = told.get("error"), told.get("plan")
        message = str(error["message"] if error else told.get("verdict") or "")
        steps = self.steps
        if changed:
            steps = (*steps, "the environment for Chainer" if plan is None else str(plan["title"]))
        return replace(self, status="ok", steps=steps, message=message, code=code, report=told)

    def ended(self, *, interrupted: bool) -> HostSetup:
        """How it stands when the run is over."""
        if self.status:
            return self
        message = "interrupted" if interrupted else "not done: Ansible stopped before"
        return replace(self, status="failed", message=message)

    @property
    def exit_code(self) -> Exit:
        """What this host comes to."""
        if self.status != "ok":
            return Exit.COULD_NOT_CHECK
        return Exit(self.code or 0) if (self.code or 0) in list(Exit) else Exit.COULD_NOT_CHECK

    @property
    def words(self) -> str:
        """One line for a person who waits."""
        shown = self.status or "under way"
        return f"{self.name}: {shown}{f', {self.message}' if self.message else ''}"

    def row(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "name": self.name,
            "status": self.status,
            "changed": bool(self.steps),
            "steps": list(self.steps),
            "message": self.message,
            "exit_code": int(self.exit_code),
        }


def host_document(host: HostSetup, seconds: float | None) -> dict[str, Any]:
    """What ``setup`` answered on the host, with the key ``host`` that ``fleet merge`` knows it by."""
    about = {"name": host.name, "status": host.status, "message": "", "seconds": seconds}
    return {**(host.report or {}), "host": about}


def host_lines(hosts: Sequence[HostSetup], *, check: bool) -> list[str]:
    """The hosts by what was done on them and what came of it, those that need a person first."""
    groups: dict[tuple[int, str, tuple[str, ...]], list[str]] = defaultdict(list)
    for host in hosts:
        said = host.message if host.exit_code is not Exit.OK else host.message.partition(";")[0]
        groups[(-int(host.exit_code), said if host.status == "ok" else f"{host.status}: {said}", host.steps)].append(
            host.name
        )
    lines = []
    for (code, said, steps), names in sorted(groups.items()):
        lines.append(f"{fold(names)} ({counted(len(names), 'host')})")
        lines += [f"  {said}"] if said else []
        lines += [f"  would: {step}" if check else f"  done: {step}" for step in steps]
        lines += ["  nothing to change"] if not steps and code == 0 else []
    return lines


def closing(hosts: Sequence[HostSetup], *, check: bool) -> str:
    """The last line."""
    good = sum(host.exit_code is Exit.OK for host in hosts)
    changed = sum(bool(host.steps) for host in hosts)
    if check:
        return f"{counted(len(hosts), 'host')}: {changed} would change, nothing was changed"
    return f"{counted(len(hosts), 'host')}: {good} ready, {changed} changed"
