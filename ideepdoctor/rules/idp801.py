"""IDP801: no C++ compiler that works."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned
from ideepdoctor.rules.distro import COMPILER, install

_NEEDED = "a C++ compiler with C++11, OpenMP and its own library: GCC 4.8.5 or later"


class IDP801(BuildRule):
    """ideep4py from source needs a C and a C++ compiler that can compile and link a C++11 program with OpenMP.

    What it checks
        That a small program of that kind is compiled and linked by the c++ (or g++) on PATH; in a log, the words of
        CMake, of setup.py and of the compiler itself where one is missing or has not all of its parts.

    Why it matters
        Everything is compiled: MKL-DNN takes minutes, and what is missing shows up at its start or at its very end.

    How to fix
        Install the distribution's compiler (Debian: g++; Fedora: gcc-c++). CC and CXX do not count: a build takes what
        PATH has under the names cc and c++.

    References
        Documentation of CMake: CMAKE_CXX_COMPILER.
    """

    title = "There is no C++ compiler that works"
    severity = Severity.ERROR
    ok = (Example("it compiles", planned()), Example("it was not tried", planned(compiler=None, compiler_works=None)))
    bad = (
        Example("none", planned(compiler="")),
        Example("without OpenMP", planned(compiler="c++ 12", compiler_works="error: omp.h: No such file")),
        Example("in a log", logged("IDP801", "unable to execute 'g++': No such file or directory")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """None, or one that failed."""
        if build.compiler is None or (build.compiler and not build.compiler_works):
            return
        lines = (build.compiler_works or "").splitlines()
        yield self.finding(
            found=f"{build.compiler}: {_telling(lines)}" if build.compiler else "no c++ and no g++ on PATH",
            needed=_NEEDED,
            consequence="nothing can be compiled",
            next_step=install(facts.platform.os_name, COMPILER),
            evidence=tuple(Evidence(line, None, "c++ --version") for line in lines[-4:]),
        )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """Missing, or not whole."""
        return Cure(
            needed=_NEEDED,
            cause="the compiler is missing, or a part of it is (its C++ half, OpenMP, C++11)",
            by_hand=install(facts.platform.os_name, COMPILER),
        )


def _telling(lines: list[str]) -> str:
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it failed")
