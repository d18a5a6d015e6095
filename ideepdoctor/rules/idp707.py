"""IDP707: the process may have less than ideep4py takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.model.words import counted
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import killed
from ideepdoctor.rules.installed import fix_command, variable_fix, variable_steps
from ideepdoctor.rules.resources import (
    MIB,
    STEP_MEMORY_BYTES,
    Threads,
    addresses_of_a_step,
    addresses_of_an_import,
    threads,
)

_QUICK: dict[str, Any] = {"imports": None, "first_op": None, "mode": "quick"}
_DEATH = killed("SIGABRT", "OMP: Error #34: System unable to allocate necessary resources for OMP thread:")

_MARKS = ("OMP: Error #34", "pthread_create failed", "can't alloc", "Out of memory", "MemoryError", "failed to map")
"""What libraries say before they give up because of such a limit."""


def _case(cpus: int = 8, count: str | None = None, **limits: int | None) -> dict[str, Any]:
    given = {} if count is None else {"OMP_NUM_THREADS": count}
    return {
        **_QUICK,
        "limits": {"affinity_cpus": list(range(cpus)), "quota_cpus": None, **limits},
        "variables": {"effective": given, "inherited": dict(given)},
    }


class IDP707(Rule):
    """A limit of the process is below what an import of ideep4py and its threads take.

    What it checks
        The threads that OpenMP and NumPy's OpenBLAS start (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, else the CPUs)
        against the limit of processes (``pids.max`` of the control group, ``ulimit -u``); the address space
        (``ulimit -v``) against what an import and those threads map; the memory of the control group against what a
        small step needs. A limit under which an operation of ideep4py has run is none.

    Why it matters
        Measured: more threads than allowed end the first operation with SIGABRT (``OMP: Error #34``), or NumPy's import
        (``OpenBLAS blas_thread_init: pthread_create failed``). With less than 266 MiB of address space
        ``import ideep4py`` fails and Chainer silently goes on without it. A step takes 300 MiB, 4 MiB for each
        thread's stack, and up to 64 MiB for each thread that malloc serves: 0.5 GiB with 4 threads, 1.6 GiB with 64.
        With less than 44 MiB of memory the kernel kills the process. The stack (``ulimit -s``) is no fault from 128 KiB
        to unlimited, unless it is huge and the address space is limited: each thread of OpenBLAS takes so much.

    How to fix
        Fewer threads (``ideepdoctor fix`` makes the number that fits the default), or a higher limit:
        ``ulimit -v unlimited``, ``--pids-limit`` and ``--memory`` of docker.

    References
        numpy #21376, OpenBLAS #1668 and #4762. getrlimit(2), mallopt(3).
    """

    title = "A limit of the process is too low"
    severity = Severity.ERROR
    requires = ("IDP101",)
    fix = FixSafety.SAFE
    ok = (
        Example("no limit"),
        Example("just enough processes", _case(4, "4", processes_limit=7)),
        Example("an operation has run", {"limits": {"processes_limit": 1, "affinity_cpus": [0, 1, 2, 3]}}),
        Example("address space for eight threads", _case(address_space_bytes=1 << 30)),
        Example("CPUs not known", {**_case(processes_limit=1), "cpu": {"logical_cpus": None}, "limits": {}}),
        Example("memory for a step", _case(memory_limit_bytes=STEP_MEMORY_BYTES)),
    )
    bad = (
        Example("more threads than processes", {**_case(64, None, processes_limit=32), "first_op": _DEATH}),
        Example("OpenBLAS has threads, too", _case(64, None, processes_limit=100)),
        Example("no address space for the import", _case(address_space_bytes=256 * MIB)),
        Example("no address space for 64 threads", _case(64, None, address_space_bytes=1 << 30)),
        Example("hardly any memory", _case(memory_limit_bytes=32 * MIB)),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare each limit with what it must allow."""
        computed = facts.first_op is not None and facts.first_op.ok
        count = threads(facts)
        if computed or facts.planned_ideep4py is not None:
            return
        if count is not None:
            yield from self._processes(facts, count)
            yield from self._addresses(facts, count)
        memory = facts.limits.memory_limit_bytes
        if memory is not None and memory < STEP_MEMORY_BYTES:
            yield self.finding(
                found=f"the control group has {_mib(memory)} of memory",
                needed=f"{_mib(STEP_MEMORY_BYTES)} for the imports and a small convolution, more for a network",
                consequence="the kernel kills the process (SIGKILL) when it imports or computes",
                next_step="give the container or job more memory: docker run --memory 2g",
                fix=FixSafety.MANUAL,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Make the number of threads that fits the default of this environment."""
        return variable_steps(facts) if finding.fix is FixSafety.SAFE else ()

    def _processes(self, facts: Facts, count: Threads) -> Iterator[Finding]:
        limit = facts.limits.processes_limit
        if limit is None or count.together <= limit:
            return
        sure = count.openmp > limit
        safety = variable_fix(facts, "OMP_NUM_THREADS")
        yield self.finding(
            found=f"{counted(count.openmp, 'thread')} of OpenMP and {count.openblas} of OpenBLAS, "
            f"and {limit} may run together",
            needed="a limit above the number of threads, and room for what runs already",
            consequence="the first operation ends the process: OMP: Error #34"
            if sure
            else "import numpy or the first operation fails where both have started: pthread_create failed",
            next_step=fix_command(facts) if safety is FixSafety.SAFE else "export OMP_NUM_THREADS=1",
            evidence=(Evidence("processes that may be started", "/proc/self/limits", "ulimit -u"),),
            severity=_severity(facts, sure),
            fix=safety,
        )

    def _addresses(self, facts: Facts, count: Threads) -> Iterator[Finding]:
        limit = facts.limits.address_space_bytes
        needed = addresses_of_a_step(count, facts.limits.stack_bytes)
        if limit is None or limit >= needed:
            return
        sure = limit < addresses_of_an_import(count)
        one = addresses_of_a_step(Threads(1, 1, count.cpus), facts.limits.stack_bytes)
        yield self.finding(
            found=f"{_mib(limit)} of address space, {counted(count.openmp, 'thread')}",
            needed=f"{_mib(needed)} for the imports, a small convolution and these threads",
            consequence="import ideep4py fails (failed to map segment), and Chainer silently computes with NumPy"
            if sure
            else "a larger step ends the process: OMP: Error #34, Xbyak::Error (can't alloc) or MemoryError",
            next_step="ulimit -v unlimited" if limit < one else "export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1",
            evidence=(Evidence("limit of the address space", "/proc/self/limits", "ulimit -v"),),
            severity=_severity(facts, sure),
            fix=FixSafety.MANUAL,
        )


def _severity(facts: Facts, sure: bool) -> Severity:
    """Sure, or seen: an error; else a warning. A note where the operation died of something else."""
    if sure:
        return Severity.ERROR
    died = facts.first_op
    if died is None:
        return Severity.WARNING
    text = f"{died.error_text or ''}\n{died.stderr_tail}"
    return Severity.ERROR if any(mark in text for mark in _MARKS) else Severity.INFO


def _mib(size: int) -> str:
    return f"{size // MIB} MiB"
