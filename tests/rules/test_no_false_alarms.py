"""A healthy machine stays healthy whatever it has that does no harm."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rules.hosts import HEALTHY, QUICK, alone, facts_on, faults, judged, unknowns

AVX2 = ["avx", "avx2", "fma", "pni", "sse2", "sse4_1", "sse4_2", "ssse3"]
AVX512 = [*AVX2, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"]


def cpu(vendor: str, model: str, flags: list[str], **more: Any) -> dict[str, Any]:
    """A real processor whose CPUID agrees with /proc/cpuinfo."""
    saved = 0xE7 if "avx512f" in flags else 0x7
    changes = {"vendor": vendor, "cpuid_vendor": vendor, "model_name": model, "cpuinfo_flags": flags}
    return {"cpu": {**changes, "cpuid_flags": flags, "xcr0": saved, "emulated": False, "hypervisor": None, **more}}


def variables(**values: str | None) -> dict[str, Any]:
    """Variables that the user has set (None: empty, which is as good as not set)."""
    told = {name: value or "" for name, value in values.items()}
    return {"variables": {"inherited": told, "effective": told, "set_by_doctor": []}}


def library(name: str, path: str, by: str) -> dict[str, str]:
    return {"name": name, "path": path, "imported_by": by}


LIB = "/home/user/ideep/lib/python3.7/site-packages/ideep4py/lib"
OWN = [
    library("libmkldnn", f"{LIB}/libmkldnn.so.0", "ideep4py"),
    library("libmklml_intel", f"{LIB}/libmklml_intel.so", "ideep4py"),
    library("libiomp5", f"{LIB}/libiomp5.so", "ideep4py"),
]
GOMP = library("libgomp", "/usr/lib/x86_64-linux-gnu/libgomp.so.1", "ideep4py")
OPENBLAS = library("libopenblas", "/home/user/ideep/lib/python3.7/site-packages/numpy.libs/libopenblasp.so", "numpy")
LDCONFIG = f"/sbin/ldconfig.real: {LIB}/libmkldnn.so.0 is not a symbolic link"


@pytest.mark.parametrize("host", HEALTHY)
@pytest.mark.parametrize("quick", [{}, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize(
    "overlay",
    [
        pytest.param(variables(LD_LIBRARY_PATH="/opt/intel/mkl/lib:/home/user/lib"), id="LD_LIBRARY_PATH"),
        pytest.param({"libraries": [*OWN, GOMP]}, id="libgomp beside libiomp5"),
        pytest.param({"libraries": [*OWN, GOMP, OPENBLAS]}, id="OPENBLAS beside MKL"),
        pytest.param(
            {"libraries": [*OWN[:1], library("libmklml_intel", "/opt/lib/libmkl.so", "ideep4py"), *OWN[2:]]},
            id="an unversioned libmkl",
        ),
        pytest.param({"libraries": []}, id="no library was seen"),
        pytest.param({"imports": {"ideep4py": {"stderr_tail": LDCONFIG}}}, id="is not a symbolic link"),
        pytest.param(
            {"imports": {"chainer": {"warnings": ["UserWarning: could not reach the network"]}}}, id="a network failure"
        ),
        pytest.param({"packages": {"cupy": None, "protobuf": None, "wheel": None}}, id="absent packages"),
        pytest.param({"interpreters": None}, id="interpreters not looked for"),
        pytest.param({"interpreters": []}, id="no other interpreter"),
        pytest.param({"limits": {"quota_cpus": None, "affinity_cpus": None}}, id="limits not known"),
        pytest.param(
            {"cpu": {"cpuid_flags": None, "cpuid_vendor": None, "xcr0": None, "emulated": None}}, id="no CPUID"
        ),
        pytest.param({"cpu": {"ldso_levels": None}}, id="an older loader"),
        pytest.param({"python": {"kind": "conda"}}, id="conda"),
        pytest.param({"platform": {"container": "docker"}}, id="a container"),
    ],
)
def test_what_does_no_harm_raises_nothing(host: str, quick: dict[str, Any], overlay: dict[str, Any]):
    judgement = judged(host, overlay, quick)
    assert (faults(judgement), judgement.unknown, judgement.skipped) == ([], (), ())


@pytest.mark.parametrize("host", HEALTHY)
@pytest.mark.parametrize("set_by_doctor", [[], ["MKL_DEBUG_CPU_TYPE"]], ids=["user", "doctor"])
def test_an_amd_cpu_with_post3_is_fine(host: str, set_by_doctor: list[str]):
    overlay = cpu("AuthenticAMD", "AMD EPYC 7742 64-Core Processor", AVX2)
    named = {"variables": {"effective": {"MKL_DEBUG_CPU_TYPE": "5"}, "set_by_doctor": set_by_doctor}}
    judgement = judged(host, overlay, named)
    assert (judgement.findings, judgement.unknown) == ((), ())


def test_the_libraries_of_these_tests_are_in_the_facts():
    names = {item.name for item in facts_on("py37-healthy", {"libraries": [*OWN, GOMP]}).libraries or ()}
    assert names == {"libmkldnn", "libmklml_intel", "libiomp5", "libgomp"}
    assert alone("IDP310", "py37-healthy", {"imports": {"ideep4py": {"ok": False}}})


INTEL = [
    ("Intel(R) Core(TM) i7-4770 CPU @ 3.40GHz", AVX2),
    ("Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz", AVX2),
    ("Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz", AVX2),
    ("Intel(R) Core(TM) i5-1135G7 @ 2.40GHz", AVX512),
    ("12th Gen Intel(R) Core(TM) i7-12700K", AVX2),
    ("Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz", AVX2),
    ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", AVX512),
    ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", AVX512),
    ("Intel(R) Xeon(R) D-2183IT CPU @ 2.20GHz", AVX512),
    ("Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz", AVX2),
]
AMD = [
    ("AMD EPYC 7742 64-Core Processor", AVX2),
    ("AMD EPYC 9654 96-Core Processor", AVX512),
    ("AMD EPYC 4584PX 16-Core Processor", AVX512),
    ("AMD Ryzen 9 5950X 16-Core Processor", AVX2),
    ("AMD Ryzen 9 7950X 16-Core Processor", AVX512),
    ("AMD Ryzen 7 7730U with Radeon Graphics", AVX2),
    ("AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", AVX512),
]
PROCESSORS = [("GenuineIntel", *row) for row in INTEL] + [("AuthenticAMD", *row) for row in AMD]
NEEDED = {"chainer", "ideep4py", "numpy", "protobuf", "setuptools", "six", "filelock", "typing", "typing-extensions"}

processors = st.sampled_from(PROCESSORS)
names = st.from_regex(r"[a-z][a-z0-9]{1,12}(-[a-z0-9]{1,8})?", fullmatch=True).filter(lambda name: name not in NEEDED)
versions = st.from_regex(r"[0-9]{1,4}\.[0-9]{1,3}(\.[0-9]{1,3})?(rc[0-9]|\.post[0-9]|\+[a-z]{2,5})?", fullmatch=True)
folders = st.from_regex(r"(/[A-Za-z0-9_. -]{1,12}){1,5}", fullmatch=True)
harmless = st.fixed_dictionaries(
    {},
    optional={
        "LD_LIBRARY_PATH": folders,
        "CHAINER_USE_IDEEP": st.sampled_from(["always", "auto", "never", ""]),
        "CHAINER_DTYPE": st.sampled_from(["float32", ""]),
        "CHAINER_WARN_VERSION_MISMATCH": st.sampled_from(["0", "1"]),
        "CHAINER_SEED": st.integers(0, 99).map(str),
        "KMP_AFFINITY": st.just("disabled"),
        "KMP_BLOCKTIME": st.sampled_from(["1", "200"]),
        "MKL_NUM_THREADS": st.sampled_from(["1", "2"]),
        "MKLDNN_VERBOSE": st.sampled_from(["0", "1", "2"]),
        "OMP_PROC_BIND": st.sampled_from(["false", "FALSE", ""]),
        "OMP_DYNAMIC": st.sampled_from(["true", "false"]),
        "OPENBLAS_NUM_THREADS": st.sampled_from(["1", "4"]),
        "MALLOC_ARENA_MAX": st.just("2"),
        "PYTHONHASHSEED": st.just("0"),
    },
)


@st.composite
def machines(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A recorded environment on another machine, in another folder, among other packages and variables."""
    host = draw(st.sampled_from(HEALTHY))
    vendor, model, flags = draw(processors)
    cores, doubled = draw(st.integers(1, 128)), draw(st.sampled_from([1, 2]))
    cpus = cores * doubled
    counts = {"physical_cores": cores, "logical_cpus": cpus, "sockets": draw(st.sampled_from([1, 2]))}
    mkl = {"MKL_DEBUG_CPU_TYPE": "7" if set(AVX512) <= set(flags) else "5"}
    chosen = {"CHAINER_USE_IDEEP": "auto", **(mkl if vendor == "AuthenticAMD" else {})}
    told = {name: value for name, value in draw(harmless).items() if value or name not in chosen}
    threads = draw(st.one_of(st.none(), st.integers(1, cpus)))
    if threads is not None:
        told["OMP_NUM_THREADS"] = draw(st.sampled_from([f"{threads}", f"{threads},1", f" {threads} "]))
    quota = draw(st.one_of(st.none(), st.floats(cpus, 4 * cpus)))
    location = draw(folders)
    places = {"executable": f"{location}/bin/python", "prefix": location, "purelib": f"{location}/site-packages"}
    prefix = {
        "variables": {
            "inherited": told,
            "effective": {**chosen, **told},
            "set_by_doctor": sorted(set(chosen) - set(told)),
        },
        "limits": {"affinity_cpus": list(range(cpus)), "quota_cpus": quota},
        "python": {**places, "kind": draw(st.sampled_from(["venv", "conda", "pyenv", "uv", "other"]))},
        "packages": {name: draw(versions) for name in draw(st.lists(names, max_size=6))},
        "platform": {"libc_version": draw(st.sampled_from(["2.14", "2.17", "2.31", "2.41"]))},
    }
    return host, [cpu(vendor, model, flags, **counts), prefix, draw(st.sampled_from([{}, QUICK]))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(machines())
def test_a_healthy_machine_is_healthy_whatever_else_it_has(machine: tuple[str, list[dict[str, Any]]]):
    host, overlays = machine
    judgement = judged(host, *overlays)
    assert (faults(judgement), unknowns(judgement), judgement.skipped) == ([], [], ())
    assert judgement.findings == (), "a processor that shows what it has is no note either"


@settings(max_examples=50, deadline=None)
@given(machines(), st.sampled_from(["unset", "threads", "numpy", "chainer"]))
def test_the_same_machines_with_a_fault_have_a_finding(machine: tuple[str, list[dict[str, Any]]], fault: str):
    host, overlays = machine
    broken: dict[str, dict[str, Any]] = {
        "unset": {"variables": {"effective": {"CHAINER_USE_IDEEP": None}}},
        "threads": {"variables": {"effective": {"OMP_NUM_THREADS": "4096"}}},
        "numpy": {"packages": {"numpy": "1.9.3"}},
        "chainer": {"packages": {"chainer": "4.5.0"}},
    }
    code = {"unset": "IDP501", "threads": "IDP504", "numpy": "IDP305", "chainer": "IDP304"}[fault]
    assert faults(judged(host, *overlays, broken[fault])) == [code]
