"""The certify payload without Chainer: its catalogue, the names of faults, and what it makes of events and deaths."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, payload_source, run_payload
from tests.conftest import legacy_python
from tests.payload.joined import load

OPTIMIZERS = ["SGD", "AdaGrad", "MSVAG", "Adam", "MomentumSGD"]
READY = {"threads": 2, "available": True, "reason": "", "chainer": "7.8.1", "garbage": False}


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    return load("certify")


@pytest.fixture(scope="module")
def cases(payload: dict[str, Any]) -> list[dict[str, Any]]:
    lab = SimpleNamespace(threads=2, emulated=False)
    return payload["catalogue"](lab, OPTIMIZERS, payload["EXPRESSIONS"], range(5), payload["HOOKS"])


def ask(python: str, seconds: float = 30, op_seconds: int = 10, **request: Any) -> dict[str, Any]:
    whole = {"threads": None, "one_cpu": False, "seconds": seconds, "op_seconds": op_seconds, **request}
    return run_payload(RealSystem(), Target(python), "certify", whole, timeout_seconds=seconds + 60)


def of(cases: list[dict[str, Any]], op: str) -> list[dict[str, Any]]:
    return [case for case in cases if case["op"] == op]


# ------------------------------------------------------------------------------------------ the catalogue


def test_every_case_is_another_one_and_survives_json(cases: list[dict[str, Any]]) -> None:
    assert len(cases) > 900
    assert len({case["key"] for case in cases}) == len(cases)
    assert json.loads(json.dumps(cases)) == json.loads(json.dumps(cases, sort_keys=True))
    same_text = [text for text, count in Counter((c["op"], c["text"]) for c in cases).items() if count > 1]
    assert same_text == []


def test_every_operation_that_chainer_gives_to_ideep_is_there(
    payload: dict[str, Any], cases: list[dict[str, Any]]
) -> None:
    ops = {case["op"] for case in cases}
    assert set(payload["SERVED"]) | set(payload["ELEMENTWISE"]) | set(payload["RUNNERS"]) == ops
    assert {case["options"]["name"] for case in of(cases, "optimizer")} == set(OPTIMIZERS)


def test_functions_are_tried_in_the_layouts_that_show_the_hazards(
    payload: dict[str, Any], cases: list[dict[str, Any]]
) -> None:
    for op in ("relu", "max_pooling_2d", "average_pooling_2d", "local_response_normalization", "batch_normalization"):
        seen = {("b" in case.get("inputs", ""), case.get("gradient", "p")) for case in of(cases, op)}
        assert seen == {(False, "p"), (True, "p"), (False, "b"), (True, "b")}, op
    twice = {case["op"] for case in cases if case.get("twice")}
    assert {"convolution_2d", "deconvolution_2d", "linear", "relu", "batch_normalization", "concat"} <= twice
    assert {case["special"] for case in of(cases, "max_pooling_2d") if case.get("special")} == {"nan", "inf"}
    assert any(case.get("read") for case in of(cases, "max_pooling_2d"))


def test_convolutions_are_of_every_kind(cases: list[dict[str, Any]]) -> None:
    found = of(cases, "convolution_2d")
    shapes = [case["shapes"] for case in found]
    assert {1, 2, 3, 4, 8, 16, 32, 64} <= {x[0] for x, *_ in shapes}
    assert {1, 3, 5, 7, 16, 17, 24, 33} <= {x[1] for x, *_ in shapes}
    kernels = {tuple(w[2:]) for _, w, *_ in shapes}
    assert {(1, 1), (3, 3), (5, 5), (7, 7), (11, 11), (1, 7), (7, 1), (3, 5)} <= kernels
    options = [case.get("options", {}) for case in found]
    assert {2, 16} <= {option.get("groups") for option in options}
    assert any(option.get("dilate") == [3, 1] for option in options)
    assert any(option.get("stride") == [2, 1] for option in options)
    names = {case.get("source", "").split(" conv")[0].split(" ")[0] for case in found}
    assert {"AlexNet", "OverFeat", "VGG-A", "GoogLeNet", "ResNet-50"} <= names
    assert sum(bool(case.get("source", "").startswith("GoogLeNet")) for case in found) >= 45


def test_no_case_is_too_large(payload: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    for case in cases:
        numbers = sum(payload["product"](shape) for shape in case.get("shapes", ()))
        assert numbers <= 17.5e6, case["text"]  # AlexNet's fc7: 4096 x 4096
        assert 0 < case["seconds"] < 6, case["text"]
    assert sum(case["seconds"] for case in cases) < 200


def test_what_shows_hazards_comes_first(payload: dict[str, Any], cases: list[dict[str, Any]]) -> None:
    def first(family: str, count: int) -> list[dict[str, Any]]:
        return [case for case in cases if case["family"] == family][:count]

    made = payload["exposing_shape"](2, payload["cache_bytes"](False))
    assert list(made) in [case["shapes"][0] for case in first("batch_norm", 2)]
    assert any(case.get("special") == "nan" for case in first("max_pooling", 4))
    assert any(case["risk"] for case in first("concat", 4)) and any(case["risk"] for case in first("split_axis", 4))
    assert {case["options"]["name"] for case in first("optimizers", 2)} == {"AdaGrad", "SGD"}
    assert any("pickle" in case["text"] for case in first("keep", 4))
    assert first("load", 1)[0]["text"] == "load_npz"


def test_a_key_does_not_depend_on_where_a_shape_is_from(payload: dict[str, Any]) -> None:
    case = {"op": "relu", "shapes": [[2, 3]], "source": "AlexNet"}
    assert payload["key_of"](case) == payload["key_of"]({"shapes": [[2, 3]], "op": "relu"})
    assert payload["key_of"](case) != payload["key_of"](dict(case, gradient="b"))
    done = payload["complete"](case)
    assert payload["key_of"](done) == done["key"]


def test_the_numbers_of_a_case_are_the_same_on_every_python(payload: dict[str, Any]) -> None:
    case = {"op": "relu", "shapes": [[2, 3]], "options": {"b": 1, "a": [2, 3]}, "gradient": "b"}
    other = {"gradient": "b", "options": {"a": [2, 3], "b": 1}, "shapes": [[2, 3]], "op": "relu", "source": "x"}
    assert payload["seed_of"](case) == payload["seed_of"](other) == 1877696998
    assert payload["seed_of"](dict(case, twice=True)) != payload["seed_of"](case)


@pytest.mark.parametrize(
    ("case", "risk"),
    [
        ({"op": "concat", "shapes": [[2, 16, 6, 6], [2, 8, 6, 6]]}, 1),
        ({"op": "concat", "shapes": [[2, 8, 6, 6], [2, 16, 6, 6]]}, 0),
        ({"op": "concat", "shapes": [[2, 16, 6, 6], [2, 8, 6, 6]], "options": {"axis": 2}}, 0),
        ({"op": "split_axis", "shapes": [[2, 16, 6, 6]]}, 1),
        ({"op": "mdarray", "options": {"expression": "h + float64"}}, 1),
        ({"op": "keep", "options": {"how": "pickle protocol 2"}}, 1),
        ({"op": "relu", "shapes": [[2, 16, 6, 6]]}, 0),
        # Windows of 2 every 3 elements begin at 9 in an image of 9: there is nothing in them.
        (
            {
                "op": "max_pooling_2d",
                "shapes": [[2, 16, 9, 10]],
                "options": {"ksize": 2, "stride": 3, "cover_all": True},
            },
            2,
        ),
        (
            {
                "op": "max_pooling_2d",
                "shapes": [[2, 16, 8, 10]],
                "options": {"ksize": 2, "stride": 3, "cover_all": True},
            },
            0,
        ),
        ({"op": "max_pooling_2d", "shapes": [[2, 16, 9, 10]], "options": {"ksize": 2, "stride": 3}}, 0),
    ],
)
def test_what_may_spoil_its_process_is_known(payload: dict[str, Any], case: dict[str, Any], risk: int) -> None:
    assert payload["risk_of"](case) == risk


@pytest.mark.parametrize(
    ("op", "shapes", "options", "terms"),
    [
        ("convolution_2d", [[2, 16, 8, 8], [32, 16, 3, 3]], {}, 32 * 9),  # backward to the input: outputs x window
        ("convolution_2d", [[8, 16, 8, 8], [4, 16, 3, 3]], {}, 8 * 64),  # to the weight: places
        ("convolution_2d", [[1, 64, 8, 8], [4, 64, 5, 5]], {}, 64 * 25),  # forward
        ("convolution_2d", [[1, 4, 8, 8], [64, 4, 3, 3]], {"stride": 2}, 64 * 9 // 4),
        ("linear", [[8, 100], [30, 100]], {}, 100),
        ("batch_normalization", [[8, 16, 5, 5], [16], [16]], {}, 200),
    ],
)
def test_the_longest_sum_is_counted(
    payload: dict[str, Any], op: str, shapes: list[list[int]], options: dict[str, Any], terms: int
) -> None:
    assert payload["OPERATIONS"][op].terms(shapes, options) == terms


# ------------------------------------------------------------------------------------------ names of faults


def fields(status: str = "wrong", message: str = "", **more: Any) -> dict[str, Any]:
    return {"status": status, "message": message, "wrong": ["gradient of x"], "error": 0.5, **more}


CONV = {"inputs": "b", "gradient": "b"}
SUM = "TypeError: in method 'mdarray_sum', argument 3 of type 'int'"
POWER = "TypeError: unsupported operand type(s) for ** or pow(): 'ideep4py.mdarray' and 'int'"


@pytest.mark.parametrize(
    ("case", "ended", "ready", "hazard"),
    [
        ({"op": "batch_normalization"}, fields(), {}, "H1"),
        ({"op": "batch_normalization"}, fields(), {"threads": 1}, None),
        ({"op": "batch_normalization"}, fields(wrong=["output", "gradient of x"]), {}, None),
        ({"op": "batch_normalization"}, fields(), {"garbage": True}, "H6"),
        ({"op": "batch_normalization", **CONV}, fields(wrong=["output"]), {"chainer": "5.4.0"}, "H1"),
        ({"op": "batch_normalization", **CONV}, fields(wrong=["output"]), {}, None),
        ({"op": "h * g", **CONV}, fields(), {}, "H2"),
        ({"op": "h * g", "inputs": "bb"}, fields(), {}, "H2"),
        ({"op": "h * g"}, fields(), {}, None),
        ({"op": "sigmoid", "gradient": "b"}, fields(), {}, "H2"),
        ({"op": "lstm", **CONV}, fields(), {}, "H2"),
        ({"op": "mdarray", "options": {"expression": "h / x"}}, fields(), {}, "H2"),
        ({"op": "mdarray", "options": {"expression": "h + g"}}, fields(), {}, None),
        ({"op": "load", "options": {"how": "load_npz"}}, fields(), {}, "H3"),
        ({"op": "optimizer", "options": {"name": "AdaGrad"}}, fields(), {}, "H4"),
        ({"op": "optimizer", "options": {"name": "Adam"}}, fields(), {}, None),
        ({"op": "optimizer", "options": {"name": "Adam"}}, fields(), {"chainer": "5.0.0"}, "H4"),
        ({"op": "max_pooling_2d", "special": "nan"}, fields(error=None), {}, "H5"),
        ({"op": "max_pooling_2d", "special": "inf"}, fields(error=None), {}, None),
        ({"op": "max_pooling_2d", "read": True, **CONV}, fields(), {}, None),
        ({"op": "concat", **CONV}, fields("crashed", "SIGABRT"), {}, "H7"),
        ({"op": "split_axis", **CONV}, fields("crashed", "SIGABRT"), {}, "H8"),
        ({"op": "concat", **CONV}, fields(), {}, None),
        ({"op": "relu", **CONV}, fields("crashed", "SIGSEGV"), {}, None),
        ({"op": "fixed_batch_normalization"}, fields("raised", SUM), {}, "H9"),
        ({"op": "fixed_batch_normalization"}, fields("raised", "ValueError"), {}, None),
        ({"op": "keep", "options": {"how": "pickle protocol 2"}}, fields("crashed", "SIGSEGV"), {}, "H10"),
        ({"op": "keep", "options": {"how": "pickle protocol 2"}}, fields("raised", "can't pickle x"), {}, "H10"),
        ({"op": "keep", "options": {"how": "deepcopy"}}, fields("raised", "can't pickle x"), {}, None),
        ({"op": "h ** g", **CONV}, fields("raised", POWER), {}, "H11"),
        ({"op": "relu"}, fields("timeout"), {}, None),
        ({"op": "relu", "special": "inf"}, fields(error=None), {}, "H16"),
        ({"op": "relu", "special": "nan"}, fields(error=None), {}, None),
        ({"op": "slstm", "inputs": "bbbb"}, fields("raised", "RuntimeError: CUDA"), {}, "H15"),
        ({"op": "im2col"}, fields("raised", "RuntimeError: CUDA"), {}, None),
        ({"op": "local_response_normalization", "inputs": "b"}, fields(), {}, "H14"),
        ({"op": "local_response_normalization", "special": "nan"}, fields(error=None), {}, None),
        ({"op": "convolution_2d", **CONV}, fields(), {}, None),
    ],
)
def test_a_fault_has_a_name_where_the_trigger_is_there(
    payload: dict[str, Any], case: dict[str, Any], ended: dict[str, Any], ready: dict[str, Any], hazard: str | None
) -> None:
    assert payload["hazard_of"](case, ended, {**READY, **ready}) == hazard


@pytest.mark.parametrize(
    ("case", "ready", "reason"),
    [
        ({"op": "relu", "shapes": [[2, 3]]}, {"available": False, "reason": "no wheel"}, "no wheel"),
        ({"op": "convolution_2d", "shapes": [[1, 1, 1, 1]], "options": {"groups": 2}}, {}, "groups and depthwise"),
        ({"op": "relu", "shapes": [[2, 3, 4]]}, {}, "3-dimensional"),
        ({"op": "concat", "shapes": [[2, 3], [2, 3]]}, {}, "2-dimensional"),
        ({"op": "split_axis", "shapes": [[2, 8, 4, 4]]}, {}, "8 channels"),
        ({"op": "exp", "shapes": [[2, 8, 4, 4]]}, {}, "element by element"),
        ({"op": "relu", "shapes": [[2, 3]]}, {}, "Chainer gave it to NumPy"),
    ],
)
def test_why_numpy_computed_it_is_told(
    payload: dict[str, Any], case: dict[str, Any], ready: dict[str, Any], reason: str
) -> None:
    assert reason in payload["why_not"](case, {**READY, **ready})


# ------------------------------------------------------------------------------------------ events and deaths


def verbose(kind: str, how: str = "jit:avx2") -> str:
    return f"mkldnn_verbose,exec,{kind},{how},forward_training,f,,mb1,0.1"


def test_the_kernels_of_the_operation_itself_prove_its_use(payload: dict[str, Any]) -> None:
    start = {
        "lines": [verbose("convolution")],  # made the input blocked
        "more": [
            {"phase": "forward", "lines": [verbose("reorder"), verbose("eltwise")]},
            {"phase": "between", "lines": [verbose("convolution")]},
            {"phase": "backward", "lines": [verbose("reorder"), "mkldnn_verbose,create,eltwise,jit:avx2"]},
            {"phase": "reference", "lines": [verbose("eltwise")]},
        ],
    }
    case = payload["complete"]({"op": "relu", "shapes": [[2, 16, 4, 4]]})
    told = {"status": "right", "forward": False, "backward": False, "error": 0.0}
    result = payload["as_result"](case, (0, start, told), READY)
    assert (result["forward"], result["backward"]) == (True, False)
    assert result["kernels"] == ["eltwise jit:avx2"]
    assert result["why"] == "" and result["hazard"] is None


def test_a_case_that_died_says_so_in_the_same_fields(payload: dict[str, Any]) -> None:
    case = payload["complete"]({"op": "concat", "shapes": [[2, 16, 6, 6], [2, 8, 6, 6]], "inputs": "bb"})
    died = payload["as_result"](case, (0, {"lines": []}, {"status": "crashed", "message": "SIGABRT: x"}), READY)
    right = payload["as_result"](case, (0, {}, {"status": "right", "forward": True, "backward": None}), READY)
    assert set(died) == set(right)
    assert (died["hazard"], died["forward"], died["error"], died["wrong"]) == ("H7", None, None, [])


def group(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, events: list[dict[str, Any]], **order: Any) -> Any:
    """A group of three operations whose children tell these events (all of them, each)."""
    started: list[list[int]] = []

    class Double(payload["Child"]):  # type: ignore[misc, name-defined]
        def __init__(self, setting: dict[str, Any], order: dict[str, Any]) -> None:
            self.lines, self.killed, self.code, self.stderr = [], False, 0, ""
            started.append(list(order["indexes"]))
            self.events = [{"event": "ready", **READY}, *events]

    monkeypatch.setitem(payload["Group"].run.__globals__, "Child", Double)
    made = payload["Group"]({}, order, range(3))
    made.run()
    return made, started


def done(index: int) -> list[dict[str, Any]]:
    fields = {"status": "right", "message": ""}
    phase = {"event": "phase", "index": index, "phase": "forward"}
    return [{"event": "start", "index": index}, phase, {"event": "done", "index": index, "fields": fields}]


def test_cases_that_there_was_no_time_for_are_left(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made, started = group(payload, monkeypatch, [*done(0), {"event": "stopped"}])
    assert (made.left, len(started)) == ([1, 2], 1)
    [(index, start, told)] = made.records
    assert (index, told["status"], start["more"][0]["phase"]) == (0, "right", "forward")


def test_no_child_is_started_when_time_is_up(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made, started = group(payload, monkeypatch, [], stop_at=0.0)
    assert (made.left, made.records, started) == ([0, 1, 2], [], [])


def test_without_chainer_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for request in ({"action": "plan"}, {"action": "run", "cases": []}):
        answer = ask(sys.executable, **request)
        assert answer["ready"] is None
        assert answer["failure"]
    assert "No module named" in ask(sys.executable, action="plan")["failure"]


def test_an_import_that_dies_is_named_by_signal_and_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import os, sys\nsys.stderr.write('famous last words')\nos.abort()\n"
    (tmp_path / "chainer.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cases = [load("certify")["complete"]({"op": "relu", "shapes": [[2, 3]]})]
    for request in ({"action": "plan"}, {"action": "run", "cases": cases}):
        assert "SIGABRT: famous last words" in ask(sys.executable, **request)["failure"]


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8", "3.12", "3.13"])
def test_it_runs_on_every_python(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert "No module named" in ask(legacy_python(version), action="plan")["failure"]


@pytest.mark.parametrize("version", ["2.7", "3.7"])
def test_one_processor_is_one_processor(version: str, tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one processor")
    (tmp_path / "text").write_bytes(payload_source("certify"))
    code = """
        space = {"__name__": "payload"}
        exec(compile(open("text").read(), "text", "exec"), space)
        space["one_cpu"]()
        print(open("/proc/self/status").read().split("Cpus_allowed_list:")[1].split()[0])
    """
    words = [legacy_python(version), "-c", textwrap.dedent(code)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(min(os.sched_getaffinity(0)))
