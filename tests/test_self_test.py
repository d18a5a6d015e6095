"""``self-test`` on whole and on broken copies of the package, installed as pip installs it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.model.own import Own, Trouble
from ideepdoctor.selftest.judge import SELF_CHECKS, judge
from ideepdoctor.wheelhouse.doctor import own_wheel

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
WHOLE = Own(
    folder="/site/ideepdoctor",
    listed=400,
    modules=300,
    payloads=30,
    compiled_by=("2.7.18", "3.7.16"),
    examples=500,
    pythons=("2.7.18", "3.7.16"),
    uv="0.9.0",
)


@pytest.fixture(scope="module")
def wheel() -> bytes:
    return own_wheel()[1]


@pytest.fixture
def site(tmp_path: Path, wheel: bytes) -> Path:
    """The package and its RECORD, unpacked."""
    folder = tmp_path / "site"
    zipfile.ZipFile(io.BytesIO(wheel)).extractall(folder)
    return folder


def run(site: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The doctor of a folder, on a machine with two Pythons: its own, and a Python 3.7 that is none."""
    home = site.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("IDEEPDOCTOR_", "PYENV", "XDG"))}
    env = {
        **kept,
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "PATH": str(Path(sys.executable).parent),
        "COLUMNS": "200",
        **more,
    }
    return subprocess.run(
        [sys.executable, "-m", "ideepdoctor", *words],
        capture_output=True,
        text=True,
        env=env,
        cwd=home,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


def report(done: subprocess.CompletedProcess[str]) -> dict:
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def test_a_whole_installation_has_no_fault_and_nothing_is_left_behind(site: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    done = run(site, "self-test", "--format", "json")
    told = report(done)
    own = told["self_test"]
    assert (done.returncode, told["unknown"], own["folder"]) == (0, [], str(site / "ideepdoctor"))
    assert {item["code"] for item in told["findings"]} <= {"IDP099"}
    assert own["listed"] > 400 and own["modules"] > 300 and own["examples"] > 500 and own["payloads"] > 30
    assert own["compiled_by"] and own["uv"]
    assert own["seconds"] < 10
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == before
    left = [path.relative_to(site.parent / "home").as_posix() for path in (site.parent / "home").rglob("*")]
    assert [path for path in left if "interpreters-" not in path and path not in (".cache", ".cache/ideepdoctor")] == []


def test_each_fault_of_a_broken_installation_is_named(site: Path) -> None:
    package = site / "ideepdoctor"
    (package / "commands" / "cpu.py").unlink()
    (package / "payload" / "smoke.py").write_text("def cut(\n")
    stack = next((package / "stacks").glob("chainer7*.toml"))
    stack.write_bytes(stack.read_bytes()[:300])
    rule = package / "rules" / "idp101.py"
    rule.write_text(rule.read_text().replace("not in SYSTEMS", "in SYSTEMS"))
    done = run(site, "self-test", "--format", "json")
    told = report(done)
    assert done.returncode == 1
    found = {(item["code"], item["found"].split(":")[0]) for item in told["findings"] if item["severity"] == "error"}
    assert {
        ("IDP091", "ideepdoctor/commands/cpu.py is missing"),
        ("IDP091", "ideepdoctor/payload/smoke.py was altered"),
        ("IDP091", f"ideepdoctor/stacks/{stack.name} was altered"),
        ("IDP091", "ideepdoctor/rules/idp101.py was altered"),
        ("IDP095", "IDP101, ARM server (Graviton, Raspberry Pi)"),
        ("IDP096", f"stacks/{stack.name}"),
    } <= found
    version = ".".join(str(part) for part in sys.version_info[:3])
    assert ("IDP094", f"smoke.py in Python {version}") in found
    assert {code for code, _ in found} == {"IDP091", "IDP094", "IDP095", "IDP096"}


@pytest.mark.slow
def test_a_module_that_others_need_is_named_where_it_is_missing(site: Path) -> None:
    (site / "ideepdoctor" / "proof" / "noise.py").unlink()
    done = run(site, "self-test")
    assert done.returncode == 1
    assert "IDP092" in done.stdout and "No module named 'ideepdoctor.proof.noise'" in done.stdout
    assert "ideepdoctor/proof/noise.py is missing" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_command_that_meets_a_broken_file_names_it(site: Path) -> None:
    """Also where the broken file keeps self-test itself from working."""
    (site / "ideepdoctor" / "rules" / "compat.py").unlink()
    for words in (("self-test",), ("explain", "IDP305")):
        done = run(site, *words, "--format", "json")
        told = report(done)
        assert (done.returncode, told["error"]["code"]) == (3, "broken-installation")
        assert "No module named 'ideepdoctor.rules.compat'" in told["error"]["message"]
        assert "ideepdoctor/rules/compat.py is missing" in told["error"]["hint"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cli_bench.py", None, "missing  ideepdoctor/cli_bench.py"),
        ("errors.py", "def cut(\n", "altered  ideepdoctor/errors.py"),
        ("selftest/record.py", None, "could not be compared"),
    ],
)
def test_a_command_line_that_cannot_be_imported_is_one_clear_error(site: Path, name: str, text, said: str) -> None:
    path = site / "ideepdoctor" / name
    path.unlink()
    if text is not None:
        path.write_text(text)
    if name.startswith("selftest"):
        (site / "ideepdoctor" / "cli_options.py").unlink()
    done = run(site, "self-test")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error  this installation of ideepdoctor is broken: ")
    assert said in done.stderr and "pip install --force-reinstall ideepdoctor" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in run(site, "self-test", "-v").stderr


@pytest.mark.slow
def test_folders_that_cannot_be_written_are_named(site: Path) -> None:
    done = run(site, "self-test", IDEEPDOCTOR_STATE_DIR="/proc/none", IDEEPDOCTOR_CACHE_DIR="/proc/none")
    assert done.returncode == 1
    assert done.stdout.count("IDP097  The doctor's own folders cannot be used") == 2


FAULTS = {
    "IDP091": replace(WHOLE, missing=("ideepdoctor/a.py",), altered=("ideepdoctor/b.py",)),
    "IDP092": replace(WHOLE, imports=(Trouble("ideepdoctor.a", "ImportError: no", "/site/ideepdoctor/a.py"),)),
    "IDP093": replace(WHOLE, libraries=(("jinja2", ">=3.1", None), ("rich", ">=13", "12.0"))),
    "IDP094": replace(WHOLE, payload_errors=(Trouble("probe.py in Python 2.7.18", "invalid syntax"),)),
    "IDP095": replace(WHOLE, example_errors=(Trouble("IDP101, ARM server", "gives nothing instead of IDP101"),)),
    "IDP096": replace(WHOLE, data_errors=(Trouble("stacks/a.toml", "TOMLDecodeError: no"),)),
    "IDP097": replace(WHOLE, folders=(Trouble("the lock", "a second doctor is not kept out", "/state"),)),
    "IDP098": replace(WHOLE, uv=None, uv_error="uv is missing"),
    "IDP099": replace(WHOLE, pythons=("3.11.2",)),
}


@pytest.mark.parametrize("code", list(FAULTS))
def test_each_check_sees_its_own_fault_and_no_other(code: str) -> None:
    assert judge(WHOLE).findings == ()
    judgement = judge(FAULTS[code])
    assert {finding.code for finding in judgement.findings} == {code}
    assert set(judgement.ok) == {check.code() for check in SELF_CHECKS} - {code}
    for finding in judgement.findings:
        assert all((finding.found, finding.needed, finding.consequence, finding.next_step))


def test_examples_that_could_not_be_tried_are_unknown() -> None:
    judgement = judge(replace(WHOLE, examples=None))
    assert [item.code for item in judgement.unknown] == ["IDP095"]


def test_the_schema_has_every_field() -> None:
    assert set(SCHEMA["properties"]["self_test"]["required"]) == {item.name for item in fields(Own)}
