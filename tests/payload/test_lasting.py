"""How the payload tells steady growth from other memory, and how it waits for children that hang or die."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.payload.joined import load


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    return load("certify")


@pytest.mark.parametrize(
    ("samples", "grown"),
    [
        ([5] * 24, 0),
        (list(range(0, 2400, 100)), 2400),
        ([0] * 12 + [4000] * 12, 0),  # one arena at once
        ([0] * 6 + [10] * 6 + [20] * 6 + [25] * 6, 20),  # the slowest quarter counts
        ([0, 99999] * 12, 0),  # comes and goes
        (list(range(2400, 0, -100)), 0),
        ([*range(0, 2300, 100), 10**9], 2400),  # the last alone says nothing
    ],
)
def test_growth_counts_where_every_quarter_has_it(payload: dict[str, Any], samples: list[int], grown: int) -> None:
    assert payload["steady_growth"](samples) == grown


def child_of(act: Callable[[], object]) -> int:
    pid = os.fork()
    if not pid:
        act()
        os._exit(0)
    return pid


def end_by_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever runs the tests may have a handler, which a fork inherits
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_child_is_told_by_its_end(payload: dict[str, Any]) -> None:
    waited = payload["waited"]
    assert waited(child_of(lambda: None), 20) == {"timed_out": False, "signal": None, "exit_code": 0}
    assert waited(child_of(lambda: os._exit(7)), 20)["exit_code"] == 7
    died = waited(child_of(end_by_sigterm), 20)
    assert (died["signal"], died["exit_code"], died["timed_out"]) == ("SIGTERM", None, False)


def test_a_child_that_hangs_is_killed(payload: dict[str, Any]) -> None:
    pid = child_of(lambda: time.sleep(60))
    assert payload["waited"](pid, 0.1) == {"timed_out": True, "signal": None, "exit_code": None}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_exception_of_a_child_comes_over_its_pipe(payload: dict[str, Any]) -> None:
    def compute() -> None:
        raise ValueError("no such layout")

    work, said = payload["working"](compute, 20)
    for start in (payload["by_fork"], payload["by_multiprocessing"]):
        work, said = payload["working"](compute, 20)
        assert payload["waited"](start(work), 20)["exit_code"] == 3
        assert said() == "ValueError: no such layout"


HUNG = {"how": "os.fork()", "timed_out": True, "signal": None, "exit_code": None, "said": ""}


@pytest.mark.parametrize(
    ("told", "status", "note"),
    [
        ({"timed_out": False, "exit_code": 0}, None, None),
        ({}, "timeout", "a child of os.fork() was not done after 8 s"),
        ({"timed_out": False, "signal": "SIGSEGV"}, "crashed", "a child of os.fork() was ended by SIGSEGV"),
        ({"timed_out": False, "exit_code": 1}, "crashed", "a child of os.fork() ended with exit code 1"),
        ({"timed_out": False, "exit_code": 3, "said": "E: no"}, "raised", "a child of os.fork() E: no"),
    ],
)
def test_how_a_child_ended_in_words(
    payload: dict[str, Any], told: dict[str, Any], status: str | None, note: str | None
) -> None:
    result = SimpleNamespace()
    payload["judge_child"](result, {**HUNG, **told}, 8)
    assert (getattr(result, "status", None), getattr(result, "note", None)) == (status, note)


def test_each_has_a_process_of_its_own_and_is_cheap(payload: dict[str, Any]) -> None:
    lab = SimpleNamespace(threads=2, emulated=False)
    cases = payload["catalogue"](lab, ["SGD"], payload["EXPRESSIONS"], range(3), payload["HOOKS"])
    found = [case for case in cases if case["family"] in ("memory", "fork")]
    assert [case["text"] for case in found] == [
        "count 240, shapes the same",
        "count 200, engine iDeep, shapes new",
        "count 200, engine NumPy, shapes new",
        "children 3",
    ]
    assert {case["risk"] for case in found} == {2}
    assert sum(case["seconds"] for case in found) < 10


@pytest.mark.parametrize(
    ("status", "hazard"),
    [("right", None), ("not-run", None), ("timeout", "fork"), ("crashed", "fork"), ("raised", "fork")],
)
def test_a_fork_that_failed_has_a_name(payload: dict[str, Any], status: str, hazard: str | None) -> None:
    ready = {"threads": 2, "chainer": "7.8.1", "garbage": False}
    assert payload["hazard_of"]({"op": "fork"}, {"status": status}, ready) == hazard
