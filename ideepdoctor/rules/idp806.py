"""IDP806: a SWIG that is missing, or another than 3."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned

_PIN = "pip install swig==3.0.12 into an environment of its own, its bin folder first on PATH"


class IDP806(BuildRule):
    """The extension's C++ is written by SWIG 3; what SWIG 4 writes does not compile with it.

    What it checks
        That the pinned SWIG can be had; in a log, that there was none, or that it was SWIG 4.

    Why it matters
        Distributions have SWIG 4 today. The source brings a part of SWIG 3's runtime with it, so the compiler meets
        ``struct swig_type_info`` twice, after MKL-DNN has been compiled.

    How to fix
        SWIG 3.0.12 of the package index (one wheel for every Python), first on PATH. ``ideepdoctor build`` brings it.

    References
        Documentation of SWIG: "External access to the runtime".

        Reports: mozilla/DeepSpeech #2135, numenta PR 1321, swig #1910, pjproject #3963 (SWIG 4).
    """

    title = "SWIG is missing, or is not SWIG 3"
    severity = Severity.ERROR
    ok = (Example("the pinned one", planned()), Example("it was not looked for", planned(swig=None)))
    bad = (
        Example("the index does not have it", planned(swig="")),
        Example("none", logged("IDP806", "unable to execute 'swig': No such file or directory")),
        Example("SWIG 4", logged("IDP806", "wrap.cpp:4094:8: error: redefinition of 'struct swig_type_info'")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """The index answers, and has no such release."""
        if build.swig == "":
            yield self.finding(
                found="the package index has no swig 3.0.12",
                needed="that release, by hash",
                consequence="the toolchain of the build cannot be made",
                next_step="name an index that has it (--index-url URL), or bring it: --wheelhouse DIR",
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """None, or SWIG 4."""
        four = "swig_type_info" in line or "Unrecognized option" in line
        cause = "SWIG 4's code does not go with this source" if four else "swig did not run: there is none on PATH"
        own = "make the toolchain anew: ideepdoctor build --fresh"
        return Cure("SWIG 3.0.12", cause, _PIN, "brings SWIG 3.0.12", own)
