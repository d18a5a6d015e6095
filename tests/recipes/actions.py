"""Runs the steps of a GitHub workflow's job on this machine: ``run:`` steps as scripts, composite actions of the
repository step by step, actions of others by stand-ins.

What it keeps to: a new shell for each step with GitHub's own options, the files GITHUB_ENV, GITHUB_OUTPUT, GITHUB_PATH
and GITHUB_STEP_SUMMARY, ``if:`` with an implied ``success()``, outputs, and a clean environment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.recipes.expressions import evaluate, substitute, truth

_STATUS = re.compile(r"\b(success|failure|always|cancelled)\(\)")
_SHELLS = {None: ("bash", "-e"), "bash": ("bash", "--noprofile", "--norc", "-eo", "pipefail"), "sh": ("sh", "-e")}
Inputs = Mapping[str, str]
StandIn = Callable[["Job", Inputs], Mapping[str, str]]


def load(path: Path) -> Any:
    """A YAML file as plain data (YAML 1.2: ``on`` is a word)."""
    return YAML(typ="safe", pure=True).load(path.read_text("utf-8"))


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """What a job of a CI service starts with, and how this machine reaches a package index."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "UV_", "SSL_CERT", "REQUESTS_CA")) or name.lower().endswith("_proxy")
    }
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**kept, "PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "CI": "true", **more}


@dataclass
class Done:
    """A step that was run."""

    name: str
    code: int
    output: str


@dataclass
class Job:
    """A job of a workflow in a workspace.

    Attributes:
        workspace: the checkout.
        folder: for everything else: temporary files, home, caches, artifacts.
        stand_ins: for actions of others, by their name without the ref.
        matrix: the row that this job is for.
        github: the context, beside what every job has.
    """

    workspace: Path
    folder: Path
    stand_ins: Mapping[str, StandIn]
    matrix: Mapping[str, str] = field(default_factory=dict)
    github: Mapping[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    done: list[Done] = field(default_factory=list)
    summary: str = ""
    failed: bool = False

    @property
    def log(self) -> str:
        """What all steps printed."""
        return "\n".join(f"### {step.name}: {step.code}\n{step.output}" for step in self.done)

    @property
    def annotations(self) -> list[str]:
        """The lines that GitHub shows beside the job."""
        return re.findall(r"^::(?:error|warning|notice) .*$", self.log, re.M)

    @property
    def temporary(self) -> Path:
        return self.folder / "_temp"

    def run(self, workflow: Mapping[str, Any], name: str) -> Job:
        """Run all steps of a job. Returns itself."""
        for folder in (self.temporary, self.folder / "home"):
            folder.mkdir(parents=True, exist_ok=True)
        job = workflow["jobs"][name]
        contexts: dict[str, Any] = {"matrix": self.matrix, "steps": {}}
        for source in (workflow, job):
            self.env |= {key: self.text(value, contexts) for key, value in source.get("env", {}).items()}
        for step in job["steps"]:
            self.step(step, contexts, {})
        return self

    def step(self, step: Mapping[str, Any], contexts: dict[str, Any], inputs_env: Mapping[str, str]) -> None:
        condition = str(step.get("if", "success()")).strip().removeprefix("${{").removesuffix("}}")
        implied = condition if _STATUS.search(condition) else f"success() && ({condition})"
        if not truth(evaluate(implied, self.contexts(contexts), self.functions())):
            return
        name = self.text(step.get("name") or step.get("uses") or "run", contexts)
        before = self.failed
        if "uses" in step:
            outputs, code = self.used(step, contexts, name)
        else:
            outputs, code = self.script(step, contexts, name, inputs_env)
        outcome = "success" if code == 0 else "failure"
        self.failed = before or (code != 0 and not step.get("continue-on-error", False))
        if "id" in step:
            contexts["steps"][step["id"]] = {"outputs": outputs, "outcome": outcome, "conclusion": outcome}

    def used(self, step: Mapping[str, Any], contexts: dict[str, Any], name: str) -> tuple[Mapping[str, str], int]:
        given = {key: self.text(value, contexts) for key, value in step.get("with", {}).items()}
        action = step["uses"].partition("@")[0]
        if not action.startswith("./"):
            outputs = dict(self.stand_ins[action](self, given))
            error = outputs.pop("error", "")
            self.done.append(Done(name, 1 if error else 0, f"{step['uses']} {given} -> {outputs} {error}"))
            return outputs, 1 if error else 0
        made = load(self.workspace / action / "action.yml")
        inputs = {key: given.pop(key, item.get("default", "")) for key, item in made["inputs"].items()}
        assert not given, f"{action} has no input {sorted(given)}"
        inner: dict[str, Any] = {**contexts, "inputs": inputs, "steps": {}}
        failed, self.failed = self.failed, False
        for item in made["runs"]["steps"]:
            self.step(item, inner, {})
        code, self.failed = int(self.failed), failed
        return {key: self.text(item["value"], inner) for key, item in made["outputs"].items()}, code

    def script(
        self, step: Mapping[str, Any], contexts: dict[str, Any], name: str, more: Mapping[str, str]
    ) -> tuple[Mapping[str, str], int]:
        files = {key: self.temporary / f"_{key.lower()}" for key in ("ENV", "OUTPUT", "PATH", "STEP_SUMMARY")}
        for file in files.values():
            file.write_text("")
        text = self.temporary / "step.sh"
        text.write_text(self.text(step["run"], contexts))
        own = {key: self.text(value, contexts) for key, value in step.get("env", {}).items()}
        runner = {"GITHUB_WORKSPACE": str(self.workspace), "RUNNER_TEMP": str(self.temporary), "GITHUB_ACTIONS": "true"}
        environ = clean_environment(self.folder / "home", **runner, **self.env, **own, **more)
        environ |= {f"GITHUB_{key}": str(file) for key, file in files.items()}
        environ["PATH"] = ":".join([*reversed(self.path), environ["PATH"]])
        done = subprocess.run(
            [*_SHELLS[step.get("shell")], str(text)],
            cwd=self.workspace,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        self.done.append(Done(name, done.returncode, done.stdout))
        self.env |= _assignments(files["ENV"].read_text())
        self.path += files["PATH"].read_text().split("\n")[:-1]
        self.summary += files["STEP_SUMMARY"].read_text()
        return _assignments(files["OUTPUT"].read_text()), done.returncode

    def text(self, value: Any, contexts: Mapping[str, Any]) -> str:
        word = str(value).lower() if isinstance(value, bool) else str(value)
        return substitute(word, self.contexts(contexts), self.functions())

    def contexts(self, more: Mapping[str, Any]) -> dict[str, Any]:
        runner = {"os": "Linux", "arch": "X64", "temp": str(self.temporary)}
        github = {"workspace": str(self.workspace), "workflow": "test", "ref": "refs/heads/main", **self.github}
        return {"env": self.env, "runner": runner, "github": github, **more}

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "success": lambda: not self.failed,
            "failure": lambda: self.failed,
            "always": lambda: True,
            "cancelled": lambda: False,
            "hashFiles": lambda pattern: "0" * 64 if any(self.workspace.glob(pattern)) else "",
        }


def _assignments(text: str) -> dict[str, str]:
    """NAME=VALUE a line. Raises ValueError where a line is none, as the runner does."""
    found = {}
    for line in filter(None, text.split("\n")):
        name, equals, value = line.partition("=")
        if not equals or not re.fullmatch(r"[\w-]+", name):
            raise ValueError(f"{line!r} is not NAME=VALUE")
        found[name] = value
    return found


class Store:
    """Stand-in for actions/cache: folders kept by key."""

    def __init__(self, folder: Path):
        self.folder, self.saved, self.hits = folder, [], []

    def restore(self, job: Job, given: Inputs) -> Mapping[str, str]:
        kept, hit = self.folder / given["key"], (self.folder / given["key"]).is_dir()
        self.hits.append(hit)
        for number, word in enumerate(given["path"].split("\n") if hit else ()):
            if word and (kept / str(number)).exists():
                shutil.rmtree(job.workspace / word, ignore_errors=True)
                shutil.copytree(kept / str(number), job.workspace / word, symlinks=True)
        return {"cache-hit": "true" if hit else "", "cache-primary-key": given["key"]}

    def save(self, job: Job, given: Inputs) -> Mapping[str, str]:
        self.saved.append(given["key"])
        for number, word in enumerate(given["path"].split("\n")):
            if word and (job.workspace / word).exists():
                shutil.copytree(job.workspace / word, self.folder / given["key"] / str(number), symlinks=True)
        return {}
