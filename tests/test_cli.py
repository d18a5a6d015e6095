"""The command line as a process: exit codes, one document on standard output, closed pipes, the README's table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.cli import app

ROOT = Path(__file__).parents[1]
SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
GROUPS = {str(info.typer_instance.info.name): info.typer_instance for info in app.registered_groups}
COMMANDS = {str(info.name or info.callback.__name__) for info in app.registered_commands if info.callback}
OF_GROUPS = [
    (group, str(info.name or info.callback.__name__))
    for group, held in GROUPS.items()
    for info in held.registered_commands
    if info.callback
]


def run(*words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "80", **variables}
    return subprocess.run(
        [sys.executable, "-m", "ideepdoctor", *words],
        capture_output=True,
        text=True,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--help",),
        *((name, "--help") for name in sorted({*COMMANDS, *GROUPS})),
        *((*words, "--help") for words in OF_GROUPS),
    ],
)
def test_help_fits_80_columns_and_names_no_unknown_command(words):
    done = run(*words, NO_COLOR="1")
    assert "Usage:" in done.stdout + done.stderr
    assert max(len(line) for line in done.stdout.splitlines() or [""]) <= 80


def test_version_is_the_packages_own():
    from ideepdoctor import __version__

    assert run("--version").stdout == f"ideepdoctor {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ("diagnose", "--no-such-option", "--format", "json"),
        ("diagnose", "--format=json", "--fail-on", "sometimes"),
        ("no-such-command", "-f", "json"),
        ("diagnose", "--python", "/no/such/python", "--format", "json"),
        ("diagnose", "--select", "IDP999", "--format", "json"),
        ("diagnose", "--facts", "/no/such/file.json", "--format", "json"),
        ("explain", "IDP999", "--format", "json"),
        ("setup", "--stack", "chainer1-ideep4py9", "--format", "json"),
        ("undo", "no-such-run", "--format", "json"),
    ],
)
def test_a_usage_error_is_one_document_with_a_hint_and_exit_code_2(words, tmp_path):
    done = run(*words, cwd=tmp_path, IDEEPDOCTOR_STATE_DIR=str(tmp_path / "state"))
    document = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA)
    assert (done.returncode, document["summary"]["exit_code"], document["error"]["code"]) == (2, 2, "usage")
    assert document["error"]["message"]
    assert document["error"]["hint"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("bnch",), "ideepdoctor"),
        (("--log-file", "x", "diagnose", "--nothing"), "ideepdoctor diagnose"),
        (("bench", "compare"), "ideepdoctor bench compare"),
        (("diagnose", "--also", "text"), "ideepdoctor diagnose"),
    ],
)
def test_a_usage_error_names_the_help_of_the_command_that_was_meant(words, command, tmp_path):
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[-1].split(maxsplit=1)[1]) == (2, f"see: {command} --help")


def test_a_usage_error_in_text_goes_to_standard_error_alone(tmp_path):
    done = run("diagnose", "--python", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "error" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly():
    done = subprocess.run(
        f"'{sys.executable}' -m ideepdoctor schema | head -c 10",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ('{\n  "$sche', "")


def test_schema_prints_the_shipped_schema():
    assert json.loads(run("schema").stdout) == SCHEMA


def test_the_readme_lists_exactly_the_commands_that_exist():
    rows = re.findall(r"^\| `ideepdoctor ([\w-]+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted({*COMMANDS, *GROUPS})


def test_every_option_has_a_variable():
    import inspect
    import typing

    for info in [*app.registered_commands, *(info for held in GROUPS.values() for info in held.registered_commands)]:
        assert info.callback is not None
        hints = typing.get_type_hints(info.callback, info.callback.__globals__, include_extras=True)
        for name in inspect.signature(info.callback).parameters:
            [declared] = hints[name].__metadata__
            if type(declared).__name__ == "OptionInfo":
                assert str(declared.envvar).startswith("IDEEPDOCTOR_"), f"{info.callback.__name__} {name}"


HOST = str(ROOT / "tests" / "hosts" / "py311-nothing.json")


def test_one_run_writes_every_format_that_is_asked_for_and_its_report_is_a_baseline(tmp_path):
    words = ["diagnose", "--facts", HOST, "--format", "json", "--also", "junit:a.xml", "--also", "text:a.txt"]
    done = run(*words, cwd=tmp_path)
    jsonschema.validate(json.loads(done.stdout), SCHEMA)
    assert done.returncode == 1
    assert "<testsuites" in (tmp_path / "a.xml").read_text("utf-8")
    assert "IDP201" in (tmp_path / "a.txt").read_text("utf-8")
    (tmp_path / "base.json").write_text(done.stdout)
    again = run("diagnose", "--facts", HOST, "--baseline", "base.json", cwd=tmp_path)
    assert (again.returncode, "IDP201" in again.stdout) == (0, False)
    assert "accepted (-v shows)" in again.stdout


def test_a_setting_accepts_a_finding_and_a_wrong_one_stops_before_anything_is_done(tmp_path):
    (tmp_path / "ideepdoctor.toml").write_text('[[ignore]]\ncode = "IDP201"\nreason = "NumPy will do"\n')
    done = run("diagnose", "--facts", HOST, "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert "IDP201" not in [item["code"] for item in document["findings"]]
    assert [item["reason"] for item in document["suppressed"] if item["code"] == "IDP201"] == ["NumPy will do"]
    (tmp_path / "ideepdoctor.toml").write_text('[[ignore]]\ncode = "IDP201"\n')
    refused = run("diagnose", "--facts", HOST, "--format", "json", cwd=tmp_path)
    assert (refused.returncode, json.loads(refused.stdout)["error"]["code"]) == (2, "usage")


@pytest.mark.parametrize("word", ["json", "yaml:x", "json:"])
def test_what_is_no_format_and_file_is_refused(word, tmp_path):
    done = run("diagnose", "--facts", HOST, "--also", word, cwd=tmp_path)
    assert (done.returncode, "FORMAT:FILE" in done.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
