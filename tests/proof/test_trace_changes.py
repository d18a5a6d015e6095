"""What to change: one thing to write each, the largest gain first."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import pytest

from ideepdoctor.model.trace import Cause, Change
from ideepdoctor.proof.trace_changes import changes
from ideepdoctor.proof.trace_judge import judge
from ideepdoctor.proof.trace_records import Records, Row
from ideepdoctor.proof.trace_source import Sources
from tests.proof.traced import CHAINER, CONVERTED, FILE, IMAGES, WEIGHTS, array, records, row, update

MANY = array(8, 64, 32, 32)
WIDE = array(8, 3, 32, 32, dtype="float64")
PROGRAM = textwrap.dedent("""\
    import numpy as np
    def main():
        data = np.random.rand(8, 3, 32, 32)
        x = chainer.Variable(data)
        optimizer.setup(net)
        return net(x)
    """)


def made(*rows: Row, set_here: bool = False, **changed: Any) -> tuple[Change, ...]:
    return of([records(*rows, **changed)], set_here=set_here)


def of(several: Sequence[Records], set_here: bool = False) -> tuple[Change, ...]:
    judged = [item for one in several for item in judge(one)]
    sources = Sources(lambda path: PROGRAM.encode() if path == FILE else None)
    return changes(judged, sources, lambda path: path.removeprefix("/home/me/"), set_here=set_here)


def only(*rows: Row, **changed: Any) -> Change:
    [found] = made(*rows, **changed)
    return found


def test_a_program_without_fault_has_none():
    conv = row(8, "Convolution2DFunction", IMAGES, CONVERTED, executed=4)
    assert made(conv, row(9, "Sigmoid", IMAGES), update(10, "Adam", [0, 4, 0])) == ()
    assert made() == ()


def test_the_largest_gain_comes_first():
    found = made(
        row(8, "ReLU", array(0, 3), seconds=0.5),
        row(9, "ConvolutionND", IMAGES, WEIGHTS, line=11, seconds=2.0, decisive={"ndim": 2}),
        row(10, "Convolution2DFunction", MANY, WEIGHTS, line=12, decisive={"groups": 2}),
        row(11, "ReLU", array(8, 3, 5), line=13, seconds=9.0),
    )
    assert [(one.cause, str(one.line), one.seconds) for one in found] == [
        (Cause.GENERAL, "net.py:11", 2.0),
        (Cause.GROUPS, "net.py:12", 1.0),
        (Cause.EMPTY, "net.py:10", 0.5),
    ]


def test_float64_is_cured_where_it_was_made_and_once_for_all_that_got_it():
    stack = [[FILE, 6, "main", 2], [FILE, 9, "<module>", 1]]
    first = row(8, "ReLU", WIDE, line=6, origin=8, names=[[0, "x"], [0, "data"], [0, "gone"]], stack=stack)
    after = row(9, "Dropout", WIDE, line=7, origin=8, seconds=3.0)
    found = only(first, after)
    assert (found.cause, str(found.line), found.seconds) == (Cause.WIDTH, "net.py:3", 4.0)
    assert found.found == "data is float64 into ReLU at net.py:6 and 1 after it"
    assert found.write == "data = np.random.rand(8, 3, 32, 32).astype('float32')"
    assert [str(line) for line in found.reaches] == ["net.py:6", "net.py:7"]


def test_float64_without_a_name_is_told_where_it_arrives():
    found = only(row(8, "ReLU", WIDE, origin=8, names=[], dataset=False))
    assert str(found.line) == "net.py:10"
    assert found.found == "float64 into ReLU at net.py:10"
    assert "astype('float32')" in found.write
    found = only(row(8, "ReLU", WIDE, origin=8, names=[], dataset=True))
    assert found.found == "the dataset gives float64 into ReLU at net.py:10"
    assert "dataset" in found.write


def test_two_origins_are_two_changes():
    assert len(made(row(8, "ReLU", WIDE, origin=8), row(9, "ReLU", WIDE, line=11, origin=9))) == 2


@pytest.mark.parametrize(
    "names", [[[5, "x"]], [["a", "x"]], [[0]], ["x"], [[0, "x"], [0, "x"]], [[0, "nothing"]]], ids=repr
)
def test_damaged_names_are_no_failure(names: list[Any]):
    assert only(row(8, "ReLU", WIDE, origin=8, names=names)).cause is Cause.WIDTH


def test_default_dtype():
    weights = array(16, 3, 3, 3, dtype="float64", parameter=True)
    found = only(row(8, "Convolution2DFunction", WIDE, weights, dtype={"file": FILE, "line": 2}))
    assert (found.cause, str(found.line), found.write) == (
        Cause.DEFAULT_WIDTH,
        "net.py:2",
        "leave chainer.config.dtype at float32",
    )
    chainer = {**CHAINER, "variables": {"CHAINER_DTYPE": "float64"}}
    found = only(row(8, "Convolution2DFunction", WIDE, weights), chainer=chainer)
    assert (found.where, found.write) == ("your environment", "unset CHAINER_DTYPE")
    found = only(row(8, "Convolution2DFunction", WIDE, weights))
    assert (str(found.line), found.where) == ("net.py:10", "")
    assert "initialW" in found.write


def test_never():
    made_at = {"file": FILE, "line": 7, "context": True, "scope": "thread"}
    first = row(8, "ReLU", IMAGES, use="never", set=made_at)
    found = only(first, row(9, "ReLU", IMAGES, line=11, use="never", set=made_at))
    assert (str(found.line), found.seconds, found.write) == ("net.py:7", 2.0, "take this 'with' away")
    assert found.found == "use_ideep is 'never': ReLU at net.py:10 and 1 more"
    found = only(row(8, "ReLU", IMAGES, use="never", set={**made_at, "context": False}))
    assert found.write.startswith("set it to 'auto'")
    chainer = {**CHAINER, "variables": {"CHAINER_USE_IDEEP": "never"}}
    found = only(row(8, "ReLU", IMAGES, use="never"), chainer=chainer)
    assert (found.where, found.write) == ("your environment", "set it to auto, or take it away")
    found = only(row(8, "ReLU", IMAGES, use="never"), update(9, "SGD", [4, 0, 0]))
    assert (found.cause, found.where) == (Cause.UNSET, "your environment")
    assert "export CHAINER_USE_IDEEP=auto" in found.write


def test_no_ideep_is_one_change_for_everything():
    chainer = {**CHAINER, "available": False, "error": "ImportError: No module named ideep4py"}
    found = only(row(8, "ReLU", IMAGES), row(9, "Dropout", IMAGES), update(10, "SGD", [0, 4, 0]), chainer=chainer)
    assert (found.cause, found.seconds) == (Cause.UNAVAILABLE, 3.0)
    assert found.write == "ideepdoctor fix --python /env/bin/python"


def test_variable_that_trace_itself_has_set():
    conv = row(8, "Convolution2DFunction", IMAGES, CONVERTED, executed=4)
    found = only(conv, set_here=True)
    assert (found.cause, found.done_here, found.seconds) == (Cause.UNSET, True, 1.0)
    assert "trace set it to auto for this run" in found.found
    assert made(set_here=True) == ()


@pytest.mark.parametrize(
    ("function", "inputs", "facts", "written"),
    [
        ("ConvolutionND", (IMAGES, WEIGHTS), {"decisive": {"ndim": 2}}, "L.Convolution2D in its place"),
        ("ReLU", (array(0, 3),), {}, "if len(x)"),
        ("Convolution2DFunction", (MANY, WEIGHTS), {"decisive": {"groups": 2}}, "two convolutions without groups"),
    ],
)
def test_what_to_write(function: str, inputs: tuple[Any, ...], facts: dict[str, Any], written: str):
    found = only(row(8, function, *inputs, **facts))
    assert written in found.write
    assert str(found.line) == "net.py:10"


def test_to_intel64_is_written_before_the_setup_of_the_optimizer():
    conv = row(8, "Convolution2DFunction", IMAGES, WEIGHTS, executed=4, weight_reorders=4, weight_reorder_seconds=0.25)
    setups = ({"file": FILE, "line": 5, "optimizer": "SGD", "model": "Net"},)
    found = only(conv, update(9, "SGD", [0, 4, 0]), setups=setups)
    assert (found.cause, str(found.line), found.seconds) == (Cause.PLAIN_WEIGHTS, "net.py:5", 1.25)
    assert found.write.startswith("net.to_intel64()  before this line")
    assert "laid out anew 4 times, SGD was computed by NumPy" in found.found


def test_to_intel64_is_written_before_the_first_call_where_nothing_is_trained():
    conv = row(8, "Convolution2DFunction", IMAGES, WEIGHTS, executed=4, weight_reorders=4, weight_reorder_seconds=0.25)
    found = only(conv)
    assert (str(found.line), found.seconds) == ("net.py:40", 0.25)


def test_processes_and_threads_share_their_changes():
    one = records(row(8, "ReLU", WIDE, origin=8), row(9, "ReLU", WIDE, origin=9, thread=1))
    found = of([one, one])
    assert [(change.seconds, change.cause) for change in found] == [(4.0, Cause.WIDTH)]
