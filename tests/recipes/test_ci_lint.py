"""The recipes for CI services and jobs, judged by the tools of their formats; and each tool by something faulty."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner, Result

from tests.recipes.actions import load
from tests.recipes.clone import ROOT

RECIPES = ROOT / "recipes"
GITHUB = RECIPES / "github" / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
ACTION = GITHUB / "actions" / "ideepdoctor" / "action.yml"
GITLAB = RECIPES / "gitlab" / ".gitlab-ci.yml"
SCRIPTS = [
    RECIPES / "cron" / "ideep-drift",
    RECIPES / "mpi" / "ideep-mpi.sh",
    RECIPES / "slurm" / "ideep.sbatch",
    RECIPES / "systemd" / "ideep-drift-report",
    RECIPES / "systemd" / "install.sh",
]


def tool(*words: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )


def of_python(name: str) -> str:
    """A command of this Python's environment."""
    return str(Path(sys.executable).with_name(name))


def schema(name: str, *files: Path) -> Result:
    """check-jsonschema, in this process: its start takes a second."""
    more = ("--data-transform", "gitlab-ci") if name == "gitlab-ci" else ()
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{name}", *more, *map(str, files)])


@pytest.mark.parametrize(
    ("name", "files", "right", "wrong"),
    [
        ("github-workflows", WORKFLOWS, "timeout-minutes:", "timeout-minuets:"),
        ("github-actions", [ACTION], "using: composite", "using: composit"),
        ("gitlab-ci", [GITLAB], "when: always", "when: sometimes"),
    ],
)
def test_the_schema_of_the_service_accepts_it(name: str, files: list[Path], right: str, wrong: str, tmp_path: Path):
    good = schema(name, *files)
    assert good.exit_code == 0, good.output
    text = files[0].read_text()
    assert right in text
    faulty = tmp_path / files[0].name
    faulty.write_text(text.replace(right, wrong))
    assert schema(name, faulty).exit_code == 1


def test_pre_commit_accepts_the_hooks_and_the_configuration(tmp_path: Path):
    folder = RECIPES / "pre-commit"
    for command, file in (("config", ".pre-commit-config.yaml"), ("manifest", ".pre-commit-hooks.yaml")):
        done = tool(of_python("pre-commit"), f"validate-{command}", folder / file)
        assert done.returncode == 0, done.stdout
        (tmp_path / file).write_text((folder / file).read_text().replace("entry:", "entrance:"))
        assert tool(of_python("pre-commit"), f"validate-{command}", tmp_path / file).returncode == 1


def test_the_hooks_at_the_top_of_the_repository_are_those_of_the_recipe():
    assert (ROOT / ".pre-commit-hooks.yaml").read_text() == (
        RECIPES / "pre-commit" / ".pre-commit-hooks.yaml"
    ).read_text()


def steps_that_run() -> list[tuple[str, str]]:
    """Every script of the workflows, the action and the pipeline: where it is, and its text."""
    found = []
    for file in (*WORKFLOWS, ACTION):
        data = load(file)
        jobs: list[Any] = list(data["jobs"].values()) if "jobs" in data else [data["runs"]]
        found += [
            (f"{file.name}: {step['name']}", step["run"]) for job in jobs for step in job["steps"] if "run" in step
        ]
    for name, job in load(GITLAB).items():
        lines = [*job.get("before_script", ()), *job.get("script", ())] if isinstance(job, dict) else []
        found += [(f"gitlab: {name}", "\n".join(lines))] if lines else []
    return found


needs_shellcheck = pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")


@needs_shellcheck
def test_shellcheck_accepts_every_step():
    steps = steps_that_run()
    assert len(steps) >= 7
    for place, text in steps:
        done = tool("shellcheck", "--shell=bash", "-", stdin=text)
        assert done.returncode == 0, f"{place}\n{done.stdout}"
        assert "${{" not in text, f"{place}: what others may write gets into a script by variables alone"


@needs_shellcheck
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_accepts_every_script(script: Path):
    done = tool("shellcheck", script)
    assert done.returncode == 0, done.stdout
    assert tool("shellcheck", "--shell=sh", "-", stdin="cd $1").returncode == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_accepts_the_units(tmp_path: Path):
    units, bin_folder = tmp_path / "etc/systemd/system", tmp_path / "opt/ideepdoctor/bin"
    units.mkdir(parents=True)
    bin_folder.mkdir(parents=True)
    for name in ("ideepdoctor", "ideep-drift-report"):
        (bin_folder / name).write_text("#!/bin/sh\n")
        (bin_folder / name).chmod(0o755)
    for unit in ("sysinit", "basic", "shutdown", "timers"):  # what every unit refers to
        (units / f"{unit}.target").write_text(f"[Unit]\nDescription={unit}\nDefaultDependencies=no\n")
    files = [Path(shutil.copy(file, units)) for file in (RECIPES / "systemd").glob("ideep-drift*.*")]
    assert len(files) == 4
    words = ("systemd-analyze", f"--root={tmp_path}")
    assert tool(*words, "verify", *files).stdout == ""
    for file in files:
        if file.suffix == ".service":
            # 0 is closed, 10 is open.
            safe = tool(*words, "security", "--offline=true", "--threshold=15", file.name)
            assert safe.returncode == 0, safe.stdout
    check = units / "ideep-drift.service"
    check.write_text(check.read_text().replace("ProtectHome=read-only", "ProtectHome=readonly"))
    assert "readonly" in tool(*words, "verify", check).stdout


def test_a_line_of_cron_has_its_eight_parts():
    text = (RECIPES / "cron" / "ideep-drift.cron").read_text()
    [line] = [line for line in text.splitlines() if line and line[0].isdigit()]
    minute, hour, *rest = line.split()
    assert (minute, hour, rest[:3]) == ("17", "5", ["*", "*", "*"])
    assert rest[3:] == ["root", "/usr/local/sbin/ideep-drift"]
