"""IDP112: an emulated processor."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule

_ROSETTA = "VirtualApple"
_QEMU = {"target": {"emulator": ["qemu-x86_64", "-cpu", "Haswell"]}}
_SILENT = {"emulated": None, "cpuid_flags": None, "cpuid_vendor": None, "xcr0": None}


class IDP112(Rule):
    """The target runs under an emulator.

    What it checks
        Whether CPUID, as the target sees it, disagrees with /proc/cpuinfo; whether the processor is called VirtualApple
        (Rosetta 2 in a Linux virtual machine of an Apple computer); whether the flags of /proc/cpuinfo are those of no
        x86-64 processor at all (a container for x86-64 on an ARM machine).

    Why it matters
        Under qemu-user /proc/cpuinfo describes the host. What runs is what CPUID says, so the other rules go by that.
        Times measured there mean nothing. Rosetta 2 of older systems has no AVX, which 2.0.0.post3 needs; then IDP110
        says so.

    How to fix
        Nothing, if it is meant. On an Apple computer: Chainer with NumPy for its own processor is faster than any
        emulation.

    References
        Measured with qemu-user 7.2. Rosetta 2 was not tried.
    """

    title = "The CPU is emulated"
    severity = Severity.INFO
    requires = ("IDP101",)
    ok = (
        Example("real"),
        Example("CPUID not readable", {"cpu": {"emulated": None, "cpuid_flags": None}}),
        Example("flags not readable", {"cpu": {"emulated": None, "cpuid_flags": None, "cpuinfo_flags": None}}),
    )
    bad = (
        Example("qemu Haswell", {"cpu": {"emulated": True, "cpuid_vendor": "GenuineIntel"}}),
        Example("another model of the same vendor", {"cpu": {"emulated": True}}),
        Example(
            "Rosetta 2",
            {"cpu": {"vendor": _ROSETTA, "cpuid_vendor": _ROSETTA, "model_name": "VirtualApple @ 2.50GHz processor"}},
        ),
        Example("an emulator without CPUID", {**_QEMU, "cpu": _SILENT}),
        Example("x86-64 on ARM, without CPUID", {"cpu": {**_SILENT, "cpuinfo_flags": ["asimd", "fp"]}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the comparison that the facts hold."""
        cpu = facts.cpu
        strange = cpu.cpuinfo_flags is not None and "sse2" not in cpu.cpuinfo_flags
        if _ROSETTA in (cpu.vendor, cpu.cpuid_vendor):
            yield self._finding(
                "the processor calls itself VirtualApple: Rosetta 2 of an Apple computer",
                "speeds measured here mean nothing; Chainer with NumPy for the computer's own processor is faster",
            )
        elif cpu.emulated:
            yield self._finding(
                f"CPUID says {cpu.cpuid_vendor or 'something else'}, /proc/cpuinfo describes the host",
                "the CPU rules go by CPUID; speeds measured here mean nothing",
            )
        elif cpu.cpuid_flags is None and (facts.target.emulator or strange):
            words = " ".join(facts.target.emulator) or "an emulator"
            yield self._finding(
                f"it runs under {words}, whose CPUID could not be read",
                "what this processor can do is not known; speeds measured here mean nothing",
            )

    def _finding(self, found: str, consequence: str) -> Finding:
        return self.finding(
            found=found,
            needed="nothing, if it is meant",
            consequence=consequence,
            next_step="nothing to do",
            evidence=(Evidence("what the processor says", "/proc/cpuinfo", "ideepdoctor cpu"),),
        )
