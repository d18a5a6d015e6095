"""The smoke payload without Chainer: its arithmetic, what it makes of children that die, and what it leaves alone."""

from __future__ import annotations

import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.rules.proof import KNOWN
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from tests.conftest import legacy_python
from tests.payload.joined import load


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    return load("smoke")


def run(python: str, seconds: float = 30, op_seconds: int = 10) -> dict[str, Any]:
    request = {"threads": None, "timing": False, "seconds": seconds, "op_seconds": op_seconds}
    return run_payload(RealSystem(), Target(python), "smoke", request, timeout_seconds=seconds + 30)


def fake_chainer(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "chainer.py").write_text(textwrap.dedent(text))
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_tolerance_grows_with_the_root_of_the_terms(payload: dict[str, Any]) -> None:
    tolerance = payload["tolerance"]
    assert tolerance(40_000) == pytest.approx(2 * tolerance(10_000))
    assert tolerance(1) == tolerance(payload["LEAST_TERMS"])
    # The smallest error that a hazard was seen to make is above the largest tolerance that is used.
    assert tolerance(4 * 462 * 462) < 1e-3


@given(st.integers(2, 128), st.sampled_from([1_024_000, 1_408 * 1024, 2 * 1024 * 1024, 16 * 1024 * 1024]))
def test_the_shape_made_for_a_machine_leaves_a_last_block_smaller_than_the_threads(threads: int, cache: int) -> None:
    names = load("smoke")
    batch, channels, height, width = names["exposing_shape"](threads, cache)
    block = int(cache * threads / 2 / (batch * height * width * 4 * 2))
    assert threads <= block < channels
    assert 0 < channels % block < threads
    # Arrays this small would not be taken in blocks at all.
    assert batch * channels * height * width * 4 >= cache * threads / 4


def test_every_case_is_about_something_else(payload: dict[str, Any]) -> None:
    cases = payload["cases"]()
    assert len({(case.op, str(case.case)) for case in cases}) == len(cases)
    assert {case.hazard for case in cases} == {None, *KNOWN}
    assert cases[0].op == "convolution" and cases[0].group == "core"
    wanted = {"relu", "max_pooling", "average_pooling", "linear", "batch_normalization", "concat", "dropout", "sgd"}
    assert wanted <= {case.op for case in cases}


def group_with(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, deadly: set[int], code: int = -6) -> Any:
    """A group of five operations, those of ``deadly`` ending their child."""
    child = payload["Child"]

    started: list[list[int]] = []

    class Double(child):  # type: ignore[misc, valid-type]
        def __init__(self, setting: dict[str, Any], order: dict[str, Any]) -> None:
            self.lines, self.killed, self.code, self.stderr = [], False, 0, "some\nwhat():  last words\n"
            self.events = [{"event": "ready", "threads": 2, "available": True, "reason": ""}]
            started.append(list(order["indexes"]))
            for index in order["indexes"]:
                self.events.append({"event": "start", "index": index, "case": f"case {index}", "hazard": None})
                if index in deadly:
                    self.code = code
                    return
                fields = {"status": "right", "message": "", "error": 0.0}
                self.events.append({"event": "done", "index": index, "fields": fields})

    monkeypatch.setitem(payload["Group"].run.__globals__, "Child", Double)
    group = payload["Group"]({}, {"group": "g"}, range(5))
    group.run()
    table = [payload["Case"]("g", f"op{index}", "text", "H1", None) for index in range(5)]
    return [payload["as_check"](table, record) for record in group.records], started


def test_an_operation_that_kills_its_child_is_the_only_one_lost(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks, started = group_with(payload, monkeypatch, {2})
    assert [(check["op"], check["status"]) for check in checks] == [
        ("op0", "right"),
        ("op1", "right"),
        ("op2", "crashed"),
        ("op3", "right"),
        ("op4", "right"),
    ]
    assert started == [[0, 1, 2, 3, 4], [3, 4]]
    crash = checks[2]
    assert crash["message"] == "SIGABRT: some what():  last words"
    assert (crash["case"], crash["hazard"], crash["error"]) == ("case 2", None, None)


def test_a_hang_is_a_timeout(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    checks, _ = group_with(payload, monkeypatch, {0}, code=-14)
    assert checks[0]["status"] == "timeout"
    assert [check["status"] for check in checks[1:]] == ["right"] * 4


def test_children_that_all_die_are_not_started_for_ever(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks, started = group_with(payload, monkeypatch, {0, 1, 2, 3, 4})
    assert [check["status"] for check in checks] == ["crashed"] * 3 + ["not-run"] * 2
    assert "3 before it" in checks[-1]["message"]
    assert len(started) == 3


def test_deaths_do_not_keep_an_operation_from_its_try_where_another_one_lived(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    checks, started = group_with(payload, monkeypatch, {1, 2, 3, 4})
    assert [check["status"] for check in checks] == ["right"] + ["crashed"] * 4
    assert len(started) == 4


def test_without_chainer_the_reason_is_told_and_nothing_is_passed_over(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    answer = run(sys.executable)
    assert "import of chainer: " in answer["failure"]
    assert "No module named" in answer["failure"]
    assert len(answer["checks"]) == len(payload["cases"]())
    assert {check["status"] for check in answer["checks"]} == {"not-run"}
    assert answer["timing"] is None


def test_an_import_that_dies_is_named_by_signal_and_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_chainer(tmp_path, "import os, sys\nsys.stderr.write('famous last words')\nos.abort()\n", monkeypatch)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    answer = run(sys.executable)
    assert answer["failure"] == "import of chainer: SIGABRT: famous last words"
    assert list(folder.iterdir()) == []


def test_an_import_that_hangs_ends_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_chainer(tmp_path, "import time\ntime.sleep(600)\n", monkeypatch)
    started = time.monotonic()
    answer = run(sys.executable, op_seconds=1)
    assert "took too long" in answer["failure"]
    assert time.monotonic() - started < 20


def test_a_module_in_the_current_folder_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "marshal", "base64", "threading", "chainer", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the current folder')\n")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    answer = run(sys.executable)
    assert "No module named" in answer["failure"]


def test_children_have_the_variables_that_the_user_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os\nraise ImportError('%s %s' % (os.environ.get('MINE'), os.environ.get('MKLDNN_VERBOSE')))\n"
    fake_chainer(tmp_path, text, monkeypatch)
    monkeypatch.setenv("MINE", "a=b c")
    assert "a=b c 1" in run(sys.executable)["failure"]


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.12", "3.13"])
def test_it_runs_on_every_python(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    answer = run(legacy_python(version))
    assert "No module named" in answer["failure"]
