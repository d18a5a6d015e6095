"""IDP509: a value of a variable that ends, stops or silently changes a program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import outcome, package, variable
from ideepdoctor.rules.variable_names import CHAINER_SWITCHES

_COUNT = re.compile(r"\s*0*[1-9]\d*\s*(,\s*\d+\s*)*$")
_WHOLE = re.compile(r"\s*[+-]?\d+(_\d+)*\s*$")
_YES = ("1", "true", "yes", "on", "t", "y", ".true.", ".t.")
_LIMITS = ("OMP_THREAD_LIMIT", "KMP_DEVICE_THREAD_LIMIT", "KMP_ALL_THREADS")
_STACKS = ("OMP_STACKSIZE", "KMP_STACKSIZE", "GOMP_STACKSIZE")
_SIZE = re.compile(r"\s*(\d+)\s*([bkmgt]?)b?\s*$", re.IGNORECASE)
_UNITS = {"b": 1, "": 1 << 10, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_TWO: dict[str, Any] = {"limits": {"affinity_cpus": [0, 1]}}


def _sets(**values: str) -> dict[str, Any]:
    return {**_TWO, "variables": {"inherited": values, "effective": values}}


class IDP509(Rule):
    """A variable has a value that stops, ends or silently changes a program.

    What it checks
        The values that were seen to do harm: fewer threads for OpenMP than it counts itself; stacks larger than the
        memory; words where Chainer wants a number; a number of threads that is none; waiting times that cost speed.

    Why it matters
        MKL-DNN 0.14 asks how many threads there will be and waits at a barrier of its own for as many. Where OpenMP
        then gives fewer, the gradient of a convolution's weights never ends: no message, all CPUs busy. The other
        values end the process as it starts, or are passed over with a line on standard error.

    How to fix
        Unset the variable, or give it the value that the finding names. OMP_NUM_THREADS is the one way to have fewer
        threads.

    References
        Measured with the wheels cp36 and cp37 on 2 CPUs. For ever in the backward of a convolution: OMP_DYNAMIC=true,
        OMP_MAX_ACTIVE_LEVELS=0, KMP_LIBRARY=serial, OMP_THREAD_LIMIT, KMP_DEVICE_THREAD_LIMIT or KMP_ALL_THREADS below
        the number of threads; none of it with OMP_NUM_THREADS=1. For ever in ``linear`` on an AMD with AVX-512:
        MKL_DEBUG_CPU_TYPE=4. "OMP: Error #34", SIGABRT: OMP_STACKSIZE=24g with 23 GB of memory. ValueError as Chainer
        is imported: CHAINER_DEBUG=true. One thread: OMP_NUM_THREADS=0; all: -1, abc. 30 % slower: KMP_BLOCKTIME=0.
        No harm: OMP_STACKSIZE=1k (16k are taken), OMP_WAIT_POLICY, OMP_SCHEDULE and MKL_NUM_THREADS with any word,
        KMP_AFFINITY and GOMP_CPU_AFFINITY of CPUs that are not there, MALLOC_PERTURB_, MALLOC_CHECK_.
    """

    title = "The value of a variable does harm"
    severity = Severity.ERROR
    requires = ("IDP201", "IDP301")
    ok = (
        Example("nothing of the kind"),
        Example("one thread needs no second", _sets(OMP_DYNAMIC="true", OMP_NUM_THREADS="1")),
        Example("a limit that is high enough", _sets(OMP_THREAD_LIMIT="2")),
        Example("a small stack", _sets(OMP_STACKSIZE="1k")),
        Example("numbers for Chainer", _sets(CHAINER_DEBUG="1", CHAINER_TYPE_CHECK="0")),
        Example("threads for each level", _sets(OMP_NUM_THREADS="2,1")),
    )
    bad = (
        Example("OpenMP may give fewer threads", _sets(OMP_DYNAMIC="true")),
        Example("a limit below the threads", _sets(OMP_THREAD_LIMIT="1")),
        Example("a stack larger than the memory", _sets(OMP_STACKSIZE="1000g")),
        Example("a word for Chainer", {**_sets(CHAINER_DEBUG="true"), "mode": "quick", "imports": None}),
        Example("no number of threads", _sets(OMP_NUM_THREADS="abc")),
        Example("no waiting", _sets(KMP_BLOCKTIME="0")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """What stops or ends a program first."""
        if package(facts, "ideep4py") is not None:
            yield from self._hangs(facts)
            yield from self._stacks(facts)
            yield from self._passed_over(facts)
        for name in refused_switches(facts):
            yield self._harm(
                facts, name, "a whole number, as 0 or 1", "import chainer raises ValueError: invalid literal for int()"
            )

    def _hangs(self, facts: Facts) -> Iterator[Finding]:
        threads = _threads(facts)
        for name in fewer_threads(facts, threads):
            yield self._harm(
                facts,
                name,
                f"all of the {threads} threads that OpenMP counts",
                "the backward of a convolution waits for ever as soon as OpenMP gives fewer threads than it counts",
            )
        cpu = facts.cpu
        avx512 = cpu.vendor == "AuthenticAMD" and "avx512f" in (cpu.flags or ())
        if avx512 and (variable(facts, "MKL_DEBUG_CPU_TYPE") or "").strip() == "4":
            yield self._harm(facts, "MKL_DEBUG_CPU_TYPE", "7", "linear and other products with MKLML never end")

    def _stacks(self, facts: Facts) -> Iterator[Finding]:
        for name in stacks_beyond_memory(facts):
            end = "OMP: Error #34 (System unable to allocate necessary resources for OMP thread), SIGABRT"
            yield self._harm(facts, name, "a few MB; 4 MB where it is not set", end)

    def _passed_over(self, facts: Facts) -> Iterator[Finding]:
        count = (variable(facts, "OMP_NUM_THREADS") or "1").strip()
        if count and not _COUNT.match(count):
            one = count.lstrip("0") in ("", ".")
            yield self._harm(
                facts,
                "OMP_NUM_THREADS",
                "a number from 1 on",
                "OpenMP takes one thread" if one else "OpenMP passes over it, and takes a number of its own",
                Severity.WARNING,
            )
        if (variable(facts, "KMP_BLOCKTIME") or "").strip() == "0":
            slower = "threads go to sleep after each operation: a training step takes 30 % longer (measured)"
            yield self._harm(facts, "KMP_BLOCKTIME", "200, where it is not set", slower, Severity.INFO)

    def _harm(
        self, facts: Facts, name: str, needed: str, consequence: str, severity: Severity = Severity.ERROR
    ) -> Finding:
        return self.finding(
            found=f"{name}={_shown(variable(facts, name) or '')}",
            needed=needed,
            consequence=consequence,
            next_step=f"unset {name}",
            evidence=(Evidence("the variable", None, f"echo ${name}"),),
            severity=severity,
        )


def refused_switches(facts: Facts) -> list[str]:
    """Variables whose values end the import of Chainer; none where that import was tried and works."""
    chainer, imported = package(facts, "chainer"), outcome(facts, "chainer")
    if chainer is None or (imported is not None and imported.error_type != "ValueError"):
        return []
    values = {name: variable(facts, name) for name in CHAINER_SWITCHES}
    return [name for name, value in values.items() if value is not None and not _WHOLE.match(value)]


def stacks_beyond_memory(facts: Facts) -> list[str]:
    """Variables that ask for a stack of each thread that is larger than the memory; none where that is not known."""
    memory, found = facts.limits.memory_total_bytes, []
    for name in _STACKS:
        size = _SIZE.match(variable(facts, name) or "")
        asked = 0 if size is None else int(size[1]) * _UNITS[size[2].lower()]
        if memory is not None and asked > memory:
            found.append(name)
    return found


def fewer_threads(facts: Facts, threads: int) -> list[str]:
    """Variables by which OpenMP gives a team fewer threads than it says there are."""
    if threads < 2:
        return []
    found = ["OMP_DYNAMIC"] if (variable(facts, "OMP_DYNAMIC") or "").lower() in _YES else []
    if re.match(r"\s*0+\s*$", variable(facts, "OMP_MAX_ACTIVE_LEVELS") or ""):
        found.append("OMP_MAX_ACTIVE_LEVELS")
    if (variable(facts, "KMP_LIBRARY") or "").strip().lower() == "serial":
        found.append("KMP_LIBRARY")
    limits = {name: (variable(facts, name) or "").strip() for name in _LIMITS}
    return found + [name for name, value in limits.items() if value.isdecimal() and int(value) < threads]


def _threads(facts: Facts) -> int:
    """How many threads OpenMP counts; 1 where that is not known."""
    text = (variable(facts, "OMP_NUM_THREADS") or "").split(",")[0].strip()
    if text.isdecimal():
        return max(int(text), 1)
    affinity = facts.limits.affinity_cpus
    return len(affinity) if affinity else facts.cpu.logical_cpus or 1


def _shown(value: str) -> str:
    """A value as a reader may see it: ASCII, and not longer than a line."""
    return value.encode("ascii", "backslashreplace").decode()[:60]
