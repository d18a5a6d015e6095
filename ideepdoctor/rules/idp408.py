"""IDP408: two OpenMP runtimes of Intel's kind in one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.native import Native
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import variable
from ideepdoctor.rules.loading import (
    LIB,
    dead_child,
    describe,
    elf,
    ending,
    is_own,
    native,
    predicted,
    what_happens,
    works,
)

_OTHER = "/opt/other/libomp.so.5"
_OWN = f"{LIB}/libiomp5.so"
_SETS = ("1", "true", "yes", "on", "t", "y", ".true.")


def _two(outcome: dict[str, object]) -> dict[str, Any]:
    rows = [
        {
            "file": elf(_OWN),
            "kind": "iomp",
            "name": "Intel OpenMP 5.0.20170525",
            "own": True,
            "owner": None,
            "places": [],
        },
        {"file": elf(_OTHER), "kind": "omp", "name": "LLVM OpenMP", "own": False, "owner": None, "places": []},
    ]
    return {"native": {"files": rows, "started": dead_child(outcome, after=[_OWN, _OTHER])}}


class IDP408(Rule):
    """Two OpenMP runtimes of Intel's kind (libiomp5, libomp) are mapped after the import of ideep4py.

    What it checks
        The runtimes that are mapped in a child that imported ideep4py and ran an operation. GNU's libgomp beside
        libiomp5 is ideep4py's own design on Python 3.7 and is not reported.

    Why it matters
        The second runtime ends the process with "OMP: Error #15"; where it does not notice the first (or
        KMP_DUPLICATE_LIB_OK makes it go on), both make threads: too many for the CPUs, and results that nobody
        vouches for.

    How to fix
        One runtime: take the other one out of LD_PRELOAD, LD_LIBRARY_PATH or the start-up file that loads it.
        KMP_DUPLICATE_LIB_OK hides the clash and cures nothing.

    References
        joblib/threadpoolctl #41; LLVM OpenMP documentation, KMP_DUPLICATE_LIB_OK.

        Reports: apache/mxnet #8532, dmlc/xgboost #1715 and odlgroup/odl #1451 (Error #15); lightgbm #4948 (LLVM
        beside Intel).
    """

    title = "Two OpenMP runtimes of Intel's kind are in one process"
    severity = Severity.WARNING
    requires = ("IDP101", "IDP102", "IDP204", "IDP301", "IDP302", "IDP401", "IDP402", "IDP403", "IDP405", "IDP406")
    ok = (
        Example("one"),
        Example("the variable alone", {"variables": {"effective": {"KMP_DUPLICATE_LIB_OK": "TRUE"}}}),
    )
    bad = (
        Example("both run", _two({"ok": True})),
        Example(
            "Error #15 ends the import",
            {
                "native": {
                    **_two({})["native"],
                    "started": dead_child(
                        {"ok": False, "signal": "SIGABRT", "stderr_tail": "OMP: Error #15: Initializing"},
                        imported=False,
                        with_numpy=[_OTHER],
                        after=[],
                    ),
                }
            },
        ),
        Example("Error #15", _two({"ok": False, "signal": "SIGABRT", "stderr_tail": "OMP: Error #15: Initializing"})),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Count the runtimes that are mapped."""
        found = native(facts)
        if found is None or found.started is None:
            return
        paths = runtimes(found)
        if len(paths) < 2:
            return
        others = [path for path in paths if not is_own(found, path)] or paths[1:]
        hidden = hides_the_clash(facts)
        dead = works(found) is False
        yield self.finding(
            found=" and ".join(describe(found, path) for path in paths)
            + ("; KMP_DUPLICATE_LIB_OK hides the clash" if hidden else ""),
            needed="one OpenMP runtime of Intel's kind",
            consequence="measured: OMP: Error #15 ends the process"
            if ended_by_the_clash(found)
            else what_happens(found, "two sets of threads on the same CPUs, and results that nobody vouches for"),
            next_step=f"keep {others[0]} out of the process; see what brings it: ideepdoctor libs",
            evidence=tuple(Evidence("mapped after the import", path) for path in paths),
            severity=Severity.ERROR if dead else Severity.WARNING,
        )


def hides_the_clash(facts: Facts) -> bool:
    """Whether KMP_DUPLICATE_LIB_OK is on, by the words that the runtime takes for yes."""
    return (variable(facts, "KMP_DUPLICATE_LIB_OK") or "").lower() in _SETS


def ended_by_the_clash(found: Native) -> bool:
    """Whether the child that imported ideep4py was ended by the second of two runtimes."""
    result = ending(found)
    return result is not None and "OMP: Error #15" in result.stderr_tail and len(runtimes(found)) > 1


def runtimes(found: Native) -> list[str]:
    """Real paths of the runtimes of Intel's kind that are mapped, each file once.

    An import that "OMP: Error #15" has ended tells only what was mapped before it: the other one is ideep4py's.
    """
    started, result = found.started, ending(found)
    if started is None:
        return []
    mapped = list(started.after)
    if not mapped and result is not None and "OMP: Error #15" in result.stderr_tail:
        taken = predicted(found, "libiomp5.so")
        own = found.objects.get((taken.path if taken else None) or "")
        mapped = [*started.at_start, *started.with_numpy, *([own.real_path] if own else [])]
    paths: dict[str, str] = {}
    for item in found.files:
        if item.kind in ("iomp", "omp") and item.file.real_path in mapped:
            paths.setdefault(item.file.identity or item.file.real_path, item.file.real_path)
    return list(paths.values())
