"""A healthy machine stays healthy whatever it has that does no harm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rules.healthy_machines import AVX2, cpu
from tests.rules.hosts import HEALTHY, QUICK, alone, facts_on, faults, judged


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
    failed = {"ok": False, "error_type": "ImportError", "error_text": "libmkldnn.so.0: cannot open shared object file"}
    assert alone("IDP310", "py37-healthy", {"imports": {"ideep4py": failed}})
