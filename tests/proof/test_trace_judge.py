"""What computed each row, and what of its time could move."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.trace import Cause, Engine
from ideepdoctor.proof.trace_judge import Judged, judge, outside
from ideepdoctor.proof.trace_records import Counts, Row
from tests.proof.traced import CHAINER, CONVERTED, IMAGES, WEIGHTS, array, records, row, update

WIDE = array(8, 3, 32, 32, dtype="float64")


def only(*rows: Row, **changed: Any) -> Judged:
    [found] = judge(records(*rows, **changed))
    return found


def test_lines_of_mkldnn_prove_ideep_whatever_the_conditions_say():
    found = only(row(8, "Add", IMAGES, IMAGES, executed=4))
    assert (found.forward_engine, found.why, found.movable_seconds) == (Engine.IDEEP, (), 0.0)


def test_without_a_line_a_function_that_asked_is_not_called_ideeps():
    found = only(row(8, "ReLU", IMAGES))
    assert (found.forward_engine, found.why[0].cause) == (Engine.NUMPY, Cause.UNKNOWN)
    assert found.movable_seconds == 0.0


@pytest.mark.parametrize("changed", [{"no_lines": "MKLDNN_VERBOSE is set"}, {"lost_lines": 3}])
def test_where_lines_are_missing_the_conditions_decide(changed: dict[str, Any]):
    assert only(row(8, "ReLU", IMAGES), **changed).forward_engine is Engine.IDEEP
    assert only(row(8, "ReLU", WIDE), **changed).forward_engine is Engine.NUMPY


def test_dropout_has_no_line_and_is_ideeps():
    assert only(row(8, "Dropout", IMAGES)).forward_engine is Engine.IDEEP
    assert only(row(8, "Dropout", WIDE)).forward_engine is Engine.NUMPY


def test_numpys_time_could_move_where_a_change_cures_it():
    backward = Counts(4, 2.0)
    assert only(row(8, "ReLU", WIDE, backward=backward)).movable_seconds == 3.0
    depthwise = row(8, "Convolution2DFunction", IMAGES, WEIGHTS, decisive={"groups": 3}, backward=backward)
    assert only(depthwise).movable_seconds == 0.0
    assert only(row(8, "Sigmoid", WIDE, backward=backward)).movable_seconds == 0.0


def test_a_backward_pass_is_what_was_applied_within_it():
    outer = row(8, "Convolution2DFunction", IMAGES, CONVERTED, executed=4, backward=Counts(4, 2.0))
    data = row(9, "Deconvolution2DFunction", IMAGES, CONVERTED, executed=4, seconds=0.5, inside=8)
    weights = row(10, "Convolution2DGradW", IMAGES, IMAGES, executed=4, seconds=0.7, inside=8)
    numpys = row(10, "Convolution2DGradW", IMAGES, WIDE, seconds=0.7, inside=8)
    bias = row(11, "Sum", IMAGES, inside=8)
    found = only(outer, data, weights, bias)
    assert (found.backward_engine, found.backward.executed, found.why) == (Engine.IDEEP, 8, ())
    found = only(outer, data, numpys, bias)
    assert (found.backward_engine, found.movable_seconds) == (Engine.BOTH, 0.7)
    assert found.why[0].cause is Cause.WIDTH
    found = only(outer, numpys, bias)
    assert (found.backward_engine, found.movable_seconds) == (Engine.NUMPY, 2.0)
    found = only(outer, bias)
    assert (found.backward_engine, found.movable_seconds, found.why[0].curable) == (Engine.NUMPY, 0.0, False)


def test_forward_by_numpy_and_backward_by_ideep_is_told_apart():
    outer = row(8, "Convolution2DFunction", IMAGES, WEIGHTS, use="never", backward=Counts(4, 2.0))
    inner = row(9, "Deconvolution2DFunction", IMAGES, WEIGHTS, executed=4, inside=8)
    found = only(outer, inner)
    assert (found.forward_engine, found.backward_engine) == (Engine.NUMPY, Engine.IDEEP)
    assert (found.movable_seconds, found.why[0].cause) == (1.0, Cause.UNSET)


def plain(**facts: Any) -> Row:
    given = {"executed": 4, "weight_reorders": 4, "weight_reorder_seconds": 0.25, **facts}
    return row(8, "Convolution2DFunction", IMAGES, WEIGHTS, **given)


def test_weights_that_are_laid_out_anew_are_a_reason_for_ideeps_too():
    found = only(plain())
    assert (found.forward_engine, found.why[0].cause, found.movable_seconds) == (
        Engine.IDEEP,
        Cause.PLAIN_WEIGHTS,
        0.25,
    )
    assert only(plain(weight_reorders=0)).why == ()
    assert only(row(8, "Convolution2DFunction", IMAGES, CONVERTED, executed=4, weight_reorders=4)).why == ()
    loose = row(8, "Convolution2DFunction", IMAGES, array(16, 3, 3, 3), executed=4, weight_reorders=4)
    assert only(loose).why == ()


def test_a_first_call_before_to_intel64_is_no_fault():
    later = row(9, "Convolution2DFunction", IMAGES, CONVERTED, executed=40, calls=40)
    first, second = judge(records(plain(calls=1), later))
    assert (first.why, second.why) == ((), ())
    elsewhere = row(9, "Convolution2DFunction", IMAGES, CONVERTED, executed=40, calls=40, line=11)
    assert judge(records(plain(calls=1), elsewhere))[0].why


@pytest.mark.parametrize(
    ("optimizer", "seconds", "guard", "curable"),
    [
        ("MomentumSGD", 9.0, {}, True),
        ("Adam", 0.2, {}, True),
        ("Adam", 0.3, {}, False),
        ("AdaGrad", 0.1, {}, False),
        ("AdaGrad", 0.1, {"active": True}, True),
    ],
)
def test_what_to_intel64_would_cost_in_updates_is_counted(
    optimizer: str, seconds: float, guard: dict[str, Any], curable: bool
):
    found = judge(records(plain(), update(9, optimizer, [0, 4, 0], seconds=seconds), guard=guard))[0]
    assert found.why[0].curable is curable
    assert found.movable_seconds == (0.25 if curable else 0.0)
    assert (optimizer in found.why[0].text) is not curable


@pytest.mark.parametrize(
    ("name", "parameters", "facts", "engine", "cause", "movable"),
    [
        ("SGD", [4, 0, 0], {"executed": 8}, Engine.IDEEP, None, 0.0),
        ("SGD", [0, 4, 0], {}, Engine.NUMPY, Cause.PLAIN_WEIGHTS, 1.0),
        ("SGD", [0, 4, 0], {"use": "never"}, Engine.NUMPY, Cause.UNSET, 1.0),
        ("Adam", [0, 4, 0], {}, Engine.NUMPY, Cause.UNSERVED, 0.0),
        ("SGD", [0, 0, 4], {}, Engine.NUMPY, None, 0.0),
    ],
)
def test_updates(
    name: str, parameters: list[int], facts: dict[str, Any], engine: Engine, cause: Cause | None, movable: float
):
    found = only(row(8, name, optimizer=True, parameters=parameters, **facts))
    assert (found.forward_engine, found.movable_seconds) == (engine, movable)
    assert (found.why[0].cause if found.why else None) is cause
    without = only(
        row(8, name, optimizer=True, parameters=parameters, **facts), chainer={**CHAINER, "available": False}
    )
    assert [why.cause for why in without.why if why.curable] in ([], [Cause.UNAVAILABLE])


@pytest.mark.parametrize(
    ("function", "applied", "cause"),
    [
        ("LocalResponseNormalization", {"lrn": 3}, Cause.GUARD),
        ("MaxPoolingND", {"maxpool": 1}, Cause.GUARD),
        ("LocalResponseNormalization", {"maxpool": 3}, Cause.UNKNOWN),
        ("LocalResponseNormalization", {"lrn": 0}, Cause.UNKNOWN),
        ("LocalResponseNormalization", None, Cause.UNKNOWN),
    ],
)
def test_what_the_guard_does_with_numpy_is_called_the_guards(function: str, applied: Any, cause: Cause):
    outer = row(8, function, IMAGES, executed=4, backward=Counts(4, 2.0))
    inner = row(9, f"{function}Grad", IMAGES, inside=8)
    found = only(outer, inner, guard={"active": True, "applied": applied})
    assert (found.backward_engine, found.why[0].cause, found.movable_seconds) == (Engine.NUMPY, cause, 0.0)


def test_gpus_are_left_alone():
    found = only(row(8, "ReLU", array(2, 3, kind="g"), backward=Counts(4, 1.0)))
    assert (found.forward_engine, found.backward_engine, found.movable_seconds) == (Engine.OTHER, Engine.OTHER, 0.0)


def test_what_was_never_called_or_is_outside_functions_is_no_work():
    nowhere = Row(9, {"function": ""}, Counts(executed=3, weight_reorders=2), Counts())
    made = records(row(8, "ReLU", IMAGES, calls=0), nowhere)
    assert judge(made) == ()
    assert outside(made).weight_reorders == 2
