"""IDP810: no room."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned

NEEDED_BYTES = 1_500_000_000
"""Tree 0.8 GB, tools 0.2, MKL 0.2, wheel and the compiler's temporary files; measured."""


class IDP810(BuildRule):
    """A build takes 1.5 GB while it runs.

    What it checks
        Free bytes where the doctor's cache and the wheel are going to be; in a log, ``No space left on device`` and
        ``Disk quota exceeded``.

    Why it matters
        A full disk shows itself in words that say something else: a cut object file, an assembler's error, an archive
        that is none.

    How to fix
        Make room, or set IDEEPDOCTOR_CACHE_DIR (and TMPDIR for a build by hand) to a folder that has it. Quotas count
        as full disks: ``quota -s`` shows them.

    References
        Measured: the tree of MKL-DNN and the extension is 0.8 GB.
    """

    title = "There is no room for a build"
    severity = Severity.ERROR
    ok = (
        Example("20 GB", planned()),
        Example("just enough", planned(disk_free_bytes=NEEDED_BYTES)),
        Example("not known", planned(disk_free_bytes=None)),
    )
    bad = (
        Example("1 GB", planned(disk_free_bytes=1_000_000_000)),
        Example("none", planned(disk_free_bytes=0)),
        Example("in a log", logged("IDP810", "ccXq.s: Fatal error: can't write: No space left on device")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """Less than a build takes."""
        if build.disk_free_bytes is not None and build.disk_free_bytes < NEEDED_BYTES:
            yield self.finding(
                found=f"{build.disk_free_bytes / 1e9:.1f} GB are free",
                needed="1.5 GB where the doctor's cache and the wheel are",
                consequence="the build would end in the middle",
                next_step="make room, or set IDEEPDOCTOR_CACHE_DIR to a folder that has it (and -o)",
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The same in a log."""
        return Cure(
            "1.5 GB for the build and its temporary files",
            "the disk was full, or a quota was: whatever else the log says follows from that",
            "make room, or set TMPDIR and the folder of the build to a place that has it",
            own="make room, or set IDEEPDOCTOR_CACHE_DIR to a folder that has it",
        )
