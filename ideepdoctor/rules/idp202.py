"""IDP202: an interpreter that the system manages."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule


class IDP202(Rule):
    """The system's package manager owns this Python (PEP 668).

    What it checks
        Whether an EXTERNALLY-MANAGED marker applies to the target (in a virtual environment none does).

    Why it matters
        pip refuses to install into it: ``error: externally-managed-environment``. Forcing it can break the system.
        This doctor never does; ``fix`` and ``install`` refuse such a target.

    How to fix
        Make an environment: ``ideepdoctor setup``.

    References
        PEP 668; pypa/pipx PR 1747.
    """

    title = "This Python is managed by the system"
    severity = Severity.INFO
    requires = ("IDP101",)
    ok = (Example("a virtual environment"), Example("pyenv's own", {"python": {"kind": "pyenv"}}))
    bad = (
        Example(
            "Debian's python3",
            {"python": {"kind": "system", "externally_managed": "/usr/lib/python3.7/EXTERNALLY-MANAGED"}},
        ),
        Example(
            "a newer Debian's",
            {"python": {"kind": "system", "externally_managed": "/usr/lib/python3.6/EXTERNALLY-MANAGED"}},
            "py36-healthy",
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the marker."""
        marker = facts.python.externally_managed
        if marker is not None:
            yield self.finding(
                found=f"{facts.python.executable} has the marker {marker}",
                needed="an environment of your own",
                consequence="nothing is installed into it, neither by pip nor by this doctor",
                next_step="ideepdoctor setup",
                evidence=(Evidence("marker file", marker, f"cat {marker}"),),
            )
