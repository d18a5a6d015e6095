"""IDP115: registers that the system does not save."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import unsaved
from ideepdoctor.rules.deaths import killed
from ideepdoctor.rules.idp113 import model_has_avx512
from ideepdoctor.rules.installed import is_build, release

_OLD = {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}}
_WSL2 = {"platform": {"kernel": "5.15.167.4-microsoft-standard-WSL2"}}


class IDP115(Rule):
    """The processor shows AVX or AVX-512, and the system does not save the registers that they use.

    What it checks
        The flags of the processor against XCR0, the register that says what the kernel saves when it changes between
        threads: AVX needs its bits 1 and 2, AVX-512 bits 5 to 7 too. On WSL 2 with AVX-512 it also looks how the first
        operation ended.

    Why it matters
        An instruction whose registers are not enabled ends the process with SIGILL, although the flag is shown. What
        is compiled into 2.0.0.post3 (AVX) and 2.0.0b1.post1 (AVX-512) does not ask; what MKL-DNN generates asks XCR0
        first, and takes the next lower kind of code: right, but slower.

    How to fix
        Leave out the kernel parameters ``noxsave``, ``clearcpuid=`` and ``nofxsr``; give a virtual machine the whole
        processor of its host (CPU model ``host``). On WSL 2 hide AVX-512 with ``kernelCommandLine=clearcpuid=304`` in
        ``.wslconfig`` (not tried by us).

    References
        Intel SDM volume 1, 13.3 and 14.3. microsoft/WSL #40985.
    """

    title = "The system does not save registers that the CPU has"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (
        Example("all are saved"),
        Example("AVX alone, and saved", {"cpu": {"cpuinfo_flags": ["sse2", "avx"], "emulated": False, "xcr0": 7}}),
        Example("XCR0 not known", {"cpu": {"xcr0": None}}),
        Example("WSL 2 that works", _WSL2),
    )
    bad = (
        Example("AVX that the system does not save", {"cpu": {"xcr0": 3}}),
        Example("AVX, 1.0.4 does without", {**_OLD, "cpu": {"xcr0": 3}}, "py36-healthy"),
        Example(
            "the beta for AVX-512",
            {"packages": {"ideep4py": "2.0.0b1.post1", "chainer": "5.0.0rc1"}, "cpu": {"xcr0": 7}},
            "py36-healthy",
        ),
        Example("WSL 2 with AVX-512 that crashes", {**_WSL2, "first_op": killed("SIGSEGV")}, also=("IDP313", "IDP320")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for flags without registers: an error where compiled code uses them, else a lower kind of code."""
        cpu, known = facts.cpu, release(facts)
        needs = () if known is None or known.broken or is_build(facts) else known.cpu_flags
        lost = unsaved(cpu, ("avx", "avx512f"))
        fatal = unsaved(cpu, needs)
        if known is not None and fatal:
            yield self._finding(
                facts,
                f"{', '.join(fatal)} of {cpu.model_name or 'this CPU'}",
                f"ideep4py {known.version} uses them: the first array or operation ends the process with SIGILL",
                Severity.ERROR,
            )
        elif lost and not (lost == ("avx512f",) and model_has_avx512(cpu.model_name)):  # IDP113 says that
            slower = "SSE code" if "avx" in lost else "its AVX2 code"
            consequence = f"MKL-DNN uses {slower}: right, but slower than this CPU can be"
            yield self._finding(
                facts, f"{', '.join(lost)} of {cpu.model_name or 'this CPU'}", consequence, Severity.INFO
            )
        yield from self._wsl(facts)

    def _finding(self, facts: Facts, shown: str, consequence: str, severity: Severity) -> Finding:
        return self.finding(
            found=f"{shown}: shown, and the system does not save the registers (XCR0 is {facts.cpu.xcr0:#x})",
            needed="bits 1 and 2 of XCR0 for AVX, 5 to 7 too for AVX-512",
            consequence=consequence,
            next_step="leave out noxsave and clearcpuid of the kernel's command line, or let the hypervisor pass the "
            "host CPU through",
            evidence=(
                Evidence("XCR0", "xgetbv", "ideepdoctor cpu --why-not avx512"),
                Evidence("parameters of the kernel", "/proc/cmdline", "cat /proc/cmdline"),
            ),
            severity=severity,
        )

    def _wsl(self, facts: Facts) -> Iterator[Finding]:
        """A note beside the finding about the death, where AVX-512 is shown to WSL 2."""
        died = facts.first_op is not None and facts.first_op.signal == "SIGSEGV"
        wsl2 = re.search(r"microsoft.*WSL2", facts.platform.kernel or "") is not None
        if died and wsl2 and "avx512f" in (facts.cpu.flags or ()):
            yield self.finding(
                found="WSL 2 shows avx512f, and the first operation ended with SIGSEGV",
                needed="registers of AVX-512 that survive a change of threads",
                consequence="WSL 2 is reported to lose them on some machines; another cause is possible",
                next_step="try kernelCommandLine=clearcpuid=304 under [wsl2] in .wslconfig, then wsl --shutdown",
                severity=Severity.INFO,
            )
