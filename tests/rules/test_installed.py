"""What rules ask of the facts about packages and variables, and the words for checks of the smoke test."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.facts import OpCheck
from ideepdoctor.model.findings import FixSafety
from ideepdoctor.model.plan import Install, WriteFile
from ideepdoctor.rules.base import Unknown
from ideepdoctor.rules.installed import (
    cure_command,
    fix_command,
    ideep4py_fix,
    ideep4py_steps,
    metadata_evidence,
    new_environment_command,
    outcome,
    package,
    python_command,
    release,
    set_by_user,
    stack_fix,
    tried,
    variable,
    variable_fix,
    variable_steps,
)
from ideepdoctor.rules.proof import describe, evidence, failing, percent, smoke, threads
from tests.rules.hosts import facts_on

HOST = "py37-healthy"
PYTHON = "/home/user/ideep/bin/python"
ISOLATED = {"python": {"externally_managed": "/usr/lib/EXTERNALLY-MANAGED"}}


def test_a_package_is_there_or_not_or_nobody_knows():
    found = package(facts_on(HOST), "numpy")
    assert found is not None
    assert found.version == "1.21.6"
    assert package(facts_on(HOST), "cupy") is None
    with pytest.raises(Unknown):
        package(facts_on(HOST, {"packages": None}), "numpy")


@pytest.mark.parametrize(
    ("overlay", "version"),
    [
        ({}, "2.0.0.post3"),
        ({"planned_ideep4py": "1.0.4"}, "1.0.4"),
        ({"planned_ideep4py": "1.0.4", "packages": None}, "1.0.4"),
        ({"planned_ideep4py": "9"}, None),
        ({"packages": {"ideep4py": None}}, None),
        ({"packages": {"ideep4py": "2.0.0.post3+mine"}}, None),
    ],
)
def test_the_release_is_the_planned_one_else_the_installed_one(overlay: dict[str, Any], version: str | None):
    found = release(facts_on(HOST, overlay))
    assert (None if found is None else found.version) == version


def test_an_import_was_tried_or_not():
    assert outcome(facts_on(HOST), "numpy") is not None
    assert outcome(facts_on(HOST), "cupy") is None
    assert outcome(facts_on(HOST, {"imports": None}), "numpy") is None
    assert tried(facts_on(HOST), "numpy") is not None
    with pytest.raises(Unknown, match="numpy was not tried"):
        tried(facts_on(HOST, {"imports": None}), "numpy")
    assert tried(facts_on(HOST, {"imports": None, "mode": "quick"}), "numpy") is None
    assert tried(facts_on(HOST, {"imports": None, "planned_ideep4py": "1.0.4"}), "numpy") is None


def test_commands_reach_the_target_the_way_the_doctor_did():
    reach = {"target": {"transport": ["docker", "exec", "-i", "box"], "emulator": ["qemu-x86_64"]}}
    assert python_command(facts_on(HOST), "-m pip") == f"{PYTHON} -m pip"
    assert python_command(facts_on(HOST, reach), "-V") == f"docker exec -i box qemu-x86_64 {PYTHON} -V"


def test_evidence_of_a_version_is_where_it_was_read():
    (shown,) = metadata_evidence(facts_on(HOST), "numpy")
    assert shown.text == "numpy 1.21.6 is installed"
    assert shown.path == "/home/user/ideep/lib/python3.7/site-packages"
    assert shown.command == f"{PYTHON} -m pip show numpy"
    assert metadata_evidence(facts_on(HOST), "cupy") == ()


def test_commands_of_treatments():
    usable, newer = facts_on(HOST), facts_on("py311-nothing")
    assert fix_command(usable) == f"ideepdoctor fix --python {PYTHON}"
    assert fix_command(usable, FixSafety.UNSAFE) == f"ideepdoctor fix --unsafe --python {PYTHON}"
    assert new_environment_command(usable) == "ideepdoctor setup --python 3.7"
    assert new_environment_command(newer) == "ideepdoctor setup"
    assert cure_command(usable, FixSafety.MANUAL) == "ideepdoctor setup --python 3.7"
    assert cure_command(usable, FixSafety.SAFE) == fix_command(usable)
    assert cure_command(usable, FixSafety.UNSAFE) == fix_command(usable, FixSafety.UNSAFE)


@pytest.mark.parametrize(
    ("overlay", "ideep", "stack"),
    [
        ({}, FixSafety.SAFE, FixSafety.SAFE),
        ({"packages": {"ideep4py": None}}, FixSafety.SAFE, FixSafety.SAFE),
        ({"packages": {"chainer": "5.2.0"}}, FixSafety.SAFE, FixSafety.SAFE),
        ({"packages": {"chainer": "4.5.0"}}, FixSafety.UNSAFE, FixSafety.SAFE),
        ({"packages": {"chainer": None}}, FixSafety.SAFE, FixSafety.SAFE),
        ({"python": {"abi": "cp39"}}, FixSafety.MANUAL, FixSafety.MANUAL),
        ({"cpu": {"cpuinfo_flags": ["sse2"], "xcr0": None}}, FixSafety.MANUAL, FixSafety.MANUAL),
        (ISOLATED, FixSafety.MANUAL, FixSafety.MANUAL),
    ],
)
def test_a_treatment_is_safe_where_chainer_stays_and_a_stack_fits(
    overlay: dict[str, Any], ideep: FixSafety, stack: FixSafety
):
    facts = facts_on(HOST, overlay)
    assert (ideep4py_fix(facts), stack_fix(facts)) == (ideep, stack)


def told(inherited: dict[str, str], effective: dict[str, str] | None, ours: list[str]) -> dict[str, Any]:
    return {"variables": {"inherited": inherited, "effective": effective, "set_by_doctor": ours}}


def test_a_variable_is_what_a_program_sees():
    seen = facts_on(HOST, {"variables": None}, told({"A": "1", "B": "2"}, {"A": "3"}, []))
    assert [variable(seen, name) for name in "ABC"] == ["3", None, None]
    unseen = facts_on(HOST, {"variables": None}, told({"A": "1"}, None, []))
    assert [variable(unseen, name) for name in "AB"] == ["1", None]


@pytest.mark.parametrize(
    ("inherited", "ours", "by_user"),
    [({}, [], False), ({"A": "1"}, [], True), ({"A": "1"}, ["A"], False), ({}, ["A"], False), ({"A": ""}, [], True)],
)
def test_a_default_cannot_change_what_the_user_set(inherited: dict[str, str], ours: list[str], by_user: bool):
    facts = facts_on(HOST, {"variables": None}, told(inherited, inherited, ours))
    assert set_by_user(facts, "A") is by_user
    assert variable_fix(facts, "A") is (FixSafety.MANUAL if by_user else FixSafety.SAFE)


@pytest.mark.parametrize(
    ("overlay", "fix"),
    [
        ({"python": {"kind": "conda"}}, FixSafety.SAFE),
        ({"python": {"kind": "uv"}}, FixSafety.MANUAL),
        (ISOLATED, FixSafety.MANUAL),
    ],
)
def test_a_default_is_set_in_an_environment_alone(overlay: dict[str, Any], fix: FixSafety):
    assert variable_fix(facts_on(HOST, overlay), "A") is fix


def check(status: str = "wrong", error: float | None = 0.5, **more: Any) -> OpCheck:
    values = {"case": "(8,16)", "threads": 2, "used_ideep": True, "tolerance": 1e-4, "hazard": "H1", **more}
    return OpCheck(op="relu", status=status, max_relative_error=error, **values)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (1.7, "170 %"),
        (0.1, "10 %"),
        (0.0999, "10 %"),
        (0.012, "1.2 %"),
        (0.00034, "0.034 %"),
        (999_999.0, "99999900 %"),
        (1e6, "everything"),
        (float("inf"), "everything"),
        (float("nan"), "everything"),
    ],
)
def test_an_error_as_people_say_it(error: float, text: str):
    assert percent(error) == text


def test_the_worst_check_is_described_and_the_others_are_counted():
    assert describe([check()]) == "relu (8,16): off by 50 % (2 threads)"
    assert describe([check(), check(error=1.5, threads=1), check(error=None)]) == (
        "relu (8,16): off by 150 % (1 thread), and 2 more"
    )
    assert describe([check("crashed", None, case="", message="SIGABRT")]) == "relu: SIGABRT (2 threads)"
    assert describe([check("timeout", None)]) == "relu (8,16): timeout (2 threads)"
    assert (threads(1), threads(2), threads(0)) == ("1 thread", "2 threads", "0 threads")


def test_each_failing_case_is_evidence():
    shown = evidence([check(message="0.5"), check("crashed", None, message="")])
    assert [item.text for item in shown] == ["wrong: relu (8,16) 0.5", "crashed: relu (8,16)"]
    assert {item.command for item in shown} == {"ideepdoctor smoke -v"}


def test_only_checks_of_that_hazard_that_went_wrong_are_failing():
    rows = [
        {"op": status, "case": "", "threads": 1, "status": status, "used_ideep": None, "message": ""}
        | {"max_relative_error": None, "tolerance": None, "hazard": hazard}
        for status in ("right", "wrong", "crashed", "raised", "timeout", "not-run")
        for hazard in ("H1", "H2")
    ]
    facts = facts_on(HOST, smoke(*rows))
    assert [item.op for item in failing(facts, "H1")] == ["wrong", "crashed", "raised", "timeout"]
    assert {item.hazard for item in failing(facts, "H1")} == {"H1"}
    assert failing(facts_on(HOST), "H1") == []


@pytest.mark.parametrize(
    ("folders", "written"),
    [
        ({"purelib": "/e/pure", "platlib": "/e/plat"}, "/e/pure/"),
        ({"purelib": None, "platlib": "/e/plat"}, "/e/plat/"),
        ({"purelib": "/e/pure", "platlib": None}, "/e/pure/"),
        ({"purelib": None, "platlib": None}, None),
    ],
)
def test_start_up_files_lie_where_python_looks(folders: dict[str, str | None], written: str | None):
    steps = variable_steps(facts_on(HOST, {"python": folders}))
    assert bool(steps) == (written is not None)
    assert all(isinstance(step, WriteFile) and step.path.startswith(str(written)) for step in steps)


@pytest.mark.parametrize(
    ("overlay", "names"),
    [
        ({"packages": {"chainer": None, "ideep4py": None}}, ["chainer", "ideep4py"]),
        ({"packages": {"chainer": None, "ideep4py": "1.0.4", "numpy": None}}, ["chainer", "ideep4py", "numpy"]),
        ({"packages": {"chainer": "4.5.0"}}, ["chainer"]),
        ({"packages": {"ideep4py": None}}, ["ideep4py"]),
        ({"packages": {"ideep4py": None, "numpy": "1.15.4"}}, ["ideep4py", "numpy"]),
        ({"packages": {"ideep4py": None, "numpy": "1.16.0"}}, ["ideep4py"]),
        ({"python": {"abi": "cp39"}}, []),
    ],
)
def test_ideep4py_comes_with_what_it_needs_changed(overlay: dict[str, Any], names: list[str]):
    steps = [step for step in ideep4py_steps(facts_on(HOST, overlay)) if isinstance(step, Install)]
    built_with = {"setuptools", "wheel"}
    assert sorted({item.name for step in steps for item in step.requirements} - built_with) == names
