"""The recipe ``conda``, carried out with a stand-in of conda: real pip, real packages, the real doctor."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import legacy_python
from tests.e2e.environments import doctor
from tests.e2e.test_recipes_containers import written
from tests.recipes.clone import wheel_of_this_clone

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


class Site:
    """A folder with the recipe and a program ``conda``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        written("conda", folder / "recipe", wheel_of_this_clone(folder / "wheel"))
        # For 3.12 the Python of these tests will do: the doctor runs on it.
        pythons = json.dumps({"3.7": legacy_python("3.7"), "3.12": sys.executable})
        script = Path(__file__).with_name("standin_conda.py")
        words = [sys.executable, str(script), str(folder / "conda"), pythons]
        self.conda = folder / "bin" / "conda"
        self.conda.parent.mkdir()
        self.conda.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        self.conda.chmod(0o755)

    def create(self) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        env = {**kept, "CONDA": str(self.conda), "IDEEPDOCTOR_STATE_DIR": str(self.folder / "state")}
        return subprocess.run(
            [str(self.folder / "recipe" / "create.sh")], env=env, capture_output=True, text=True, timeout=600
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("conda"))


def test_the_script_makes_both_environments_and_proves_the_first(site: Site):
    done = site.create()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "used     yes" in done.stdout
    prefix = site.folder / "conda" / "envs" / "ideep"
    answer = doctor("diagnose", "--python", str(prefix), "--format", "json", unset=("VIRTUAL_ENV",))
    assert (answer.code, answer.codes("error", "warning")) == (0, []), answer.stdout
    assert answer.document["target"]["packages"]["chainer"] == "7.8.1"
    assert not list((site.folder / "recipe").glob("condaenv.*"))


def test_a_second_run_changes_nothing_and_proves_again(site: Site):
    done = site.create()
    assert done.returncode == 0 and "used     yes" in done.stdout, done.stdout + done.stderr


def test_a_file_that_is_not_the_one_of_the_lock_is_refused(site: Site):
    requirements = site.folder / "recipe" / "requirements.txt"
    text = requirements.read_text()
    try:
        requirements.write_text(text.replace("six==1.17.0", "six==1.16.0"))
        done = site.create()
        assert done.returncode != 0 and "HASHES" in done.stderr
    finally:
        requirements.write_text(text)
