"""IDP811: no memory for the compilers."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned

JOB_BYTES = 400_000_000
"""A compiler of MKL-DNN; measured."""
EXTENSION_BYTES = 800_000_000
"""The compiler of the extension; measured."""


class IDP811(BuildRule):
    """A compiler of MKL-DNN takes 0.4 GB, that of the extension 0.8 GB; what is started at once adds up.

    What it checks
        Memory that is free, or what the control group allows, against the number of jobs; in a log, the signs of a
        compiler that was killed or got no memory.

    Why it matters
        The kernel kills the compiler, and the log says ``Killed signal terminated program cc1plus`` or only that make
        ended with an error. Release 1.0.3 starts a compiler for each processor.

    How to fix
        Fewer jobs: ``make -j1``, ``ideepdoctor build --jobs 1``; more memory or swap for the extension.
        ``ideepdoctor build`` counts its jobs by memory.

    References
        Measured: 0.4 GB each for MKL-DNN, 0.8 GB for the extension.

        Reports: oneDNN #478.
    """

    title = "There is too little memory for the compilers"
    severity = Severity.ERROR
    ok = (
        Example("enough for two", planned()),
        Example("just enough", planned(memory_bytes=EXTENSION_BYTES, jobs=2)),
        Example("not known", planned(memory_bytes=None)),
        Example("one job and no number known", planned(jobs=None)),
    )
    bad = (
        Example("sixteen at once", planned(memory_bytes=2_000_000_000, jobs=16)),
        Example("half a gigabyte", planned(memory_bytes=500_000_000, jobs=1)),
        Example("in a log", logged("IDP811", "c++: fatal error: Killed signal terminated program cc1plus")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """A warning: swap, which is not counted, may do."""
        if build.memory_bytes is None:
            return
        wanted = (build.jobs or 1) * JOB_BYTES
        if build.memory_bytes >= max(wanted, EXTENSION_BYTES):
            return
        most = max(1, build.memory_bytes // JOB_BYTES)
        few = build.memory_bytes < EXTENSION_BYTES
        yield self.finding(
            found=f"{build.memory_bytes / 1e9:.1f} GB of memory, {build.jobs or 1} compilers at once",
            needed="0.8 GB for the extension" if few else f"{wanted / 1e9:.1f} GB, or fewer compilers",
            consequence="the kernel may kill a compiler in the middle",
            next_step="free memory, or add swap" if few else f"--jobs {most}",
            severity=Severity.WARNING,
        )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The same in a log."""
        return Cure(
            "0.4 GB for each compiler of MKL-DNN, 0.8 GB for the extension",
            "a compiler was killed, or got no memory",
            "start fewer at once: make -j1, MAKEFLAGS=-j1; free memory or add swap",
            "starts as many as memory allows",
            own="ideepdoctor build --jobs 1; free memory or add swap",
        )
