"""Every command in every format: a document that its readers take, with the exit code that goes with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from ideepdoctor.answering import answer
from ideepdoctor.cli import app, main
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.options import Format, Output
from ideepdoctor.render.formats import renderer
from tests.formats import READ
from tests.reports import REPORTS

MACHINES = [item for item in Format if item.for_machines]
NEEDED = {
    "lint": ("a.py",),
    "install": ("ideep4py==2.0.0.post3",),
    "wheelhouse": ("wheels",),
    "downgrade": ("--to", "chainer4-ideep4py1"),
    "diff": ("a.json", "b.json"),
    "bench compare": ("a.json",),
    "bench chart": ("a.json", "--output", "a.svg"),
    "trace": ("--output", "told", "--", "x"),
}
"""Words without which the command line is none."""
ALIKE = frozenset({"fix", "install", "downgrade", "resume"})
"""Commands whose reports are as those of others: their command lines alone are tried."""
OWN_TESTS = frozenset({"fleet merge", "fleet diagnose", "fleet setup", "env"})
"""Commands whose documents are about many machines; env's formats are those of shells."""


def commands() -> dict[str, set[str]]:
    """The commands that take --format, with all their options."""
    found = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        options = {word for param in command.params for word in param.opts}
        if "--format" in options:
            found[" ".join(words)] = options
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, (*words, name))

    walk(typer.main.get_command(app), ())
    return found


COMMANDS = commands()


def test_every_command_has_a_report_here():
    assert set(COMMANDS) - OWN_TESTS <= set(REPORTS)


@pytest.mark.parametrize("form", MACHINES)
@pytest.mark.parametrize("name", [name for name in REPORTS if name not in ALIKE])
def test_every_report_is_a_document_in_every_format(name: str, form: Format):
    report = REPORTS[name]()
    read = READ[form](renderer(form)(report, FailOn.ERROR) + "\n")
    code = summarize(report, FailOn.ERROR).exit_code
    problems = 0 if report.judgement is None else len(report.judgement.findings) + len(report.judgement.unknown)
    problems += report.failure is not None
    if form is Format.JSON:
        assert read["summary"]["exit_code"] == code
        assert read["tool"]["command"] == report.command
    elif form is Format.SARIF:
        [invocation] = read["invocations"]
        assert invocation["exitCode"] == code
        assert len(read["results"]) + len(invocation["toolExecutionNotifications"]) == problems
    elif form is Format.JUNIT:
        assert read.tests >= 1
        assert (read.failures + read.errors > 0) == (code != 0)
    elif form is Format.GITLAB:
        assert len(read) == problems
    elif form is Format.JSONL:
        assert len(read) == problems + 1
        assert read[-1]["exit_code"] == code
    elif form is Format.GITHUB:
        assert len([line for line in read if line.startswith("::")]) == problems
    elif form is Format.HTML:
        assert read.tags.count("article") == problems


def run(words: list[str], monkeypatch: pytest.MonkeyPatch, report: Report) -> int:
    """The exit code of a command line whose command makes this report."""

    def made(name: str, _command: Any, output: Output) -> None:
        assert name == report.command
        raise typer.Exit(answer(report, output, FailOn(output.fail_on)))

    monkeypatch.setattr("ideepdoctor.terminal.run", made)
    with pytest.raises(SystemExit) as ended:
        main(words)
    return int(ended.value.code or 0)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - OWN_TESTS - {"bench compare"}))
def test_every_command_line_takes_every_format_and_more_files(name: str, monkeypatch, capsysbinary, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    report = REPORTS[name]()
    own = ["--fail-on", "never"] if "--fail-on" in COMMANDS[name] else []
    code = summarize(report, FailOn("never" if own or name == "report" else "error")).exit_code
    also = [f"--also={form}:{form}" for form in Format] if "--also" in COMMANDS[name] else []
    needed = NEEDED.get(name, ())
    for form in [Format.JSONL] if also else MACHINES:
        words = [*name.split(), "--format", str(form), *own, *also, *needed]
        assert run(words, monkeypatch, report) == code
        if name == "trace":  # it writes its file itself, when the program has ended
            continue
        printed = capsysbinary.readouterr()
        assert printed.err == b""
        READ[form](printed.out.decode("utf-8"))
    if also:
        assert {path.name for path in tmp_path.iterdir()} == set(Format)
    for form in Format if also else ():
        assert READ[form]((tmp_path / form).read_text("utf-8")) is not None


def test_the_commands_that_judge_take_a_baseline():
    judging = {"setup", "diagnose", "fix", "install", "upgrade", "downgrade", "smoke", "certify", "guard", "libs"}
    for name in judging | {"lint", "tune", "build", "bench"}:
        assert {"--baseline", "--also"} <= COMMANDS[name]


def test_what_is_no_problem_is_no_result():
    [run] = json.loads(renderer(Format.SARIF)(REPORTS["cpu"](), FailOn.ERROR))["runs"]
    assert run["results"] == []
    assert json.loads(renderer(Format.GITLAB)(REPORTS["cpu"](), FailOn.ERROR)) == []


@pytest.mark.parametrize("form", [Format.MARKDOWN, Format.HTML])
@pytest.mark.parametrize("name", ["cpu", "libs", "history", "trace", "wheelhouse", "guard"])
def test_what_a_command_prints_stands_in_a_document_for_people(name: str, form: Format):
    report = REPORTS[name]()
    text = renderer(form)(report, FailOn.ERROR).replace("&gt;", ">")
    for line in report.body or report.text.splitlines():
        assert line in text


@pytest.mark.parametrize("text", ["```", "a ```` b", "| x | `y` |", "<b>&amp;"])
def test_what_is_printed_cannot_leave_its_block(text: str):
    report = Report("cpu", text=f"{text}\n")
    lines = renderer(Format.MARKDOWN)(report, FailOn.ERROR).split("\n")
    fence = lines[-1]
    assert set(fence) == {"`"} and lines[-3] == f"{fence}text"
    assert fence not in lines[-2]
    assert "<b>" not in renderer(Format.HTML)(report, FailOn.ERROR)
