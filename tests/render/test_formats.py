"""The formats for machines: each is read by somebody else's parser, for every kind of report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped
from sarif_pydantic import Sarif

from ideepdoctor.commands.lint import LintOptions, lint_sources
from ideepdoctor.commands.session import Session
from ideepdoctor.facts.serialize import facts_from_json, facts_to_json, load_facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Judgement, NotKnown, Severity, Suppressed
from ideepdoctor.model.findings import Skipped as SkippedRule
from ideepdoctor.model.project import Project
from ideepdoctor.model.report import Failure as Ended
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.options import Format
from ideepdoctor.render.formats import renderer
from ideepdoctor.render.problems import Level, problems
from ideepdoctor.rules import RULES
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.overlay import apply
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import FakeSystem
from tests.formats import READ

HOSTS = Path(__file__).parents[1] / "hosts"
MACHINES = tuple(item for item in Format if item.for_machines)


def finding(code="IDP305", severity=Severity.ERROR, found="numpy 1.15.4", path="/env/numpy", do="ideepdoctor fix"):
    evidence = (Evidence("seen", path, None),) if path else ()
    return Finding(
        code, severity, "NumPy outside its window", found, "1.16.6", "not used", do, evidence, FixSafety.SAFE
    )


class IDP999(Rule):
    """A rule that breaks."""

    title = "Breaks"
    severity = Severity.ERROR

    def check(self, facts):
        raise ZeroDivisionError("of its own")
        yield


def facts():
    return load_facts(str(HOSTS / "py37-healthy.json"))


def report(**parts) -> Report:
    return Report("diagnose", facts=facts(), **parts)


def session(folder: Path) -> Session:
    return Session(FakeSystem(), {}, str(folder), Quiet(), lambda _report: True, "ideepdoctor lint")


def reports() -> dict[str, Report]:
    return {
        "healthy": report(judgement=judge(facts(), RULES)),
        "findings": report(
            judgement=Judgement(
                (finding(), finding("IDP702", Severity.WARNING, path=None), finding("IDP111", Severity.INFO)),
                (SkippedRule("IDP601", "IDP305"),),
                (),
                ("IDP101",),
            )
        ),
        "unknown": report(judgement=Judgement(unknown=(NotKnown("IDP401", "Strangers", "no such <file>"),))),
        "crash of a rule": report(judgement=judge(facts(), (IDP999,))),
        "failed": Report("setup", failure=Ended("could-not-check", "no network", "plug it in", 3)),
        "nothing": Report("schema"),
    }


@pytest.fixture(params=list(reports()))
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize("form", MACHINES)
def test_every_format_makes_one_document_of_every_report(form, kind):
    text = renderer(form)(reports()[kind], FailOn.ERROR)
    assert text
    assert not text.endswith("\n")


def test_text_is_not_for_machines():
    with pytest.raises(ValueError):
        renderer(Format.TEXT)


def test_sarif_is_read_by_a_model_of_it(kind):
    log = Sarif.model_validate_json(renderer(Format.SARIF)(reports()[kind], FailOn.ERROR))
    [run] = log.runs
    assert log.version == "2.1.0"
    assert run.tool.driver.name == "ideepdoctor"
    [invocation] = run.invocations
    told = {"healthy": (True, 0, 0), "findings": (True, 1, 0), "unknown": (True, 3, 1), "crash of a rule": (True, 3, 1)}
    told |= {"failed": (False, 3, 1), "nothing": (True, 0, 0)}
    raw = json.loads(renderer(Format.SARIF)(reports()[kind], FailOn.ERROR))["runs"][0]["invocations"][0]
    assert (invocation.execution_successful, raw["exitCode"], len(raw["toolExecutionNotifications"])) == told[kind]


def test_sarif_names_rule_place_and_what_to_do():
    run = json.loads(renderer(Format.SARIF)(reports()["findings"], FailOn.ERROR))["runs"][0]
    first = run["results"][0]
    rule = run["tool"]["driver"]["rules"][first["ruleIndex"]]
    assert (rule["id"], first["ruleId"], first["level"]) == ("IDP305", "IDP305", "error")
    assert "What it checks" in rule["help"]["markdown"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///env/numpy"
    assert first["message"]["text"].endswith("Next: ideepdoctor fix")
    assert [item["level"] for item in run["results"]] == ["error", "warning", "note"]
    assert "physicalLocation" not in run["results"][1]["locations"][0]


@pytest.mark.parametrize(("fail_on", "failures"), [(FailOn.ERROR, 1), (FailOn.WARNING, 2), (FailOn.NEVER, 0)])
def test_junit_counts_what_fails(fail_on, failures):
    [suite] = JUnitXml.fromstring(renderer(Format.JUNIT)(reports()["findings"], fail_on).encode())
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, failures, 0, 1)
    results = {case.name.split()[0]: case.result for case in suite}
    assert results["IDP101"] == []
    assert isinstance(results["IDP601"][0], Skipped)
    assert len([item for found in results.values() for item in found if isinstance(item, Failure)]) == failures


@pytest.mark.parametrize("broken", ["unknown", "crash of a rule", "failed"])
def test_junit_has_an_error_for_what_could_not_be_decided(broken):
    [suite] = JUnitXml.fromstring(renderer(Format.JUNIT)(reports()[broken], FailOn.ERROR).encode())
    [case] = suite
    assert isinstance(case.result[0], Error)
    assert suite.errors == 1


def test_gitlab_wants_a_path_a_line_and_a_fingerprint_of_every_issue(kind):
    issues = READ[Format.GITLAB](renderer(Format.GITLAB)(reports()[kind], FailOn.ERROR))
    assert len(issues) == len(problems(reports()[kind]))


def test_json_and_json_lines_are_read_by_the_schema_and_line_by_line(kind):
    told = READ[Format.JSON](renderer(Format.JSON)(reports()[kind], FailOn.ERROR))
    lines = READ[Format.JSONL](renderer(Format.JSONL)(reports()[kind], FailOn.ERROR))
    assert told["summary"].items() <= lines[-1].items()
    assert len(lines) - 1 == len(told["findings"]) + len(told["unknown"]) + (told["error"] is not None)


COMMAND = re.compile(r"::(error|warning|notice) [a-z]+=[^,\n]*(,[a-z]+=[^,\n]*)*::.+")


@given(st.text(min_size=1), st.text())
def test_no_text_starts_a_workflow_command_or_breaks_a_document(found, do):
    made = report(judgement=Judgement((finding(found=found, do=do),)))
    [line] = renderer(Format.GITHUB)(made, FailOn.ERROR).split("\n")
    assert COMMAND.fullmatch(line.replace("\r", "?").replace("\x0b", "?"))
    [case] = next(iter(JUnitXml.fromstring(renderer(Format.JUNIT)(made, FailOn.ERROR).encode("utf-8", "replace"))))
    assert case.result
    assert json.loads(renderer(Format.SARIF)(made, FailOn.ERROR))["runs"][0]["results"]
    assert [json.loads(line)["record"] for line in renderer(Format.JSONL)(made, FailOn.ERROR).split("\n")] == [
        "problem",
        "summary",
    ]
    table = [line for line in renderer(Format.MARKDOWN)(made, FailOn.ERROR).split("\n") if line.startswith("| **error")]
    assert len(table) == 1


def test_github_marks_the_file_and_line_of_a_program(tmp_path):
    program = tmp_path / "train, 1.py"
    program.write_text("import chainer\nchainer.config.use_ideep = 1\n")
    made = lint_sources(session(tmp_path), LintOptions((str(program),)))
    assert made.judgement.findings, "the program must be one that something is said of"
    found = problems(made)
    assert all(item.line for item in found)
    text = renderer(Format.GITHUB)(made, FailOn.ERROR)
    assert f"file={str(program).replace(',', '%2C')},line={found[0].line}" in text
    region = json.loads(renderer(Format.SARIF)(made, FailOn.ERROR))["runs"][0]["results"][0]["locations"][0]
    assert region["physicalLocation"]["region"]["startLine"] == found[0].line


def within(path: str | None, root: str = "/work/app", cwd: str = "/work/app/src") -> Report:
    return report(judgement=Judgement((finding(path=path),)), project=Project(cwd, root))


@pytest.mark.parametrize(
    ("path", "shown", "ours"),
    [
        ("/work/app/.ideep/bin/activate", ".ideep/bin/activate", True),
        ("/work/app/a b/\u5c71.py", "a%20b/%E5%B1%B1.py", True),
        ("train.py", "src/train.py", True),
        ("../train.py", "train.py", True),
        ("../../other.py", "../../other.py", False),
        ("/work/application/a.py", "file:///work/application/a.py", False),
        ("/usr/lib/libmkldnn.so", "file:///usr/lib/libmkldnn.so", False),
    ],
)
def test_files_of_the_project_are_named_from_its_top(path, shown, ours):
    run = json.loads(renderer(Format.SARIF)(within(path), FailOn.ERROR))["runs"][0]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place == {"uri": shown, **({"uriBaseId": "%SRCROOT%"} if ours else {})}
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///work/app/"}}
    [issue] = READ[Format.GITLAB](renderer(Format.GITLAB)(within(path), FailOn.ERROR))
    assert issue["location"]["path"] == (unquote(shown) if ours else "ideepdoctor")
    assert ours or path in issue["description"]
    [line] = READ[Format.GITHUB](renderer(Format.GITHUB)(within(path), FailOn.ERROR))
    assert f"file={unquote(shown) if ours else path}," in line


def test_without_a_project_files_are_named_as_they_were():
    run = json.loads(renderer(Format.SARIF)(within("a.py", root=""), FailOn.ERROR))["runs"][0]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "a.py"}
    assert "originalUriBaseIds" not in run


def test_the_line_of_a_file_that_sets_a_variable_is_told():
    rule = next(item for item in RULES if item.code() == "IDP401")
    example = next(item for item in rule.bad if item.name == "a line of the activation script")
    data = facts_to_json(load_facts(str(HOSTS / f"{example.host}.json")))
    judged = judge(facts_from_json(apply(data, example.overlay)), (rule,))
    made = report(judgement=judged, project=Project("/home/user", "/home/user/ideep"))
    place = json.loads(renderer(Format.SARIF)(made, FailOn.ERROR))["runs"][0]["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "bin/activate"
    assert place["physicalLocation"]["region"] == {"startLine": 80}
    assert "file=bin/activate,line=80," in renderer(Format.GITHUB)(made, FailOn.ERROR)
    [issue] = json.loads(renderer(Format.GITLAB)(made, FailOn.ERROR))
    assert issue["location"] == {"path": "bin/activate", "lines": {"begin": 80}}


def test_lint_tells_line_and_column_in_characters_from_the_top_of_the_project(tmp_path):
    (tmp_path / ".git").mkdir()
    source = tmp_path / "src"
    source.mkdir()
    (source / "train.py").write_text("import chainer\n\u5c71 = 1; chainer.config.use_ideep = 1\n", "utf-8")
    made = lint_sources(session(source), LintOptions(("train.py",)))
    made = replace(made, project=Project(str(source), str(tmp_path)))
    [result] = json.loads(renderer(Format.SARIF)(made, FailOn.ERROR))["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical == {
        "artifactLocation": {"uri": "src/train.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 2, "startColumn": 8},
    }
    assert "col=8,file=src/train.py,line=2," in renderer(Format.GITHUB)(made, FailOn.ERROR)
    [issue] = READ[Format.GITLAB](renderer(Format.GITLAB)(made, FailOn.ERROR))
    assert issue["location"] == {"path": "src/train.py", "lines": {"begin": 2}}
    document = READ[Format.JSON](renderer(Format.JSON)(made, FailOn.ERROR))
    assert document["findings"][0]["fingerprint"] == issue["fingerprint"]


def test_a_fingerprint_outlives_what_was_measured_and_tells_two_files_apart():
    def prints(*findings):
        return [item.fingerprint for item in problems(report(judgement=Judgement(findings)))]

    one = prints(finding(found="error 3.2e-03 in 12 of 40"))
    assert one == prints(finding(found="error 4.7e-04 in 9 of 40"))
    assert one != prints(finding(found="error 3.2e-03 in 12 of 40", path="/env/other"))
    assert one != prints(finding("IDP306", found="error 3.2e-03 in 12 of 40"))
    twice = prints(finding(), finding())
    assert len(set(twice)) == 2
    assert twice == prints(finding(), finding())


def test_levels_follow_severities_and_the_undecided_is_never_left_out(kind):
    levels = [item.level for item in problems(reports()[kind])]
    wanted = {
        "findings": [Level.ERROR, Level.WARNING, Level.INFO],
        "unknown": [Level.UNKNOWN],
        "crash of a rule": [Level.UNKNOWN],
        "failed": [Level.FAILED],
    }
    if kind in wanted:
        assert levels == wanted[kind]
    else:
        assert not {Level.ERROR, Level.WARNING, Level.UNKNOWN, Level.FAILED} & set(levels)


def test_what_was_accepted_is_told_as_such():
    known = Suppressed("IDP401", Severity.ERROR, "Strangers", "libmkldnn 0.20", "old cluster", "0" * 64)
    made = report(judgement=Judgement(suppressed=(known,)))
    [result] = json.loads(renderer(Format.SARIF)(made, FailOn.ERROR))["runs"][0]["results"]
    assert result["suppressions"] == [{"kind": "external", "status": "accepted", "justification": "old cluster"}]
    [suite] = JUnitXml.fromstring(renderer(Format.JUNIT)(made, FailOn.ERROR).encode())
    assert (suite.failures, suite.skipped) == (0, 1)
    assert "old cluster" in renderer(Format.MARKDOWN)(made, FailOn.ERROR)
    assert json.loads(renderer(Format.JSONL)(made, FailOn.ERROR).split("\n")[0])["record"] == "accepted"
    assert json.loads(renderer(Format.GITLAB)(made, FailOn.ERROR)) == []
