"""IDP822: the extension came before its library."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP822(BuildRule):
    """The extension is compiled against iDeep's and MKL-DNN's headers as they are installed beside it.

    What it checks
        In a log, that ideep.hpp, mkldnn.h or libmkldnn was not found. It is told where the log has no earlier cause of
        it, and after that cause where it has one.

    Why it matters
        setup.py calls CMake to build and install the library, ignores how that ended, and goes on: this is what is
        printed last, and never the cause.

    How to fix
        Look for the first error above it (``ideepdoctor explain --log FILE`` names it), or build and install the
        library by itself: ``cmake -DCMAKE_INSTALL_PREFIX=$PWD/../python/ideep4py .. && make install`` in the folder
        ``build``.

    References
        intel/ideep, python/setup.py.
    """

    title = "The library was not built before the extension"
    severity = Severity.ERROR
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("a header", logged("IDP822", "mdarray.cc:3:10: fatal error: ideep.hpp: No such file or directory")),
        Example("the library", logged("IDP822", "/usr/bin/ld: cannot find -lmkldnn")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The cause is above, where the log has it."""
        needed = "MKL-DNN built and installed before setup.py compiles the extension"
        if any(hit.code != self.code() for hit in build.hits):
            cause = "the step that failed before it: setup.py ignores that and goes on"
            step = "nothing for this one: it goes when the error above is cured"
            return Cure(needed, cause, step, severity=Severity.WARNING)
        return Cure(
            needed,
            "an earlier step failed and setup.py went on: look at the first error of the log",
            "in the folder build: cmake -DCMAKE_INSTALL_PREFIX=$PWD/../python/ideep4py .. && make install",
            "builds the library first and stops where that fails",
        )
