"""Why threads bring less than they should: the causes that the facts hold, in sentences. Pure."""

from __future__ import annotations

import math

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.words import counted
from ideepdoctor.rules.installed import variable
from ideepdoctor.treatment.variables import mkl_type


def threads_in_use(facts: Facts) -> int | None:
    """Threads that a program of the target takes: OMP_NUM_THREADS, else the affinity; None: not known."""
    text = (variable(facts, "OMP_NUM_THREADS") or "").split(",")[0].strip()
    if text.isdecimal() and int(text) > 0:
        return int(text)
    return len(facts.limits.affinity_cpus) if facts.limits.affinity_cpus else facts.cpu.logical_cpus


def causes(facts: Facts, threads: int | None, *, mkl: bool) -> tuple[str, ...]:
    """What is known to be in the way here, the worst first; empty where nothing is.

    Args:
        facts: what is.
        threads: that were used; None: those that a program takes.
        mkl: whether the MKL of 2018 computes matrix products.
    """
    count = threads_in_use(facts) if threads is None else threads
    limits, cpu, found = facts.limits, facts.cpu, []
    if cpu.emulated:
        found.append("the processor is emulated")
    if count is not None and limits.quota_cpus is not None and math.ceil(limits.quota_cpus) < count:
        found.append(f"{count} threads share a quota of {counted(limits.quota_cpus, 'CPU')}")
    open_cpus = len(limits.affinity_cpus) if limits.affinity_cpus else None
    if count is not None and open_cpus is not None and open_cpus < count:
        found.append(f"{count} threads share {counted(open_cpus, 'CPU')} open to this process")
    if mkl and (right := mkl_type(facts)) is not None and not variable(facts, right.name):
        found.append(f"MKL takes its slow path on AMD ({right.name} is not set)")
    cores = cpu.physical_cores
    if count is not None and cores and count > cores and (open_cpus is None or open_cpus >= count):
        found.append(f"{count} threads are hyper-threads of {counted(cores, 'core')}")
    if count is not None and (cpu.sockets or 1) > 1 and cores and count > cores // (cpu.sockets or 1):
        found.append(f"the threads are on {cpu.sockets} sockets and fetch from each other's memory")
    if facts.bench is not None and not facts.bench.quiet:
        found += list(facts.bench.noise) or ["other programs took the machine's time"]
    return tuple(found)


def because(found: tuple[str, ...], otherwise: str) -> str:
    """The causes as one clause."""
    return "; ".join(found) if found else otherwise
