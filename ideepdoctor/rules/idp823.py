"""IDP823: setuptools."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP823(BuildRule):
    """setup.py imports setuptools and, through it, distutils, which Python 3.12 no longer brings.

    What it checks
        In a log, that setuptools, distutils or pkg_resources could not be imported.

    Why it matters
        Environments of Python 3.12 and later have no setuptools of their own, and setuptools 81 and later no
        pkg_resources.

    How to fix
        ``python -m pip install "setuptools<74" wheel`` in the environment that builds; with pip
        ``--no-build-isolation``. ``ideepdoctor build`` pins them.

    References
        Documentation of Python: What's new in 3.12, removed modules.
    """

    title = "setuptools is missing where the extension is built"
    severity = Severity.ERROR
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("Python 3.12", logged("IDP823", "ModuleNotFoundError: No module named 'distutils'")),
        Example("none at all", logged("IDP823", "ModuleNotFoundError: No module named 'setuptools'")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """Install it."""
        return Cure(
            "setuptools before 74, in the environment that builds",
            "this environment has no setuptools, or one that left a part of it behind",
            'python -m pip install "setuptools<74" wheel; with pip --no-build-isolation',
            "brings the setuptools that is pinned for that Python",
            own="make the toolchain anew: ideepdoctor build --fresh",
        )
