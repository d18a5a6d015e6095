"""Affinity, quota and memory from recorded texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.facts.limits import (
    Level,
    build_limits,
    cgroup_version,
    memory_limit_bytes,
    parse_affinity,
    parse_cpu_list,
    parse_meminfo,
    quota_cpus,
)

STATUS = "Name:\tpython\nCpus_allowed:\tff,ffffffff\nCpus_allowed_list:\t0-3,8,10-11\nMems_allowed_list:\t0\n"
MEMINFO = "MemTotal:       24684092 kB\nMemFree:        23873804 kB\nMemAvailable:   24224848 kB\n"
NO_LIMIT_V1 = "9223372036854771712\n"


def v1(quota: str, period: str = "100000\n") -> Level:
    """A level of the cpu controller of version 1."""
    return Level(1, "cpu", {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": period})


def v2(cpu: str, memory: str = "max\n") -> Level:
    """A level of version 2."""
    return Level(2, "", {"cpu.max": cpu, "memory.max": memory})


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0-3,8,10-11", (0, 1, 2, 3, 8, 10, 11)),
        ("0", (0,)),
        (" 0-1\n", (0, 1)),
        ("", None),
        ("0-", None),
        ("3-1", None),
        ("0-999999", None),
        ("a", None),
        ("-1", None),
    ],
)
def test_cpu_list(text: str, numbers: tuple[int, ...] | None) -> None:
    assert parse_cpu_list(text) == numbers


def test_affinity() -> None:
    assert parse_affinity(STATUS) == (0, 1, 2, 3, 8, 10, 11)
    assert parse_affinity("Cpus_allowed:\t3\n") is None


@pytest.mark.parametrize(
    ("levels", "cpus"),
    [
        ([v2("200000 100000\n")], 2.0),
        ([v2("max 100000\n")], None),
        ([v2("150000 100000\n"), v2("400000 100000\n")], 1.5),
        ([v2("max 100000\n"), v2("50000 100000\n"), v2("")], 0.5),
        ([v1("250000\n")], 2.5),
        ([v1("-1\n")], None),
        ([v1("-1\n"), v1("300000\n", "200000\n")], 1.5),
        ([v1("100000\n", "0\n")], None),
        ([Level(2, "", {"memory.max": "max"})], None),
        ([v1("400000\n"), v2("100000 100000\n")], 1.0),
        ([], None),
    ],
)
def test_quota(levels: list[Level], cpus: float | None) -> None:
    assert quota_cpus(levels) == cpus


def test_memory_limit() -> None:
    unlimited = Level(1, "memory", {"memory.limit_in_bytes": NO_LIMIT_V1})
    limited = Level(1, "memory", {"memory.limit_in_bytes": "2147483648\n"})
    assert memory_limit_bytes([unlimited]) is None
    assert memory_limit_bytes([unlimited, limited, unlimited]) == 2 << 30
    assert memory_limit_bytes([v2("max", "max\n"), v2("max", "1048576\n")]) == 1 << 20
    assert memory_limit_bytes([]) is None


def test_version_of_hybrid_systems_is_that_of_the_controllers() -> None:
    assert cgroup_version([v1("-1"), Level(2, "", {})]) == 1
    assert cgroup_version([v2("max")]) == 2
    assert cgroup_version([]) is None


def test_meminfo() -> None:
    assert parse_meminfo(MEMINFO, "MemTotal") == 24684092 * 1024
    assert parse_meminfo(MEMINFO, "MemAvailable") == 24224848 * 1024
    assert parse_meminfo("MemTotal: many kB\n", "MemTotal") is None


def test_limits() -> None:
    limits = build_limits(STATUS, MEMINFO, (v2("100000 100000", "1073741824"),), 5)
    assert limits.affinity_cpus and len(limits.affinity_cpus) == 7
    assert (limits.cgroup_version, limits.quota_cpus) == (2, 1.0)
    assert (limits.memory_limit_bytes, limits.disk_free_bytes) == (1 << 30, 5)
    nothing = build_limits(None, None, (), None)
    assert nothing.affinity_cpus is None and nothing.memory_total_bytes is None


@given(st.text() | st.text(alphabet="0123456789,-max \n:kB"))
def test_arbitrary_text(text: str) -> None:
    names = ("cpu.max", "memory.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes")
    levels = tuple(Level(version, "", dict.fromkeys(names, text)) for version in (1, 2))
    limits = build_limits("Cpus_allowed_list:\t" + text, "MemTotal: " + text, levels, None)
    assert limits.quota_cpus is None or limits.quota_cpus > 0
    assert limits.affinity_cpus is None or list(limits.affinity_cpus) == sorted(set(limits.affinity_cpus))
