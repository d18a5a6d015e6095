"""``cpu``: why a feature is not there, and which release runs where."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.commands.cpu import FEATURES, cpu, reason, verdict
from ideepdoctor.commands.session import Session, TargetOptions
from ideepdoctor.errors import UsageError
from ideepdoctor.model.facts import Cpu
from ideepdoctor.rules.compat import RELEASES
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import FakeSystem

AVX2 = ("avx", "avx2", "fma", "sse2", "sse4_1", "sse4_2")
AVX512 = tuple(sorted((*AVX2, *FEATURES["avx512"])))
FULL = Cpu(
    vendor="GenuineIntel",
    model_name="Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
    cpuinfo_flags=AVX512,
    cpuid_flags=AVX512,
    xcr0=0xE7,
    emulated=False,
)
OLD = replace(FULL, model_name="Intel(R) Core(TM) i7-4770", cpuinfo_flags=AVX2, cpuid_flags=AVX2, xcr0=0x7)


@pytest.mark.parametrize("feature", FEATURES)
def test_what_is_there_is_said_to_be_there(feature: str):
    assert reason(FULL, feature) == f"{feature}: it is there, and the system saves its registers"


@pytest.mark.parametrize(
    ("processor", "said"),
    [
        pytest.param(Cpu(), "could not be read", id="not known"),
        pytest.param(OLD, "i7-4770 does not show avx512f, avx512cd, avx512bw, avx512dq, avx512vl", id="never had it"),
        pytest.param(
            replace(OLD, emulated=True), "the emulator's processor does not have avx512f", id="emulated without it"
        ),
        pytest.param(
            replace(FULL, emulated=True, cpuid_flags=AVX2), "the emulator's processor does not", id="host has it"
        ),
        pytest.param(replace(FULL, xcr0=0x7), "does not save its registers (XCR0 is 0x7)", id="flag without registers"),
        pytest.param(
            replace(FULL, cpuinfo_flags=AVX2, xcr0=0x7),
            "does not save its registers (XCR0 is 0x7)",
            id="kernel follows XCR0",
        ),
        pytest.param(replace(FULL, cpuinfo_flags=AVX2), "CPUID has it, the kernel hides it", id="clearcpuid"),
        pytest.param(
            replace(FULL, cpuinfo_flags=AVX2, xcr0=None), "CPUID has it, the kernel hides it", id="XCR0 not known"
        ),
        pytest.param(
            replace(FULL, cpuinfo_flags=AVX2, cpuid_flags=AVX2, hypervisor="XenVMMXenVMM"),
            "avx512vl (this model has it); the hypervisor (XenVMMXenVMM) may hide it",
            id="hypervisor",
        ),
        pytest.param(
            replace(OLD, hypervisor="KVMKVMKVM"), "avx512vl; the hypervisor (KVMKVMKVM) may", id="hypervisor, old model"
        ),
        pytest.param(
            replace(OLD, model_name=None, cpuid_flags=None, xcr0=None), "this processor does not show", id="no name"
        ),
        pytest.param(
            replace(FULL, cpuinfo_flags=("avx512f",), cpuid_flags=("avx512f",)),
            "does not show avx512cd, avx512bw, avx512dq, avx512vl",
            id="some of it",
        ),
    ],
)
def test_why_not_avx512(processor: Cpu, said: str):
    text = reason(processor, "avx512")
    assert text.startswith("avx512: ")
    assert said in text


def test_why_not_avx2_and_avx():
    nehalem = replace(OLD, cpuinfo_flags=("sse2", "sse4_2"), cpuid_flags=("sse2", "sse4_2"))
    assert reason(nehalem, "avx").endswith("does not show avx")
    assert reason(nehalem, "avx2").endswith("does not show avx2, fma")
    assert "XCR0 is 0x3" in reason(replace(OLD, xcr0=3), "avx2")


AMD = replace(FULL, vendor="AuthenticAMD")
RUNS = "runs"


@pytest.mark.parametrize(
    ("processor", "said"),
    [
        (FULL, {"1.0.3": RUNS, "1.0.4": RUNS, "2.0.0b1.post1": RUNS, "2.0.0.post3": RUNS}),
        (AMD, {"1.0.3": "dies at import: needs an Intel CPU, this one is AuthenticAMD", "1.0.4": RUNS}),
        (replace(FULL, vendor=None), {"1.0.3": "not known: it needs an Intel CPU", "2.0.0.post3": RUNS}),
        (
            OLD,
            {
                "2.0.0b1.post1": "dies at the first operation: needs avx512f, avx512cd, avx512bw, avx512dq, avx512vl",
                "2.0.0.post3": RUNS,
            },
        ),
        (
            replace(OLD, cpuinfo_flags=("sse2",), cpuid_flags=("sse2",)),
            {"1.0.4": RUNS, "2.0.0.post3": "dies at the first operation: needs avx"},
        ),
        (replace(FULL, xcr0=3), {"2.0.0.post3": "dies at the first operation: needs avx", "1.0.4": RUNS}),
        (Cpu(vendor="GenuineIntel"), {"2.0.0.post3": "not known: the flags could not be read"}),
    ],
)
def test_what_each_release_does_on_a_processor(processor: Cpu, said: dict[str, str]):
    for version, text in said.items():
        assert verdict(processor, RELEASES[version]).startswith(text)


@pytest.mark.parametrize("version", ["1.0.1", "1.0.2", "2.0.0b1"])
def test_what_is_broken_works_nowhere(version: str):
    assert verdict(FULL, RELEASES[version]) == f"works nowhere: {RELEASES[version].broken}"


def test_an_unknown_feature_is_refused_before_anything_is_started():
    system = FakeSystem()
    session = Session(system, {}, "/", Quiet(), lambda report: False)
    with pytest.raises(UsageError, match="avx1024") as caught:
        cpu(session, TargetOptions(), "avx1024")
    assert caught.value.hint == "--why-not takes avx, avx2, avx512"
    assert system.commands() == []
