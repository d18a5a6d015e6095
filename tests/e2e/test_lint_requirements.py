"""lint on a folder as a user has it: programs, requirements, a Dockerfile; as text, JSON and SARIF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.environments import doctor

pytestmark = pytest.mark.e2e


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import chainer\nimport numpy as np\nx = np.zeros(3, np.float)\n")
    (tmp_path / "requirements.txt").write_text("chainer==7.8.1\nideep4py==2.0.0\n")
    (tmp_path / "Dockerfile").write_text("FROM python:3.8-slim\nRUN pip install \\\n    ideep4py\n")
    (tmp_path / "README.txt").write_text("ideep4py==2.0.0\n")
    return tmp_path


def test_a_folder_in_all_its_files(project: Path) -> None:
    answer = doctor("lint", ".", "--format", "json", cwd=project)
    rows = answer.document["lint"]["findings"]
    assert [(row["path"], row["line"], row["code"], row["severity"]) for row in rows] == [
        ("Dockerfile", 3, "IDP917", "error"),
        ("requirements.txt", 2, "IDP917", "error"),
        ("train.py", 3, "IDP918", "info"),
    ]
    assert answer.code == 1


def test_a_place_in_sarif_is_a_line_of_the_file(project: Path) -> None:
    answer = doctor("lint", "requirements.txt", "--format", "sarif", cwd=project)
    [result] = json.loads(answer.stdout)["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("requirements.txt")
    assert (place["region"]["startLine"], result["ruleId"]) == (2, "IDP917")


def test_what_it_advises_is_clean(project: Path) -> None:
    (project / "requirements.txt").write_text("chainer==7.8.1\nideep4py==2.0.0.post3\n")
    (project / "Dockerfile").write_text("FROM python:3.7-slim\nRUN pip install -r requirements.txt\n")
    (project / "train.py").write_text("import chainer\nimport numpy as np\nx = np.zeros(3, float)\n")
    answer = doctor("lint", ".", cwd=project)
    assert (answer.code, answer.stdout) == (0, "no fault seen in 3 files\n")
