"""IDP102: a C library that the wheels were not made for."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule, Unknown


class IDP102(Rule):
    """The wheels need glibc; Alpine and its like have musl.

    What it checks
        The C library that the target's Python is linked with.

    Why it matters
        The wheels of ideep4py are manylinux wheels, linked with glibc. pip does not offer them on musl.

    How to fix
        Use an image or a distribution with glibc, such as Debian.

    References
        The manylinux platform tag says glibc.
    """

    title = "The C library is not glibc"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (Example("glibc"), Example("an older glibc", {"platform": {"libc_version": "2.17"}}))
    bad = (
        Example("Alpine", {"platform": {"libc": "musl", "libc_version": "1.2.4", "os_name": "Alpine Linux v3.18"}}),
        Example("musl of unknown version", {"platform": {"libc": "musl", "libc_version": None}}),
        Example("Termux on x86-64", {"platform": {"libc": "bionic", "libc_version": None}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the C library's name."""
        libc = facts.platform.libc
        if libc is None:
            raise Unknown("the C library of the target could not be told")
        if libc != "glibc":
            yield self.finding(
                found=" ".join(part for part in (libc, facts.platform.libc_version) if part),
                needed="glibc 2.14 or later",
                consequence="pip finds no ideep4py here, and one for glibc cannot be loaded",
                next_step="use a system with glibc, for instance a Debian image instead of Alpine",
            )
