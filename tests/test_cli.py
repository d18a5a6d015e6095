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
    rows = re.findall(r"^\| `ideepdoctor (\w+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
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
