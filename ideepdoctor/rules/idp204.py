"""IDP204: a module taken from the wrong place."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import python_command

_CURE = {
    "PYTHONPATH": "unset PYTHONPATH",
    "user site": "export PYTHONNOUSERSITE=1",
}


class IDP204(Rule):
    """Python takes a module from the current folder, PYTHONPATH or the user's site instead of the environment.

    What it checks
        Where the modules that Chainer needs were really imported from, in a child started as your Python would be.

    Why it matters
        A file called json.py or numpy.py beside your script, or another NumPy on PYTHONPATH, wins over the installed
        one. What follows looks like anything: a missing attribute, a binary incompatibility, silence.

    How to fix
        Rename the file, or unset PYTHONPATH; for the user's site set PYTHONNOUSERSITE=1.

    References
        The order of sys.path in the documentation of Python.
    """

    title = "A module is hidden by another one of its name"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (
        Example("nothing is hidden"),
        Example("PYTHONPATH without such a module", {"variables": {"inherited": {"PYTHONPATH": "/home/user/lib"}}}),
    )
    bad = (
        Example(
            "numpy.py in the current folder",
            {"shadows": [{"module": "numpy", "path": "/home/user/work/numpy.py", "source": "current folder"}]},
        ),
        Example(
            "another NumPy on PYTHONPATH",
            {"shadows": [{"module": "numpy", "path": "/opt/old/numpy/__init__.py", "source": "PYTHONPATH"}]},
        ),
        Example(
            "user site",
            {
                "shadows": [
                    {
                        "module": "six",
                        "path": "/home/user/.local/lib/python3.7/site-packages/six.py",
                        "source": "user site",
                    }
                ]
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the modules that came from elsewhere, those of one source together: one cure is for all of them."""
        for source in dict.fromkeys(shadow.source for shadow in facts.shadows):
            shadows = [shadow for shadow in facts.shadows if shadow.source == source]
            first = shadows[0]
            others = ", ".join(shadow.module for shadow in shadows[1:])
            too = f"; so do{'es' if len(shadows) == 2 else ''} {others}" if others else ""
            yield self.finding(
                found=f"{first.module} comes from {first.path} ({source}){too}",
                needed=f"the {first.module} of the environment or of Python itself",
                consequence="Chainer gets another module than it needs, and fails or computes something else",
                next_step=f"rename {first.path}, or start Python in another folder"
                if source == "current folder"
                else _CURE.get(source, "remove or rename that file"),
                evidence=tuple(
                    Evidence(
                        "imported from there",
                        shadow.path,
                        python_command(facts, f"-c 'import {shadow.module}; print({shadow.module}.__file__)'"),
                    )
                    for shadow in shadows
                ),
            )
