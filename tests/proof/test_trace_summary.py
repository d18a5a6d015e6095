"""The sum of what a program's processes and threads recorded; and its calls as timelines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.model.trace import Engine, Trace
from ideepdoctor.proof.trace_events import timelines
from ideepdoctor.proof.trace_records import Counts, Records, Row
from ideepdoctor.proof.trace_summary import summarize
from tests.proof.traced import CONVERTED, FILE, IMAGES, WEIGHTS, array, records, row, update

CONV = "mkldnn_verbose,exec,convolution,jit:avx2,forward_training,fsrc:nChw8c fwei:OIhw8i8o,alg:x,mb8"
REORDER = "mkldnn_verbose,exec,reorder,jit:uni,undef,in:f32_nchw out:f32_nChw8c,num:1,8x3x32x32"
COPY = "mkldnn_verbose,exec,reorder,simple:any,undef,in:f32_nchw out:f32_nchw,num:1,8x3x32x32"


def summed(*several: Records, returncode: int = 0, seconds: float = 10.0) -> Trace:
    return summarize(
        several,
        ("train.py", "-x"),
        returncode,
        seconds,
        shown=lambda path: path.removeprefix("/home/me/"),
        content=lambda path: None,
        set_here=False,
    )


def test_rows_of_a_function_at_a_line_are_one_work():
    weights = {"weight_reorders": 2, "weight_reorder_seconds": 0.5, "executed": 4}
    one = row(8, "Convolution2DFunction", IMAGES, WEIGHTS, heads=((0, CONV), (0, REORDER), (0, COPY)), **weights)
    other = row(9, "Convolution2DFunction", array(1, 3, 8, 8, dtype="float64"), WEIGHTS, calls=1, seconds=0.25)
    thread = row(10, "Convolution2DFunction", IMAGES, CONVERTED, thread=1, executed=4, backward=Counts(4, 2.0))
    inner = row(
        11, "Convolution2DGradW", IMAGES, IMAGES, executed=4, inside=10, heads=((0, CONV.replace("conv", "CONV")),)
    )
    trace = summed(records(one, other), records(thread, inner))
    [work] = trace.work
    assert (work.forward.calls, work.forward.seconds, work.backward.seconds, work.seconds) == (9, 2.25, 2.0, 4.25)
    assert (work.forward.engine, work.backward.engine) == (Engine.BOTH, Engine.IDEEP)
    assert (work.forward.weight_reorders, work.forward.weight_reorder_seconds) == (2, 0.5)
    assert work.inputs == "float32 8x3x32x32"
    assert work.kernels == ("CONVolution jit:avx2", "convolution jit:avx2")
    assert work.layouts == ("nchw>nChw8c",)
    assert [why.text for why in work.why] == ["weights are laid out anew at each call", "float64 input"]
    assert work.movable_seconds == 0.75
    assert trace.movable_seconds == sum(change.seconds for change in trace.changes) == 0.75


def test_the_longest_work_comes_first_and_engines_are_added_up():
    trace = summed(
        records(
            row(8, "ReLU", IMAGES, executed=4, seconds=1.0),
            row(9, "Sigmoid", IMAGES, line=11, seconds=3.0),
            update(10, "Adam", [0, 2, 0], seconds=2.0),
        )
    )
    assert [work.function for work in trace.work] == ["Sigmoid", "Adam", "ReLU"]
    assert [trace.spent(engine) for engine in (Engine.IDEEP, Engine.NUMPY, Engine.BOTH)] == [1.0, 5.0, 0.0]
    assert [work.optimizer for work in trace.work] == [False, True, False]


def notes(*several: Records, returncode: int = 0) -> str:
    return "; ".join(summed(*several, returncode=returncode).notes)


def test_why_there_is_nothing_to_tell():
    assert "no Python was started that loads trace" in notes()
    assert "no process imported Chainer" in notes(records(chainer={}))
    assert "none of its functions was called" in notes(records())
    assert notes(records(row(8, "ReLU", IMAGES, executed=4))) == ""


def test_what_makes_numbers_less_than_true_is_told():
    work = row(8, "ReLU", IMAGES, executed=4)
    assert "layouts were not measured: because" in notes(records(work, no_lines="because"))
    assert "7 lines of MKL-DNN were lost" in notes(records(work, lost_lines=7))
    assert summed(records(work, problems=("a: b", "a: b"))).problems == ("a: b",)


def test_a_process_that_ended_early_is_told_unless_the_program_says_so_itself():
    cut = records(row(8, "ReLU", IMAGES, executed=4), ended=False)
    assert "process 100 did not end in the ordinary way" in notes(cut)
    assert notes(cut, returncode=-9) == ""
    assert notes(replace(cut, process={**cut.process, "forked_from": 99})) == ""
    assert notes(replace(cut, chainer={})) == "no process imported Chainer: there is nothing to tell"


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ((8,), ("ReLU at net.py:10, forward",)),
        ((-8,), ("ReLU at net.py:10, backward",)),
        ((9,), ("ReLU at net.py:10, backward",)),
        ((10, 77), ("SGD at net.py:50",)),
    ],
)
def test_what_it_was_computing_is_in_words(busy: tuple[int, ...], said: tuple[str, ...]):
    rows = row(8, "ReLU", IMAGES), row(9, "ReLUGrad2", IMAGES, inside=8), update(10, "SGD", [1, 0, 0])
    assert summed(records(*rows, busy=busy, ended=False)).processes[0].busy == said
    assert summed(records(*rows, busy=busy)).processes[0].busy == ()


def test_rows_that_hold_each_other_end():
    rows = row(8, "A", IMAGES, inside=9), row(9, "B", IMAGES, inside=8)
    with_loop = records(*rows, busy=(8,), ended=False)
    assert summed(with_loop).processes[0].busy == ()


def test_processes():
    guard = {"active": True, "applied": {"bn": 3, "odd": "x"}}
    [process] = summed(records(row(8, "ReLU", IMAGES, executed=4, calls=6), guard=guard)).processes
    assert (process.pid, process.command, process.python, process.chainer, process.calls) == (
        100,
        "python train.py",
        "3.7.16",
        "7.8.1",
        6,
    )
    assert process.guard == {"bn": 3}
    assert summed(records()).processes[0].guard is None


def events(folder: Path, text: str, *rows: Row, **changed: Any) -> Records:
    base = folder / "100-00000001"
    base.with_suffix(".events").write_text(text)
    return records(*rows, base=base, **changed)


def test_timelines(tmp_path: Path):
    wide = array(8, 3, dtype="float64")
    rows = (
        row(8, "ReLU", wide, thread=2, backward=Counts(1, 1.0)),
        row(9, "ReLUGrad2", wide, inside=8, thread=2),
        update(10, "SGD", [0, 1, 0]),
    )
    one = events(tmp_path, "8 0 5 2\n9 0 9 1\n8 1 8 3\n10 0 20 -1\n99 0 1 1\n", *rows, started=100.0)
    first = replace(one, base=tmp_path / "99-00000001", started=99.5, rows=())
    shown = timelines([first, one], shown=lambda path: path.removeprefix("/home/me/"))
    assert [(line.pid, line.name, len(list(line.events))) for line in shown[:1]] == [(99, "python train.py", 0)]
    found = list(shown[1].events)
    assert [(event.name, event.thread, event.start, event.duration) for event in found] == [
        ("ReLU", 2, 500005.0, 2.0),
        ("ReLUGrad2", 2, 500009.0, 1.0),
        ("ReLU", 2, 500008.0, 3.0),
        ("SGD", 0, 500020.0, 0.0),
    ]
    assert found[0].arguments == {
        "line": "net.py:10",
        "inputs": "float64 8x3",
        "by": "NumPy",
        "why": "float64 input",
        "pass": "forward",
    }
    assert (found[1].arguments["line"], found[2].arguments["pass"]) == ("net.py:10", "backward")
    assert found[3].arguments["line"] == f"{Path(FILE).name}:50"
    assert "pass" not in found[3].arguments
