"""What the target may use of the machine, from raw texts: affinity, control groups, memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ideepdoctor.model.facts import Limits

UNLIMITED_BYTES = 1 << 60
"""Control groups of version 1 say "no limit" as the largest multiple of the page size; nobody has an exbibyte."""
_MOST_CPUS = 1 << 16


@dataclass(frozen=True, slots=True)
class Level:
    """The limit files of one level of a control group, by file name."""

    version: int
    controller: str
    texts: Mapping[str, str]


def parse_cpu_list(text: str) -> tuple[int, ...] | None:
    """Read ``0-3,8,10-11``; None where it is no such list or a number is beyond any machine. Never raises."""
    if not re.fullmatch(r"[0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*", text.strip()):
        return None
    numbers: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= _MOST_CPUS:
            return None
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers)) or None


def parse_affinity(status: str) -> tuple[int, ...] | None:
    """The CPUs of the line Cpus_allowed_list in /proc/self/status."""
    match = re.search(r"^Cpus_allowed_list:[ \t]*(\S+)", status, re.MULTILINE)
    return parse_cpu_list(match.group(1)) if match else None


def parse_meminfo(text: str, name: str) -> int | None:
    """A value of /proc/meminfo in bytes."""
    match = re.search(rf"^{name}:\s*([0-9]{{1,15}}) kB", text, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def quota_cpus(levels: Iterable[Level]) -> float | None:
    """The tightest CPU quota of all levels, in CPUs; None: none is set."""
    quotas = []
    for level in levels:
        if level.version == 2:
            quota, period = [*level.texts.get("cpu.max", "").split(), "", ""][:2]
        else:
            quota = level.texts.get("cpu.cfs_quota_us", "").strip()
            period = level.texts.get("cpu.cfs_period_us", "").strip()
        # "max" in version 2 and -1 in version 1 stand for no quota.
        if re.fullmatch(r"[0-9]{1,15}", quota) and re.fullmatch(r"[0-9]{1,15}", period) and int(period) and int(quota):
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit_bytes(levels: Iterable[Level]) -> int | None:
    """The tightest memory limit of all levels; None: none is set."""
    texts = [level.texts.get(name, "") for level in levels for name in ("memory.max", "memory.limit_in_bytes")]
    limits = [int(text) for text in texts if re.fullmatch(r"[0-9]{1,20}\s*", text)]
    return min((limit for limit in limits if limit < UNLIMITED_BYTES), default=None)


def cgroup_version(levels: Iterable[Level]) -> int | None:
    """1 where a controller of version 1 is mounted for CPU or memory (hybrid systems too), else 2; None: neither."""
    return min((level.version for level in levels if level.controller != "pids"), default=None)


def build_limits(
    status: str | None, meminfo: str | None, levels: tuple[Level, ...], disk_free_bytes: int | None
) -> Limits:
    """Put together what the texts say."""
    return Limits(
        affinity_cpus=parse_affinity(status or ""),
        cgroup_version=cgroup_version(levels),
        quota_cpus=quota_cpus(levels),
        memory_total_bytes=parse_meminfo(meminfo or "", "MemTotal"),
        memory_available_bytes=parse_meminfo(meminfo or "", "MemAvailable"),
        memory_limit_bytes=memory_limit_bytes(levels),
        disk_free_bytes=disk_free_bytes,
    )
