"""What the system refuses a process, from recorded texts."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.host_limits import (
    bound_by_processes,
    group_processes,
    parse_limit,
    runs_written_code,
    with_host_limits,
)
from ideepdoctor.facts.limits import Level, cgroup_version
from ideepdoctor.model.facts import Limits

LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max stack size            8388608              unlimited            bytes     \n"
    "Max processes             512                  96365                processes \n"
    "Max address space         unlimited            unlimited            bytes     \n"
)
ALL_USERS = "         0          0 4294967295\n"
USER = "Name:\tpython\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"
ROOT = "Name:\tpython\nUid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"


@pytest.mark.parametrize(
    ("name", "value"),
    [("Max stack size", 8388608), ("Max processes", 512), ("Max address space", None), ("Max nothing", None)],
)
def test_a_line_of_the_limits(name: str, value: int | None) -> None:
    assert parse_limit(LIMITS, name) == value
    assert parse_limit("", name) is None


@pytest.mark.parametrize(
    ("status", "uid_map", "bound"),
    [
        pytest.param(USER, ALL_USERS, True, id="a user"),
        pytest.param(ROOT, ALL_USERS, False, id="root"),
        pytest.param(ROOT, "0 1000 1\n1 100000 65536\n", True, id="root of a rootless container"),
        pytest.param(USER[:-9] + "01000000\n", ALL_USERS, False, id="CAP_SYS_RESOURCE"),
        pytest.param(USER[:-9] + "00200000\n", ALL_USERS, False, id="CAP_SYS_ADMIN"),
        pytest.param(USER[:-9] + "00400000\n", ALL_USERS, True, id="CAP_SYS_BOOT"),
        pytest.param(USER, "", True, id="no user namespaces"),
        pytest.param("", "", True, id="nothing known"),
    ],
)
def test_whom_the_limit_of_processes_binds(status: str, uid_map: str, bound: bool) -> None:
    assert bound_by_processes(status, uid_map) is bound


def levels(*texts: str) -> tuple[Level, ...]:
    """Levels of a control group with these texts of pids.max."""
    return tuple(Level(2, "", {"pids.max": text}) for text in texts)


@pytest.mark.parametrize(
    ("found", "limit"),
    [
        (levels("max\n"), None),
        (levels("100\n", "max\n"), 100),
        (levels("max\n", "32\n", "100\n"), 32),
        (levels("x", "-1"), None),
        ((Level(2, "", {}),), None),
        ((), None),
    ],
)
def test_the_tightest_pids_max(found: tuple[Level, ...], limit: int | None) -> None:
    assert group_processes(found) == limit


def test_a_controller_of_processes_says_nothing_of_the_version() -> None:
    assert cgroup_version([Level(1, "pids", {}), Level(2, "", {})]) == 2
    assert cgroup_version([Level(1, "pids", {})]) is None


@pytest.mark.parametrize(
    ("tried", "runs"),
    [(None, None), ("runs", True), ("errno 13", False), ("signal 31", False), ("wrong number", False)],
)
def test_code_that_was_written(tried: str | None, runs: bool | None) -> None:
    assert runs_written_code(tried) is runs


def built(host_limits: Any, status: str = USER, found: tuple[Level, ...] = ()) -> Limits:
    """The limits of a machine that tells this."""
    machine = Answer({"status": status, "host_limits": host_limits})
    return with_host_limits(Limits(disk_free_bytes=7), machine, found, "runs")


def test_put_together() -> None:
    told = {"limits": LIMITS, "uid_map": ALL_USERS, "shared_memory_bytes": 0, "prefix_noexec": True}
    assert built(told) == Limits(
        disk_free_bytes=7,
        processes_limit=512,
        stack_bytes=8388608,
        shared_memory_bytes=0,
        executable_memory=True,
        prefix_noexec=True,
    )
    assert built(told, ROOT).processes_limit is None
    assert built(told, USER, levels("100")).processes_limit == 100
    assert built(told, ROOT, levels("9000")).processes_limit == 9000
    tight = LIMITS.replace("space         unlimited", "space         300000000")
    assert built({**told, "limits": tight}).address_space_bytes == 300000000


def test_an_older_probe_tells_nothing() -> None:
    assert built(None) == Limits(disk_free_bytes=7, executable_memory=True)
    assert built({}) == Limits(disk_free_bytes=7, executable_memory=True)
    with pytest.raises(CouldNotCheck):
        built({"prefix_noexec": "no"})
