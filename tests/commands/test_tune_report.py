"""What tune says of what it found."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema

from ideepdoctor.commands.tune_report import as_data, lines, proposals, sentence
from ideepdoctor.model.bench import Noise
from ideepdoctor.model.report import Report
from ideepdoctor.proof.statistics import Interval
from ideepdoctor.proof.tune_data import Choice, Looked, Refused, Trial
from ideepdoctor.proof.tune_nodes import Nodes
from ideepdoctor.proof.tune_space import DEFAULT, Dimension, Option, thread_option
from ideepdoctor.render.json import envelope

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
ONE, FIVE = thread_option(1), Option("mkl", "MKL_DEBUG_CPU_TYPE=5", (("MKL_DEBUG_CPU_TYPE", "5"),))
THREADS = Dimension("threads", "threads", "2 threads", (ONE,), ordered=True)
MKL = Dimension("mkl", "MKL's code for AMD", "MKL_DEBUG_CPU_TYPE=7", (FIVE,))
FAST, SAME = Interval(1.2, 1.31, 1.4), Interval(0.98, 1.0, 1.02)
GAINED = Looked(THREADS, (Trial(ONE, FAST),), ONE)
EQUAL = Looked(MKL, (Trial(FIVE, SAME),), None)
LATE = Looked(MKL, (), None)
TUNED = Choice(DEFAULT.with_option(ONE), FAST, (GAINED, EQUAL), (), True, True)
QUIET = Noise()


def kept(**changes) -> Choice:
    values = {"setting": DEFAULT, "gain": None, "looked": (EQUAL,), "refused": (), "telling": True, "complete": True}
    return Choice(**{**values, **changes})


def test_a_gain_is_told_with_its_interval_and_explained():
    text = "\n".join(lines("alexnet, batch 8", TUNED, QUIET))
    assert "threads (default: 2 threads): faster" in text
    assert "1.31 times (1.20 to 1.40)" in text and "wait for each other" in text
    assert "MKL's code for AMD (default: MKL_DEBUG_CPU_TYPE=7): within noise of the default" in text
    assert sentence("alexnet, batch 8", TUNED, QUIET) == (
        "TUNED: OMP_NUM_THREADS=1 makes alexnet, batch 8 1.31 times (1.20 to 1.40) as fast as the default, "
        "and is certified."
    )


def test_a_default_that_stays_says_why():
    assert sentence("x", kept(), QUIET) == "THE DEFAULT STAYS: for x nothing is faster by more than 2 %."
    late = sentence("x", kept(complete=False, looked=(LATE,)), QUIET)
    assert late.endswith("nothing is faster by more than 2 % among what there was time for.")
    assert "there was no time for it" in "\n".join(lines("x", kept(looked=(LATE,)), QUIET))


def test_on_a_noisy_machine_it_cannot_tell():
    noise = Noise(quiet=False, messages=("other programs took 60 % of the processors",))
    assert sentence("x", kept(telling=False), noise) == (
        "CANNOT TELL here and now (other programs took 60 % of the processors): the default stays."
    )


def test_what_was_refused_is_named():
    refused = (Refused(DEFAULT.with_option(FIVE), FAST, "b/beta is off by 71 %"),)
    assert "MKL_DEBUG_CPU_TYPE=5 was faster and is refused: b/beta is off by 71 %." in sentence(
        "x", kept(refused=refused), QUIET
    )
    data = as_data("x", kept(refused=refused), QUIET, 1.0, 2.0)
    assert data["refused"][0]["why"] == "b/beta is off by 71 %"


def test_data_hold_all_of_it():
    data = as_data("alexnet, batch 8", TUNED, QUIET, 12.34, 60.0)
    jsonschema.validate(envelope(Report("tune", extra={"tune": data, "verdict": "x"})), SCHEMA)
    assert data["choice"]["variables"] == {"OMP_NUM_THREADS": "1"} and data["choice"]["default"] is False
    assert data["dimensions"][0]["trials"][0]["gain"] == {"ratio": 1.31, "low": 1.2, "high": 1.4}
    assert [row["verdict"] for row in data["dimensions"]] == ["gain", "noise"]
    assert data["seconds"] == 12.3 and data["budget_seconds"] == 60.0


def test_one_process_for_each_node_of_memory_is_proposed_with_what_it_gains():
    assert proposals("x", [[0, 1]], Nodes()) == ()
    two = [[0, 1], [2, 3]]
    told = "\n".join(proposals("x", two, Nodes(each=FAST, interleaved=SAME)))
    assert "one process on each, OMP_NUM_THREADS=2 numactl --cpunodebind=N --membind=N ...: 1.31 times" in told
    assert "--interleave=all ...: 1.00 times" in told and "ChainerMN" in told
    assert "could not be measured on one node: ended by SIGILL" in "\n".join(
        proposals("x", two, Nodes(why="ended by SIGILL"))
    )
    assert "ChainerMN" not in "\n".join(proposals("x", two, Nodes(each=SAME)))
