"""What certify measured of memory and forked children, as facts, faults and parts of the document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ideepdoctor.model.facts import Lasting, Outcome
from ideepdoctor.model.findings import Severity
from ideepdoctor.proof.certify_data import Case, Result, Setting, case_from, result_from
from ideepdoctor.proof.certify_lasting import fork_data, lasting_of, memory_data, with_leaks
from ideepdoctor.proof.certify_report import as_smoke, judged
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from tests.proof.test_certify import item, told
from tests.rules.hosts import facts_on

TWO = Setting("2", 2)
SAME = {"count": 240, "same_bytes": 16384}
OURS = {"count": 200, "ideep_bytes": 66588672}
NUMPY = {"count": 200, "numpy_bytes": 1228800}
CHILD = {"how": "os.fork()", "seconds": 0.1, "timed_out": False, "signal": None, "exit_code": 0, "said": ""}
HUNG = {**CHILD, "seconds": 8.0, "timed_out": True, "exit_code": None}
TEXT = "a child of os.fork() was not done after 8 s"


def outcome(*rows: tuple[str, dict[str, Any]]) -> tuple[list[tuple[Case, Setting]], dict[tuple[str, str], Result]]:
    """Pairs and results of these operations, with these fields."""
    pairs, results = [], {}
    for number, (op, fields) in enumerate(rows):
        key = f"{op} {number}"
        pairs.append((case_from(item(key, op)), TWO))
        results[key, "2"] = result_from(told(key, **{"error": None, **fields}), "2")
    return pairs, results


def measured(**fields: Any) -> dict[str, Any]:
    return {"measured": fields}


def test_what_was_measured_becomes_facts() -> None:
    rows = [("memory", measured(**given)) for given in (SAME, OURS, NUMPY)]
    found = lasting_of(*outcome(*rows, ("fork", measured(**CHILD)), ("relu", {})))
    assert found == Lasting(240, 16384, 200, 66588672, 1228800, Outcome(ok=True, seconds=0.1, exit_code=0))


@pytest.mark.parametrize(
    "rows", [(), (("relu", {}),), (("memory", {"status": "not-run"}), ("fork", {"status": "not-run"}))]
)
def test_nothing_measured_is_no_fact(rows: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    assert lasting_of(*outcome(*rows)) is None
    assert (memory_data(None), fork_data(None)) == (None, None)


def test_a_pair_without_a_result_is_passed_over() -> None:
    pairs, results = outcome(("memory", measured(**SAME)), ("fork", measured(**CHILD)))
    del results["fork 1", "2"]
    found = lasting_of(pairs, results)
    assert found is not None and found.fork is None and found.fixed_calls == 240


def test_a_process_that_hung_before_it_had_a_child_is_told_as_well() -> None:
    row = ("fork", {"status": "timeout", "hazard": "fork", "message": "took too long", "seconds": None})
    found = lasting_of(*outcome(row))
    assert found is not None
    assert found.fork == Outcome(ok=False, seconds=0.0, error_text="took too long", timed_out=True)


def test_a_child_that_died_keeps_its_signal() -> None:
    died = {**CHILD, "signal": "SIGSEGV", "exit_code": None}
    found = lasting_of(*outcome(("fork", {"status": "crashed", "message": "died", **measured(**died)})))
    assert found is not None and found.fork is not None
    assert (found.fork.signal, found.fork.exit_code, found.fork.timed_out) == ("SIGSEGV", None, False)


def test_a_leak_makes_its_own_case_wrong_and_no_other() -> None:
    pairs, results = outcome(
        ("memory", measured(count=240, same_bytes=240 * 65536)), ("memory", measured(**OURS)), ("relu", {})
    )
    changed = with_leaks(results, lasting_of(pairs, results))
    assert [(one.status, one.hazard) for one in changed.values()] == [
        ("wrong", "leak"),
        ("right", None),
        ("right", None),
    ]
    assert changed["memory 0", "2"].message == "240 steps took 16 MB more and more"
    assert with_leaks(results, None) == results


def codes(*rows: tuple[str, dict[str, Any]]) -> dict[str, Severity]:
    """What the rules say, through everything that certify does."""
    pairs, results = outcome(*rows)
    lasting = lasting_of(pairs, results)
    facts = replace(facts_on("py37-healthy", {}), lasting=lasting)
    smoke = as_smoke(pairs, with_leaks(results, lasting), None, 2)
    found = judged(facts, smoke, lambda given: judge(given, RULES), "ideepdoctor certify")
    return {finding.code: finding.severity for finding in found.findings}


def test_each_fault_is_exactly_one_finding() -> None:
    assert codes(("memory", measured(**SAME)), ("fork", measured(**CHILD))) == {}
    assert codes(("memory", measured(**OURS)), ("memory", measured(**NUMPY))) == {"IDP621": Severity.INFO}
    assert codes(("memory", measured(count=240, same_bytes=240 * 65536))) == {"IDP620": Severity.ERROR}
    hung = {"status": "timeout", "hazard": "fork", "message": TEXT, **measured(**HUNG)}
    assert codes(("fork", hung)) == {"IDP622": Severity.ERROR}


def test_the_document_has_the_numbers() -> None:
    lasting = Lasting(240, 0, 0, None, None, Outcome(ok=False, seconds=8.0, timed_out=True, error_text=TEXT))
    assert memory_data(lasting) == {
        "steps": 240,
        "step_bytes": 0,
        "shapes": 0,
        "ideep_bytes": None,
        "numpy_bytes": None,
    }
    assert memory_data(Lasting(numpy_growth_bytes=5)) is None
    assert fork_data(Lasting(240, 0)) is None
    assert fork_data(lasting) == {
        "ok": False,
        "seconds": 8.0,
        "timed_out": True,
        "signal": None,
        "exit_code": None,
        "error_text": TEXT,
    }
