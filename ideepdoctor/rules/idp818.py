"""IDP818: 1.0.3 and alignment."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP818(BuildRule):
    """Release 1.0.3 puts vectors of 64 bytes where the allocator aligns to 16.

    What it checks
        In a log, a program that ended with SIGSEGV, the compiler's own death aside.

    Why it matters
        With ``-march=native`` on a processor with AVX-512 the compiler moves whole vectors, and ``add`` and ``concat``
        end the process. Others are not known to: SIGSEGV may have other causes, so this is a warning.

    How to fix
        ``-faligned-new`` in CFLAGS and CXXFLAGS for 1.0.3, or a later release. ``ideepdoctor build --ref v1.0.3`` sets
        it.

    References
        Documentation of GCC: -faligned-new.
    """

    title = "A program ended with SIGSEGV: 1.0.3 needs aligned memory"
    severity = Severity.WARNING
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("in a log", logged("IDP818", "Segmentation fault (core dumped)")),
        Example("by its name", logged("IDP818", "subprocess died with <Signals.SIGSEGV: 11>")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """A flag, of 1.0.3 alone."""
        return Cure(
            "-faligned-new, if this is 1.0.3",
            "1.0.3 built with -march=native on AVX-512 does this in add and concat; otherwise the cause is another one",
            'export CFLAGS="-w -faligned-new" CXXFLAGS="-w -faligned-new", or take 1.0.4 (Chainer 4) or 2.0.0.post3',
            "sets that for 1.0.3",
        )
