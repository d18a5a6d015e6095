"""One host of a fleet: what came back from it, judged, as the JSON document that ``fleet merge`` reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ideepdoctor.errors import DoctorError, Exit
from ideepdoctor.fleet.remote import read_told
from ideepdoctor.fleet.tasks import TaskEnd
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Judgement, Severity
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.model.words import counted


class HostStatus(StrEnum):
    """How a look at a host ended."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Host:
    """A host that was looked at.

    Attributes:
        name: in the inventory.
        status: ``ok`` where its facts are known, whatever is wrong with it.
        message: why they are not.
        seconds: how long the host took; None: unknown.
        facts: what is there; None where the status is not ``ok``.
        judgement: what the rules say about it.
    """

    name: str
    status: HostStatus
    message: str = ""
    seconds: float | None = None
    facts: Facts | None = None
    judgement: Judgement | None = None

    @property
    def words(self) -> str:
        """One line for a person who waits."""
        if self.judgement is None:
            return f"{self.name}: {self.status}, {self.message}"
        severities = [item.severity for item in self.judgement.findings]
        errors, warnings = severities.count(Severity.ERROR), severities.count(Severity.WARNING)
        if errors or warnings:
            return f"{self.name}: {counted(errors, 'error')}, {counted(warnings, 'warning')}"
        return f"{self.name}: no fault seen"


def examined(end: TaskEnd, printed: str, cookie: str, limit_seconds: int) -> Host:
    """What a host told, judged.

    Args:
        end: of the task that asked it.
        printed: what the command on the host printed.
        cookie: see ``remote_command``.
        limit_seconds: the time limit of a host.
    """
    if end.status != "ok":
        late = end.status == "timeout"
        message = f"no answer within {counted(limit_seconds, 'second')}" if late else end.message
        return Host(end.host, HostStatus(end.status), message, end.seconds)
    told = read_told(printed, cookie)
    problem = _problem(end, cookie, printed)
    if told is not None and told.stopped:
        message = f"{told.python} gave no answer within {counted(limit_seconds, 'second')}"
        return Host(end.host, HostStatus.TIMEOUT, message, end.seconds)
    if told is None or problem:
        return Host(end.host, HostStatus.FAILED, problem, end.seconds)
    return _judged(end, told.answer, told.python or "")


def _problem(end: TaskEnd, cookie: str, printed: str) -> str:
    """Why there is no answer; empty where there is one."""
    told = read_told(printed, cookie)
    last = (str(end.result.get("stderr") or "").strip().splitlines() or [""])[-1]
    if told is None:
        return f"the host answered something else: {last or printed.strip()[-200:] or 'nothing'}"
    if told.python is None:
        return "there is no Python on the host" if not told.asked else f"there is no Python {told.asked} on the host"
    if told.code == 0:
        return ""
    if told.code is None:
        return f"the connection ended before {told.python} had answered"
    return f"{told.python} ended with {told.code} and no answer: {last or told.answer[-200:] or 'it said nothing'}"


def _judged(end: TaskEnd, answer: str, python: str) -> Host:
    """The facts of an answer, and the outcome of every rule."""
    from ideepdoctor.rules import RULES
    from ideepdoctor.rules.engine import judge
    from ideepdoctor.targets.bare import read_bare

    try:
        facts = read_bare(json.loads(answer))
    except ValueError:
        message = f"{python} printed what is no answer of the probe: {answer[:200] or 'nothing'}"
        return Host(end.host, HostStatus.FAILED, message, end.seconds)
    except DoctorError as error:
        return Host(end.host, HostStatus.FAILED, error.message, end.seconds)
    return Host(end.host, HostStatus.OK, "", end.seconds, facts, judge(facts, RULES))


def host_document(host: Host, fail_on: FailOn) -> dict[str, Any]:
    """The envelope of ``diagnose`` with the keys ``host`` and ``facts``; a host without facts has an error there."""
    from ideepdoctor.facts.serialize import facts_to_json
    from ideepdoctor.render.json import envelope

    about = {"name": host.name, "status": str(host.status), "message": host.message, "seconds": host.seconds}
    if host.facts is None:
        failure = Failure(f"host-{host.status}", host.message, _HINTS[host.status], int(Exit.COULD_NOT_CHECK))
        return envelope(Report("diagnose", failure=failure, extra={"host": about}), fail_on)
    extra = {"host": about, "facts": facts_to_json(host.facts)}
    return envelope(Report("diagnose", facts=host.facts, judgement=host.judgement, extra=extra), fail_on)


_HINTS: Mapping[HostStatus, str] = {
    HostStatus.OK: "",
    HostStatus.UNREACHABLE: "try it yourself: ansible HOST -i INVENTORY -m ansible.builtin.raw -a true",
    HostStatus.TIMEOUT: "give it more time with --timeout SECONDS, or look at the host",
    HostStatus.FAILED: "name the Python of the host: ideepdoctor_python=PATH in the inventory",
}


def file_name(host: str) -> str:
    """Name of a host's file: its own, as far as that is a name of a file."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", host).lstrip(".")[:200]
    if plain == host and plain:
        return f"{plain}.json"
    return f"{plain}-{hashlib.sha256(host.encode()).hexdigest()[:8]}.json"


def not_asked(names: Sequence[str]) -> list[Host]:
    """The hosts that nothing came from before the run was ended."""
    return [Host(name, HostStatus.FAILED, "not looked at: the run was ended before") for name in names]
