"""How many compilers a build starts at once: by processors and by memory. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ideepdoctor.model.facts import Limits

LIBRARY_BYTES = 400 << 20
"""Memory of one compiler of MKL-DNN's files, measured."""
EXTENSION_BYTES = 800 << 20
"""Memory of the compiler of the extension, whose one large file SWIG writes; measured."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The number of jobs and what it was decided by.

    Attributes:
        count: compilers at once, at least 1.
        because: ``asked``, ``processors`` or ``memory``.
    """

    count: int
    because: str


def cpus_of(limits: Limits) -> int | None:
    """Processors that this process may use: its affinity, or the quota of its control group if that is less.

    Half a processor too many is no harm, a whole one is: 1.5 becomes 1. None: not known.
    """
    known = [] if limits.affinity_cpus is None else [float(len(limits.affinity_cpus))]
    if limits.quota_cpus is not None:
        known.append(limits.quota_cpus)
    return max(1, int(min(known))) if known else None


def memory_of(limits: Limits) -> int | None:
    """Bytes that programs can have: what is free, or the limit of the control group if that is lower."""
    known = [size for size in (limits.memory_available_bytes, limits.memory_limit_bytes) if size is not None]
    return min(known, default=None)


def jobs_for(cpus: int | None, memory_bytes: int | None, asked: int | None = None) -> Jobs:
    """Decide.

    Args:
        cpus: see ``cpus_of``; None: one.
        memory_bytes: see ``memory_of``; None: no limit is known.
        asked: by the person, who knows better.
    """
    if asked is not None:
        return Jobs(max(1, asked), "asked")
    by_processors = cpus or 1
    by_memory = by_processors if memory_bytes is None else max(1, memory_bytes // LIBRARY_BYTES)
    if by_memory < by_processors:
        return Jobs(int(by_memory), "memory")
    return Jobs(by_processors, "processors")
