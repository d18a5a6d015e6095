"""The JSON envelope: one shape for everything, valid against the schema that is shipped."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import pytest

from ideepdoctor.model.facts import ConvTiming, OpCheck, Smoke
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Judgement, NotKnown, Severity, Skipped
from ideepdoctor.model.plan import (
    CreateEnv,
    DisableLine,
    EditBlock,
    Install,
    Plan,
    RenameFile,
    Requirement,
    SetRpath,
    WriteFile,
)
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.render.json import render

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))

FINDING = Finding(
    "IDP305",
    Severity.ERROR,
    "NumPy outside its window",
    "numpy 1.15.4",
    "numpy 1.16.6 to 1.21.6",
    "iDeep is silently not used",
    "ideepdoctor fix",
    (Evidence("version in METADATA", "/env/numpy", "python -m pip show numpy"),),
    FixSafety.SAFE,
)
SMOKE = Smoke(
    2,
    True,
    "jit:avx2",
    (OpCheck("relu", "(2,3)", 2, "wrong", True, float("inf"), 1e-5, None, "infinite"),),
    ConvTiming("conv", 7, 0.2, 0.1, 2.0, 1.9, 2.1, 100.0),
)
PLAN = Plan(
    "all kinds",
    (
        CreateEnv("/env", "/usr/bin/python3.7", "uv"),
        Install("/env/bin/python", (Requirement("six", "1.17.0", ("0" * 64,)),), "uv"),
        RenameFile("/env/lib/libmkldnn.so", "shadows the right one"),
        SetRpath("/env/lib/_ideep4py.so", "$ORIGIN/lib", "searches at the wrong place"),
        WriteFile("/env/x.pth", "import x\n", "variables"),
        DisableLine("/home/u/.bashrc", 3, "export LD_PRELOAD=x", "preloads a stranger"),
        EditBlock("/home/u/.bashrc", "X=1", "variables"),
    ),
    ("IDP305",),
)
JUDGEMENT = Judgement((FINDING,), (Skipped("IDP310", "IDP305"),), (NotKnown("IDP103", "old glibc", "no ldd"),))

REPORTS = {
    "healthy": Report("diagnose", judgement=Judgement()),
    "findings": Report("diagnose", judgement=JUDGEMENT),
    "plan and proof": Report("setup", judgement=JUDGEMENT, plan=PLAN, smoke=SMOKE, extra={"verdict": "x"}),
    "failure": Report("setup", failure=Failure("busy", "busy", "wait", 6, {"pid": "1"})),
}


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_is_one_valid_document(name):
    document = json.loads(render(REPORTS[name]), parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    jsonschema.validate(document, SCHEMA)


def test_the_schema_refuses_what_is_not_a_report():
    document = json.loads(render(REPORTS["findings"]))
    document["findings"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_a_finding_carries_its_treatment_and_evidence():
    document = json.loads(render(REPORTS["findings"]))
    [found] = document["findings"]
    assert found["treatment"] == {
        "safety": "safe",
        "next_step": "ideepdoctor fix",
        "explain": "ideepdoctor explain IDP305",
    }
    assert found["evidence"][0]["command"] == "python -m pip show numpy"
    assert document["skipped"] == [{"code": "IDP310", "because": "IDP305"}]


def test_numbers_that_json_lacks_become_null():
    assert json.loads(render(REPORTS["plan and proof"]))["proof"]["checks"][0]["max_relative_error"] is None


def test_plan_steps_say_whether_they_can_be_undone():
    steps = json.loads(render(REPORTS["plan and proof"]))["plan"]["steps"]
    kinds = ["create-env", "install", "rename-file", "set-rpath", "write-file", "disable-line", "edit-block"]
    assert [step["kind"] for step in steps] == kinds
    assert {step["reversible"] for step in steps} == {"full"}


def test_fail_on_decides_the_exit_code_in_the_document():
    assert json.loads(render(REPORTS["findings"], FailOn.NEVER))["summary"]["exit_code"] == 0
    assert json.loads(render(REPORTS["findings"]))["summary"]["exit_code"] == 1
