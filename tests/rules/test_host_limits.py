"""The borders of the rules about the host and the limits of a process."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.facts import Cpu, Platform
from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.rules.base import Unknown
from ideepdoctor.rules.compat import unsaved
from ideepdoctor.rules.deaths import failed, killed
from ideepdoctor.rules.idp117 import TOO_SMALL_BYTES
from ideepdoctor.rules.resources import MIB, Threads, addresses_of_a_step, addresses_of_an_import, threads
from ideepdoctor.rules.systems import is_wsl1, what_to_do
from ideepdoctor.treatment.variables import recommended

from .hosts import QUICK, alone, facts_on, faults, judged

SAVED, AVX_ONLY, NONE = 0xE7, 0x7, 0x3
OLD = {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}}
BETA = {"packages": {"ideep4py": "2.0.0b1.post1", "chainer": "5.0.0rc1"}}
XEON = {"cpu": {"model_name": "Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz"}}
OTHER = {"cpu": {"model_name": "QEMU Virtual CPU"}}
DEATH = {"first_op": killed("SIGABRT", "OMP: Error #34: System unable to allocate necessary resources")}


def limits(cpus: int = 8, environ: dict[str, str] | None = None, **values: int | bool | None) -> dict[str, Any]:
    return {
        "limits": {"affinity_cpus": list(range(cpus)), **values},
        "variables": {"effective": environ or {}, "inherited": environ or {}, "set_by_doctor": []},
    }


def test_a_computed_operation_knows_better_than_every_limit():
    refused = {"limits": {"executable_memory": False}}
    assert [alone("IDP114", "py37-healthy", refused), faults(judged("py37-healthy", QUICK, refused))] == [
        [],
        ["IDP114"],
    ]
    few = limits(64, processes_limit=2, address_space_bytes=1, memory_limit_bytes=1)
    assert alone("IDP707", "py37-healthy", few) == []
    assert len(alone("IDP707", "py37-healthy", QUICK, few)) == 3
    assert len(alone("IDP707", "py37-healthy", DEATH, few)) == 3
    assert alone("IDP707", "py37-healthy", QUICK, few, {"planned_ideep4py": "2.0.0.post3"}) == []


def test_a_refusal_hides_the_death_that_it_causes():
    xbyak = {"first_op": killed("SIGABRT", "Xbyak::Error\n  what():  can't protect")}
    assert faults(judged("py37-healthy", xbyak, {"limits": {"executable_memory": False}})) == ["IDP114"]
    assert faults(judged("py37-healthy", xbyak)) == ["IDP313"]


@pytest.mark.parametrize(
    ("noexec", "overlay", "count"),
    [
        (True, QUICK, 1),
        (False, QUICK, 0),
        (None, QUICK, 0),
        (True, {}, 0),  # ideep4py could be imported
        (True, {"planned_ideep4py": "2.0.0.post3"}, 1),
        (True, {"imports": {"ideep4py": failed("ImportError", "failed to map segment")}}, 1),
    ],
)
def test_noexec(noexec: bool | None, overlay: dict[str, Any], count: int):
    assert len(alone("IDP116", "py37-healthy", overlay, {"limits": {"prefix_noexec": noexec}})) == count


@pytest.mark.parametrize(
    ("size", "container", "found", "next_step"),
    [
        (0, None, "there is no /dev/shm", "mount -t tmpfs tmpfs /dev/shm"),
        (0, "docker", "there is no /dev/shm", "start the container with --shm-size=64m and without --ipc=none"),
        (TOO_SMALL_BYTES - 1, None, "16383 bytes", "mount -t tmpfs tmpfs /dev/shm"),
    ],
)
def test_shared_memory(size: int, container: str | None, found: str, next_step: str):
    overlay = {"limits": {"shared_memory_bytes": size}, "platform": {"container": container}}
    (finding,) = alone("IDP117", "py37-healthy", overlay)
    assert found in finding.found
    assert (finding.next_step, finding.severity) == (next_step, Severity.WARNING)


@pytest.mark.parametrize("size", [None, TOO_SMALL_BYTES, 64 << 20])
def test_enough_shared_memory(size: int | None):
    assert alone("IDP117", "py37-healthy", {"limits": {"shared_memory_bytes": size}}) == []


@pytest.mark.parametrize(
    ("overlays", "xcr0", "severity", "words"),
    [
        ((), NONE, Severity.ERROR, "SIGILL"),
        ((OLD,), NONE, Severity.INFO, "SSE code"),
        ((OLD, OTHER), AVX_ONLY, Severity.INFO, "its AVX2 code"),
        ((OTHER,), AVX_ONLY, Severity.INFO, "its AVX2 code"),
        ((BETA,), AVX_ONLY, Severity.ERROR, "2.0.0b1.post1"),
        ((OLD, XEON), NONE, Severity.INFO, "SSE code"),
    ],
)
def test_registers_that_are_not_saved(overlays: tuple[Any, ...], xcr0: int, severity: Severity, words: str):
    (finding,) = alone("IDP115", "py36-healthy", *overlays, {"cpu": {"xcr0": xcr0}})
    assert (finding.severity, words in finding.consequence) == (severity, True)
    assert f"{xcr0:#x}" in finding.found


@pytest.mark.parametrize(
    ("overlays", "xcr0"),
    [((), SAVED), ((XEON,), AVX_ONLY), ((), None), (({"cpu": {"emulated": True}},), NONE)],
)
def test_nothing_is_said_of_registers(overlays: tuple[Any, ...], xcr0: int | None):
    assert alone("IDP115", "py36-healthy", *overlays, {"cpu": {"xcr0": xcr0}}) == []


def test_flags_that_are_shown_and_not_saved():
    cpu = Cpu(cpuinfo_flags=("avx", "sse2"), emulated=False, xcr0=NONE)
    assert unsaved(cpu, ("avx", "avx512f", "sse2")) == ("avx",)
    assert unsaved(Cpu(xcr0=NONE), ("avx",)) == ()


def test_one_of_the_two_rules_about_missing_instructions():
    (missing,) = alone("IDP110", "py37-healthy", {"cpu": {"cpuinfo_flags": ["sse2"], "emulated": False, "xcr0": NONE}})
    assert missing.found.startswith("avx cannot be used")
    assert alone("IDP110", "py37-healthy", {"cpu": {"xcr0": NONE}}) == []


@pytest.mark.parametrize(
    ("kernel", "signal", "flags", "count"),
    [
        ("5.15.167.4-microsoft-standard-WSL2", "SIGSEGV", ["avx", "avx512f", "sse2"], 1),
        ("5.15.167.4-microsoft-standard-WSL2", "SIGILL", ["avx", "avx512f", "sse2"], 0),
        ("5.15.167.4-microsoft-standard-WSL2", "SIGSEGV", ["avx", "sse2"], 0),
        ("4.4.0-19041-Microsoft", "SIGSEGV", ["avx", "avx512f", "sse2"], 0),
        ("6.1.0-37-amd64", "SIGSEGV", ["avx", "avx512f", "sse2"], 0),
        (None, "SIGSEGV", ["avx", "avx512f", "sse2"], 0),
    ],
)
def test_wsl2_with_avx512(kernel: str | None, signal: str, flags: list[str], count: int):
    cpu = {"cpuinfo_flags": flags, "emulated": False, "xcr0": SAVED}
    overlay = {"platform": {"kernel": kernel}, "first_op": killed(signal), "cpu": cpu}
    found = alone("IDP115", "py37-healthy", overlay)
    assert [finding.severity for finding in found] == [Severity.INFO] * count


SILENT = {"emulated": None, "cpuid_flags": None, "cpuid_vendor": None, "xcr0": None}
QEMU = {"target": {"emulator": ["qemu-x86_64", "-cpu", "Haswell"]}}


@pytest.mark.parametrize(
    ("overlay", "words"),
    [
        ({"cpu": {"vendor": "VirtualApple"}}, "Rosetta 2"),
        ({"cpu": {"cpuid_vendor": "VirtualApple", "emulated": True}}, "Rosetta 2"),
        ({"cpu": {"emulated": True, "cpuid_vendor": None}}, "CPUID says something else"),
        ({"cpu": SILENT, **QEMU}, "under qemu-x86_64 -cpu Haswell, whose CPUID"),
        ({"cpu": {**SILENT, "cpuinfo_flags": ["asimd"]}}, "under an emulator, whose CPUID"),
    ],
)
def test_an_emulator(overlay: dict[str, Any], words: str):
    (finding,) = alone("IDP112", "py37-healthy", overlay)
    assert words in finding.found


@pytest.mark.parametrize("overlay", [{}, QEMU, {"cpu": SILENT}, {"cpu": {**SILENT, "cpuinfo_flags": None}}])
def test_no_emulator_or_one_that_answers(overlay: dict[str, Any]):
    assert alone("IDP112", "py37-healthy", overlay) == []


@pytest.mark.parametrize("overlay", [{"cpu": SILENT, **QEMU}, {"cpu": {**SILENT, "cpuinfo_flags": ["asimd"]}}])
def test_nothing_is_known_of_a_silent_emulator(overlay: dict[str, Any]):
    with pytest.raises(Unknown, match="CPUID of the emulator"):
        alone("IDP110", "py37-healthy", overlay)
    assert alone("IDP110", "py37-healthy", {"cpu": SILENT}) == []


@pytest.mark.parametrize(
    ("environ", "cpus", "expected"),
    [
        ({}, 8, Threads(8, 8, 8)),
        ({"OMP_NUM_THREADS": "4"}, 8, Threads(4, 4, 8)),
        ({"OMP_NUM_THREADS": "16,2"}, 8, Threads(16, 8, 8)),
        ({"OPENBLAS_NUM_THREADS": "1"}, 8, Threads(8, 1, 8)),
        ({"OMP_NUM_THREADS": "0", "OPENBLAS_NUM_THREADS": "x"}, 2, Threads(2, 2, 2)),
    ],
)
def test_how_many_threads_there_will_be(environ: dict[str, str], cpus: int, expected: Threads):
    assert threads(facts_on("py37-healthy", limits(cpus, environ))) == expected


def test_threads_of_unknown_cpus():
    overlay = {"limits": {"affinity_cpus": None}, "cpu": {"logical_cpus": None}}
    assert threads(facts_on("py37-healthy", overlay)) is None
    found = alone("IDP707", "py37-healthy", QUICK, overlay, {"limits": {"processes_limit": 1, "memory_limit_bytes": 1}})
    assert len(found) == 1


MEASURED_PEAKS = [(1, 293488), (2, 459704), (4, 537796), (16, 1434664), (64, 1574688), (256, 2374360)]


@pytest.mark.parametrize(("count", "peak_kib"), MEASURED_PEAKS)
def test_the_sum_is_near_the_measured_peaks(count: int, peak_kib: int):
    """VmPeak of Chainer 7.8.1, a convolution and its gradients on CPython 3.7 and 2 CPUs; OpenBLAS had one thread."""
    assert addresses_of_a_step(Threads(count, 1, 2), 8 << 20) == pytest.approx(peak_kib * 1024, rel=0.18)


def test_the_parts_of_the_sum():
    assert addresses_of_an_import(Threads(1, 1, 1)) == 266 * MIB
    assert addresses_of_an_import(Threads(5, 1, 1)) == 282 * MIB
    assert addresses_of_a_step(Threads(1, 1, 1), None) == (300 + 4) * MIB
    assert addresses_of_a_step(Threads(1, 3, 4), None) == (300 + 4 + 2 * 2) * MIB
    assert addresses_of_a_step(Threads(1, 3, 4), 300 * MIB) == (300 + 4 + 2 * 300) * MIB
    assert addresses_of_a_step(Threads(100, 1, 2), None) == (300 + 16 * 64 + 400) * MIB


@pytest.mark.parametrize(
    ("limit", "environ", "severity", "words"),
    [
        (15, {}, None, ""),
        (14, {}, Severity.WARNING, "8 threads of OpenMP and 8 of OpenBLAS"),
        (8, {}, Severity.WARNING, "and 8 may run together"),
        (7, {}, Severity.ERROR, "and 7 may run together"),
        (4, {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"}, None, ""),
        (3, {"OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "1"}, Severity.ERROR, "4 threads of OpenMP and 1 of"),
        (None, {"OMP_NUM_THREADS": "4000"}, None, ""),
    ],
)
def test_processes(limit: int | None, environ: dict[str, str], severity: Severity | None, words: str):
    found = alone("IDP707", "py37-healthy", QUICK, limits(8, environ, processes_limit=limit))
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(words in finding.found for finding in found)


STEP_8 = (300 + 8 * 64 + 8 * 4 + 7 * 8) * MIB


@pytest.mark.parametrize(
    ("limit", "severity", "next_step"),
    [
        (None, None, ""),
        (STEP_8, None, ""),
        (STEP_8 - 1, Severity.WARNING, "export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1"),
        (304 * MIB, Severity.WARNING, "export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1"),
        (303 * MIB, Severity.WARNING, "ulimit -v unlimited"),
        (294 * MIB, Severity.WARNING, "ulimit -v unlimited"),
        (294 * MIB - 1, Severity.ERROR, "ulimit -v unlimited"),
    ],
)
def test_address_space(limit: int | None, severity: Severity | None, next_step: str):
    found = alone("IDP707", "py37-healthy", QUICK, limits(8, address_space_bytes=limit, stack_bytes=8 * MIB))
    assert [(one.severity, one.next_step, one.fix) for one in found] == (
        [(severity, next_step, FixSafety.MANUAL)] if severity else []
    )


@pytest.mark.parametrize(("memory", "count"), [(None, 0), (44 * MIB, 0), (44 * MIB - 1, 1)])
def test_memory(memory: int | None, count: int):
    found = alone("IDP707", "py37-healthy", QUICK, limits(8, memory_limit_bytes=memory))
    assert [(one.severity, one.fix) for one in found] == [(Severity.ERROR, FixSafety.MANUAL)] * count


@pytest.mark.parametrize(
    ("died", "severity", "together"),
    [
        (killed("SIGABRT", "OMP: Error #34: System unable"), Severity.ERROR, ["IDP707"]),
        (failed("ImportError", "libiomp5.so: failed to map segment from shared object"), Severity.ERROR, ["IDP707"]),
        (killed("SIGFPE"), Severity.INFO, ["IDP320"]),
    ],
)
def test_a_doubtful_limit_hides_no_other_death(died: dict[str, Any], severity: Severity, together: list[str]):
    overlays = ({"first_op": died}, limits(8, {"CHAINER_USE_IDEEP": "auto"}, processes_limit=12))
    (finding,) = alone("IDP707", "py37-healthy", *overlays)
    assert finding.severity is severity
    assert [
        code for code in faults(judged("py37-healthy", *overlays)) if code in ("IDP313", "IDP320", "IDP707")
    ] == together


def test_threads_that_fit_are_the_default_where_nobody_chose():
    unset = {"variables": {"effective": {}, "inherited": {}, "set_by_doctor": []}}
    overlays = (QUICK, unset, {"limits": {"affinity_cpus": list(range(64)), "processes_limit": 100}})
    facts = facts_on("py37-healthy", *overlays, {"cpu": {"logical_cpus": 64, "physical_cores": 64}})
    (chosen,) = [variable for variable in recommended(facts) if variable.name == "OMP_NUM_THREADS"]
    assert (chosen.value, chosen.only_on.endswith("cpus=64")) == ("46", True)
    (finding,) = alone("IDP707", "py37-healthy", *overlays)
    assert (finding.fix, finding.next_step.startswith("ideepdoctor fix")) == (FixSafety.SAFE, True)
    (by_user,) = alone("IDP707", "py37-healthy", *overlays, limits(64, {"OMP_NUM_THREADS": "64"}))
    assert (by_user.fix, by_user.next_step) == (FixSafety.MANUAL, "export OMP_NUM_THREADS=1")


@pytest.mark.parametrize(
    ("room", "value"), [(127, None), (126, "59"), (16, "4"), (10, "1"), (3, "1"), (1, "1"), (None, None)]
)
def test_the_default_leaves_room(room: int | None, value: str | None):
    overlay = {"limits": {"affinity_cpus": list(range(64)), "quota_cpus": None, "processes_limit": room}}
    facts = facts_on("py37-healthy", overlay, {"cpu": {"logical_cpus": 64, "physical_cores": 64}})
    chosen = [variable.value for variable in recommended(facts) if variable.name == "OMP_NUM_THREADS"]
    assert chosen == ([value] if value else [])


@pytest.mark.parametrize(
    ("system", "machine", "kernel", "found", "way"),
    [
        ("CYGWIN_NT-10.0-19045", "x86_64", None, "which is Windows", "wsl --install"),
        ("MSYS_NT-10.0-22631", "x86_64", None, "which is Windows", "wsl --install"),
        ("MINGW64_NT-10.0-19045", "x86_64", None, "which is Windows", "wsl --install"),
        ("Windows", "AMD64", None, "Windows on AMD64", "wsl --install"),
        ("Darwin", "arm64", "23.1.0", "Apple silicon", "OpenBLAS"),
        ("Darwin", "x86_64", "22.6.0", "an Intel Mac", "Linux x86_64"),
        ("Android", "aarch64", None, "which is Android", "Linux x86_64"),
        ("Linux", "aarch64", "5.10.149-Android13-4", "which is Android", "Linux x86_64"),
        ("Linux", "aarch64", "6.1.0", "(ARM)", "OpenBLAS"),
        ("Linux", "armv7l", None, "(ARM)", "OpenBLAS"),
        ("Linux", "i686", "6.1.0", "(32 bits)", "64-bit Linux"),
        ("Linux", "riscv64", "6.1.0", "Linux on riscv64", "Linux x86_64"),
        ("FreeBSD", "amd64", "14.0", "FreeBSD on amd64", "Linux x86_64"),
        ("FreeBSD", "i386", "14.0", "FreeBSD on i386", "Linux x86_64"),
        ("FreeBSD", "aarch64", "14.0", "FreeBSD on aarch64", "Linux x86_64"),
    ],
)
def test_systems(system: str, machine: str, kernel: str | None, found: str, way: str):
    words = what_to_do(Platform(system, machine, kernel), "3.11")
    assert (found in words[0], way in words[1]) == (True, True), words


@pytest.mark.parametrize(
    ("kernel", "is_it"),
    [
        ("4.4.0-19041-Microsoft", True),
        ("5.15.167.4-microsoft-standard-WSL2", False),
        ("4.4.0-19041-generic", False),
        (None, False),
    ],
)
def test_wsl1(kernel: str | None, is_it: bool):
    assert is_wsl1(Platform("Linux", "x86_64", kernel)) is is_it
    overlay = {"platform": {"kernel": kernel}}
    assert [one.severity for one in alone("IDP101", "py37-healthy", QUICK, overlay)] == [Severity.INFO] * is_it
    assert [one.severity for one in alone("IDP101", "py37-healthy", {"first_op": killed("SIGSEGV")}, overlay)] == [
        Severity.INFO
    ] * is_it
    assert alone("IDP101", "py37-healthy", overlay) == []
