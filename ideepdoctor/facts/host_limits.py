"""The limits that the system sets a process, from raw texts: /proc/self/limits, control groups, what a child tried."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.limits import Level
from ideepdoctor.model.facts import Limits

_ALL_USERS = ("0", "0", "4294967295")
"""The line of /proc/self/uid_map of a process that is in no user namespace of its own."""
_NO_LIMIT_OF_PROCESSES = (1 << 21) | (1 << 24)
"""CAP_SYS_ADMIN and CAP_SYS_RESOURCE (capabilities(7)): RLIMIT_NPROC does not bind who has one of them."""


def parse_limit(text: str, name: str) -> int | None:
    """The soft limit of a line of /proc/self/limits, such as ``Max stack size``; None: unlimited, or no such line."""
    match = re.search(rf"^{re.escape(name)} +([0-9]{{1,20}}) ", text, re.MULTILINE)
    return int(match.group(1)) if match else None


def bound_by_processes(status: str, uid_map: str) -> bool:
    """Whether RLIMIT_NPROC binds this process (setrlimit(2)).

    It does not bind root, nor who has CAP_SYS_ADMIN or CAP_SYS_RESOURCE; both count in the first user namespace alone:
    root of a rootless container is an ordinary user.
    """
    if uid_map and tuple(uid_map.split()) != _ALL_USERS:
        return True
    user = re.search(r"^Uid:\s+([0-9]+)", status, re.MULTILINE)
    capable = re.search(r"^CapEff:\s+([0-9a-fA-F]{1,16})\s*$", status, re.MULTILINE)
    if user and user.group(1) == "0":
        return False
    return not (capable and int(capable.group(1), 16) & _NO_LIMIT_OF_PROCESSES)


def group_processes(levels: Iterable[Level]) -> int | None:
    """The tightest pids.max of all levels of the control groups; None: none is set."""
    texts = [level.texts.get("pids.max", "").strip() for level in levels]
    return min((int(text) for text in texts if re.fullmatch(r"[0-9]{1,10}", text)), default=None)


def runs_written_code(tried: str | None) -> bool | None:
    """What the child's attempt says: ``runs``, or why it did not."""
    return None if tried is None else tried == "runs"


def with_host_limits(limits: Limits, machine: Answer, levels: Iterable[Level], tried: str | None) -> Limits:
    """Add what the system refuses; a probe of an older release told nothing of it.

    Args:
        limits: of CPUs and memory.
        machine: the probe's answer about the machine.
        levels: of its control groups.
        tried: what became of code that a child wrote into memory.
    """
    told = machine.maybe_part("host_limits") or Answer({}, "answer.machine.host_limits")
    text, status = told.maybe_text("limits") or "", machine.maybe_text("status") or ""
    processes = [group_processes(levels)]
    if bound_by_processes(status, told.maybe_text("uid_map") or ""):
        processes.append(parse_limit(text, "Max processes"))
    return replace(
        limits,
        processes_limit=min((number for number in processes if number is not None), default=None),
        address_space_bytes=parse_limit(text, "Max address space"),
        stack_bytes=parse_limit(text, "Max stack size"),
        shared_memory_bytes=told.maybe_integer("shared_memory_bytes"),
        executable_memory=runs_written_code(tried),
        prefix_noexec=told.maybe_flag("prefix_noexec"),
    )
