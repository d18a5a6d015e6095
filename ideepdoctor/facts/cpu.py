"""The processor, from raw texts: /proc/cpuinfo, the probe's CPUID registers, the dynamic loader's help."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from ideepdoctor.model.facts import Cpu

# (leaf, subleaf, register) -> {bit: the kernel's name of the flag}; arch/x86/include/asm/cpufeatures.h of Linux and
# the CPUID chapters of the vendors' manuals. Registers: 0 eax, 1 ebx, 2 ecx, 3 edx.
CPUID_FLAGS: dict[tuple[int, int, int], dict[int, str]] = {
    (1, 0, 3): {0: "fpu", 15: "cmov", 23: "mmx", 25: "sse", 26: "sse2"},
    (1, 0, 2): {
        0: "pni",
        1: "pclmulqdq",
        9: "ssse3",
        12: "fma",
        13: "cx16",
        19: "sse4_1",
        20: "sse4_2",
        22: "movbe",
        23: "popcnt",
        25: "aes",
        26: "xsave",
        28: "avx",
        29: "f16c",
        30: "rdrand",
        31: "hypervisor",
    },
    (7, 0, 1): {
        3: "bmi1",
        5: "avx2",
        8: "bmi2",
        16: "avx512f",
        17: "avx512dq",
        18: "rdseed",
        19: "adx",
        21: "avx512ifma",
        26: "avx512pf",
        27: "avx512er",
        28: "avx512cd",
        29: "sha_ni",
        30: "avx512bw",
        31: "avx512vl",
    },
    (7, 0, 2): {
        1: "avx512vbmi",
        6: "avx512_vbmi2",
        8: "gfni",
        9: "vaes",
        10: "vpclmulqdq",
        11: "avx512_vnni",
        12: "avx512_bitalg",
        14: "avx512_vpopcntdq",
    },
    (7, 0, 3): {2: "avx512_4vnniw", 3: "avx512_4fmaps", 8: "avx512_vp2intersect", 23: "avx512_fp16"},
    (7, 1, 0): {4: "avx_vnni", 5: "avx512_bf16"},
    (0x80000001, 0, 2): {0: "lahf_lm", 5: "abm", 6: "sse4a", 11: "xop", 16: "fma4"},
    (0x80000001, 0, 3): {29: "lm"},
}
AVX_STATE = 0b110
"""XCR0 bits of the SSE and AVX registers (Intel SDM volume 1, 13.3)."""
AVX512_STATE = 0b1110_0110
"""The same and the three of AVX-512: mask registers, upper halves of 0 to 15, registers 16 to 31."""
_AVX_FLAGS = frozenset({"avx", "avx2", "fma", "f16c", "fma4", "xop", "vaes", "vpclmulqdq", "avx_vnni"})
COMPARED = frozenset(
    {"pni", "ssse3", "sse4_1", "sse4_2", "popcnt", "aes", "avx", "f16c", "fma", "avx2", "bmi1", "bmi2"}
    | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
)
"""Flags that every kernel and every CPUID reader knows under the same name, and that matter to us."""


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """What one block of /proc/cpuinfo says."""

    vendor: str | None = None
    model_name: str | None = None
    family: int | None = None
    model: int | None = None
    flags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cpuid:
    """What the processor says of itself. ``flags`` are what it has, whether or not the system saves their registers."""

    vendor: str
    family: int
    model: int
    flags: tuple[str, ...]
    xcr0: int | None = None
    hypervisor: str | None = None
    brand: str | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """How many there are of what."""

    sockets: int | None
    physical_cores: int | None
    logical_cpus: int | None


def parse_cpuinfo(text: str) -> CpuInfo:
    """Read a block of /proc/cpuinfo; what is missing or no number is None. Never raises."""
    fields: dict[str, str] = {}
    for line in text.split("\n"):
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    # "Features" is the word of ARM kernels.
    flags = fields.get("flags", fields.get("Features"))
    return CpuInfo(
        vendor=fields.get("vendor_id") or None,
        model_name=fields.get("model name") or None,
        family=_whole(fields.get("cpu family")),
        model=_whole(fields.get("model")),
        flags=None if flags is None else tuple(sorted(set(flags.split()))),
    )


def parse_topology(text: str) -> Topology:
    """Count lines of ``processor socket core``; a ``?`` stands for what the system does not tell. Never raises."""
    rows = [fields for fields in (line.split() for line in text.split("\n")) if len(fields) == 3]
    if not rows:
        return Topology(None, None, None)
    if any("?" in row for row in rows):
        return Topology(None, None, len(rows))
    return Topology(len({row[1] for row in rows}), len({(row[1], row[2]) for row in rows}), len(rows))


def parse_cpuid(text: str) -> Cpuid | None:
    """Read lines of ``leaf subleaf eax ebx ecx edx`` and ``xcr0 value``, all hexadecimal; None where leaf 1 lacks."""
    registers: dict[tuple[int, int], tuple[int, ...]] = {}
    xcr0 = None
    for line in text.split("\n"):
        fields = line.split()
        try:
            numbers = [int(field, 16) for field in fields if field != "xcr0"]
        except ValueError:
            continue
        if fields[:1] == ["xcr0"] and len(numbers) == 1:
            xcr0 = numbers[0]
        elif len(numbers) == 6 and all(0 <= number < 1 << 32 for number in numbers):
            registers[numbers[0], numbers[1]] = tuple(numbers[2:])
    if (0, 0) not in registers or (1, 0) not in registers:
        return None
    _, ebx, ecx, edx = registers[0, 0]
    signature = registers[1, 0][0]
    family = signature >> 8 & 15
    model = signature >> 4 & 15
    if family >= 6:
        model += (signature >> 16 & 15) << 4
    if family == 15:
        family += signature >> 20 & 255
    flags = [
        name
        for (leaf, subleaf, register), bits in CPUID_FLAGS.items()
        if (leaf, subleaf) in registers
        for bit, name in bits.items()
        if registers[leaf, subleaf][register] >> bit & 1
    ]
    hypervisor = registers.get((0x40000000, 0))
    brand = [registers[leaf, 0] for leaf in range(0x80000002, 0x80000005) if (leaf, 0) in registers]
    return Cpuid(
        vendor=_letters((ebx, edx, ecx)),
        family=family,
        model=model,
        flags=tuple(sorted(flags)),
        xcr0=xcr0,
        hypervisor=(_letters(hypervisor[1:]) or None) if hypervisor else None,
        brand=(_letters([number for leaf in brand for number in leaf]) or None) if len(brand) == 3 else None,
    )


def parse_ldso_levels(text: str | None) -> tuple[str, ...] | None:
    """The x86-64-vN levels that ``ld.so --help`` calls supported, lowest first; None where it lists none at all.

    glibc 2.33 and later list them; under an emulator the emulated processor decides.
    """
    if not text or "glibc-hwcaps" not in text:
        return None
    return tuple(sorted(set(re.findall(r"^\s+(x86-64-v\d)\s+\(supported\b", text, re.MULTILINE))))


def usable_flags(flags: Collection[str], xcr0: int | None) -> tuple[str, ...]:
    """Leave out the flags whose registers the system does not save, as the kernel does in /proc/cpuinfo."""
    state = xcr0 or 0
    return tuple(
        sorted(
            flag
            for flag in flags
            if not (flag in _AVX_FLAGS and state & AVX_STATE != AVX_STATE)
            and not (flag.startswith("avx512") and state & AVX512_STATE != AVX512_STATE)
        )
    )


def is_emulated(info: CpuInfo, cpuid: Cpuid, host: Cpuid | None = None) -> bool:
    """Whether the target runs on an emulated processor.

    /proc/cpuinfo shows the host's processor also to an emulated process, CPUID the emulated one. A flag that CPUID
    has and the kernel hides (``clearcpuid=``, a hypervisor) is no sign of it; the contrary, another vendor, and
    another family or model are.

    Args:
        info: /proc/cpuinfo as the target sees it.
        cpuid: CPUID as executed by the target.
        host: CPUID as executed on the same machine without the emulator; None where there is no emulator to leave out.
    """
    if info.vendor is not None and info.vendor != cpuid.vendor:
        return True
    if None not in (info.family, info.model) and (info.family, info.model) != (cpuid.family, cpuid.model):
        return True
    if info.flags is not None and COMPARED & set(info.flags) - set(cpuid.flags):
        return True
    return host is not None and (
        host.vendor != cpuid.vendor or COMPARED & set(host.flags) != COMPARED & set(cpuid.flags)
    )


def build_cpu(
    cpuinfo: str | None,
    topology: str,
    cpuid_text: str | None,
    loader_help: str | None,
    host_cpuid_text: str | None = None,
) -> Cpu:
    """Put together what the texts say (see the parsers above for their forms)."""
    host = parse_cpuid(host_cpuid_text or "")
    info = parse_cpuinfo(cpuinfo or "")
    cpuid = parse_cpuid(cpuid_text or "")
    counts = parse_topology(topology)
    emulated = None if cpuid is None else is_emulated(info, cpuid, host)
    flags = None if cpuid is None else cpuid.flags
    if cpuid is not None and emulated:
        flags = usable_flags(cpuid.flags, cpuid.xcr0)
    return Cpu(
        vendor=info.vendor if cpuid is None else cpuid.vendor,
        model_name=(cpuid.brand or "emulated") if cpuid is not None and emulated else info.model_name,
        cpuinfo_flags=info.flags,
        cpuid_flags=flags,
        cpuid_vendor=None if cpuid is None else cpuid.vendor,
        xcr0=None if cpuid is None else cpuid.xcr0,
        ldso_levels=parse_ldso_levels(loader_help),
        hypervisor=None if cpuid is None else cpuid.hypervisor,
        sockets=counts.sockets,
        physical_cores=counts.physical_cores,
        logical_cpus=counts.logical_cpus,
        emulated=emulated,
    )


def _letters(numbers: Collection[int]) -> str:
    """The characters that registers hold, four each, lowest byte first."""
    raw = b"".join(number.to_bytes(4, "little") for number in numbers)
    return "".join(chr(byte) for byte in raw if 32 <= byte < 127).strip()


def _whole(text: str | None) -> int | None:
    """A decimal number, or None."""
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) else None
