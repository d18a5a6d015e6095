"""IDP816: SWIG 3's code and Python 3.8."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP816(BuildRule):
    """What SWIG 3 writes calls a macro that Python 3.8 removed.

    What it checks
        In a log, that ``_PyObject_GC_UNTRACK`` is not declared.

    Why it matters
        SWIG 4 does not call it, and does not go with this source (IDP806).

    How to fix
        ``-D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack`` in CFLAGS and CXXFLAGS: the function does the same.
        ``ideepdoctor build`` sets it on Python 3.8 and later.

    References
        Documentation of Python: What's new in 3.8, changes in the C API.
    """

    title = "SWIG 3's code calls a macro that this Python lacks"
    severity = Severity.ERROR
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("Python 3.8", logged("IDP816", "wrap.cpp:3119:3: error: '_PyObject_GC_UNTRACK' was not declared")),
        Example("at import", logged("IDP816", "ImportError: undefined symbol: _PyObject_GC_UNTRACK")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """A definition."""
        flag = "-D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack"
        return Cure(
            "the function PyObject_GC_UnTrack in the macro's place",
            "Python 3.8 and later have no such macro, which SWIG 3's code calls",
            f'export CFLAGS="-w {flag}" CXXFLAGS="-w {flag}"',
            "sets that",
        )
