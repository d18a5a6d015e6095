"""What importing ideep4py and computing with it takes of a process's limits: measured numbers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ideepdoctor.model.facts import Facts
from ideepdoctor.rules.installed import variable

MIB = 1 << 20
IMPORT_ADDRESSES_BYTES = 266 * MIB
"""Address space without which ``import ideep4py`` fails (2.7 and 3.7, one thread): MKLML alone maps 154 MB."""
STEP_ADDRESSES_BYTES = 300 * MIB
"""The same for Chainer and a convolution with its gradients; the sum that ``addresses_of_a_step`` makes is near the
peaks that were measured with 1 to 256 threads (VmPeak of 2.7, 3.6 and 3.7)."""
THREAD_STACK_BYTES = 4 * MIB
"""Stack of a thread of Intel's OpenMP (default of KMP_STACKSIZE)."""
ARENA_BYTES = 64 * MIB
"""What malloc of glibc maps for each thread, at most eight times for each CPU (mallopt(3)); a program of one
thread has none."""
ARENAS_FOR_EACH_CPU = 8
UNLIMITED_STACK_BYTES = 2 * MIB
"""Stack of a thread where ``ulimit -s`` is unlimited: glibc's own choice on x86-64 (pthread_create(3))."""
STEP_MEMORY_BYTES = 44 * MIB
"""Memory of a control group in which Chainer and a small convolution run; with 40 MiB all of 2.7 to 3.7 are killed."""


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads that a program with iDeep has.

    Attributes:
        openmp: of OpenMP, the main thread included.
        openblas: of NumPy's OpenBLAS, the main thread included; they start with ``import numpy``.
        cpus: open to the process.
    """

    openmp: int
    openblas: int
    cpus: int

    @property
    def together(self) -> int:
        """All of them."""
        return self.openmp + self.openblas - 1


def threads(facts: Facts) -> Threads | None:
    """How many threads there will be; None where the number of CPUs is not known."""
    affinity = facts.limits.affinity_cpus
    cpus = len(affinity) if affinity else facts.cpu.logical_cpus
    if not cpus:
        return None
    told = _number(facts, "OMP_NUM_THREADS")
    # OpenBLAS starts no more threads than there are CPUs.
    openblas = _number(facts, "OPENBLAS_NUM_THREADS") or told or cpus
    return Threads(told or cpus, min(openblas, cpus), cpus)


def addresses_of_an_import(count: Threads) -> int:
    """Bytes of address space below which ideep4py certainly does not work."""
    return IMPORT_ADDRESSES_BYTES + THREAD_STACK_BYTES * (count.openmp - 1)


def addresses_of_a_step(count: Threads, stack_bytes: int | None) -> int:
    """Bytes of address space that a small training step takes; ``stack_bytes``: RLIMIT_STACK."""
    arenas = ARENA_BYTES * min(count.openmp, ARENAS_FOR_EACH_CPU * count.cpus) if count.openmp > 1 else 0
    stacks = THREAD_STACK_BYTES * count.openmp + (stack_bytes or UNLIMITED_STACK_BYTES) * (count.openblas - 1)
    return STEP_ADDRESSES_BYTES + arenas + stacks


def _number(facts: Facts, name: str) -> int | None:
    text = (variable(facts, name) or "").split(",")[0].strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None
