"""Whole programs: those without a fault give nothing, and each planted fault is named on its line."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ideepdoctor.lint.engine import lint
from ideepdoctor.lint.source import Unreadable, read
from tests.lint.sources import PROGRAMS, found, program

CLEAN = ("mnist", "dcgan", "python2", "finetune")
FAULTY = ("faulty", "faulty2")


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_program_gives_nothing(name: str):
    assert found(program(name)) == ()


@pytest.mark.parametrize("name", FAULTY)
def test_each_planted_fault_is_found_on_its_line_and_nothing_else(name: str):
    text = program(name).decode("latin-1")
    expected = [
        (number, code)
        for number, line in enumerate(text.splitlines(), 1)
        for code in re.findall(r"# expect: (IDP\d+)", line)
    ]
    assert len(expected) >= 2
    assert [(item.place.line, item.finding.code) for item in found(program(name))] == expected


def test_every_check_has_a_planted_fault():
    from ideepdoctor.lint.registry import LINT_CHECKS

    planted = {item.finding.code for name in FAULTY for item in found(program(name))}
    assert planted == {check.code() for check in LINT_CHECKS} - {"IDP900", "IDP917"}


def test_places_are_those_of_the_python_2_text():
    lines = program("faulty2").decode("latin-1").splitlines()
    for item in found(program("faulty2")):
        start = lines[item.place.line - 1][item.place.column - 1 :]
        assert start.startswith(
            {"IDP901": "optimizer.setup(model)", "IDP906": "chainer.using_config("}[item.finding.code]
        )


def test_a_file_can_be_ignored():
    data = program("faulty").replace(b"import os\n", b"# ideepdoctor: ignore-file\nimport os\n", 1)
    result = lint(read("program.py", data))
    assert (result.ignored, result.found) == (True, ())


@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_program_is_linted_or_said_to_be_unreadable(data: st.DataObject):
    name = data.draw(st.sampled_from(sorted(path.stem for path in PROGRAMS.glob("*.txt"))))
    lines = program(name).split(b"\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "cut", "swap", "print"]))
        if change == "drop" and len(lines) > 1:
            del lines[at]
        elif change == "double":
            lines.insert(at, lines[at])
        elif change == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))]
        elif change == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines[at] = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + b"print 'x'; " + lines[at].lstrip()
    text = b"\n".join(lines)
    try:
        source = read("program.py", text)
    except Unreadable as error:
        assert error.reason
        return
    result = lint(source)
    count = len(text.split(b"\n"))
    for item in result.found:
        assert 1 <= item.place.line <= count
        assert 1 <= item.place.column <= len(source.lines[item.place.line - 1]) + 1
