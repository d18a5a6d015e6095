"""What a person reads: the closing lines of a report."""

from __future__ import annotations

import io

import pytest

from ideepdoctor.model.findings import Finding, FixSafety, Judgement, Severity
from ideepdoctor.model.report import Report
from ideepdoctor.render import text

FIX = "ideepdoctor fix --python .ideep"


def finding(code: str, fix: FixSafety = FixSafety.SAFE, severity: Severity = Severity.ERROR, next_step: str = FIX):
    return Finding(code, severity, "t", "f", "n", "c", next_step, fix=fix)


def printed(*findings: Finding) -> list[str]:
    stream = io.StringIO()
    text.render(Report("smoke", judgement=Judgement(findings)), text.console(file=stream))
    return stream.getvalue().splitlines()


def test_one_command_that_cures_all_is_said_once_more():
    assert printed(finding("IDP602"), finding("IDP603"))[-2:] == ["2 errors", f"all of them are cured by: {FIX}"]


def test_the_number_of_those_that_it_cures():
    manual = finding("IDP203", FixSafety.MANUAL, Severity.WARNING, "type python -m pip")
    last = printed(finding("IDP602"), finding("IDP603"), manual)
    assert last[-2:] == ["2 errors, 1 warning", f"2 of them are cured by: {FIX}"]


@pytest.mark.parametrize(
    "findings",
    [
        (finding("IDP602"),),
        (finding("IDP602"), finding("IDP603", next_step=f"{FIX} --unsafe")),
        (finding("IDP602"), finding("IDP702", severity=Severity.INFO)),
        (finding("IDP602", FixSafety.MANUAL), finding("IDP603", FixSafety.MANUAL)),
    ],
)
def test_nothing_where_there_are_not_several_or_not_one_command(findings):
    assert "cured by" not in "\n".join(printed(*findings))


def test_the_bar_moves_within_a_step_and_never_out_of_it():
    spinner = text.Spinner()
    spinner.step(3, 8, "build")
    task = spinner._bar.tasks[0]
    seen = []
    for part in (0.0, 0.5, 7.0, -1.0):
        spinner.share(part)
        seen.append(task.completed)
    spinner.close()
    assert seen == [2.0, 2.5, 3.0, 2.0]


def test_a_note_is_one_whole_line(capsys: pytest.CaptureFixture[str]):
    spinner = text.Spinner()
    spinner.step(1, 8, "build")
    spinner.note("log: /a/" + "long/" * 40 + "path")
    spinner.close()
    assert "log: /a/" + "long/" * 40 + "path\n" in capsys.readouterr().err
