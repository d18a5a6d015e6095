"""IDP815: setup.py asks Python for what 3.8 took away."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP815(BuildRule):
    """setup.py imports ``platform.dist``, which Python 3.8 removed.

    What it checks
        In a log, that ``dist`` cannot be imported from ``platform``.

    Why it matters
        It is the first line of setup.py: on Python 3.8 and later nothing else is reached. Below it the source is right
        for these Pythons.

    How to fix
        A file sitecustomize.py in a folder on PYTHONPATH, for the build alone, with the two lines ``import platform``
        and ``platform.dist = lambda *a: ("", "", "")``. ``ideepdoctor build`` does that; the source is not changed.

    References
        Documentation of Python: What's new in 3.8, removed features.
    """

    title = "setup.py imports platform.dist, which this Python lacks"
    severity = Severity.ERROR
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("Python 3.11", logged("IDP815", "ImportError: cannot import name 'dist' from 'platform'")),
        Example("another name", logged("IDP815", "module 'platform' has no attribute 'linux_distribution'")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """A sitecustomize."""
        return Cure(
            "platform.dist, for setup.py alone",
            "Python 3.8 and later have no platform.dist, which setup.py imports first",
            "write \"import platform; platform.dist = lambda *a: ('', '', '')\" into sitecustomize.py in a folder on "
            "PYTHONPATH, for the build alone",
            "does that, without a change to the source",
        )
