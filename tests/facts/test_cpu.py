"""The processor from recorded texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.facts.cpu import (
    AVX512_STATE,
    Cpuid,
    CpuInfo,
    build_cpu,
    is_emulated,
    parse_cpuid,
    parse_cpuinfo,
    parse_ldso_levels,
    parse_topology,
    usable_flags,
)

EPYC_INFO = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC
stepping\t: 1
flags\t\t: fpu cmov mmx sse sse2 pni pclmulqdq ssse3 fma sse4_1 sse4_2 movbe popcnt aes xsave avx f16c \
hypervisor sse4a bmi1 avx2 bmi2 avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni
bugs\t\t: sysret_ss_attrs null_seg
"""
EPYC_CPUID = """00000000 0 0000001c 68747541 444d4163 69746e65
00000001 0 00b00f21 00020800 fffa3203 178bfbff
00000007 0 00000001 f1bf07ab 00405fc6 00000110
00000007 1 00000030 00000000 00000000 00000000
0000000d 0 000000e7 00000980 00000980 00000000
xcr0 00000000000000e7
40000000 0 40000001 4b4d564b 564b4d56 0000004d
80000000 0 80000021 68747541 444d4163 69746e65
80000001 0 00b00f21 40000000 004003f3 2fd3fbff
80000002 0 20444d41 43595045 00000000 00000000
80000003 0 00000000 00000000 00000000 00000000
80000004 0 00000000 00000000 00000000 00000000
"""
# As qemu-user 7.2 shows a Nehalem: no XSAVE, so no XCR0.
NEHALEM_CPUID = """00000000 0 0000000b 756e6547 6c65746e 49656e69
00000001 0 000106a3 00000800 80982201 078bfbfd
00000007 0 00000000 00000000 00000000 00000000
40000000 0 40000001 54474354 43544743 47435447
80000000 0 80000008 756e6547 6c65746e 49656e69
80000001 0 000106a3 00000000 00000001 20100800
"""
XEON_8180_INFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse sse2 ssse3 sse4_1 sse4_2 avx avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl
"""
HWCAPS = """Usage: ld.so [OPTION]... EXECUTABLE-FILE [ARGS-FOR-PROGRAM...]

Subdirectories of glibc-hwcaps directories, in priority order:
  x86-64-v4
  x86-64-v3 (supported, searched)
  x86-64-v2 (supported, searched)

Legacy HWCAP subdirectories under library search path directories:
  x86_64 (AT_PLATFORM; supported, searched)
"""


def two_sockets(cores: int, threads: int) -> str:
    """Topology lines of two sockets, numbered as Linux does: all cores first, then their second threads."""
    rows = [(socket, core) for _ in range(threads) for socket in range(2) for core in range(cores)]
    return "\n".join(f"{number} {socket} {core}" for number, (socket, core) in enumerate(rows))


def test_cpuinfo() -> None:
    info = parse_cpuinfo(EPYC_INFO)
    assert (info.vendor, info.model_name, info.family, info.model) == ("AuthenticAMD", "AMD EPYC", 26, 2)
    assert info.flags is not None
    assert {"avx2", "avx512f"} <= set(info.flags) and "null_seg" not in info.flags
    assert list(info.flags) == sorted(info.flags)


def test_cpuinfo_of_arm_and_of_nothing() -> None:
    assert parse_cpuinfo("processor\t: 0\nFeatures\t: fp asimd\n") == CpuInfo(flags=("asimd", "fp"))
    assert parse_cpuinfo("") == CpuInfo()


def test_cpuid() -> None:
    cpuid = parse_cpuid(EPYC_CPUID)
    assert cpuid is not None
    assert (cpuid.vendor, cpuid.family, cpuid.model) == ("AuthenticAMD", 26, 2)
    assert (cpuid.xcr0, cpuid.hypervisor, cpuid.brand) == (0xE7, "KVMKVMKVM", "AMD EPYC")
    info = parse_cpuinfo(EPYC_INFO)
    assert info.flags is not None and set(info.flags) <= set(cpuid.flags)
    assert {"avx512_bf16", "avx_vnni", "avx512_vp2intersect", "sha_ni"} <= set(cpuid.flags)


def test_cpuid_of_an_old_intel() -> None:
    cpuid = parse_cpuid(NEHALEM_CPUID)
    assert cpuid is not None
    assert (cpuid.vendor, cpuid.family, cpuid.model) == ("GenuineIntel", 6, 26)
    assert "sse4_2" in cpuid.flags and not {"avx", "aes", "fma", "xsave"} & set(cpuid.flags)
    assert (cpuid.xcr0, cpuid.brand, cpuid.hypervisor) == (None, None, "TCGTCGTCGTCG")


@pytest.mark.parametrize(
    "text", ["", "00000000 0 0 0 0 0", "nonsense", "00000000 0 0 1ffffffff 0 0\n00000001 0 0 0 0 0"]
)
def test_cpuid_that_makes_no_sense(text: str) -> None:
    assert parse_cpuid(text) is None


@pytest.mark.parametrize(
    ("text", "sockets", "cores", "logical"),
    [
        (two_sockets(28, 2), 2, 56, 112),
        (two_sockets(28, 1), 2, 56, 56),
        ("0 0 0\n1 0 1", 1, 2, 2),
        ("0 0 0\n1 0 0", 1, 1, 2),
        ("0 ? ?\n1 ? ?", None, None, 2),
        ("", None, None, None),
    ],
)
def test_topology(text: str, sockets: int | None, cores: int | None, logical: int | None) -> None:
    counts = parse_topology(text)
    assert (counts.sockets, counts.physical_cores, counts.logical_cpus) == (sockets, cores, logical)


def test_levels_of_the_loader() -> None:
    assert parse_ldso_levels(HWCAPS) == ("x86-64-v2", "x86-64-v3")
    assert parse_ldso_levels("Usage: ld.so [OPTION]... EXECUTABLE-FILE") is None, "glibc older than 2.33"
    assert parse_ldso_levels(None) is None


def test_flags_need_their_registers_saved() -> None:
    flags = {"sse2", "avx", "fma", "avx512f", "avx512_vnni"}
    assert usable_flags(flags, AVX512_STATE | 1) == ("avx", "avx512_vnni", "avx512f", "fma", "sse2")
    assert usable_flags(flags, 0b111) == ("avx", "fma", "sse2")
    assert usable_flags(flags, 0b111 | 0x60) == ("avx", "fma", "sse2"), "a part of the AVX-512 state is not enough"
    assert usable_flags(flags, None) == ("sse2",)


def test_emulation_is_disagreement() -> None:
    info = parse_cpuinfo(EPYC_INFO)
    native = parse_cpuid(EPYC_CPUID)
    other = parse_cpuid(NEHALEM_CPUID)
    assert native is not None and other is not None
    assert not is_emulated(info, native)
    assert not is_emulated(info, native, native)
    assert is_emulated(info, other)
    assert is_emulated(info, native, other), "the machine itself has another processor"
    fewer = Cpuid(native.vendor, native.family, native.model, tuple(set(native.flags) - {"avx2"}))
    assert is_emulated(info, fewer), "the kernel cannot show what the processor lacks"
    assert is_emulated(info, Cpuid(native.vendor, native.family, 1, native.flags))


def test_hidden_flags_are_no_emulation() -> None:
    native = parse_cpuid(EPYC_CPUID)
    hidden = parse_cpuinfo(EPYC_INFO.replace(" avx512f", "").replace(" avx512dq", ""))
    assert native is not None
    assert not is_emulated(hidden, native), "clearcpuid= and hypervisors hide flags"
    cpu = build_cpu(EPYC_INFO.replace(" avx512f", ""), "0 0 0", EPYC_CPUID, None)
    assert cpu.flags is not None and "avx512f" not in cpu.flags
    assert cpu.cpuid_flags is not None and "avx512f" in cpu.cpuid_flags


def test_emulated_cpu() -> None:
    cpu = build_cpu(EPYC_INFO, "0 0 0\n1 0 1", NEHALEM_CPUID, HWCAPS, EPYC_CPUID)
    assert cpu.emulated is True
    assert (cpu.vendor, cpu.cpuid_vendor, cpu.model_name) == ("GenuineIntel", "GenuineIntel", "emulated")
    assert cpu.flags is not None and "avx" not in cpu.flags
    assert cpu.ldso_levels == ("x86-64-v2", "x86-64-v3")


def test_emulated_cpu_whose_registers_are_not_saved() -> None:
    for xcr0, usable in (("", False), ("xcr0 0000000000000007\n", True)):
        cpu = build_cpu(XEON_8180_INFO, "", EPYC_CPUID.replace("xcr0 00000000000000e7\n", xcr0), None)
        assert cpu.emulated is True
        assert cpu.flags is not None
        assert ("avx2" in cpu.flags, "avx512f" in cpu.flags) == (usable, False)


def test_cpu_without_cpuid() -> None:
    cpu = build_cpu(XEON_8180_INFO, two_sockets(28, 2), None, None)
    assert cpu.emulated is None, "not known"
    assert cpu.vendor == "GenuineIntel"
    assert (cpu.sockets, cpu.physical_cores, cpu.logical_cpus) == (2, 56, 112)
    assert cpu.flags is not None and "avx512bw" in cpu.flags


@given(st.text() | st.text(alphabet="0123456789abcdefx \t\n:-r"))
def test_arbitrary_text(text: str) -> None:
    cpu = build_cpu(text, text, text, text, text)
    assert cpu.emulated in (None, False, True)


@given(st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 4), min_size=5, max_size=5))
def test_arbitrary_registers(values: list[tuple[int, ...]]) -> None:
    leaves = ("0", "1", "7", "40000000", "80000001")
    text = "\n".join(
        f"{leaf} 0 " + " ".join(f"{value:x}" for value in row) for leaf, row in zip(leaves, values, strict=True)
    )
    cpuid = parse_cpuid(text)
    assert cpuid is not None
    assert cpuid.vendor.isprintable() and ("avx" in cpuid.flags) == bool(values[1][2] >> 28 & 1)
