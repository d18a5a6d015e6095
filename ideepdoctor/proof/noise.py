"""How quiet the machine was while something was measured on it: what others took of it, stolen time, throttling."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from ideepdoctor.model.bench import Noise

STEAL_PERCENT = 1.0
BUSY_PERCENT = 5.0
"""Of all the time of all CPUs; more than that of others' work, and small differences are theirs."""
SPREAD_PERCENT = 10.0
"""Width of an interval relative to its median: where half of them are wider, times say little."""


@dataclass(frozen=True, slots=True)
class Look:
    """The counters of the machine at a moment; seconds of all CPUs together."""

    all: float
    busy: float
    steal: float
    throttled: int
    load: float


class Monitor:
    """Watches this machine from its making to ``verdict``; a target elsewhere is not seen.

    Args:
        read: takes a look; a test hands in its own.
    """

    def __init__(self, read: Iterable[Look] | None = None) -> None:
        self._looks = iter(read) if read is not None else iter(look, None)
        self._first = next(self._looks)
        self._megahertz: list[float] = []

    def sample(self) -> None:
        """Note the clock as it is now, while something runs."""
        clock = megahertz()
        if clock is not None:
            self._megahertz.append(clock)

    def verdict(self, ours_seconds: float, widths: Sequence[float] = ()) -> Noise:
        """What was seen.

        Args:
            ours_seconds: processor time that what was measured took, and the doctor itself.
            widths: of the 95 % intervals, each relative to its median.
        """
        last = next(self._looks)
        total = max(last.all - self._first.all, 1e-9)
        steal = 100 * (last.steal - self._first.steal) / total
        busy = max(0.0, 100 * (last.busy - self._first.busy - ours_seconds) / total)
        clocks = (min(self._megahertz), max(self._megahertz)) if self._megahertz else None
        throttled = last.throttled > self._first.throttled
        return judged(Noise(True, round(steal, 2), round(busy, 2), self._first.load, clocks, throttled), widths)


def judged(noise: Noise, widths: Sequence[float]) -> Noise:
    """The counters with what they mean: ``quiet``, ``messages`` and the widest interval.

    One engine may vary by itself on a quiet machine: only where half of the intervals are wide, the machine is blamed.
    """
    messages = []
    if (noise.steal_percent or 0.0) > STEAL_PERCENT:
        messages.append(f"the hypervisor gave {noise.steal_percent:.0f} % of the time to other machines")
    if (noise.busy_percent or 0.0) > BUSY_PERCENT:
        messages.append(f"other programs took {noise.busy_percent:.0f} % of the processors")
    if noise.throttled:
        messages.append("the processors were slowed down: by heat, or by the control group's quota")
    typical = 100 * statistics.median(widths) if widths else 0.0
    if typical > SPREAD_PERCENT:
        messages.append(f"half of the times spread by {typical:.0f} % or more")
    spread = round(100 * max(widths), 2) if widths else None
    return replace(noise, quiet=not messages, messages=tuple(messages), spread_percent=spread)


def look() -> Look:
    """Read the counters."""
    times = psutil.cpu_times()
    every = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "idle", "iowait", "irq", "softirq"))
    steal = float(getattr(times, "steal", 0.0))
    idle = times.idle + float(getattr(times, "iowait", 0.0))
    return Look(every + steal, every - idle, steal, _throttles(), os.getloadavg()[0])


def _throttles() -> int:
    """How often processors were slowed down so far: by heat, and by the quota of this process's control group."""
    count = 0
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count"):
        count += _number(path, r"\d+")
    for path in (Path("/sys/fs/cgroup/cpu.stat"), Path("/sys/fs/cgroup/cpu/cpu.stat")):
        count += _number(path, r"^nr_throttled (\d+)")
    return count


def _number(path: Path, pattern: str) -> int:
    try:
        found = re.search(pattern, path.read_text("ascii"), re.MULTILINE)
    except (OSError, ValueError):
        return 0
    return int(found[found.lastindex or 0]) if found else 0


def megahertz() -> float | None:
    """The clock of the processors by cpufreq; None where the system does not tell it (most virtual machines)."""
    clocks = []
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_cur_freq"):
        clocks.append(_number(path, r"\d+") / 1000)
    return sum(clocks) / len(clocks) if clocks else None
