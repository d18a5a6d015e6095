"""Which environment variables are right for a machine. Pure: facts in, variables out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ideepdoctor.model.facts import Facts

ON_AMD_AVX2 = "amd-avx2"
"""Condition: a processor of AMD that has AVX2."""
ON_CPUS = "cpus="
"""Prefix of a condition: this many CPUs are open to the process, as counted by the scheduler's affinity."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable, set where the user has not set it."""

    name: str
    value: str
    why: str
    """One short line."""
    only_on: str = ""
    """Condition that must hold where a program starts, for environments and home folders that several machines share:
    ``amd-avx2``, ``cpus=8``, or empty: always."""


def recommended(facts: Facts) -> tuple[Variable, ...]:
    """The variables for the machine that the facts describe.

    What is not known leads to no variable. Left out on purpose, because they were measured to do harm:
    KMP_BLOCKTIME=0 (costs 30 %) and OMP_PROC_BIND (on CPython 3.7 it leaves iDeep one thread).
    """
    chosen = [Variable("CHAINER_USE_IDEEP", "auto", "Chainer's default is never")]
    flags = facts.cpu.flags
    if facts.cpu.vendor == "AuthenticAMD" and flags is not None and "avx2" in flags:
        chosen.append(
            Variable(
                "MKL_DEBUG_CPU_TYPE",
                "5",
                "MKL of 2018 takes its slow path on AMD: matrix products 2.7 times slower",
                ON_AMD_AVX2,
            )
        )
    threads = _threads(facts)
    if threads is not None:
        count, cpus, why = threads
        chosen.append(Variable("OMP_NUM_THREADS", str(count), why, f"{ON_CPUS}{cpus}"))
    return tuple(chosen)


def _threads(facts: Facts) -> tuple[int, int, str] | None:
    """Thread count, CPUs that it is right for, and why; None where OpenMP's own choice (the affinity) is right."""
    affinity = facts.limits.affinity_cpus
    cpus = len(affinity) if affinity else facts.cpu.logical_cpus
    if not cpus:
        return None
    quota, cores = facts.limits.quota_cpus, facts.cpu.physical_cores
    # With an affinity narrower than the machine, nothing says which of its CPUs share a core.
    doubled = cores is not None and cpus == facts.cpu.logical_cpus and cpus >= 2 * cores > 0
    if quota is not None and quota > 0 and math.ceil(quota) < cpus:
        count = math.ceil(quota)
        if not (doubled and cores is not None and cores < count):
            return count, cpus, f"OpenMP ignores the control group's quota of {quota:g} CPUs and would use {cpus}"
    if doubled and cores is not None:
        return cores, cpus, f"{cpus} CPUs are hyper-threads of {cores} cores"
    return None
