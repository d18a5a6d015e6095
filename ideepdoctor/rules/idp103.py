"""IDP103: glibc too old."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule, Unknown


class IDP103(Rule):
    """The libraries in the wheel use symbols of glibc 2.14.

    What it checks
        The version of glibc that the target's Python runs with.

    Why it matters
        The wheel says manylinux1 (glibc 2.5), but its libraries ask for symbols of GLIBC_2.14 and GLIBCXX_3.4.18. pip
        installs it on an older system, and the import fails.

    How to fix
        A newer system (2011 and later) or a container.

    References
        Symbol versions read from the libraries of 1.0.1 to 2.0.0.post3.
    """

    title = "glibc is too old"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP102")
    ok = (Example("today"), Example("exactly 2.14", {"platform": {"libc_version": "2.14"}}))
    bad = (
        Example("CentOS 6", {"platform": {"libc_version": "2.12"}}),
        Example("SLES 11", {"platform": {"libc_version": "2.11.3"}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the version with 2.14."""
        found = facts.platform.libc_version
        try:
            old = Version(found or "") < Version("2.14")
        except InvalidVersion as error:
            raise Unknown("the version of glibc could not be told") from error
        if old:
            yield self.finding(
                found=f"glibc {found}",
                needed="glibc 2.14 or later",
                consequence="import ideep4py fails: version `GLIBC_2.14' not found",
                next_step="use a newer system or a container",
            )
