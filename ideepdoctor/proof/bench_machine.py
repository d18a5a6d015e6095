"""The machine of a run: what it is, the most that it computes, and how wide the intervals were."""

from __future__ import annotations

from collections.abc import Iterable

import psutil

from ideepdoctor.model.bench import Machine, Row, Theoretical
from ideepdoctor.model.facts import Cpu, Facts
from ideepdoctor.model.words import counted

FLOPS = {"avx512": 64, "avx2": 32, "avx": 16, "sse42": 8, "sse2": 8}
"""Single precision operations of one core in one cycle: lanes, two units, and two for a fused multiplication and
addition (AVX2 and AVX-512). Some processors have one AVX-512 unit; their ceiling is that of AVX2."""
_NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sse42": "SSE4.2", "sse2": "SSE2"}


def isa_of(cpu: Cpu) -> str:
    """The widest instruction set of FLOPS that a processor and its system offer."""
    flags = cpu.flags or frozenset()
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return "avx512"
    if {"avx2", "fma"} <= flags:
        return "avx2"
    if "avx" in flags:
        return "avx"
    return "sse42" if "sse4_2" in flags else "sse2"


def theoretical(cpu: Cpu, cpus: int | None) -> Theoretical | None:
    """Cores times clock times operations in a cycle; None where the clock is not known or is another machine's.

    Args:
        cpu: the processor; under an emulator nothing follows from it.
        cpus: CPUs in use; those that share a core count once.
    """
    clock = clock_megahertz()
    if cpu.emulated or clock is None or not cpus:
        return None
    cores = min(cpus, cpu.physical_cores or cpus)
    isa = isa_of(cpu)
    units = ", 2 FMA units" if isa in ("avx512", "avx2") else ", 2 units"
    basis = f"{counted(cores, 'core')} x {clock / 1000:.1f} GHz x {FLOPS[isa]} flop per cycle ({_NAMES[isa]}{units})"
    return Theoretical(cores * clock * FLOPS[isa] / 1000, f"{basis}; the clock is the system's, turbo goes beyond")


def clock_megahertz() -> float | None:
    """The highest clock that the system tells of this machine's processors, else the present one."""
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError):
        return None
    return None if frequency is None else float(frequency.max or frequency.current) or None


def widths(rows: Iterable[Row]) -> list[float]:
    """Widths of the 95 % intervals, each relative to its median."""
    known = [row for row in rows if row.measured and row.low is not None and row.high is not None]
    return [(row.high - row.low) / row.median for row in known if row.low and row.high and row.median]


def machine_of(facts: Facts, cpus: int | None, name: str | None) -> Machine:
    """The machine of a target."""
    cpu = facts.cpu
    return Machine(
        name=name or _short(cpu.model_name or "unknown processor", cpus),
        cpu=cpu.model_name or "",
        vendor=cpu.vendor or "",
        isa=isa_of(cpu),
        sockets=cpu.sockets,
        physical_cores=cpu.physical_cores,
        logical_cpus=cpu.logical_cpus,
        cpus_used=cpus,
        quota_cpus=facts.limits.quota_cpus,
        memory_bytes=facts.limits.memory_total_bytes,
        emulated=bool(cpu.emulated),
    )


def _short(model: str, cpus: int | None) -> str:
    """A processor's name without its clock and trade marks, with the number of CPUs."""
    text = model.replace("(R)", "").replace("(TM)", "").split(" @ ")[0].split(" with ")[0]
    words = [word for word in text.split() if word not in ("CPU", "Processor")]
    return " ".join(words) + (f", {counted(cpus, 'CPU')}" if cpus else "")
