"""IDP814: NumPy is missing while building."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP814(BuildRule):
    """setup.py imports NumPy, and the extension is compiled against its headers.

    What it checks
        In a log, that NumPy could not be imported, or that its headers were not found.

    Why it matters
        It is imported after MKL-DNN has been compiled. The NumPy that is compiled against is the oldest that the
        extension runs with, so the newest is not the best. pip's isolated builds have none at all.

    How to fix
        Install the oldest NumPy that the environment is going to run (1.16.6 on Python 3.7, 1.23.5 on 3.8 to 3.11)
        before setup.py is started; with pip ``--no-build-isolation``. ``ideepdoctor build`` pins it.

    References
        Documentation of NumPy: "For downstream package authors".
    """

    title = "NumPy is missing where the extension is built"
    severity = Severity.ERROR
    ok = (Example("a build of ours brings it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("none", logged("IDP814", "ModuleNotFoundError: No module named 'numpy'")),
        Example("no headers", logged("IDP814", "a.cc:1:10: fatal error: numpy/arrayobject.h: No such file")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The oldest that will run."""
        return Cure(
            "NumPy in the environment that builds",
            "setup.py imports NumPy, and the environment has none",
            "python -m pip install numpy==1.16.6 (Python 3.7) or numpy==1.23.5 (3.8 to 3.11) first; with pip "
            "--no-build-isolation",
            "brings the NumPy that is pinned for that Python",
            own="make the toolchain anew: ideepdoctor build --fresh",
        )
