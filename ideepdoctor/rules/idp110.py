"""IDP110: the processor lacks instructions that ideep4py uses."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.built_host import built_host
from ideepdoctor.rules.compat import lacking, unsaved
from ideepdoctor.rules.installed import is_build, release


class IDP110(Rule):
    """The release was compiled for a newer processor than this one.

    What it checks
        The processor's flags against what the ordinary code of the installed (or planned) ideep4py needs: AVX for
        2.0.0.post3, AVX-512 for 2.0.0b1.post1, SSE2 for 1.0.x. Registers that the system does not save are the concern
        of IDP115, what a build needs that of IDP820. Under an emulator whose CPUID could not be read nothing is known:
        /proc/cpuinfo describes the machine beneath.

    Why it matters
        The import works; the first array or operation ends the process with SIGILL (Illegal instruction). No variable
        changes that: the instructions are in the compiled code, not in what MKL-DNN generates at run time.

    How to fix
        Install a release that this processor can run (ideep4py 1.0.4 with Chainer 4 needs SSE2 alone), use another
        machine, or let the hypervisor pass the processor's features through.

    References
        Measured on emulated Conroe, Nehalem, Westmere, SandyBridge, Haswell and Skylake-Client. chainer PR 4933.

        Reports: oneDNN #15, apache/mxnet #11911, tensorflow #19766 and pytorch #23426 (illegal instruction).
    """

    title = "The CPU lacks instructions that this ideep4py needs"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (
        Example("AVX-512 machine"),
        Example("SandyBridge has AVX", {"cpu": {"cpuinfo_flags": ["sse2", "avx"], "emulated": False, "xcr0": 7}}),
        Example(
            "1.0.4 needs SSE2 alone",
            {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}, "cpu": {"cpuinfo_flags": ["sse2"], "xcr0": None}},
            "py36-healthy",
        ),
        Example("a build for this very processor", built_host()),
    )
    bad = (
        Example("Nehalem", {"cpu": {"cpuinfo_flags": ["sse2", "sse4_2"], "emulated": False, "xcr0": None}}),
        Example(
            "the beta for AVX-512 on AVX2",
            {
                "packages": {"ideep4py": "2.0.0b1.post1", "chainer": "5.0.0rc1"},
                "cpu": {"cpuinfo_flags": ["sse2", "avx", "avx2"], "emulated": False},
            },
            "py36-healthy",
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare flags with the release's needs."""
        known = release(facts)
        if known is None or known.broken or not known.cpu_flags or is_build(facts):
            return
        missing = lacking(facts.cpu, known.cpu_flags)
        if missing is None:
            raise Unknown("the processor's flags could not be read")
        if facts.cpu.cpuid_flags is None and (facts.target.emulator or "sse2" not in (facts.cpu.flags or ())):
            raise Unknown("CPUID of the emulator could not be read, and /proc/cpuinfo describes the machine beneath it")
        missing = tuple(flag for flag in missing if flag not in unsaved(facts.cpu, missing))
        if missing:
            feature = "avx512" if missing[0].startswith("avx512") else "avx"
            model = facts.cpu.model_name or facts.cpu.vendor or "unknown CPU"
            yield self.finding(
                found=f"{', '.join(missing)} cannot be used ({model})",
                needed=f"{', '.join(known.cpu_flags)} for ideep4py {known.version}",
                consequence="the first array or operation ends the process with SIGILL, although the import works",
                next_step="see what this CPU can run: ideepdoctor cpu",
                evidence=(Evidence("flags of the processor", "/proc/cpuinfo", f"ideepdoctor cpu --why-not {feature}"),),
            )
