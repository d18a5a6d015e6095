"""What certify says of a file, a function and a return value that are no model; what it makes of a model's events."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.payload.joined import load

TEXT = """
import math
VALUE = 3
class Net(object):
    def __call__(self): pass
def make():
    return Net(), [1]
def _hidden(): pass
def boom():
    raise ValueError("no data")
"""


@pytest.fixture(scope="module")
def payload() -> dict[str, Any]:
    return load("certify")


@pytest.fixture(autouse=True)
def own_path() -> Iterator[None]:
    before, words = list(sys.path), list(sys.argv)
    yield
    sys.path[:], sys.argv[:] = before, words


def refusal(payload: dict[str, Any], path: Path, name: str) -> str:
    with pytest.raises(payload["Refused"]) as caught:
        payload["load_function"](str(path), name)
    return str(caught.value)


def test_a_function_is_found_with_the_modules_beside_it(payload: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "beside_net.py").write_text("NUMBER = 5\n")
    path = tmp_path / "net.py"
    path.write_text("from beside_net import NUMBER\ndef make(): return NUMBER\n")
    assert payload["load_function"](str(path), "make")() == 5
    model, inputs = payload["call_function"](lambda: (len, [1, 2], 3), "make")
    assert (model, inputs) == (len, [[1, 2], 3])


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (TEXT, "absent", "has no function absent; it has: Net, boom, make"),
        (TEXT, "VALUE", "VALUE in"),
        ("def make(:\n", "make", "could not be loaded: SyntaxError"),
        ("import not_there_at_all\n", "make", "could not be loaded: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "make", "ended the program (SystemExit: 3)"),
        ("", "make", "it has: none"),
    ],
)
def test_a_file_without_the_function_is_refused(
    payload: dict[str, Any], tmp_path: Path, text: str, name: str, message: str
) -> None:
    path = tmp_path / "net.py"
    path.write_text(text)
    assert message in refusal(payload, path, name)


def test_a_file_that_is_not_there_is_refused(payload: dict[str, Any], tmp_path: Path) -> None:
    assert "there is no file" in refusal(payload, tmp_path / "net.py", "make")
    assert "there is no file" in refusal(payload, tmp_path, "make")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned NoneType; it must return (link or callable, inputs...)"),
        (len, "returned builtin_function_or_method"),
        ((3, 4), "returned a tuple that begins with int"),
        (["x"], "returned a list that begins with str"),
        ((), "returned an empty tuple"),
    ],
)
def test_a_return_value_that_is_no_model_is_refused(payload: dict[str, Any], returned: Any, message: str) -> None:
    with pytest.raises(payload["Refused"]) as caught:
        payload["call_function"](lambda: returned, "make")
    assert message in str(caught.value)


def test_a_function_that_raises_is_refused_with_what_it_raised(payload: dict[str, Any]) -> None:
    def boom() -> None:
        raise ValueError("no data")

    with pytest.raises(payload["Refused"], match=r"boom\(\) raised ValueError: no data"):
        payload["call_function"](boom, "boom")


class Variable:
    def __init__(self, kind: str = "f") -> None:
        self.dtype = SimpleNamespace(kind=kind)


def test_variables_are_found_in_what_a_model_returns(payload: dict[str, Any]) -> None:
    chainer = SimpleNamespace(Variable=Variable)
    one, two, count = Variable(), Variable(), Variable("i")
    find = payload["variables_of"]
    assert find(chainer, one) == [one]
    assert find(chainer, (one, count, [3], two)) == [one, two]
    assert find(chainer, {"loss": one, "accuracy": 0.5}) == [one]
    for nothing in (None, 3, (), [count], {}):
        with pytest.raises(payload["Refused"], match="no Variable that could be differentiated"):
            find(chainer, nothing)


# ------------------------------------------------------------------------------------------ events


READY = {"event": "ready", "threads": 2, "available": True, "reason": "", "chainer": "7.8.1", "garbage": False}
RELU = {"op": "relu", "shapes": [[2, 16, 4, 4]], "inputs": "b"}


def function(number: int, name: str, case: dict[str, Any] | None, why: str = "") -> dict[str, Any]:
    return {"event": "function", "number": number, "name": name, "case": case, "why": why}


def examined(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *events: dict[str, Any], code: int = 0
) -> dict[str, Any]:
    class Double(payload["Child"]):  # type: ignore[misc, name-defined]
        def __init__(self, setting: dict[str, Any], order: dict[str, Any]) -> None:
            self.events, self.lines, self.stderr = [READY, *events], [], "last words\n"
            self.killed, self.code = False, code

    monkeypatch.setitem(payload["examine_model"].__globals__, "Child", Double)
    request = {"file": "/x/net.py", "function": "make", "model_seconds": 10}
    return payload["examine_model"]({"deadline": 0.0}, {}, request, payload["whether_ready"])


COMPARED = {"event": "compared", "gradients": [{"name": "/l/W"}], "notes": ["n"]}


def test_each_distinct_call_is_a_case_with_the_layout_of_its_gradient(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [function(0, "ReLU", RELU), function(1, "Reshape", None, "NumPy does it"), function(2, "ReLU", RELU)]
    events += [function(3, "ReLU", RELU), {"event": "gradient", "number": 3}, COMPARED]
    answer = examined(payload, monkeypatch, *events)
    assert [(case.get("gradient"), case["source"], case["family"]) for case in answer["cases"]] == [
        (None, "2 times", "relu"),
        ("b", "1 time", "relu"),
    ]
    assert answer["others"] == [{"name": "Reshape", "why": "NumPy does it", "count": 1}]
    assert (answer["ended"], answer["refused"], answer["failure"]) == ("", "", "")
    assert (answer["gradients"], answer["notes"]) == ([{"name": "/l/W"}], ["n"])


def test_a_model_that_kills_its_process_leaves_what_it_did(
    payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = examined(payload, monkeypatch, function(0, "ReLU", RELU), function(1, "Concat", None, ""), code=-6)
    assert answer["ended"] == "crashed: SIGABRT: last words (the last function that was begun: Concat)"
    assert len(answer["cases"]) == 1 and answer["gradients"] is None


def test_a_model_that_raises_with_ideep_alone_is_told(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    raised = {"event": "raised", "message": "TypeError: x"}
    answer = examined(payload, monkeypatch, function(0, "ReLU", RELU), raised)
    assert answer["ended"].startswith("the model raised TypeError: x")


def test_a_refusal_is_handed_on(payload: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    answer = examined(payload, monkeypatch, {"event": "refused", "message": "no"})
    assert (answer["refused"], answer["ended"], answer["cases"]) == ("no", "", [])


# ------------------------------------------------------------------------------------------ functions become cases


class Mdarray:
    def __init__(self, *shape: int, dtype: str = "float32") -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)


class Plain(Mdarray):
    pass


LAB = SimpleNamespace(mdarray=Mdarray)


def named(name: str, **attributes: Any) -> Any:
    return type(name, (), attributes)()


def plain(*shape: int, dtype: str = "float32") -> Any:
    return SimpleNamespace(shape=shape, dtype=dtype, ndim=len(shape))


def test_a_convolution_becomes_a_case_with_its_parameters(payload: dict[str, Any]) -> None:
    conv = named("Convolution2DFunction", sy=2, sx=1, ph=0, pw=1, dy=1, dx=2, groups=4)
    arrays = [Mdarray(2, 16, 8, 8), Mdarray(32, 4, 3, 3), plain(32)]
    case, why = payload["case_of"](LAB, conv, arrays)
    assert why == "" and case == {
        "op": "convolution_2d",
        "shapes": [[2, 16, 8, 8], [32, 4, 3, 3], [32]],
        "options": {"stride": [2, 1], "pad": [0, 1], "dilate": [1, 2], "groups": 4},
        "inputs": "bw",
    }


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (named("MaxPooling2D", kh=3, kw=2, sy=2, sx=1, ph=1, pw=0, cover_all=True), "max_pooling_2d"),
        (named("MaxPoolingND", ksize=(3, 2), stride=(2, 1), pad=(1, 0), cover_all=True), "max_pooling_2d"),
        (named("AveragePooling2D", kh=3, kw=2, sy=2, sx=1, ph=1, pw=0), "average_pooling_2d"),
    ],
)
def test_pooling_is_read_in_old_and_new_chainers(payload: dict[str, Any], function: Any, options: str) -> None:
    case, _ = payload["case_of"](LAB, function, [plain(2, 16, 8, 8)])
    assert case["op"] == options
    assert case["options"].pop("cover_all", True) is True
    assert case["options"] == {"ksize": [3, 2], "stride": [2, 1], "pad": [1, 0]}


@pytest.mark.parametrize(
    ("function", "arrays", "why"),
    [
        (named("Reshape"), [plain(2, 3)], "NumPy does it"),
        (named("ReLU"), [plain(2, 3, dtype="float64")], "the input is float64"),
        (named("ReLU"), [plain(2, 3, 4)], "3-dimensional arrays"),
        (named("ReLU"), [plain(0, 3)], "an empty array"),
        (named("Mul"), [plain(2, 3), plain(2, 3)], "NumPy does it"),
        (named("Mul"), [Mdarray(2, 3), plain(1, 3)], "NumPy does it"),
        (named("Exp"), [plain(2, 3)], "NumPy does it"),
    ],
)
def test_what_ideep_does_not_serve_has_a_reason(
    payload: dict[str, Any], function: Any, arrays: list[Any], why: str
) -> None:
    assert payload["case_of"](LAB, function, arrays) == (None, why)


@pytest.mark.parametrize(
    ("function", "arrays", "expected"),
    [
        (named("Mul"), [Mdarray(2, 16, 3, 3), Mdarray(2, 16, 3, 3)], {"op": "h * g", "inputs": "bb"}),
        (named("Exp"), [Mdarray(2, 16, 3, 3)], {"op": "exp", "inputs": "b"}),
        (named("Dropout", dropout_ratio=0.3), [plain(2, 3)], {"op": "dropout", "options": {"ratio": 0.3}}),
        (
            named("BatchNormalization", eps=2e-5, axis=(0, 2, 3)),
            [plain(2, 3, 4, 4), plain(3), plain(3)],
            {"op": "batch_normalization", "options": {"eps": 2e-5}},
        ),
        (
            named("BatchNormalization", eps=2e-5, axis=(0, 2, 3)),
            [Mdarray(2, 3, 4, 4), Mdarray(3), Mdarray(3)],
            {"op": "batch_normalization", "inputs": "bww"},
        ),
        (
            named("BatchNormalization", eps=2e-5, axis=(0,)),
            [plain(2, 3, 4, 4), plain(3), plain(3)],
            {"op": "batch_normalization", "options": {"eps": 2e-5, "axis": [0]}},
        ),
        (
            named("SplitAxis", indices=None, sections=2, axis=1),
            [plain(2, 4, 3, 3)],
            {"op": "split_axis", "options": {"indices_or_sections": 2, "axis": 1}},
        ),
    ],
)
def test_other_functions_become_cases(
    payload: dict[str, Any], function: Any, arrays: list[Any], expected: dict[str, Any]
) -> None:
    case, why = payload["case_of"](LAB, function, arrays)
    assert why == "" and {name: case[name] for name in expected} == expected
