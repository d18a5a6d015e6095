"""The driver of certify, with canned answers of its payload; a run that is stopped and goes on; what it comes to."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.proof.certify import Run, make_plan, record_model, run_batch
from ideepdoctor.proof.certify_data import Case, Model, Plan, Result, Setting, case_from
from ideepdoctor.proof.certify_order import ordered
from ideepdoctor.proof.certify_report import as_smoke, code_of, failures, judged, rows
from ideepdoctor.proof.certify_store import Store
from ideepdoctor.rules import RULES
from ideepdoctor.rules.engine import judge
from ideepdoctor.targets.target import Target
from tests.doubles import Call, FakeSystem, completed, payload_answer
from tests.rules.hosts import facts_on

READY = {"threads": 2, "available": True, "reason": "", "chainer": "7.8.1", "garbage": False}
TWO, CPU = Setting("2", 2), Setting("1cpu", None, True)
TARGET = Target("python3.7")


def item(key: str, op: str = "relu", **fields: Any) -> dict[str, Any]:
    plain = {"key": key, "op": op, "family": op, "text": f"text of {key}", "seconds": 1.0, "risk": 0}
    return {**plain, **fields}


def told(key: str, status: str = "right", **fields: Any) -> dict[str, Any]:
    plain = {
        "key": key,
        "status": status,
        "hazard": None,
        "forward": True,
        "backward": True,
        "why": "",
        "error": 1e-7,
        "tolerance": 1e-5,
        "wrong": [],
        "message": "",
        "kernels": ["eltwise jit:avx2"],
        "seconds": 1.0,
        "measured": None,
    }
    return {**plain, **fields}


def system_with(answer: Mapping[str, Any] | Any) -> FakeSystem:
    return FakeSystem().on("python3.7", payload_answer(answer) if isinstance(answer, Mapping) else answer)


def request_of(call: Call) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(call.argv[-1]))


def plan_answer(**fields: Any) -> dict[str, Any]:
    plain = {"failure": "", "ready": READY, "cases": [item("a")], "unknown": ["functions/new.py"], "guard": None}
    return {**plain, **fields}


def test_the_answer_becomes_a_plan() -> None:
    system = system_with(plan_answer())
    plan = make_plan(system, TARGET)
    assert plan == Plan(2, True, "", (case_from(item("a")),), ("functions/new.py",), None)
    asked = request_of(system.calls[0])
    assert (asked["action"], asked["threads"], asked["one_cpu"]) == ("plan", None, False)


def test_a_target_without_chainer_cannot_be_certified() -> None:
    answer = {"failure": "import of chainer: ImportError: no", "ready": None}
    with pytest.raises(CouldNotCheck, match="nothing can be certified here: import of chainer: ImportError: no"):
        make_plan(system_with(answer), TARGET)


@pytest.mark.parametrize("answer", [{}, {"failure": "", "ready": READY}, plan_answer(cases=[{"key": "a"}])])
def test_an_answer_that_is_something_else_is_an_error(answer: dict[str, Any]) -> None:
    with pytest.raises(CouldNotCheck, match="answered certify with something else"):
        make_plan(system_with(answer), TARGET)


def test_a_target_that_does_not_answer_is_an_error() -> None:
    with pytest.raises(CouldNotCheck, match="no answer"):
        make_plan(system_with(completed(b"", returncode=1)), TARGET)


def test_a_batch_says_what_and_how() -> None:
    system = system_with({"failure": "", "ready": READY, "results": [told("a"), told("b", "crashed", hazard="H7")]})
    cases = [case_from(item("a", extra=[1])), case_from(item("b"))]
    found = run_batch(system, TARGET, cases, CPU, 12.0)
    assert [(one.key, one.setting, one.status, one.hazard) for one in found] == [
        ("a", "1cpu", "right", None),
        ("b", "1cpu", "crashed", "H7"),
    ]
    asked = request_of(system.calls[0])
    assert (asked["threads"], asked["one_cpu"], asked["seconds"]) == (None, True, 12.0)
    assert asked["cases"] == [item("a", extra=[1]), item("b")]
    assert system.calls[0].timeout_seconds is not None and system.calls[0].timeout_seconds > 60


def test_children_that_had_no_time_to_start_are_no_fault_of_the_target() -> None:
    answer = {"failure": "no child answered in time", "ready": None, "results": []}
    assert run_batch(system_with(answer), TARGET, [case_from(item("a"))], TWO, 3.0) == ()


# ------------------------------------------------------------------------------------------ a user's model


def model_answer(**fields: Any) -> dict[str, Any]:
    plain = {"failure": "", "ready": READY, "refused": "", "ended": "", "cases": [item("a", source="3 times")]}
    rest = {"others": [{"name": "Reshape", "why": "NumPy does it", "count": 1}], "gradients": [], "notes": ["n"]}
    return {**plain, **rest, **fields}


def test_the_answer_becomes_a_model() -> None:
    rows = [{"name": "/w", "error": 1.0, "tolerance": 1e-4, "right": False}]
    system = system_with(model_answer(gradients=rows))
    model = record_model(system, TARGET, "/x/net.py", "make")
    assert model.cases[0].text == "text of a, 3 times"
    assert (model.wrong, model.ended, model.notes) == (("/w",), "", ("n",))
    asked = request_of(system.calls[0])
    assert (asked["action"], asked["file"], asked["function"]) == ("model", "/x/net.py", "make")


def test_a_function_that_is_refused_is_a_fault_of_the_command_line() -> None:
    with pytest.raises(UsageError, match="returned NoneType"):
        record_model(system_with(model_answer(refused="make() returned NoneType")), TARGET, "/x/net.py", "make")


# ------------------------------------------------------------------------------------------ runs


class Machine:
    """Answers batches: each case is right and takes a second, unless it is one of ``bad``; stops after ``limit``."""

    def __init__(self, bad: Mapping[str, dict[str, Any]] | None = None, limit: int | None = None) -> None:
        self.bad, self.limit, self.batches = bad or {}, limit, 0

    def __call__(self, call: Call) -> Any:
        self.batches += 1
        if self.limit is not None and self.batches > self.limit:
            raise KeyboardInterrupt
        keys = [case["key"] for case in request_of(call)["cases"]]
        results = [told(key, **self.bad.get(key, {})) for key in keys]
        return payload_answer({"failure": "", "ready": READY, "results": results})


def new_run(machine: Any, folder: Path, count: int = 30, deadline: float | None = None) -> Run:
    system = system_with(machine)
    cases = [case_from(item(f"{number}")) for number in range(count)]
    from ideepdoctor.system import RealSystem

    store = Store(RealSystem(), str(folder), {"target": "x"})
    pairs = ordered(cases, (TWO, CPU))
    return Run(system, TARGET, store, pairs, deadline, results=store.load())


def test_a_run_tries_everything_once(tmp_path: Path) -> None:
    machine = Machine()
    run = new_run(machine, tmp_path)
    seen: list[tuple[int, int, str]] = []
    run.told = lambda *words: seen.append(words)
    run.go()
    assert set(run.results) == {(str(number), name) for number in range(30) for name in ("2", "1cpu")}
    assert seen[0] == (0, 60, "2") and len(seen) == machine.batches > 6
    again = new_run(Machine(limit=0), tmp_path)
    again.go()
    assert again.results == run.results


def test_a_run_that_was_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    run = new_run(Machine(limit=2), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run.go()
    kept = dict(run.results)
    assert 0 < len(kept) < 60
    machine = Machine()
    again = new_run(machine, tmp_path)
    assert again.results == kept
    again.go()
    assert len(again.results) == 60
    asked = [case["key"] for call in again.system.calls for case in request_of(call)["cases"]]  # type: ignore[attr-defined]
    assert len(asked) == 60 - len(kept)


def test_a_run_ends_with_its_budget(tmp_path: Path) -> None:
    run = new_run(Machine(), tmp_path, deadline=time.monotonic() + 1.0)
    run.go()
    assert run.results == {}
    run = new_run(Machine(), tmp_path, deadline=time.monotonic() + 50.0)
    run.go()
    asked = [request_of(call)["seconds"] for call in run.system.calls]  # type: ignore[attr-defined]
    assert len(run.results) == 60 and 0 < max(asked) <= 50


def test_a_target_in_which_nothing_ends_is_not_asked_for_ever(tmp_path: Path) -> None:
    nothing = payload_answer({"failure": "no child answered in time", "ready": None, "results": []})
    with pytest.raises(CouldNotCheck, match="no case came to an end"):
        new_run(nothing, tmp_path).go()


def test_the_pace_is_learned(tmp_path: Path) -> None:
    slow = {str(number): {"seconds": 5.0} for number in range(30)}
    machine = Machine(slow)
    new_run(machine, tmp_path).go()
    quick = Machine()
    new_run(quick, tmp_path / "other").go()
    assert machine.batches > 2 * quick.batches


# ------------------------------------------------------------------------------------------ what it comes to


def outcome(*found: tuple[Case, Setting, Result]) -> tuple[Any, Any]:
    pairs = [(case, setting) for case, setting, _ in found]
    return pairs, {(case.key, setting.name): one for case, setting, one in found}


def one(key: str, setting: Setting = TWO, op: str = "relu", **fields: Any) -> tuple[Case, Setting, Result]:
    from ideepdoctor.proof.certify_data import result_from

    return case_from(item(key, op)), setting, result_from(told(key, **fields), setting.name)


def test_a_row_counts_and_names_the_worst() -> None:
    pairs, results = outcome(
        one("a"),
        one("b", error=3e-6, forward=False, backward=False, why="3-dimensional arrays: NumPy"),
        one("c", status="wrong", error=0.5, message="x is off by 0.5"),
        one("c", CPU, status="wrong", error=0.7),
        one("d", status="wrong", error=0.1, hazard="H2"),
        one("e", status="not-run", message="not enough memory", error=None, forward=None, backward=None),
        one("f", status="crashed", message="SIGSEGV", error=None, forward=None, backward=None),
    )
    pairs.append((case_from(item("later")), TWO))
    [row] = rows(pairs, results)
    assert (row["op"], row["cases"], row["tried"], row["right"]) == ("relu", 8, 6, 2)
    assert (row["used"], row["worst_error"]) == ("part", 0.7)
    assert row["why_not"] == [{"text": "3-dimensional arrays: NumPy", "count": 1}]
    assert row["not_run"] == [{"text": "not enough memory", "count": 1}]
    by_name = {(fault["hazard"], fault["status"]): fault for fault in row["faults"]}
    assert set(by_name) == {(None, "wrong"), ("H2", "wrong"), (None, "crashed")}
    wrong = by_name[None, "wrong"]
    assert (wrong["cases"], wrong["tries"], wrong["threads"], wrong["code"]) == (1, 2, ["2", "1cpu"], "IDP606")
    assert (wrong["worst"]["threads"], wrong["worst"]["error"]) == ("1cpu", 0.7)
    assert by_name["H2", "wrong"]["code"] == "IDP603" and by_name[None, "crashed"]["code"] == "IDP607"
    assert len(failures(pairs, results)) == 4


@pytest.mark.parametrize(
    ("hazard", "code"),
    [
        ("H1", "IDP602"),
        ("H2", "IDP603"),
        ("H3", "IDP604"),
        ("H4", "IDP612"),
        ("H5", "IDP613"),
        ("H7", "IDP605"),
        ("H8", "IDP605"),
        ("H9", "IDP614"),
        ("H10", "IDP615"),
        ("H11", "IDP616"),
        ("H14", "IDP609"),
    ],
)
def test_every_known_hazard_has_the_code_of_its_rule(hazard: str, code: str) -> None:
    assert code_of(hazard, "wrong") == code_of(hazard, "crashed") == code


@pytest.mark.parametrize(("status", "code"), [("wrong", "IDP606"), ("crashed", "IDP607"), ("raised", "IDP607")])
def test_what_has_no_rule_of_its_own_has_one_of_two(status: str, code: str) -> None:
    assert code_of(None, status) == code_of("H6", status) == code


def findings(
    *found: tuple[Case, Setting, Result], model: Model | None = None, overlay: dict[str, Any] | None = None
) -> dict[str, Any]:
    smoke = as_smoke(*outcome(*found), model, 2)
    facts = facts_on("py37-healthy", overlay or {})
    judgement = judged(facts, smoke, lambda given: judge(given, RULES), "ideepdoctor certify")
    return {finding.code: finding for finding in judgement.findings}


def test_what_is_right_is_no_finding() -> None:
    assert findings(one("a"), one("b", op="convolution_2d")) == {}


def test_what_else_is_wrong_is_for_diagnose_to_say_unless_it_hides_what_was_proved() -> None:
    bare = {"guard": {"choice": None, "path": None, "current": None, "corrections": None}}
    assert findings(one("a"), overlay=bare) == {}
    bad = one("b", op="h * g", status="wrong", hazard="H2", error=1.0)
    assert set(findings(bad, overlay=bare)) == {"IDP603"}
    # Without ideep4py, the rules about it are skipped; the finding that made them so must not be lost.
    assert set(findings(bad, overlay={"packages": {"ideep4py": None}})) == {"IDP301"}


def test_a_known_hazard_is_one_finding_and_an_error() -> None:
    found = findings(
        *(one(f"{n}", op="h * g", status="wrong", hazard="H2", error=1.0 + n) for n in range(20)), one("a")
    )
    assert set(found) == {"IDP603"}
    finding = found["IDP603"]
    assert str(finding.severity) == "error"
    assert "off by 2000 %" in finding.found and "19 more" in finding.found
    assert len(finding.evidence) == 12
    assert {seen.command for seen in finding.evidence} == {"ideepdoctor certify"}


def test_what_is_new_is_one_finding_for_each_kind_of_end() -> None:
    found = findings(
        one("a", status="wrong", error=0.5),
        one("b", status="wrong", error=0.9),
        one("c", status="crashed", error=None, message="SIGSEGV"),
        one("d"),
    )
    assert set(found) == {"IDP606", "IDP607"}
    assert "text of b and 1 more: off by 90 %" in found["IDP606"].found
    assert "SIGSEGV" in found["IDP607"].found


def test_numpy_in_place_of_ideep_is_a_finding() -> None:
    unused = {"forward": False, "backward": False, "kernels": []}
    assert set(findings(one("a", **unused), one("b", op="load", **unused))) == {"IDP601"}


def test_wrong_gradients_of_a_whole_model_are_a_finding_of_their_own_where_no_case_explains_them() -> None:
    rows = ({"name": "/l/W", "error": 0.5, "tolerance": 1e-4, "right": False},)
    model = Model((), (), rows, "", ())
    assert set(findings(one("a"), model=model)) == {"IDP606"}
    assert "/l/W" in findings(one("a"), model=model)["IDP606"].found
    bad = one("b", op="h * g", status="wrong", hazard="H2", error=1.0)
    assert set(findings(one("a"), bad, model=model)) == {"IDP603"}


def test_growth_of_memory_alone_is_no_fault_of_a_case() -> None:
    assert findings(one("m", op="memory", measured={"count": 200, "ideep_bytes": 6e7}, kernels=[])) == {}
