"""A trace as text, as JSON and as a Chrome trace."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from ideepdoctor.model.report import Report
from ideepdoctor.model.trace import (
    Cause,
    Change,
    Engine,
    Event,
    Line,
    Pass,
    Timeline,
    Trace,
    TracedProcess,
    Why,
    Work,
)
from ideepdoctor.render.json import envelope
from ideepdoctor.render.json import render as as_json
from ideepdoctor.render.trace_chrome import render as as_chrome
from ideepdoctor.render.trace_json import as_data
from ideepdoctor.render.trace_text import ending, render

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))

PROCESS = TracedProcess(7, "python train.py", "3.7.16", "7.8.1", "2.0.0.post3", True, False, (), 0.05, 24)
CONV = Work(
    "Convolution2DFunction",
    Line("models/deep/inside/a_long_name.py", 118),
    "__call__",
    Pass(40, 1.0, Engine.IDEEP, 40, 0.1, 40, 0.2),
    Pass(40, 2.0, Engine.BOTH),
    (Why(Cause.PLAIN_WEIGHTS, "weights are laid out anew at each call", True),),
    0.2,
    "float32 8x3x32x32",
    ("convolution jit:avx2",),
    ("nchw>nChw8c", "oihw>OIhw8i8o"),
)
DEEP = Work(
    "ConvolutionND",
    Line("net.py", 20),
    forward=Pass(4, 12.5, Engine.NUMPY),
    backward=Pass(4, 123.4, Engine.NUMPY),
    why=(Why(Cause.DIMENSIONS, "5-D input; iDeep takes 4-D", False),),
)
SMALL = Work("Sum", Line("net.py", 21), forward=Pass(4, 0.00001, Engine.NUMPY))
UPDATE = Work("Adam", Line("", 0), forward=Pass(4, 5.0, Engine.NUMPY), optimizer=True)
CHANGES = tuple(
    Change(
        Cause.WIDTH,
        Line("net.py", number),
        1.0 / number,
        f"x{number} is float64 into ReLU at net.py:{number} and 3 after it",
        f"x{number} = np.random.rand(8, 3, 32, 32).astype('float32')",
        reaches=(Line("net.py", 9),),
    )
    for number in range(1, 6)
)
TRACE = Trace(("python", "train.py"), 0, 150.0, (PROCESS,), (DEEP, CONV, UPDATE, SMALL), CHANGES, ("a note",), ())


@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_longer_than_asked_and_none_ends_in_spaces(width: int):
    long = replace(TRACE, command=("python", "x" * 30, *("--option" for _ in range(40))))
    for line in render(long, width).splitlines()[:30]:
        assert line == line.rstrip()
    heads = render(long, width).split("  line  ")[0].splitlines()
    assert all(len(line) <= width for line in heads)
    assert all(len(line) <= 80 for line in render(long, 80).splitlines())


def test_what_it_says():
    lines = render(TRACE).splitlines()
    assert lines[:3] == [
        "trace of python train.py",
        "  ended     exit code 0 after 150 s",
        "  with      Python 3.7.16, Chainer 7.8.1, ideep4py 2.0.0.post3",
    ]
    text = "\n".join(lines)
    assert "144 s: 1.00 s by iDeep, 141 s by NumPy, 2.00 s by both" in text
    assert "what to change, the largest gain first: 2.28 s could move, 2% of the run" in text
    start = lines.index("1. net.py:1  1.00 s")
    assert lines[start + 1 : start + 3] == [
        "   found    x1 is float64 into ReLU at net.py:1 and 3 after it",
        "   write    x1 = np.random.rand(8, 3, 32, 32).astype('float32')",
    ]
    assert [line[:2] for line in lines if line[:2] in ("1.", "2.", "3.", "4.")] == ["1.", "2.", "3."]
    also = lines.index("also")
    assert lines[also + 1].startswith("   net.py:4  0.250 s  x4 is float64")
    assert "stays with NumPy: ConvolutionND at net.py:20, 136 s: 5-D input; iDeep takes 4-D" in text
    assert "  net.py:20              ConvolutionND                4    12.5      123 NumPy" in lines
    assert "  ..side/a_long_name.py:118" not in text  # cut to its column
    assert "  ..e/a_long_name.py:118 Convolution2DFunction       40    1.00     2.00 both" in lines
    assert "    backward by both: weights are laid out anew at each call" in lines
    assert "    layouts changed 80 times, 0.300 s: nchw>nChw8c, oihw>OIhw8i8o" in lines
    assert "  (no line of yours)     Adam                         4    5.00          NumPy" in lines
    assert "  and 1 more, <0.001 s" in lines
    assert lines[-1] == "  note      a note"


def test_nothing_to_change_is_said():
    clean = replace(TRACE, changes=(), work=(CONV,))
    assert "\nnothing to change: iDeep computed all that it can\n" in render(clean)
    assert "to change" not in render(replace(clean, work=()))


def test_what_trace_set_itself_is_no_part_of_what_could_move():
    here = Change(Cause.UNSET, Line("", 0), 3.0, "not set", "export", where="your environment", done_here=True)
    text = render(replace(TRACE, changes=(here,)))
    assert "\nwhat to change\n1. your environment  3.00 s\n" in text
    small = render(replace(TRACE, changes=(replace(CHANGES[0], seconds=0.1), here)))
    assert "0.100 s could move, less than 1% of the run" in " ".join(small.split())


@pytest.mark.parametrize(
    ("returncode", "busy", "said"),
    [
        (3, (), "exit code 3 after 150 s"),
        (-11, ("Bad at a.py:1, forward",), "SIGSEGV after 150 s, in Bad at a.py:1, forward"),
        (-9, (), "SIGKILL after 150 s"),
        (-40, (), "after 150 s"),
        (0, ("Bad at a.py:1, forward",), "exit code 0 after 150 s"),
    ],
)
def test_the_end(returncode: int, busy: tuple[str, ...], said: str):
    assert ending(replace(TRACE, returncode=returncode, processes=(replace(PROCESS, busy=busy),))).endswith(said)


def test_the_guard_and_other_processes_are_told():
    process = replace(PROCESS, guard={"bn": 3, "lrn": 5})
    text = render(replace(TRACE, processes=(process, PROCESS)))
    assert "  guard     active; it corrected lrn 5 times, bn 3 times" in text
    assert ", in 2 processes" in text
    assert "imports, data and your own code" not in text  # two at once: their times do not add up to the run's
    assert "it had nothing to correct" in render(replace(TRACE, processes=(replace(PROCESS, guard={}),)))


def test_problems_and_bare_runs():
    bare = Trace(("true",), 0, 0.01, notes=("nothing",), problems=("forward: KeyError: 1",))
    assert render(bare).splitlines() == [
        "trace of true",
        "  ended     exit code 0 after 0.010 s",
        "  note      nothing",
        "  note      trace left something out: forward: KeyError: 1",
    ]


@pytest.mark.parametrize(
    "trace",
    [TRACE, replace(TRACE, returncode=-11, changes=()), Trace(("true",), 1, 0.0)],
    ids=["whole", "killed", "nothing"],
)
def test_the_document_fits_the_schema(trace: Trace):
    report = Report("trace", extra={"trace": as_data(trace)})
    jsonschema.validate(envelope(report), SCHEMA)
    jsonschema.validate(json.loads(as_json(report)), SCHEMA)


def test_the_schema_knows_every_cause():
    assert sorted(SCHEMA["$defs"]["cause"]["enum"]) == sorted(map(str, Cause))


def test_the_schema_refuses_what_is_none():
    data: dict[str, Any] = json.loads(json.dumps(as_data(TRACE)))
    data["changes"][0]["cause"] = "laziness"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(envelope(Report("trace", extra={"trace": data})), SCHEMA)
    del data["work"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(envelope(Report("trace", extra={"trace": data})), SCHEMA)


def test_the_document():
    data = as_data(replace(TRACE, returncode=-11))
    assert data["program"] == {"command": ["python", "train.py"], "exit_code": None, "signal": 11, "seconds": 150.0}
    assert data["work"][1]["why"][0] == {
        "cause": "not-to-intel64",
        "text": "weights are laid out anew at each call",
        "curable": True,
    }
    assert (data["work"][2]["file"], data["work"][2]["line"], data["work"][2]["backward"]["engine"]) == (None,) * 3
    assert data["changes"][0]["reaches"] == [{"file": "net.py", "line": 9}]
    assert data["totals"]["by"] == {"iDeep": 1.0, "NumPy": 140.90001, "both": 2.0, "GPU": 0.0}


def test_a_chrome_trace_has_the_structure_that_its_readers_want():
    events = [
        Event("ReLU", 0, 10.04, 2.0, {"line": "net.py:1", "pass": "forward", "odd": 'µ "x"'}),
        Event("SGD", 3, 20.0, 0.0, {"line": "net.py:2"}),
    ]
    document = json.loads(as_chrome([Timeline(7, "python train.py", iter(events)), Timeline(8, "", iter(()))]))
    assert document["displayTimeUnit"] == "ms"
    found = document["traceEvents"]
    complete = [event for event in found if event["ph"] == "X"]
    assert [sorted(event) for event in complete] == [["args", "cat", "dur", "name", "ph", "pid", "tid", "ts"]] * 2
    assert [(event["name"], event["cat"], event["ts"], event["dur"], event["tid"]) for event in complete] == [
        ("ReLU", "forward", 10.0, 2.0, 0),
        ("SGD", "update", 20.0, 0.0, 3),
    ]
    assert complete[0]["args"]["odd"] == 'µ "x"'
    named = {
        (event["name"], event["pid"], event["tid"]): event["args"]["name"] for event in found if event["ph"] == "M"
    }
    assert named == {
        ("process_name", 7, 0): "python train.py",
        ("thread_name", 7, 0): "main thread",
        ("thread_name", 7, 3): "thread 3",
        ("process_name", 8, 0): "process 8",
    }
    assert json.loads(as_chrome([])) == {"displayTimeUnit": "ms", "traceEvents": []}
