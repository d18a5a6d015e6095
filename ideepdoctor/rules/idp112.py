"""IDP112: an emulated processor."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule


class IDP112(Rule):
    """The target runs under an emulator.

    What it checks
        Whether CPUID, as the target sees it, disagrees with /proc/cpuinfo.

    Why it matters
        Under qemu-user /proc/cpuinfo describes the host. What runs is what CPUID says, so the other rules go by that.
        Times measured there mean nothing.

    How to fix
        Nothing, if it is meant.

    References
        Measured with qemu-user 7.2.
    """

    title = "The CPU is emulated"
    severity = Severity.INFO
    requires = ("IDP101",)
    ok = (Example("real"), Example("CPUID not readable", {"cpu": {"emulated": None, "cpuid_flags": None}}))
    bad = (
        Example("qemu Haswell", {"cpu": {"emulated": True, "cpuid_vendor": "GenuineIntel"}}),
        Example("another model of the same vendor", {"cpu": {"emulated": True}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the comparison that the facts hold."""
        if facts.cpu.emulated:
            yield self.finding(
                found=f"CPUID says {facts.cpu.cpuid_vendor or 'something else'}, /proc/cpuinfo describes the host",
                needed="nothing, if it is meant",
                consequence="the CPU rules go by CPUID; speeds measured here mean nothing",
                next_step="nothing to do",
                evidence=(Evidence("flags differ", "/proc/cpuinfo", "ideepdoctor cpu"),),
            )
