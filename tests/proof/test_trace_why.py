"""Why a function went to NumPy, from what was recorded of it."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.trace import Cause
from ideepdoctor.proof.trace_records import Row
from ideepdoctor.proof.trace_why import Input, inputs_of, reasons, would_ask
from tests.proof.traced import CHAINER, IMAGES, WEIGHTS, array, row

BIAS = array(16, parameter=True)


def causes(given: Row, **chainer: Any) -> list[tuple[str, str, bool]]:
    return [(why.cause, why.text, why.curable) for why in reasons(given, {**CHAINER, **chainer})]


@pytest.mark.parametrize(
    ("function", "inputs", "facts"),
    [
        ("Convolution2DFunction", (IMAGES, WEIGHTS, BIAS), {"decisive": {"groups": 1, "dy": 2, "dx": 2}}),
        ("Convolution2DFunction", (array(8, 16, 9, 9, kind="m"), WEIGHTS), {"use": "always"}),
        ("Deconvolution2DFunction", (IMAGES, WEIGHTS), {"decisive": {"groups": 1}}),
        ("LinearFunction", (array(8, 20), array(10, 20, parameter=True)), {}),
        ("ReLU", (array(8, 20),), {}),
        ("ReLU", (IMAGES,), {}),
        ("BatchNormalization", (IMAGES, array(3, parameter=True), array(3, parameter=True)), {}),
        ("MaxPoolingND", (IMAGES,), {"decisive": {"ndim": 2}}),
        ("Concat", (IMAGES, IMAGES), {"decisive": {"axis": 1}}),
        ("MultiAdd", (array(8, 20), array(8, 20), array(8, 20)), {}),
    ],
)
def test_what_chainer_gives_to_ideep_has_no_reason(function: str, inputs: tuple[list[Any], ...], facts: dict[str, Any]):
    given = row(8, function, *inputs, **facts)
    assert causes(given) == []
    assert would_ask(given, True)
    assert not would_ask(given, False)


@pytest.mark.parametrize(
    ("function", "inputs", "facts", "expected"),
    [
        ("Sigmoid", (IMAGES,), {}, (Cause.UNSERVED, "iDeep has no Sigmoid", False)),
        ("ReLU", (array(8, 3, dtype="float64"),), {}, (Cause.WIDTH, "float64 input", True)),
        ("ReLU", (array(8, 3, dtype="float16"),), {}, (Cause.WIDTH, "float16 input", True)),
        (
            "Convolution2DFunction",
            (IMAGES, array(16, 3, 3, 3, dtype="float64")),
            {},
            (Cause.WIDTH, "float64 weights", True),
        ),
        (
            "BatchNormalization",
            (IMAGES, array(3), array(3, dtype="float64")),
            {},
            (Cause.WIDTH, "float64 beta", True),
        ),
        (
            "LinearFunction",
            (array(8, 3), array(9, 3, dtype="float64", parameter=True)),
            {},
            (Cause.DEFAULT_WIDTH, "float64 parameters", True),
        ),
        ("ReLU", (array(0, 3, 8, 8),), {}, (Cause.EMPTY, "an empty input (0x3x8x8)", True)),
        ("ReLU", (array(8, 3, 5),), {}, (Cause.DIMENSIONS, "3-D input; iDeep takes 2-D and 4-D", False)),
        ("ReLU", (array(8),), {}, (Cause.DIMENSIONS, "1-D input; iDeep takes 2-D and 4-D", False)),
        ("Concat", (array(8, 3), array(8, 3)), {}, (Cause.DIMENSIONS, "2-D input; iDeep takes 4-D", False)),
        (
            "MaxPoolingND",
            (array(8, 3, 5, 5, 5),),
            {"decisive": {"ndim": 3}},
            (Cause.DIMENSIONS, "5-D input; iDeep takes 4-D", False),
        ),
        (
            "ConvolutionND",
            (array(8, 3, 5, 5, 5), WEIGHTS),
            {"decisive": {"ndim": 3, "groups": 1}},
            (Cause.DIMENSIONS, "5-D input; iDeep takes 4-D", False),
        ),
        (
            "ConvolutionND",
            (array(8, 3, 50), WEIGHTS),
            {"decisive": {"ndim": 1, "groups": 1}},
            (Cause.DIMENSIONS, "3-D input; iDeep takes 4-D", False),
        ),
        (
            "ConvolutionND",
            (IMAGES, WEIGHTS),
            {"decisive": {"ndim": 2, "groups": 1}},
            (Cause.GENERAL, "ConvolutionND never asks iDeep; L.Convolution2D does", True),
        ),
        (
            "Convolution2DFunction",
            (array(8, 64, 9, 9), WEIGHTS),
            {"decisive": {"groups": 2}},
            (Cause.GROUPS, "groups=2; iDeep has no grouped convolution", True),
        ),
        (
            "Convolution2DFunction",
            (array(8, 62, 9, 9), WEIGHTS),
            {"decisive": {"groups": 2}},
            (Cause.GROUPS, "groups=2; iDeep has no grouped convolution", False),
        ),
        (
            "Convolution2DFunction",
            (array(8, 128, 9, 9), WEIGHTS),
            {"decisive": {"groups": 4}},
            (Cause.GROUPS, "groups=4; iDeep has no grouped convolution", False),
        ),
        (
            "Convolution2DFunction",
            (IMAGES, WEIGHTS),
            {"decisive": {"groups": 3}},
            (Cause.DEPTHWISE, "depthwise (groups=3); iDeep has no such convolution", False),
        ),
        ("ReLU", (array(8, 3, kind="g"),), {}, (Cause.GPU, "its arrays are on a GPU", False)),
        ("ReLU", (IMAGES,), {"use": "never"}, (Cause.UNSET, "CHAINER_USE_IDEEP is not set", True)),
        (
            "ReLU",
            (IMAGES,),
            {"use": "never", "set": {"scope": "thread", "file": "/a.py", "line": 3}},
            (Cause.NEVER, "use_ideep is 'never'", True),
        ),
        (
            "ReLU",
            (IMAGES,),
            {"use": "never", "set": {"scope": "thread"}},
            (Cause.NEVER, "use_ideep is 'never' in this thread", True),
        ),
    ],
)
def test_each_reason_alone(
    function: str, inputs: tuple[list[Any], ...], facts: dict[str, Any], expected: tuple[str, str, bool]
):
    given = row(8, function, *inputs, **facts)
    assert causes(given) == [expected]
    assert not would_ask(given, True)


@pytest.mark.parametrize(
    ("chainer", "text"),
    [
        ({"error": "ModuleNotFoundError: No module named 'ideep4py'"}, "ideep4py is not installed"),
        (
            {"error": "ImportError: libmkldnn.so.0: cannot open shared object file\nmore"},
            "ideep4py cannot be imported: ImportError: libmkldnn.so.0: cannot open shared object file",
        ),
        ({}, "Chainer 7.8.1 takes another ideep4py than this one"),
    ],
)
def test_an_ideep_that_is_not_there(chainer: dict[str, Any], text: str):
    assert causes(row(8, "ReLU", IMAGES), available=False, **chainer) == [(Cause.UNAVAILABLE, text, True)]


def test_the_variable_decides_where_it_is_set():
    given = row(8, "ReLU", IMAGES, use="never", set={"scope": "global"})
    assert causes(given, variables={"CHAINER_USE_IDEEP": "never"}) == [
        (Cause.NEVER, "CHAINER_USE_IDEEP is never", True)
    ]


def test_what_cannot_be_cured_comes_first_and_the_others_are_told_too():
    wide = array(8, 3, 5, 5, 5, dtype="float64")
    given = row(8, "ConvolutionND", wide, WEIGHTS, use="never", decisive={"ndim": 3})
    assert [cause for cause, _, _ in causes(given)] == [Cause.DIMENSIONS, Cause.UNSET, Cause.WIDTH]
    given = row(8, "ReLU", array(0, 3, dtype="float64"), use="never")
    assert [cause for cause, _, _ in causes(given, available=False)] == [Cause.UNAVAILABLE, Cause.UNSET, Cause.WIDTH]


def test_parameters_that_are_not_float32_come_before_the_input_that_they_ask_for():
    wide = array(8, 3, dtype="float64"), array(9, 3, dtype="float64", parameter=True)
    assert [cause for cause, _, _ in causes(row(8, "LinearFunction", *wide))] == [Cause.DEFAULT_WIDTH, Cause.WIDTH]


def test_max_pooling_for_any_dimensions_asks_ideep_from_chainer_7_on():
    given = row(8, "MaxPoolingND", IMAGES, decisive={"ndim": 2})
    assert causes(given, version="7.0.0") == []
    assert [cause for cause, _, _ in causes(given, version="6.7.0")] == [Cause.GENERAL]


def test_inputs_that_are_damaged_are_left_out():
    given = row(8, "ReLU", ["n", "float32", [2, 3], False], ["n"], "x", ["n", "float32", 5, True])
    assert inputs_of(given) == (Input("n", "float32", (2, 3), False),)
