"""Which environment variables are right for a machine. Pure: facts in, variables out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.words import counted
from ideepdoctor.treatment.profile import in_force, open_cpus

ON_AMD_AVX512 = "amd-avx512"
"""Condition: a processor of AMD that has AVX-512 as far as MKL of 2018 uses it: F, DQ, CD, BW and VL."""
ON_AMD_AVX2 = "amd-avx2"
"""Condition: a processor of AMD that has AVX2."""
ON_CPU = "cpu="
"""Prefix of a condition: vendor, family and model as Linux spells them in modalias: ``ven0002fam001Amod0002``."""
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
    ``amd-avx512``, ``amd-avx2``, ``cpu=ven0002fam001Amod0002``, ``cpus=8``, several with ``&``, or empty: always."""


_OTHER_PROCESSES = 8
"""Left to shells and helpers where a system limits the number of processes and threads."""
AVX512_OF_MKL = frozenset({"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"})
_MKL_TYPES = (
    Variable(
        "MKL_DEBUG_CPU_TYPE",
        "7",
        "MKL of 2018 takes its slow path on AMD; with AVX-512 matrix products are 5 times faster",
        ON_AMD_AVX512,
    ),
    Variable(
        "MKL_DEBUG_CPU_TYPE",
        "5",
        "MKL of 2018 takes its slow path on AMD: matrix products 2.7 times slower",
        ON_AMD_AVX2,
    ),
)
"""The best first: what has AVX-512 has AVX2, too."""


def recommended(facts: Facts) -> tuple[Variable, ...]:
    """The variables for the machine that the facts describe: what was tuned here, else the defaults.

    What is not known leads to no variable. Left out on purpose, because they were measured to do harm:
    KMP_BLOCKTIME=0 (costs 30 %) and OMP_PROC_BIND (on CPython 3.7 it leaves iDeep one thread).
    """
    first: dict[str, Variable] = {}
    for variable in choices(facts):
        first.setdefault(variable.name, variable)
    return tuple(variable for variable in first.values() if variable.value)


def choices(facts: Facts) -> tuple[Variable, ...]:
    """What a start-up file holds: what was tuned on this machine before the defaults of the same name.

    Of several with one name the first whose condition holds counts; one without a value leaves the variable unset.
    """
    profile = in_force(facts)
    where = f"{ON_CPUS}{open_cpus(facts)}"
    if facts.cpu.signature:
        where = f"{ON_CPU}{facts.cpu.signature}&{where}"
    tuned = [] if profile is None else [item for item in profile.variables if not item.early]
    return (*(Variable(item.name, item.value, item.why, where) for item in tuned), *defaults(facts))


def before_start(facts: Facts) -> tuple[Variable, ...]:
    """Tuned variables that are read before Python starts: for ``run`` and shells, never for a start-up file."""
    profile = in_force(facts)
    early = [] if profile is None else [item for item in profile.variables if item.early and item.value]
    cpus = f"{ON_CPUS}{open_cpus(facts)}"
    return tuple(Variable(item.name, item.value, item.why, cpus) for item in early)


def defaults(facts: Facts) -> tuple[Variable, ...]:
    """The variables for the machine that the facts describe, where nothing was tuned."""
    chosen = [Variable("CHAINER_USE_IDEEP", "auto", "Chainer's default is never")]
    mkl = mkl_type(facts)
    if mkl is not None:
        chosen.append(mkl)
    threads = _threads(facts)
    if threads is not None:
        count, cpus, why = threads
        chosen.append(Variable("OMP_NUM_THREADS", str(count), why, f"{ON_CPUS}{cpus}"))
    return tuple(chosen)


def mkl_type(facts: Facts) -> Variable | None:
    """MKL_DEBUG_CPU_TYPE for this processor; None where MKL needs none, or the processor is not known."""
    flags = facts.cpu.flags
    if facts.cpu.vendor != "AuthenticAMD" or flags is None or "avx2" not in flags:
        return None
    return _MKL_TYPES[0 if flags >= AVX512_OF_MKL else 1]


def for_any_machine(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """The variables of a machine with what the same file must hold for others, the best first: the first holds."""
    name = _MKL_TYPES[0].name
    known = {(item.value, item.only_on) for item in _MKL_TYPES}
    mine = [item for item in variables if item.name == name]
    if not mine:
        return tuple(variables)
    place = variables.index(mine[0])
    tuned = [item for item in mine if (item.value, item.only_on) not in known]
    others = [item for item in variables if item.name != name]
    return (*others[:place], *tuned, *_MKL_TYPES, *others[place:])


def _threads(facts: Facts) -> tuple[int, int, str] | None:
    """Thread count, CPUs that it is right for, and why; None where OpenMP's own choice (the affinity) is right."""
    cpus = open_cpus(facts)
    if not cpus:
        return None
    chosen = _threads_of_cpus(facts, cpus)
    count, room = chosen[0] if chosen else cpus, facts.limits.processes_limit
    # OpenBLAS starts as many threads as OpenMP; both share the main one.
    if room is not None and 2 * count - 1 > room:
        return max(1, (room - _OTHER_PROCESSES) // 2), cpus, f"at most {counted(room, 'thread')} may run here"
    return chosen


def _threads_of_cpus(facts: Facts, cpus: int) -> tuple[int, int, str] | None:
    """The same, as far as the CPUs say."""
    quota, cores = facts.limits.quota_cpus, facts.cpu.physical_cores
    # With an affinity narrower than the machine, nothing says which of its CPUs share a core.
    doubled = cores is not None and cpus == facts.cpu.logical_cpus and cpus >= 2 * cores > 0
    if quota is not None and quota > 0 and math.ceil(quota) < cpus:
        count = math.ceil(quota)
        if not (doubled and cores is not None and cores < count):
            share = counted(quota, "CPU")
            return count, cpus, f"OpenMP ignores the control group's quota of {share} and would use {cpus}"
    if doubled and cores is not None:
        return cores, cpus, f"{cpus} CPUs are hyper-threads of {counted(cores, 'core')}"
    return None
