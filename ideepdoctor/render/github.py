"""GitHub Actions: annotations as workflow commands, and the step summary."""

from __future__ import annotations

from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.render.problems import Level, Problem, file_of, problems, subject

_COMMANDS = {
    Level.FAILED: "error",
    Level.ERROR: "error",
    Level.UNKNOWN: "warning",
    Level.WARNING: "warning",
    Level.INFO: "notice",
}


def render(report: Report, fail_on: FailOn = FailOn.ERROR) -> str:
    """A workflow command a line; one plain line where there is nothing to say. ``fail_on`` changes nothing here."""
    lines = [_command(item, file_of(item, report)) for item in problems(report)]
    return "\n".join(lines or [f"no fault seen: {_one_line(subject(report))}"])


def _command(item: Problem, file: tuple[str, bool] | None) -> str:
    options = {"title": f"{item.code} {item.title}".strip()}
    if file is not None:
        options["file"] = file[0]
        if item.line is not None:
            options["line"] = str(item.line)
            if item.column is not None:
                options["col"] = str(item.column)
    told = ",".join(f"{name}={_property(value)}" for name, value in sorted(options.items()))
    text = f"{item.message}\nNext: {item.do}" if item.do else item.message
    return f"::{_COMMANDS[item.level]} {told}::{_data(text)}"


def _data(text: str) -> str:
    """Escaped as the message of a workflow command must be, so that a text cannot start another one."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _one_line(text: str) -> str:
    return " ".join(text.split())
