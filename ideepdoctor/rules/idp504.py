"""IDP504: more threads than CPUs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.model.words import counted
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.installed import fix_command, variable, variable_fix, variable_steps


def _case(cpus: int, quota: float | None, threads: str | None) -> dict[str, Any]:
    effective = {} if threads is None else {"OMP_NUM_THREADS": threads}
    return {
        "limits": {"affinity_cpus": list(range(cpus)), "quota_cpus": quota},
        "variables": {"effective": effective, "inherited": dict(effective)},
    }


class IDP504(Rule):
    """OpenMP would start more threads than this process has CPUs.

    What it checks
        OMP_NUM_THREADS, or without it the count that OpenMP takes by itself (the affinity), against the affinity and
        the control group's quota, rounded up.

    Why it matters
        The runtimes honour the affinity but not the quota: a container with 2 CPUs on a host of 64 starts 64 threads.
        Measured on 2 CPUs, a small convolution: 0.19 ms with 1 thread, 24 ms with 128.

    How to fix
        ``ideepdoctor fix`` makes the right number this environment's default; one that you have set is yours to change.

    References
        xgboost #7653, OpenBLAS #6059, scikit-learn #15824.

        Reports: KTH-RPL/OpenSceneFlow PR 33, oneTBB #190, llvm #225493 and ollama #17916 (quotas of containers).
    """

    title = "More threads than CPUs"
    severity = Severity.WARNING
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP304", "IDP308")
    fix = FixSafety.SAFE
    ok = (
        Example("no limit"),
        Example("set to the quota", _case(64, 2.0, "2")),
        Example("fewer than there are", _case(8, None, "2")),
        Example("a quota above the CPUs", _case(2, 4.0, None)),
    )
    bad = (
        Example("a quota, and nothing set", _case(64, 2.0, None)),
        Example("more than the CPUs", _case(2, None, "16")),
        Example("more than the quota", _case(64, 1.5, "8")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the number of threads with what may be used."""
        if facts.planned_ideep4py is not None:
            return
        affinity = facts.limits.affinity_cpus
        cpus = len(affinity) if affinity else facts.cpu.logical_cpus
        if not cpus:
            raise Unknown("the number of CPUs could not be read")
        quota = facts.limits.quota_cpus
        allowed = cpus if quota is None else min(cpus, max(1, math.ceil(quota)))
        text = (variable(facts, "OMP_NUM_THREADS") or "").split(",")[0].strip()
        threads = int(text) if text.isdecimal() and int(text) > 0 else cpus
        if threads <= allowed:
            return
        by = f"OMP_NUM_THREADS={text}" if text.isdecimal() else "OpenMP's own choice"
        count = counted(cpus, "CPU")
        limit = count if quota is None else f"{count}, quota {quota:g}"
        safety = variable_fix(facts, "OMP_NUM_THREADS")
        yield self.finding(
            found=f"{counted(threads, 'thread')} ({by}), {limit}",
            needed=f"{allowed} thread{'s' if allowed != 1 else ''} at most",
            consequence="threads wait for each other: small operations become up to a hundred times slower",
            next_step=fix_command(facts) if safety is FixSafety.SAFE else f"export OMP_NUM_THREADS={allowed}",
            fix=safety,
        )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Set the recommended variables in the environment."""
        return variable_steps(facts)
