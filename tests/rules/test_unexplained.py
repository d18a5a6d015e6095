"""What nothing explains: what the findings hold, one finding for one death, and programs that show it again."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from ideepdoctor.rules.deaths import failed, killed
from ideepdoctor.rules.reproduce import again, operation
from tests.payload.joined import load
from tests.rules.hosts import alone, facts_on

HOST = "py37-healthy"
DIED = {"stack": ["a.py:3 in f", "b.py:1 in <module>"], "mapped": ["/e/libz.so", "/e/ideep4py/lib/libmkldnn.so.0"]}


def evidence_of(code: str, *overlays: dict[str, Any]) -> list[str]:
    (finding,) = alone(code, HOST, *overlays)
    return [item.text for item in finding.evidence]


def test_the_evidence_holds_what_a_report_needs():
    death = {**killed("SIGSEGV", "".join(f"line {number}\n" for number in range(9))), **DIED}
    variables = {"variables": {"inherited": {"OMP_NUM_THREADS": "2", "HOSTTYPE": "secret"}}}
    (finding,) = alone("IDP320", HOST, {"imports": {"ideep4py": death}, "first_op": None}, variables)
    texts = [item.text for item in finding.evidence]
    assert texts[0] == "ended: the process ended with SIGSEGV"
    assert texts[1:6] == [f"standard error: line {number}" for number in range(4, 9)]
    assert texts[6:8] == ["stack: a.py:3 in f", "stack: b.py:1 in <module>"]
    assert texts[8:10] == ["loaded: libz.so", "loaded: libmkldnn.so.0"]
    assert texts[10].startswith("versions: Python 3.7") and "ideep4py" in texts[10] and "numpy" in texts[10]
    words = shlex.split(finding.evidence[0].command or "")
    assert words[:1] == ["env"] and "OMP_NUM_THREADS=2" in words and words[-2:] == ["-c", "import ideep4py"]
    assert "secret" not in " ".join(words)
    assert finding.next_step.startswith("ideepdoctor report --python ")


@pytest.mark.parametrize(
    ("death", "version", "said"),
    [
        (killed("SIGKILL"), "3.7.9", "a process cannot say anything when SIGKILL comes"),
        (killed("SIGSEGV"), "2.7.18", "Python 2 has no faulthandler"),
        (killed("SIGSEGV"), "3.7.9", "the process left none"),
    ],
)
def test_why_there_is_no_stack(death: dict[str, Any], version: str, said: str):
    texts = evidence_of("IDP320", {"first_op": death, "python": {"version": version}})
    assert [text for text in texts if text.startswith("stack: not known") and said in text]
    assert "standard error: nothing was printed" in texts


@pytest.mark.parametrize(
    ("death", "found", "hint"),
    [
        (killed("SIGBUS"), "the process ended with SIGBUS", ""),
        (killed("SIGKILL"), "the process ended with SIGKILL", "out of memory"),
        (killed("SIGSYS"), "the process ended with SIGSYS", "filter of system calls"),
        ({"ok": False, "exit_code": 0}, "the process ended with exit code 0", ""),
        ({"ok": False, "timed_out": True, "seconds": 30.0}, "no end within 30 s", "a lock"),
        (failed("Odd\u00e9Error", "na\u00efve \u65e5\u672c"), "Odd\\xe9Error: na\\xefve \\u65e5\\u672c", ""),
    ],
)
def test_each_way_to_die_says_that_the_cause_is_not_known(death: dict[str, Any], found: str, hint: str):
    (finding,) = alone("IDP320", HOST, {"first_op": death})
    assert finding.found == f"the first operation: {found}"
    assert finding.consequence.startswith("the cause is not known: no rule explains it")
    assert hint in finding.consequence and (";" in finding.consequence) == bool(hint)


def test_a_death_while_python_ends_is_told_as_that():
    (finding,) = alone("IDP320", HOST, {"first_op": {**killed("SIGSEGV"), "stack": ["the end of Python"]}})
    assert finding.found == "the first operation, while Python ends: the process ended with SIGSEGV"
    assert finding.needed == "an exit code of 0"


@pytest.mark.parametrize("code", ["IDP320", "IDP321"])
@pytest.mark.parametrize("death", [killed("SIGILL"), killed("SIGABRT", "terminate called\nmkldnn::error")])
def test_a_known_cause_is_left_to_its_rule(code: str, death: dict[str, Any]):
    assert alone(code, HOST, {"imports": {"chainer": death, "ideep4py": death}, "first_op": death}) == []


def test_chainer_is_not_told_where_ideep4py_raised_the_same():
    same, other = failed("OddError", "nobody knows"), failed("OddError", "nobody")
    assert alone("IDP321", HOST, {"imports": {"chainer": same, "ideep4py": same}}) == []
    assert len(alone("IDP321", HOST, {"imports": {"chainer": same, "ideep4py": other}})) == 1
    assert len(alone("IDP321", HOST, {"imports": {"chainer": same}})) == 1


def test_nothing_is_told_of_an_ideep4py_that_is_not_installed():
    overlay = {"packages": {"ideep4py": None}, "imports": {"ideep4py": killed("SIGSEGV")}}
    assert alone("IDP320", HOST, overlay) == []


def test_every_case_of_the_smoke_test_without_a_hazard_has_a_program():
    cases = [one for one in load("smoke")["cases"]() if one.hazard is None]
    assert len(cases) > 10
    for one in cases:
        program = operation(one.op, one.case)
        assert program is not None, (one.op, one.case)
        compile(program, one.op, "exec")
    assert operation("relu", "another shape") is None
    assert operation("sgd", "another shape") is None


def test_only_variables_that_matter_and_are_set_are_in_the_command():
    given = {"LD_PRELOAD": "/a b.so", "KMP_AFFINITY": None, "VIRTUAL_ENV": "/x"}
    command = again(facts_on(HOST, {"variables": {"inherited": given}}), "pass")
    words = shlex.split(command)
    assert "LD_PRELOAD=/a b.so" in words
    assert not [word for word in words if word.startswith(("KMP_AFFINITY", "VIRTUAL_ENV"))]


def test_a_function_that_fails_comes_with_a_program_of_its_own():
    from ideepdoctor.rules.proof import check, smoke

    known = {**check("linear", "crashed"), "case": "x (32,128), W (64,128)"}
    (finding,) = alone("IDP607", HOST, smoke(known))
    assert "F.linear" in (finding.evidence[-1].command or "")
    (finding,) = alone("IDP607", HOST, smoke(check("linear", "crashed")))
    assert [item.command for item in finding.evidence] == ["ideepdoctor smoke -v"]
