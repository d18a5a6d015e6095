"""What tune may change on a machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.model.facts import Facts, Limits, Platform, Variables
from ideepdoctor.proof.tune_nodes import parse_cpus
from ideepdoctor.proof.tune_space import DEFAULT, dimensions, most_threads, quick_dimensions, thread_option
from ideepdoctor.treatment.variables import AVX512_OF_MKL
from tests.treatment.sample import AMD, INTEL, facts

AMD512 = replace(AMD, cpuinfo_flags=("avx2", *AVX512_OF_MKL))


def machine(cpus: int = 4, quota: float | None = None, cores: int | None = None, cpu=AMD512, libc="2.36") -> Facts:
    given_cpu = replace(cpu, physical_cores=cores or cpus, logical_cpus=cpus)
    found = facts(cpu=given_cpu, limits=Limits(affinity_cpus=tuple(range(cpus)), quota_cpus=quota))
    return replace(found, platform=Platform("Linux", "x86_64", libc="glibc", libc_version=libc))


def labels(found, name: str) -> list[str]:
    return [option.label for item in found if item.name == name for option in item.options]


def user(**variables: str) -> Variables:
    return Variables(inherited=variables, effective=variables)


def test_all_dimensions_of_an_amd_machine_those_that_matter_most_first():
    found = dimensions(machine(), ["/usr/lib/libjemalloc.so.2"])
    names = ["mkl", "threads", "layouts", "affinity", "blocktime", "allocator", "pages"]
    assert [item.name for item in found] == names
    assert labels(found, "mkl") == ["MKL_DEBUG_CPU_TYPE=5", "MKL_DEBUG_CPU_TYPE unset"]
    assert labels(found, "allocator") == ["libjemalloc.so.2", "glibc's allocator keeps what was freed"]
    (quick,) = quick_dimensions(machine(16))
    assert [option.label for option in quick.options] == [
        "MKL_DEBUG_CPU_TYPE=5",
        "MKL_DEBUG_CPU_TYPE unset",
        "OMP_NUM_THREADS=8",
        "OMP_NUM_THREADS=4",
    ]
    assert quick.default == "MKL_DEBUG_CPU_TYPE=7 and 16 threads"
    assert quick_dimensions(machine(1, cpu=INTEL)) == ()


def test_a_processor_is_never_told_to_use_what_it_does_not_have():
    assert labels(dimensions(machine(cpu=AMD)), "mkl") == ["MKL_DEBUG_CPU_TYPE unset"]
    assert labels(dimensions(machine(cpu=INTEL)), "mkl") == []


@pytest.mark.parametrize(
    ("cpus", "quota", "cores", "counts"),
    [
        (4, None, 4, ["2", "1"]),
        (6, None, 6, ["4", "2", "1"]),
        (8, None, 4, ["8", "2", "1"]),  # 4, the cores, are the default
        (8, 2.5, 8, ["2", "1"]),  # 3 is the default
        (8, 1.0, 8, []),
        (1, None, 1, []),
    ],
)
def test_threads_obey_affinity_and_quota(cpus, quota, cores, counts):
    assert [label.partition("=")[2] for label in labels(dimensions(machine(cpus, quota, cores)), "threads")] == counts


@given(cpus=st.integers(1, 256), quota=st.one_of(st.none(), st.floats(0.1, 300)), half=st.booleans())
def test_no_option_has_more_threads_than_may_run(cpus, quota, half):
    given_facts = machine(cpus, quota, max(1, cpus // 2) if half else None)
    most = most_threads(given_facts)
    assert 1 <= most <= cpus and (quota is None or most < quota + 1)
    for label in labels(dimensions(given_facts), "threads"):
        assert 1 <= int(label.partition("=")[2]) <= most


@pytest.mark.parametrize(
    ("name", "dimension"),
    [
        ("MKL_DEBUG_CPU_TYPE", "mkl"),
        ("OMP_NUM_THREADS", "threads"),
        ("KMP_AFFINITY", "affinity"),
        ("OMP_PROC_BIND", "affinity"),
        ("KMP_BLOCKTIME", "blocktime"),
        ("GLIBC_TUNABLES", "pages"),
    ],
)
def test_what_the_user_has_set_is_the_users(name, dimension):
    without = {item.name for item in dimensions(replace(machine(), variables=user(**{name: "1"})))}
    assert {item.name for item in dimensions(machine())} - without == {dimension}


def test_huge_pages_need_a_glibc_that_knows_them():
    assert labels(dimensions(machine(libc="2.34")), "pages") == []
    assert labels(dimensions(machine(libc="2.35")), "pages") == ["GLIBC_TUNABLES=glibc.malloc.hugetlb=1"]
    musl = replace(machine(), platform=Platform("Linux", "x86_64", libc="musl"))
    assert labels(dimensions(musl), "pages") + labels(dimensions(musl), "allocator") == []


def test_the_layouts_of_a_users_model_are_the_models_own():
    assert labels(dimensions(machine(), model=True), "layouts") == []


def test_a_setting_holds_one_option_of_each_dimension():
    setting = DEFAULT.with_option(thread_option(2)).with_option(thread_option(1))
    assert setting.variables == {"OMP_NUM_THREADS": "1"} and setting.label == "OMP_NUM_THREADS=1"
    assert setting.without("threads") == DEFAULT and DEFAULT.label == "the default" and DEFAULT.to_intel64
    (plain,) = (item.options[0] for item in dimensions(machine()) if item.name == "layouts")
    assert not setting.with_option(plain).to_intel64


def test_what_comes_too_late_in_a_start_up_file_is_marked():
    found = dimensions(machine(), ["/usr/lib/libmimalloc.so"])
    early = {
        row.name: row.early for item in found for option in item.options for row in DEFAULT.with_option(option).tuned()
    }
    assert {name for name, is_early in early.items() if is_early} == {
        "LD_PRELOAD",
        "GLIBC_TUNABLES",
        "MALLOC_TRIM_THRESHOLD_",
        "MALLOC_TOP_PAD_",
        "MALLOC_MMAP_THRESHOLD_",
    }


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", (0, 1, 2, 3, 8)), ("5\n", (5,)), ("\n", ()), ("0,2", (0, 2))])
def test_the_cpus_of_a_node_are_read_as_the_kernel_writes_them(text, cpus):
    assert parse_cpus(text) == cpus
