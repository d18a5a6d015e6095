"""``cpu``: what this CPU has, what is left of it, what each ideep4py needs, and which kernel it will use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ideepdoctor.commands.session import Session, TargetOptions, examine, find_target
from ideepdoctor.errors import DoctorError, UsageError
from ideepdoctor.locale import columns
from ideepdoctor.model.facts import Cpu, Facts
from ideepdoctor.model.report import Report
from ideepdoctor.model.words import counted
from ideepdoctor.rules.compat import RELEASES, Release, kernel, lacking
from ideepdoctor.rules.idp113 import model_has_avx512
from ideepdoctor.targets.target import Target

FEATURES = {
    "avx": ("avx",),
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"),
}
"""What ``--why-not`` knows, and the flags that it stands for."""

_LEVELS = ("sse2", "sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl")


def cpu(session: Session, options: TargetOptions, why_not: str | None) -> Report:
    """Describe the processor that a target sees.

    Args:
        session: this run.
        options: which Python; where none can be found, the doctor's own sees the same processor.
        why_not: a feature (avx, avx2, avx512): say why it is not there.

    Raises:
        UsageError: an unknown feature, or a named target that is no Python.
    """
    if why_not is not None and why_not.lower().replace("-", "") not in FEATURES:
        raise UsageError(f"{why_not} is not known here", hint=f"--why-not takes {', '.join(FEATURES)}")
    from ideepdoctor.facts.collect import BARE

    facts = examine(session, _target(session, options), BARE)
    data: dict[str, Any] = {
        "model": facts.cpu.model_name,
        "vendor": facts.cpu.vendor,
        "emulated": facts.cpu.emulated,
        "hypervisor": facts.cpu.hypervisor,
        "has": sorted(flag for flag in _LEVELS if flag in (facts.cpu.flags or ())),
        "sockets": facts.cpu.sockets,
        "physical_cores": facts.cpu.physical_cores,
        "logical_cpus": facts.cpu.logical_cpus,
        "usable_cpus": None if facts.limits.affinity_cpus is None else len(facts.limits.affinity_cpus),
        "quota_cpus": facts.limits.quota_cpus,
        "convolution_kernel": kernel(facts.cpu),
        "executable_memory": facts.limits.executable_memory,
        "releases": {version: verdict(facts.cpu, release) for version, release in RELEASES.items()},
    }
    lines = _lines(facts, data)
    if why_not is not None:
        data["why_not"] = reason(facts.cpu, why_not.lower().replace("-", ""))
        lines = [data["why_not"]]
    return Report("cpu", facts=facts, text=columns.lines("\n".join(lines)) + "\n", extra={"cpu": data})


def _target(session: Session, options: TargetOptions) -> Target:
    import sys

    try:
        return find_target(session, options)
    except DoctorError:
        if options.named:
            raise
        return Target(sys.executable, emulator=options.emulator, reason="the doctor's own: the CPU is the same")


def verdict(cpu: Cpu, release: Release) -> str:
    """Whether a release of ideep4py runs on a processor, in words."""
    if release.broken:
        return f"works nowhere: {release.broken}"
    if release.intel_only and cpu.vendor is None:
        return "not known: it needs an Intel CPU, and the vendor of this one could not be read"
    if release.intel_only and cpu.vendor != "GenuineIntel":
        return f"dies at import: needs an Intel CPU, this one is {cpu.vendor}"
    missing = lacking(cpu, release.cpu_flags)
    if missing is None:
        return "not known: the flags could not be read"
    if missing:
        return f"dies at the first operation: needs {', '.join(missing)}"
    return "runs"


def reason(cpu: Cpu, feature: str) -> str:
    """Why a feature is not there, in one sentence; or that it is."""
    flags = FEATURES[feature]
    missing = lacking(cpu, flags)
    if missing is None:
        return f"{feature}: not known, the flags of this processor could not be read"
    if not missing:
        return f"{feature}: it is there, and the system saves its registers"
    if cpu.emulated:
        return f"{feature}: the emulator's processor does not have {', '.join(missing)}"
    by_cpuid = replace(cpu, cpuinfo_flags=tuple((cpu.flags or frozenset()) | set(cpu.cpuid_flags or ())))
    unsaved = lacking(by_cpuid, flags) and set(missing) <= set(by_cpuid.cpuinfo_flags or ())
    if cpu.xcr0 is not None and unsaved:
        return f"{feature}: the processor has it, but the system does not save its registers (XCR0 is {cpu.xcr0:#x})"
    if not lacking(by_cpuid, flags):
        return f"{feature}: CPUID has it, the kernel hides it (a boot parameter such as clearcpuid, or a mitigation)"
    behind = f"; the hypervisor ({cpu.hypervisor}) may hide it from this machine" if cpu.hypervisor else ""
    known = " (this model has it)" if feature == "avx512" and model_has_avx512(cpu.model_name) else ""
    return f"{feature}: {cpu.model_name or 'this processor'} does not show {', '.join(missing)}{known}{behind}"


def _lines(facts: Facts, data: dict[str, Any]) -> list[str]:
    emulated = ", emulated" if facts.cpu.emulated else ""
    quota = "" if facts.limits.quota_cpus is None else f", quota {counted(facts.limits.quota_cpus, 'CPU')}"
    behind = f", behind {facts.cpu.hypervisor}" if facts.cpu.hypervisor else ""
    unknown = "not known"
    rows = [
        ("cpu", f"{data['model'] or unknown} ({data['vendor'] or unknown}{emulated}{behind})"),
        ("has", " ".join(data["has"]) or unknown),
        ("cores", f"{data['physical_cores'] or unknown} physical, {data['logical_cpus'] or unknown} logical CPUs"),
        ("usable", f"{counted(data['usable_cpus'], 'CPU') if data['usable_cpus'] else unknown}{quota}"),
        ("kernel", f"{data['convolution_kernel'] or unknown} (convolution)"),
        *(
            [("code", "refused: this process may not run code that it writes")]
            if data["executable_memory"] is False
            else []
        ),
        *((f"ideep4py {version}", text) for version, text in data["releases"].items()),
    ]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {text}" for name, text in rows]
