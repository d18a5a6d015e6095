"""IDP813: warnings of a later compiler are errors."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP813(BuildRule):
    """The source makes errors of warnings, and later compilers have warnings that its authors never saw.

    What it checks
        In a log, a compiler's error that is called ``-Werror=...``.

    Why it matters
        GCC 12 stops at ``array subscript ... is partly outside array bounds`` in MKL-DNN. The code is as right or wrong
        as it was with the compiler of its time.

    How to fix
        ``export CFLAGS=-w CXXFLAGS=-w`` before cmake is started the first time (it remembers them: remove the folder
        ``build``). ``ideepdoctor build`` does that.

    References
        Documentation of GCC: warning options.

        Reports: intel/ideep #36, apache/mxnet #12862, oneDNN #283 and #1075, ngraph PR 3080.
    """

    title = "A warning of the compiler ends the build"
    severity = Severity.ERROR
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("GCC 12", logged("IDP813", "error: array subscript 0 is partly outside [-Werror=array-bounds]")),
        Example("GCC 13", logged("IDP813", "error: 'x' may be used uninitialized [-Werror=maybe-uninitialized]")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """No warnings at all."""
        return Cure(
            "no warnings: the flag -w",
            "the source makes errors of warnings, and this compiler has more of them than that of its time",
            "export CFLAGS=-w CXXFLAGS=-w, remove the folder build, start again",
            "compiles with -w",
        )
