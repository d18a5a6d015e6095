"""The recipes of containers, conda and Kubernetes before their own linters and parsers, with several stacks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from ideepdoctor.recipes import RECIPES
from ideepdoctor.recipes.base import Settings, find, settings_for
from ideepdoctor.recipes.render import render

HADOLINT = Path(sys.executable).with_name("hadolint")
WHEEL = "wheels/ideepdoctor-0.1.0-py3-none-any.whl"
SCRIPTS = ("docker", "docker-build", "devcontainer", "conda")
ASKED = (
    {},
    {"python": "3.6", "requirement": WHEEL},
    {"python": "2.7", "requirement": "git+https://example.org/d.git"},
    {"stack": "chainer5.4.0-ideep4py2.0.0.post3"},
    {"stack": "chainer4.0.0b4-ideep4py1.0.3", "python": "3.6"},
)
BUILT = ({}, {"python": "3.8", "requirement": WHEEL}, {"python": "3.13"}, {"python": "3.7"})


def made(name: str, **asked: str) -> tuple[Settings, dict[str, str]]:
    recipe = find(RECIPES, name)
    settings = settings_for(recipe, doctor_version="0.1.0", **asked)
    return settings, render(recipe, settings)


def cases(*names: str) -> list[tuple[str, dict[str, str]]]:
    return [(name, asked) for name in names for asked in (BUILT if name == "docker-build" else ASKED)]


def linted(program: Sequence[str], text: str) -> str:
    """What a linter says of a text on its standard input; empty: nothing."""
    done = subprocess.run(program, input=text, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr or ("" if done.returncode == 0 else f"code {done.returncode}")


@pytest.mark.parametrize(("name", "asked"), cases("docker", "docker-build", "devcontainer"))
def test_hadolint_finds_nothing_in_a_dockerfile(name: str, asked: dict[str, str]):
    _, texts = made(name, **asked)
    [text] = [text for path, text in texts.items() if path.endswith("Dockerfile")]
    assert linted([str(HADOLINT), "--no-color", "-"], text) == ""
    broken = text.replace("WORKDIR /work", "WORKDIR work") if name != "devcontainer" else text + "RUN cd /tmp\n"
    assert linted([str(HADOLINT), "--no-color", "-"], broken) != ""


@pytest.mark.parametrize(("name", "asked"), cases(*SCRIPTS))
def test_shellcheck_finds_nothing_in_a_script(name: str, asked: dict[str, str]):
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here (Debian package of that name)")
    _, texts = made(name, **asked)
    scripts = [text for path, text in texts.items() if path.endswith(".sh")]
    assert scripts
    for text in scripts:
        assert linted(["shellcheck", "--color=never", "-"], text) == ""
        assert linted(["shellcheck", "--color=never", "-"], text + "rm $1\n") != ""


@pytest.mark.parametrize(("name", "asked"), cases("docker", "docker-build", "devcontainer"))
def test_images_and_files_of_a_dockerfile_fit_what_was_asked(name: str, asked: dict[str, str]):
    settings, texts = made(name, **asked)
    [text] = [text for path, text in texts.items() if path.endswith("Dockerfile")]
    args = dict(line.removeprefix("ARG ").partition("=")[::2] for line in text.splitlines() if line.startswith("ARG "))
    images = {value for arg, value in args.items() if arg.endswith("_IMAGE")}
    debian = {"2.7": "buster", "3.6": "bullseye"}.get(settings.python, "bookworm")
    assert all(image.endswith(f"-{debian}") for image in images), "one C library for all that is copied between them"
    assert args["PYTHON_IMAGE"].startswith(f"python:{settings.python}-")
    assert args["DOCTOR_IMAGE"] == f"python:3.11{'' if settings.requirement.startswith('git+') else '-slim'}-{debian}"
    whole = "\n".join(texts.values())
    assert settings.stack.name in whole or settings.stack.chainer in whole
    if settings.requirement == WHEEL:
        assert f"COPY {WHEEL} /src/{Path(WHEEL).name}\n" in text
        assert args["IDEEPDOCTOR_REQUIREMENT"] == f'"/src/{Path(WHEEL).name}"'
    else:
        assert args["IDEEPDOCTOR_REQUIREMENT"] == f'"{settings.requirement}"'


@pytest.mark.parametrize(("name", "asked"), cases("devcontainer"))
def test_devcontainer_json_names_files_that_are_there(name: str, asked: dict[str, str]):
    settings, texts = made(name, **asked)
    data = json.loads(texts[".devcontainer/devcontainer.json"])
    assert f".devcontainer/{data['build']['dockerfile']}" in texts
    assert data["build"].get("context") == (".." if settings.local else None), "where COPY looks for the wheel"
    assert data["postCreateCommand"] in texts
    assert data["customizations"]["vscode"]["settings"]["python.defaultInterpreterPath"].startswith(
        data["containerEnv"]["IDEEPDOCTOR_PYTHON"]
    )
    assert f" {data['remoteUser']}\nUSER 1000:1000\n" in texts[".devcontainer/Dockerfile"]
    assert f"--stack {settings.stack.name}\n" in texts[data["postCreateCommand"]]


@pytest.mark.parametrize(("name", "asked"), cases("conda"))
def test_conda_files_hold_the_lock_with_its_hashes(name: str, asked: dict[str, str]):
    settings, texts = made(name, **asked)
    environment, doctor = yaml.safe_load(texts["environment.yml"]), yaml.safe_load(texts["doctor.yml"])
    assert environment["dependencies"] == [f"python={settings.python}", "pip", {"pip": ["-r requirements.txt"]}]
    assert doctor["dependencies"][-1] == {"pip": [settings.requirement]}
    assert {environment["name"], doctor["name"]} == {"ideep", "ideepdoctor"}
    assert all(isinstance(value, str) for value in environment["variables"].values())
    first, *lines = [line for line in texts["requirements.txt"].splitlines() if not line.startswith("#")]
    assert first == "--require-hashes"
    wanted = {item.name: item.line() for item in settings.lock.requirements}
    assert sorted(lines) == sorted(wanted[key] for key in wanted if key not in ("pip", "setuptools", "wheel"))
    assert all(line.count("--hash=sha256:") >= 1 for line in lines)


@pytest.mark.parametrize(("name", "asked"), cases("kubernetes"))
def test_both_containers_of_the_pod_have_the_same_limits_and_no_rights(name: str, asked: dict[str, str]):
    _, texts = made(name, **asked)
    pod = yaml.safe_load(texts["job.yaml"])["spec"]["template"]["spec"]
    [look], [program] = pod["initContainers"], pod["containers"]
    for key in ("env", "resources", "securityContext", "volumeMounts"):
        assert look[key] == program[key], "what is proved is what the program gets"
    limits = look["resources"]
    assert limits["limits"] == limits["requests"] and float(limits["limits"]["cpu"]).is_integer()
    [threads] = [item for item in look["env"] if item["name"] == "OMP_NUM_THREADS"]
    assert threads["valueFrom"]["resourceFieldRef"] == {"resource": "limits.cpu", "divisor": "1"}
    assert pod["securityContext"]["runAsNonRoot"] and look["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_kubernetes_own_schema_takes_the_job(version: str):
    validator = pytest.importorskip("kubernetes_validate", reason="PyPI's kubernetes-validate, 108 MB, is not here")
    job = yaml.safe_load(made("kubernetes")[1]["job.yaml"])
    validator.validate(job, version, strict=True)
    job["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(validator.ValidationError):
        validator.validate(job, version, strict=True)
