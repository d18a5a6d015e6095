"""IDP113 knows the models that have AVX-512 by the names under which /proc/cpuinfo shows them."""

from __future__ import annotations

import pytest

from tests.rules.hosts import alone

MASKED = {"cpuinfo_flags": ["avx", "avx2", "sse2"], "cpuid_flags": None, "xcr0": None, "emulated": False}

HAVE = [
    "Intel(R) Xeon(R) Platinum 8180 CPU @ 2.50GHz",
    "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz",
    "Intel(R) Xeon(R) Silver 4116 CPU @ 2.10GHz",
    "Intel(R) Xeon(R) Bronze 3104 CPU @ 1.70GHz",
    "Intel(R) Xeon(R) W-2145 CPU @ 3.70GHz",
    "Intel(R) Xeon(R) W-3275 CPU @ 2.50GHz",
    "Intel(R) Xeon(R) W-1390P @ 3.50GHz",
    "Intel(R) Xeon(R) w7-3465X",
    "Intel(R) Xeon(R) D-2183IT CPU @ 2.20GHz",
    "Intel(R) Xeon(R) D-1736NT CPU @ 2.70GHz",
    "Intel(R) Xeon(R) E-2388G CPU @ 3.20GHz",
    "Intel(R) Xeon(R) 6980P",
    "Intel(R) Core(TM) i9-7980XE CPU @ 2.60GHz",
    "Intel(R) Core(TM) i7-7800X CPU @ 3.50GHz",
    "Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz",
    "Intel(R) Core(TM) i7-1065G7 CPU @ 1.30GHz",
    "11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz",
    "11th Gen Intel(R) Core(TM) i9-11900K @ 3.50GHz",
    "AMD EPYC 9654 96-Core Processor",
    "AMD EPYC 9965 192-Core Processor",
    "AMD EPYC 8534P 64-Core Processor",
    "AMD EPYC 4464P 12-Core Processor",
    "AMD EPYC 9R14",
    "AMD EPYC 9V74 80-Core Processor",
    "AMD Ryzen 9 7950X 16-Core Processor",
    "AMD Ryzen 7 7800X3D 8-Core Processor",
    "AMD Ryzen 5 7600 6-Core Processor",
    "AMD Ryzen 7 7840HS w/ Radeon 780M Graphics",
    "AMD Ryzen 9 7945HX with Radeon Graphics",
    "AMD Ryzen 5 7545U w/ Radeon 740M Graphics",
    "AMD Ryzen 7 PRO 7840U w/ Radeon 780M Graphics",
    "AMD Ryzen 7 8845HS w/ Radeon 780M Graphics",
    "AMD Ryzen 5 8600G w/ Radeon 760M Graphics",
    "AMD Ryzen 9 9950X 16-Core Processor",
    "AMD Ryzen AI 9 HX 370 w/ Radeon 890M",
    "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S",
    "AMD Ryzen Threadripper PRO 7995WX 96-Cores",
    "AMD Ryzen Z1 Extreme",
]
HAVE_NOT = [
    "Intel(R) Xeon(R) CPU E5-2699 v4 @ 2.20GHz",
    "Intel(R) Xeon(R) CPU E7-8890 v4 @ 2.20GHz",
    "Intel(R) Xeon(R) CPU E3-1270 v6 @ 3.80GHz",
    "Intel(R) Xeon(R) CPU D-1541 @ 2.10GHz",
    "Intel(R) Xeon(R) D-1627 CPU @ 2.90GHz",
    "Intel(R) Xeon(R) E-2288G CPU @ 3.70GHz",
    "Intel(R) Xeon(R) E-2488",
    "Intel(R) Xeon(R) W-1290P CPU @ 3.70GHz",
    "Intel(R) Xeon(R) W-10885M CPU @ 2.40GHz",
    "Intel(R) Xeon(R) 6780E",
    "Intel(R) Core(TM) i7-7740X CPU @ 4.30GHz",
    "Intel(R) Core(TM) i9-9900K CPU @ 3.60GHz",
    "Intel(R) Core(TM) i9-10900K CPU @ 3.70GHz",
    "Intel(R) Core(TM) i7-10510U CPU @ 1.80GHz",
    "Intel(R) Core(TM) i7-7820HQ CPU @ 2.90GHz",
    "12th Gen Intel(R) Core(TM) i9-12900K",
    "13th Gen Intel(R) Core(TM) i7-1365U",
    "AMD EPYC 7742 64-Core Processor",
    "AMD EPYC 7763 64-Core Processor",
    "AMD EPYC 7R13 Processor",
    "AMD Ryzen 9 5950X 16-Core Processor",
    "AMD Ryzen 5 7520U with Radeon Graphics",
    "AMD Ryzen 7 7730U with Radeon Graphics",
    "AMD Ryzen 7 PRO 7730U with Radeon Graphics",
    "AMD Ryzen 7 7735HS with Radeon Graphics",
    "AMD Ryzen 5 7430U with Radeon Graphics",
    "AMD Ryzen 7 1700X Eight-Core Processor",
    "AMD Ryzen Threadripper 3990X 64-Core Processor",
]


@pytest.mark.parametrize("model", HAVE)
def test_a_model_that_has_it_and_does_not_show_it_is_a_note(model: str):
    (finding,) = alone("IDP113", "py37-healthy", {"cpu": {**MASKED, "model_name": model, "hypervisor": "XenVMMXenVMM"}})
    assert finding.found == f"{model} without avx512f (hypervisor XenVMMXenVMM)"


@pytest.mark.parametrize("model", HAVE_NOT)
def test_a_model_that_never_had_it_is_left_alone(model: str):
    assert alone("IDP113", "py37-healthy", {"cpu": {**MASKED, "model_name": model}}) == []


@pytest.mark.parametrize("changes", [{"emulated": True, "cpuid_flags": ["avx2"]}, {"cpuinfo_flags": None}])
def test_an_emulated_or_unknown_processor_is_left_alone(changes: dict[str, object]):
    assert alone("IDP113", "py37-healthy", {"cpu": {**MASKED, "model_name": HAVE[0], **changes}}) == []


def test_registers_that_the_system_does_not_save_hide_it_too():
    shown = {"model_name": HAVE[0], "cpuinfo_flags": ["avx512f"], "emulated": False}
    assert len(alone("IDP113", "py37-healthy", {"cpu": {**shown, "xcr0": 0x7}})) == 1
    assert alone("IDP113", "py37-healthy", {"cpu": {**shown, "xcr0": 0xE7}}) == []
