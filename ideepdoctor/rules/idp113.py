"""IDP113: AVX-512 that the model has and the target does not see."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import lacking

_HAVE_AVX512 = (
    r"Xeon\(R\) (Platinum|Gold|Silver|Bronze) \d",
    r"Xeon\(R\) W-[23]\d{3}",
    r"Xeon\(R\) W-1(3\d\d|1\d{3})",
    r"Xeon\(R\) w[3579]-[23]\d{3}",
    r"Xeon\(R\) D-(1[78]|2[178])\d\d",
    r"Xeon\(R\) E-23\d\d",
    r"Xeon\(R\) 6\d{3}P",
    r"Core\(TM\) i[79]-(78|79|98|99|109)\d\d(X|XE)\b",
    r"Core\(TM\) i[3579]-11\d(\d{2}|\dG)",
    r"Core\(TM\) i[357]-10\d\dN?G",
    r"EPYC [489][0-9A-Z]\d[45]",
    r"Ryzen [3579] (PRO )?8\d\d\d",
    r"Ryzen [3579] (PRO )?[79]\d(?![23]\d)\d\d",
    r"Ryzen Threadripper (PRO )?[79]9\d\d",
    r"(?i:Ryzen AI (\d|MAX))",
    r"Ryzen Z1",
)
"""Names of models with AVX-512.

Xeon Scalable, W (Skylake to Sapphire Rapids, Rocket and Tiger Lake), D of Skylake and Ice Lake, E of Rocket Lake, 6
with P cores; Core X, Ice, Tiger and Rocket Lake; Zen 4 and 5 (EPYC 4004, 8004, 9004 and their successors, the
clouds' own names of them; Ryzen 7000 and later). Mobile Ryzen 7x20 to 7x35 are older cores, Xeon E5, Core of the 12th
generation and later and Xeon 6 with E cores have none: they do not match.
"""


def model_has_avx512(model_name: str | None) -> bool:
    """Whether processors of this name are known to have AVX-512."""
    return model_name is not None and any(re.search(pattern, model_name) for pattern in _HAVE_AVX512)


class IDP113(Rule):
    """A hypervisor or the kernel hides AVX-512.

    What it checks
        Whether a processor whose model has AVX-512 lacks the flag, or the system does not save its registers.

    Why it matters
        MKL-DNN then generates AVX2 code: right, and slower than this processor can.

    How to fix
        Let the hypervisor pass the host's processor through (cpu model "host"), or look for a kernel parameter such as
        clearcpuid or mitigations that turns it off.

    References
        jax #2906 (Xen), intel-ipsec-mb #153 (VMware). Models by their published names.

        Reports: oneDNN #500 (AVX-512 that is shown and cannot be used).
    """

    title = "AVX-512 is hidden from this target"
    severity = Severity.INFO
    requires = ("IDP101",)
    ok = (
        Example("an EPYC of today with AVX-512"),
        Example(
            "a model without AVX-512",
            {"cpu": {"model_name": "AMD EPYC 7742 64-Core Processor", "cpuinfo_flags": ["sse2", "avx", "avx2"]}},
        ),
    )
    bad = (
        Example(
            "Skylake server, masked",
            {
                "cpu": {
                    "model_name": "Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz",
                    "cpuinfo_flags": ["sse2", "avx", "avx2"],
                    "vendor": "GenuineIntel",
                }
            },
        ),
        Example(
            "Genoa, masked",
            {"cpu": {"model_name": "AMD EPYC 9654 96-Core Processor", "cpuinfo_flags": ["sse2", "avx", "avx2"]}},
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Match the model's name, then look for the flag."""
        model = facts.cpu.model_name
        if facts.cpu.emulated or not model_has_avx512(model):
            return
        if lacking(facts.cpu, ("avx512f",)):
            behind = f" (hypervisor {facts.cpu.hypervisor})" if facts.cpu.hypervisor else ""
            yield self.finding(
                found=f"{model} without avx512f{behind}",
                needed="avx512f, which this model has",
                consequence="MKL-DNN uses its AVX2 code: right, but slower than this CPU can be",
                next_step="let the hypervisor pass the host CPU through; see ideepdoctor cpu --why-not avx512",
            )
