"""IDP805: a CMake that is missing, or one that the source was not written for."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned

_PIN = "pip install cmake==3.18.4.post1 into an environment of its own, its bin folder first on PATH"
_BUILD = "brings that CMake and uses it for this alone"


class IDP805(BuildRule):
    """The source builds with CMake 2.8.12 to 3.19; every later one refuses a part of it.

    What it checks
        That the pinned CMake can be had; in a log, the three ways in which another one refuses.

    Why it matters
        CMake 3.20 and later refuse the call of setup.py (``Unknown argument --build``), which ignores that: what is
        printed last is that a header of iDeep is missing. CMake 4 refuses the files themselves, twice: with
        ``Compatibility with CMake < 3.5 has been removed``, for which it names a flag, and then with
        ``Policy CMP0048 may not be set to OLD``, for which there is none.

    How to fix
        CMake 3.18.4.post1 of the package index, first on PATH. With CMake 3.20 to 3.31 the library can also be built
        and installed before setup.py is started: ``cmake -DCMAKE_INSTALL_PREFIX=$PWD/../python/ideep4py ..`` and
        ``make install``. ``ideepdoctor build`` brings its own.

    References
        Documentation of CMake: cmake-policies, CMP0048; release notes of 3.20 and 4.0.
    """

    title = "CMake is missing, or is none that builds this source"
    severity = Severity.ERROR
    ok = (Example("the pinned one", planned()), Example("it was not looked for", planned(cmake=None)))
    bad = (
        Example("the index does not have it", planned(cmake="")),
        Example("3.20 and later", logged("IDP805", "CMake Error: Unknown argument --build")),
        Example("4", logged("IDP805", "Policy CMP0048 may not be set to OLD behavior because this version")),
        Example("too old", logged("IDP805", "CMake 2.8.12 or higher is required.  You are running version 2.8.11")),
        Example("none", logged("IDP805", "sh: 1: cmake: not found")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """The index answers, and has no such release."""
        if build.cmake == "":
            yield self.finding(
                found="the package index has no cmake 3.18.4.post1",
                needed="that release, by hash",
                consequence="the toolchain of the build cannot be made",
                next_step="name an index that has it (--index-url URL), or bring it: --wheelhouse DIR",
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """Which CMake it was."""
        severity = None
        if "Unknown argument" in line:
            found, cause = "before 3.20", "CMake 3.20 and later refuse setup.py's call, and setup.py ignores that"
            if all(hit.code == self.code() for hit in build.hits):
                cause += "; no harm where the library was built and installed before"
                severity = Severity.WARNING
        elif "higher is required" in line:
            found, cause = "2.8.12 or later, before 3.20", "this CMake is too old"
        elif "not found" in line or "No such file" in line or "execute" in line:
            found, cause = "2.8.12 to 3.19", "there is no cmake on PATH"
        else:
            found, cause = "before 4", "CMake 4 refuses MKL-DNN's files, and no flag changes that"
        own = "make the toolchain anew: ideepdoctor build --fresh"
        return Cure(f"CMake {found}", cause, _PIN, _BUILD, own, severity)
