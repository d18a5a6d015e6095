"""IDP101: the operating system or the processor's architecture has no wheel."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import SYSTEMS


class IDP101(Rule):
    """ideep4py exists for Linux on x86-64 alone.

    What it checks
        The target's operating system is Linux and its machine x86_64.

    Why it matters
        The package index has wheels for Linux x86_64 only, no source distribution, and the code generator of MKL-DNN
        writes x86 instructions. Nothing else can be done with it on Windows, macOS or ARM.

    How to fix
        Work on Linux x86_64: a server, a virtual machine, WSL on Windows. On ARM and Apple silicon, use Chainer with
        NumPy and OpenBLAS.

    References
        intel/ideep #16, #17 and #26 (Windows and macOS).

        Reports: bytedeco/javacpp-presets #724 and Idein/chainer-pose-proposal-net #3 (ARM); pytorch #15982 (Windows);
        chainer #704 and #3621 (macOS).
    """

    title = "This system cannot run ideep4py"
    severity = Severity.ERROR
    ok = (Example("Linux on x86-64"), Example("another kernel", {"platform": {"kernel": "6.1.0"}}))
    bad = (
        Example("ARM server", {"platform": {"machine": "aarch64"}}),
        Example("macOS", {"platform": {"system": "Darwin", "libc": None, "libc_version": None}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the system's and the machine's names."""
        platform = facts.platform
        if (platform.system, platform.machine) not in SYSTEMS:
            yield self.finding(
                found=f"{platform.system} on {platform.machine}",
                needed="Linux on x86_64",
                consequence="no ideep4py can be installed or built here; Chainer works with NumPy alone",
                next_step="use a Linux x86_64 machine, virtual machine or WSL; or Chainer with NumPy",
            )
