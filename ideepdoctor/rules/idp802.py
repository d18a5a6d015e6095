"""IDP802: the interpreter has no headers."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned
from ideepdoctor.rules.distro import headers, install


class IDP802(BuildRule):
    """An extension is compiled against Python.h of the very interpreter that will load it.

    What it checks
        The folders that the target names for its headers; in a log, the compiler's ``Python.h: No such file``.

    Why it matters
        Distributions put the headers of their Python into a package of its own. Without it the build ends after
        MKL-DNN has been compiled. The Pythons of pyenv, conda and uv have theirs.

    How to fix
        Install the package (Debian: python3-dev or python3.11-dev; Fedora: python3-devel), or build for another Python.

    References
        Documentation of Python, sysconfig: the path ``include``.
    """

    title = "The interpreter has no Python.h"
    severity = Severity.ERROR
    ok = (Example("its headers are there", planned()), Example("it was not asked", planned(headers=None)))
    bad = (
        Example("the distribution's Python", planned(headers="", python_minor="3.11")),
        Example("in a log", logged("IDP802", "wrap.cpp:173:10: fatal error: Python.h: No such file or directory")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """The target names no folder that has it."""
        if build.headers == "" and build.request is not None:
            yield self.finding(
                found=f"{build.request.python} (Python {build.python_minor}) has no Python.h",
                needed="the headers of that Python",
                consequence="the extension cannot be compiled",
                next_step=_step(build, facts),
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The same in a log."""
        return Cure("the headers of that Python", "the extension cannot be compiled", _step(build, facts))


def _step(build: BuildFacts, facts: Facts) -> str:
    return f"{install(facts.platform.os_name, headers(build.python_minor))}; or a Python of pyenv, conda or uv"
