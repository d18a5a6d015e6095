from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.model.facts import Limits
from ideepdoctor.treatment.variables import AVX512_OF_MKL, for_any_machine, recommended
from tests.treatment.sample import AMD, INTEL, facts


def values(given) -> dict[str, tuple[str, str]]:
    return {item.name: (item.value, item.only_on) for item in recommended(given)}


def test_chainer_is_told_to_use_ideep_everywhere():
    assert values(facts()) == {"CHAINER_USE_IDEEP": ("auto", "")}


def test_mkl_is_told_to_take_the_fast_path_on_amd_with_avx2_only():
    assert values(facts(cpu=AMD))["MKL_DEBUG_CPU_TYPE"] == ("5", "amd-avx2")
    for missing in AVX512_OF_MKL:
        some = ("avx2", *(AVX512_OF_MKL - {missing}))
        assert values(facts(cpu=replace(AMD, cpuinfo_flags=some)))["MKL_DEBUG_CPU_TYPE"] == ("5", "amd-avx2")
    for cpu in (replace(AMD, cpuinfo_flags=("avx",)), replace(AMD, cpuinfo_flags=None), INTEL):
        assert "MKL_DEBUG_CPU_TYPE" not in values(facts(cpu=cpu))


def test_mkl_is_told_to_use_avx512_where_amd_has_all_that_it_uses():
    cpu = replace(AMD, cpuinfo_flags=("avx2", *AVX512_OF_MKL))
    assert values(facts(cpu=cpu))["MKL_DEBUG_CPU_TYPE"] == ("7", "amd-avx512")
    assert "MKL_DEBUG_CPU_TYPE" not in values(facts(cpu=replace(cpu, vendor="GenuineIntel")))
    emulated = replace(cpu, emulated=True, cpuid_flags=("avx2",))
    assert values(facts(cpu=emulated))["MKL_DEBUG_CPU_TYPE"] == ("5", "amd-avx2")


@pytest.mark.parametrize("flags", [("avx2",), ("avx2", *AVX512_OF_MKL)])
def test_a_file_for_any_machine_holds_both_the_best_first(flags):
    shared = for_any_machine(recommended(facts(cpu=replace(AMD, cpuinfo_flags=flags))))
    assert [(item.name, item.value) for item in shared] == [
        ("CHAINER_USE_IDEEP", "auto"),
        ("MKL_DEBUG_CPU_TYPE", "7"),
        ("MKL_DEBUG_CPU_TYPE", "5"),
    ]
    assert for_any_machine(recommended(facts(cpu=INTEL))) == recommended(facts(cpu=INTEL))


def test_under_emulation_the_flags_that_count_are_those_of_cpuid():
    cpu = replace(AMD, emulated=True, cpuid_flags=("sse2",))
    assert "MKL_DEBUG_CPU_TYPE" not in values(facts(cpu=cpu))


@pytest.mark.parametrize(
    ("affinity", "quota", "cores", "logical", "expected"),
    [
        (4, None, 4, 4, None),
        (4, 4.0, 4, 4, None),
        (4, 3.5, 4, 4, None),  # a quota that rounds up to all CPUs limits nothing
        (4, 2.5, 4, 4, ("3", "cpus=4")),
        (4, 0.1, 4, 4, ("1", "cpus=4")),
        (8, None, 4, 8, ("4", "cpus=8")),  # hyper-threads
        (8, 6.0, 4, 8, ("4", "cpus=8")),  # hyper-threads are the tighter limit
        (8, 2.0, 4, 8, ("2", "cpus=8")),
        (4, None, 4, 8, None),  # an affinity to half of them: which half is not known
        (4, None, 2, 8, None),
        (6, None, 4, 6, None),  # two of four cores have hyper-threads
        (4, None, None, 4, None),
        (0, 2.0, None, 64, ("2", "cpus=64")),  # affinity not known: the machine's CPUs
        (0, 2.0, None, None, None),
    ],
)
def test_threads_are_set_only_where_openmp_would_be_wrong(affinity, quota, cores, logical, expected):
    cpu = replace(INTEL, physical_cores=cores, logical_cpus=logical)
    limits = Limits(affinity_cpus=tuple(range(affinity)) or None, quota_cpus=quota)
    assert values(facts(cpu=cpu, limits=limits)).get("OMP_NUM_THREADS") == expected


def test_every_variable_says_why_in_one_short_line():
    cpu = replace(AMD, physical_cores=2)
    chosen = recommended(facts(cpu=cpu))
    assert len(chosen) == 3
    for item in chosen:
        assert item.why.isprintable() and 10 < len(item.why) < 100


def test_nothing_that_was_measured_to_do_harm():
    cpu = replace(AMD, physical_cores=2)
    names = {item.name for item in recommended(facts(cpu=cpu))}
    assert names.isdisjoint({"KMP_BLOCKTIME", "OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY", "LD_PRELOAD"})
