"""IDP101: the operating system or the processor's architecture has no wheel."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import SYSTEMS
from ideepdoctor.rules.systems import is_wsl1, what_to_do

_MAC = {"libc": None, "libc_version": None}
_WINDOWS = {**_MAC, "machine": "x86_64", "kernel": None}


class IDP101(Rule):
    """ideep4py exists for Linux on x86-64 alone.

    What it checks
        The target's operating system is Linux and its machine x86_64, as ``uname`` names them. Cygwin and MSYS2 are
        Windows, Android is no Linux with glibc. On WSL 1 a note says that nobody has measured it, unless an operation
        of ideep4py has run there.

    Why it matters
        The package index has wheels for Linux x86_64 only, no source distribution, and the code generator of MKL-DNN
        writes x86 instructions. Nothing else can be done with it on Windows, macOS or ARM.

    How to fix
        Work on Linux x86_64: a server, a virtual machine, WSL 2 on Windows. On ARM (Apple silicon, Raspberry Pi,
        Graviton) use Chainer with NumPy and OpenBLAS. NumPy on macOS: a wheel of the index; one that was built with
        Apple's Accelerate let training diverge.

    References
        intel/ideep #16, #17 and #26 (Windows and macOS).

        Reports: bytedeco/javacpp-presets #724 and Idein/chainer-pose-proposal-net #3 (ARM); pytorch #15982 (Windows);
        chainer #704 and #3621 (macOS).
    """

    title = "This system cannot run ideep4py"
    severity = Severity.ERROR
    ok = (
        Example("Linux on x86-64"),
        Example("another kernel", {"platform": {"kernel": "6.1.0"}}),
        Example("a 32-bit kernel's name for it", {"platform": {"machine": "amd64"}}),
        Example("WSL 2", {"platform": {"kernel": "5.15.167.4-microsoft-standard-WSL2"}}),
        Example("WSL 1 where it works", {"platform": {"kernel": "4.4.0-19041-Microsoft"}}),
    )
    bad = (
        Example("ARM server (Graviton, Raspberry Pi)", {"platform": {"machine": "aarch64"}}),
        Example("Raspberry Pi, 32 bits", {"platform": {"machine": "armv7l"}}),
        Example("macOS on Intel", {"platform": {**_MAC, "system": "Darwin"}}),
        Example("Apple silicon", {"platform": {**_MAC, "system": "Darwin", "machine": "arm64"}}),
        Example("Windows", {"platform": {**_WINDOWS, "system": "Windows", "machine": "AMD64"}}),
        Example("Cygwin", {"platform": {**_WINDOWS, "system": "CYGWIN_NT-10.0-19045"}}),
        Example("MSYS2", {"platform": {**_WINDOWS, "system": "MINGW64_NT-10.0-19045"}}),
        Example("Termux", {"platform": {**_MAC, "machine": "aarch64", "kernel": "5.10.149-android13-4-00003"}}),
        Example("a 32-bit kernel", {"platform": {"machine": "i686"}}),
        Example(
            "WSL 1, nothing tried",
            {
                "platform": {"kernel": "4.4.0-19041-Microsoft"},
                "imports": None,
                "first_op": None,
                "chainer": None,
                "mode": "quick",
            },
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the system's and the machine's names."""
        platform = facts.platform
        if (platform.system, platform.machine) not in SYSTEMS:
            found, way = what_to_do(platform, _usable(facts))
            yield self.finding(
                found=found,
                needed="Linux on x86_64",
                consequence="no ideep4py can be installed or built here; Chainer works with NumPy alone",
                next_step=way,
            )
        elif is_wsl1(platform) and not (facts.first_op is not None and facts.first_op.ok):
            yield self.finding(
                found=f"WSL 1 (kernel {platform.kernel})",
                needed="WSL 2, or an operation of ideep4py that runs here",
                consequence="nobody has measured ideep4py on WSL 1: it may work",
                next_step="wsl --set-version DISTRIBUTION 2, or see whether it works: ideepdoctor smoke",
                severity=Severity.INFO,
            )


def _usable(facts: Facts) -> str:
    """The interpreter's version; empty where pip may not change it."""
    return "" if facts.python.externally_managed else facts.python.minor
