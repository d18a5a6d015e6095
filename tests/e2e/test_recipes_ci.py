"""What the recipes for CI services render, executed: the scripts of their jobs, with a clean environment, on real
environments. What only the services have (their caches, artifacts, Pythons) stands in.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from ideepdoctor import __version__
from ideepdoctor.recipes import github
from ideepdoctor.recipes.base import Recipe, settings_for
from ideepdoctor.recipes.render import render
from tests.conftest import legacy_python
from tests.recipes.actions import Inputs, Job, Store, load
from tests.recipes.clone import wheel_of_this_clone

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FAULTY = "import chainer\nchainer.config.use_ideep = 'yes'\n"
"""A program that `lint` finds an error in: IDP906."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of_this_clone(tmp_path_factory.mktemp("wheel"))


def written(recipe: Recipe, folder: Path, requirement: str) -> Path:
    """A project that a recipe was written to, with a program."""
    settings = settings_for(recipe, doctor_version=__version__, requirement=requirement)
    for path, text in render(recipe, settings).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (folder / "train.py").write_text("import chainer\n\nprint(chainer.__version__)\n")
    return folder


class Hosted:
    """A hosted runner's part of a job: Pythons, the cache, artifacts, code scanning."""

    def __init__(self, folder: Path):
        self.store, self.artifacts, self.scanned = Store(folder / "cache"), folder / "artifacts", []

    def job(self, project: Path, folder: Path, **more: Mapping[str, str]) -> Job:
        stand_ins = {
            "actions/checkout": lambda job, given: {},
            "actions/setup-python": self.python,
            "actions/cache/restore": self.store.restore,
            "actions/cache/save": self.store.save,
            "actions/upload-artifact": self.upload,
            "github/codeql-action/upload-sarif": self.scan,
        }
        return Job(project, folder, stand_ins, **more)

    def python(self, job: Job, given: Inputs) -> Mapping[str, str]:
        assert given["update-environment"] == "false"
        return {"python-path": legacy_python(given["python-version"])}

    def upload(self, job: Job, given: Inputs) -> Mapping[str, str]:
        shutil.rmtree(self.artifacts, ignore_errors=True)
        if (job.workspace / given["path"]).exists():
            shutil.copytree(job.workspace / given["path"], self.artifacts)
        return {}

    def scan(self, job: Job, given: Inputs) -> Mapping[str, str]:
        document = json.loads((job.workspace / given["sarif_file"]).read_text())
        for run in document["runs"]:
            for result in run["results"]:
                # What code scanning refuses: a finding that is in no file of the repository.
                place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                assert (job.workspace / place).is_file(), place
                self.scanned.append(result["ruleId"])
        return {}


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Hosted:
    return Hosted(tmp_path_factory.mktemp("hosted"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    return written(github.RECIPE, tmp_path_factory.mktemp("checkout"), str(wheel))


def workflow(project: Path, name: str = "ideep") -> Mapping[str, object]:
    return load(project / ".github" / "workflows" / f"{name}.yml")


def test_github_a_green_job_and_the_next_one_from_the_cache(hosted: Hosted, project: Path, tmp_path: Path):
    first = hosted.job(project, tmp_path / "1").run(workflow(project), "ideep")
    assert not first.failed, first.log
    assert "iDeep: healthy" in first.log and "Chainer: 7.8.1" in first.log and not first.annotations
    assert "**READY: " in first.summary and "38 of 38 checks" in first.summary
    assert {path.name for path in hosted.artifacts.iterdir()} == {
        *("ideep.json", "ideep.sarif", "ideep-junit.xml", "lint.sarif", "lint-junit.xml")
    }
    assert first.env["CHAINER_USE_IDEEP"] == "auto" and first.path == [str(project / ".ideep" / "bin")]

    shutil.rmtree(project / ".ideep")
    shutil.rmtree(tmp_path / "1")  # the next runner is a new machine
    second = hosted.job(project, tmp_path / "1").run(workflow(project), "ideep")
    assert not second.failed, second.log
    assert hosted.store.hits == [False, True] and len(hosted.store.saved) == 1
    assert "**READY: " in second.summary  # proved again
