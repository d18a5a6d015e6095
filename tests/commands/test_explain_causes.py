"""``explain`` of what has gone wrong: an error, a log, an exit code, what is piped; in every format."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.commands.explain import Symptoms, explain
from ideepdoctor.errors import UsageError
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.options import Format
from ideepdoctor.render.causes import SHOWN_CAUSES
from ideepdoctor.render.formats import renderer
from ideepdoctor.rules import BUILD_RULES, RULES
from ideepdoctor.rules.explain import EVERYTHING
from ideepdoctor.symptoms.endings import ENDINGS
from ideepdoctor.symptoms.table import CLUES, INSTALLING, RUNNING
from tests.commands.test_explain import SCHEMA, code_of, text_of
from tests.formats import READ
from tests.rules.test_treatments import commands, parses

CAUSES = list(
    dict.fromkeys(
        [
            *(cause for one in (*INSTALLING, *RUNNING) for cause in one.causes),
            *(cause for ending in ENDINGS.values() for cause in (*ending.causes, ending.silent)),
        ]
    )
)
CRASH = """\
Fatal Python error: Aborted
  File "/e/chainer/functions/array/concat.py", line 78 in forward_ideep
terminate called after throwing an instance of 'mkldnn::error'
run.sh: line 3:  42 Aborted                 (core dumped) python train.py
"""
PIP = """\
  x Getting requirements to build wheel did not run successfully.
      ModuleNotFoundError: No module named 'pkg_resources'
CMake Error: Unknown argument --build
"""


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: f"{cause.code}: {cause.consequence[:30]}")
def test_what_a_cause_names_exists(cause):
    known = {rule.code() for rule in EVERYTHING}
    assert set(cause.codes) <= known
    assert parses(cause.confirm)
    for line in commands(cause.next_step):
        assert parses(line)
    assert cause.consequence and cause.next_step
    assert cause.consequence.isascii() and cause.next_step.isascii()


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: f"{cause.code}: {cause.consequence[:30]}")
def test_what_confirms_a_cause_selects_what_diagnose_knows(cause):
    words = shlex.split(cause.confirm)
    if "--select" in words:
        looked_at = {rule.code() for rule in RULES} - {rule.code() for rule in BUILD_RULES}
        assert set(words[words.index("--select") + 1].split(",")) <= looked_at


def test_a_clue_helps_causes_that_a_symptom_names():
    assert {cause for _, helped in CLUES for cause in helped} <= set(CAUSES)


def test_an_error_is_told_short_enough_for_a_terminal():
    report = explain(None, Symptoms(error=CRASH))
    text = text_of(report)
    assert "1. IDP605  concat or split_axis across channel blocks ends the process here" in text
    assert "says     line 3: terminate called" in text
    assert text.index("IDP605") < text.index("IDP402")
    assert "SIGABRT" not in text and "IDP408" not in text  # the text says more than the signal
    assert max(map(len, text.splitlines())) < 80
    assert code_of(report) == 0
    assert report.judgement is None


def test_an_exit_code_has_several_causes_each_with_what_confirms_it():
    report = explain(None, Symptoms(exit_code="139"))
    causes = report.extra["causes"]
    assert [one["codes"][0] for one in causes] == ["IDP403", "IDP615", "IDP509", "IDP115", "IDP818"]
    assert all(one["strength"] == "signal" and one["line"] is None and one["confirm"] for one in causes)
    assert report.body[0] == "139 (SIGSEGV): a signal alone has several causes, the likeliest first"
    assert "log" not in report.extra


@pytest.mark.parametrize(
    ("written", "code"),
    [
        *(
            (word, "IDP110")
            for word in ("132", "-4", "SIGILL", "4", "ILL", "ill", "Illegal instruction", "exit code 132")
        ),
        *((word, "IDP403") for word in ("139", "-11", "sigsegv", "Speicherzugriffsfehler")),
        *((word, "IDP402") for word in ("134", "-6", "ABRT")),
        *((word, "IDP309") for word in ("135", "BUS")),
        *((word, "IDP607") for word in ("136", "FPE")),
        *((word, "IDP621") for word in ("137", "-9", "9", "Killed")),
        *((word, "IDP622") for word in ("143", "124", "hang", "it hangs"[3:], "timeout", "HANG")),
        ("127", "IDP401"),
    ],
)
def test_an_ending_in_every_spelling(written: str, code: str):
    assert explain(None, Symptoms(exit_code=written)).extra["causes"][0]["codes"][0] == code


@pytest.mark.parametrize("written", ["0", "1", "2", "255", "-64"])
def test_an_exit_code_of_the_programs_own_is_no_signal(written: str):
    report = explain(None, Symptoms(exit_code=written))
    assert report.extra == {"causes": []}
    assert "no signal" in report.body[0] and "--error" in report.body[1]
    assert code_of(report) == 0


@pytest.mark.parametrize("written", ["foo", "", "SIGFOO", "9" * 400])
def test_what_is_no_ending_is_a_usage_error_or_no_signal(written: str):
    if written.isdecimal():
        assert explain(None, Symptoms(exit_code=written)).extra == {"causes": []}
    else:
        with pytest.raises(UsageError, match="no exit code"):
            explain(None, Symptoms(exit_code=written))


def test_an_exit_code_and_a_log_are_told_together(tmp_path: Path):
    log = tmp_path / "run.log"
    log.write_text("epoch 1\n", "utf-8")
    report = explain(None, Symptoms(log=str(log), exit_code="132"))
    assert report.extra["causes"][0]["codes"][0] == "IDP110"
    assert report.extra["log"]["lines"] == 1
    told = explain(None, Symptoms(error="OMP: Error #15: Initializing libiomp5.so", exit_code="134"))
    assert [one["codes"][0] for one in told.extra["causes"]] == ["IDP408"]


def test_a_log_of_both_has_causes_and_findings(tmp_path: Path):
    log = tmp_path / "pip.log"
    log.write_text(PIP, "utf-8")
    report = explain(None, Symptoms(log=str(log)))
    assert report.extra["causes"][0]["codes"][0] == "IDP206"
    assert report.judgement is not None
    assert [item.code for item in report.judgement.findings] == ["IDP805"]
    assert text_of(report).index("IDP206") < text_of(report).index("IDP805")
    assert code_of(report) == int(summarize(report, FailOn.ERROR).exit_code)


def test_more_than_five_causes_are_for_those_who_ask():
    marks = ("Descriptors cannot be created directly", "code is too big", "file too short", "PyUnicodeUCS2_x")
    more = ("in method 'mdarray_sum', argument 3", "invalid use_ideep configuration", "MKL FATAL ERROR")
    text = "\n".join([*marks, *more, "Multiple installations of CuPy package"])
    short, whole = explain(None, Symptoms(error=text)), explain(None, Symptoms(error=text, details=True))
    assert len(short.extra["causes"]) == len(whole.extra["causes"]) == 8
    assert sum(line[1:3] == ". " for line in short.body) == SHOWN_CAUSES
    assert sum(line[1:3] == ". " for line in whole.body) == 8
    assert "3 causes more: -v" in short.body and not any("more: -v" in line for line in whole.body)


def test_nothing_is_guessed():
    report = explain(None, Symptoms(error="all is odd\nFooError: something new"))
    assert report.extra["causes"] == []
    assert report.extra["log"]["telling"] == [{"line": 2, "text": "FooError: something new"}]
    text = text_of(report)
    assert "no cause is guessed" in text and "ideepdoctor report" in text
    assert max(map(len, text.splitlines())) <= 81


@pytest.mark.parametrize(
    ("code", "symptoms", "message"),
    [
        ("IDP305", Symptoms(error="x"), "at once"),
        ("IDP305", Symptoms(exit_code="4"), "at once"),
        (None, Symptoms(error="x", log="y"), "at once"),
        (None, Symptoms(error=" \n"), "is empty"),
    ],
)
def test_what_does_not_go_together(code: str | None, symptoms: Symptoms, message: str):
    with pytest.raises(UsageError, match=message):
        explain(code, symptoms)


@pytest.mark.parametrize("form", [form for form in Format if form.for_machines])
@pytest.mark.parametrize("text", [CRASH, PIP, "something new"])
def test_every_format(form: Format, text: str):
    report = explain(None, Symptoms(error=text))
    read = READ[form](renderer(form)(report, FailOn.ERROR) + "\n")
    if form is Format.JSON:
        jsonschema.validate(read, SCHEMA)
        assert [one["codes"][0] for one in read["causes"]] == [one["codes"][0] for one in report.extra["causes"]]


# ------------------------------------------------------------------------------------------------ what is piped
DOCTOR = [sys.executable, "-m", "ideepdoctor", "explain"]


def piped(*words: str, **given: object) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("IDEEPDOCTOR_")}
    return subprocess.run([*DOCTOR, *words], capture_output=True, text=True, timeout=60, env=environ, **given)  # type: ignore[call-overload,no-any-return]


def test_what_is_piped_is_explained():
    done = piped("--format", "json", input=CRASH)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert document["causes"][0]["codes"][0] == "IDP605"
    assert document["log"]["path"] is None


def test_a_file_as_standard_input(tmp_path: Path):
    (tmp_path / "run.log").write_text(CRASH, "utf-8")
    with (tmp_path / "run.log").open() as stream:
        assert "1. IDP605" in piped(stdin=stream).stdout


def test_nothing_piped_lists_the_rules_and_a_code_reads_nothing():
    listed = piped(stdin=subprocess.DEVNULL).stdout
    assert listed.startswith("IDP101")
    assert piped(input="").stdout == listed
    assert piped("IDP305", input=CRASH).stdout.startswith("# IDP305")
    assert piped("--exit", "132", input=CRASH).stdout.startswith("132 (SIGILL)")


def test_a_pipe_that_says_nothing_is_told_of():
    read, write = os.pipe()
    with subprocess.Popen(DOCTOR, stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "reading standard input" in process.stderr.readline()
        os.close(write)
        os.close(read)
        assert process.communicate(timeout=60)[0].startswith("IDP101")
