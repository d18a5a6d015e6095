"""IDP804: make is missing."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned
from ideepdoctor.rules.distro import MAKE, install


class IDP804(BuildRule):
    """CMake writes makefiles, and something must make them.

    What it checks
        ``make --version``; in a log, CMake's word that it found no build program.

    Why it matters
        Images of containers often have a compiler and no make. CMake then ends before it compiles anything, and
        setup.py, which does not look at that, goes on to other errors.

    How to fix
        Install make.

    References
        Documentation of CMake: the generator "Unix Makefiles".
    """

    title = "make is missing"
    severity = Severity.ERROR
    ok = (Example("it is there", planned()), Example("it was not looked for", planned(make=None)))
    bad = (
        Example("none", planned(make="")),
        Example("in a log", logged("IDP804", "CMake was unable to find a build program corresponding to")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """None on PATH."""
        if build.make == "":
            yield self.finding(
                found="no make on PATH",
                needed="GNU make",
                consequence="nothing can be compiled",
                next_step=install(facts.platform.os_name, MAKE),
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The same in a log."""
        return Cure("GNU make", "CMake cannot go on without it", install(facts.platform.os_name, MAKE))
