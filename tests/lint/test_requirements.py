"""IDP917: which requirements are told, for which reason, and which are left alone."""

from __future__ import annotations

import pytest

from ideepdoctor.lint.idp917 import IDP917
from tests.lint.sources import found


def told(text: str, file: str = "requirements.txt") -> list[tuple[int, str, str]]:
    """Line, severity and consequence of each finding."""
    seen = found(text, file)
    assert {item.finding.code for item in seen} <= {"IDP917"}
    return [(item.place.line, str(item.finding.severity), item.finding.consequence) for item in seen]


NONE = "no release on the index meets it: pip finds no matching distribution"


@pytest.mark.parametrize(
    "demand", ["==2.0.0", "==2.0.0.post1", "==2.0.0.post2", ">=2.1", ">2.0.0", "~=2.1", "===2.0", "==2.0.0.dev1", "<1"]
)
def test_releases_that_are_not_there(demand: str) -> None:
    assert told(f"ideep4py{demand}\n") == [(1, "error", NONE)]


@pytest.mark.parametrize(
    "demand",
    ["", "==2.0.0.post3", ">=2.0.0", "~=2.0.0.post1", "==2.*", "<3", "==2.0.0.post3+doctor.v3", "==2.0.0b1.post1"],
)
def test_releases_that_are_there(demand: str) -> None:
    assert told(f"ideep4py{demand}\n") == []


@pytest.mark.parametrize("version", ["1.0.1", "1.0.2", "2.0.0b1"])
def test_releases_that_never_work(version: str) -> None:
    [(line, severity, consequence)] = told(f"six\nideep4py=={version}\n")
    assert (line, severity) == (2, "error")
    assert consequence.startswith("it needs libglog" if version < "2" else "its wheel lacks")


def test_a_build_of_somebody_else_is_not_on_the_index() -> None:
    assert told("ideep4py==2.0.0.post3+mine\n") == [(1, "error", NONE)]


@pytest.mark.parametrize(
    ("image", "wrong"),
    [("3.8", True), ("3.11", True), ("3", True), ("3.7", False), ("3.6", False), ("3.5", False), ("2.7", False)],
)
def test_wheels_for_the_python_of_an_image(image: str, wrong: bool) -> None:
    seen = told(f"FROM python:{image}\nRUN pip install ideep4py\n", "Dockerfile")
    assert [line for line, _, _ in seen] == ([2] if wrong else [])


def test_a_release_without_a_wheel_for_this_python() -> None:
    text = "FROM python:3.7\nRUN pip install ideep4py==1.0.4\n"
    assert "no wheel of it" in told(text, "Dockerfile")[0][2]
    assert told(text.replace("3.7", "3.6"), "Dockerfile") == []
    assert told("FROM debian:12\nRUN pip install ideep4py==1.0.4\n", "Dockerfile") == []


def test_python_of_a_project() -> None:
    text = '[project]\nrequires-python = "{}"\ndependencies = ["ideep4py{}"]\n'
    assert [row[0] for row in told(text.format(">=3.8", ""), "pyproject.toml")] == [3]
    assert told(text.format(">=3.7.2", ""), "pyproject.toml") == []
    assert told(text.format(">=3.8", " ; python_version < '3.8'"), "pyproject.toml") == []


@pytest.mark.parametrize(
    ("chainer", "ideep4py", "severity"),
    [
        ("", "", None),
        ("==7.8.1", "==2.0.0.post3", None),
        ("==4.5.0", "==1.0.4", None),
        ("==4.2.0", "==2.0.0.post3", "error"),
        ("<5", "", "error"),
        ("==7.8.1", "==1.0.4", "warning"),
        ("", "<2", "warning"),
        (">=5,<6", "==1.0.4", "warning"),
        ("==3.0.0", "==1.0.4", "warning"),
        (">=4.1,<4.3", "", None),
    ],
)
def test_pairs(chainer: str, ideep4py: str, severity: str | None) -> None:
    seen = told(f"chainer{chainer}\nideep4py{ideep4py}\n")
    assert [(line, how) for line, how, _ in seen] == ([] if severity is None else [(2, severity)])
    if severity:
        assert ("wrong" in seen[0][2]) == (severity == "error")


def test_a_pair_names_the_release_that_is_right() -> None:
    [item] = found("chainer==4.5.0\nideep4py\n", "requirements.txt")
    assert item.finding.next_step == "write ideep4py==1.0.4"
    assert item.finding.found == "ideep4py 2.0.0.post3 comes with Chainer 4.5.0"


def test_a_pair_from_elsewhere_is_not_judged() -> None:
    assert told("chainer==4.5.0\nideep4py @ file:///w.whl\n") == []
    assert told("chainer @ file:///c.whl\nideep4py==1.0.4\n") == []


def test_a_beta_is_chosen_only_where_it_is_asked_for() -> None:
    assert [row[1] for row in told("chainer==7.8.1\nideep4py==2.0.0b1.post1\n")] == ["warning"]
    assert told("chainer==4.5.0\nideep4py<2.0.0\n") == []  # 1.0.4, and not the newer beta


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("--no-binary ideep4py\nideep4py\n", [1]),
        ("--no-binary :all:\nideep4py\n", [1]),
        ("--no-binary :all:\nchainer\n", []),
        ("--no-binary numpy\nideep4py\n", []),
        ("--no-binary ideep4py\nnumpy # of chainer\n", []),
        ("--no-binary=numpy,ideep4py\nchainer\n", [1]),
    ],
)
def test_from_source(text: str, lines: list[int]) -> None:
    assert [row[0] for row in told(text)] == lines


@pytest.mark.parametrize(
    ("text", "file", "lines"),
    [
        ("chainer\nideep\n", "requirements.txt", [2]),
        ("dependencies:\n  - ideep\n", "environment.yml", [2]),
        ("FROM debian:12\nRUN apt-get install -y \\\n  libideep-dev\n", "Dockerfile", [3]),
        ("git+https://host/intel/ideep.git#egg=ideep4py\n", "requirements.txt", [1]),
        ("git+https://host/intel/ideep@master\n", "requirements.txt", [1]),
        ("-e git+ssh://git@host/intel/ideep\n", "requirements.txt", [1]),
        ("git+ssh://git@host:intel/ideep.git\n", "requirements.txt", [1]),
        ("ideep4py @ git+https://host/intel/ideep\n", "requirements.txt", [1]),
        ("git+https://host/intel/ideep@v2.0.0#subdirectory=python\n", "requirements.txt", []),
        ("git+https://host/intel/ideep@v1.0.4\n", "requirements.txt", []),
        ("git+https://host/other/ideep\n", "requirements.txt", []),
        ("git+https://host/intel/ideep-tools\n", "requirements.txt", []),
        ("FROM a\nRUN git clone https://host/intel/ideep\n", "Dockerfile", [2]),
        ("FROM a\nRUN git clone -b v2.0.0 https://host/intel/ideep\n", "Dockerfile", []),
    ],
)
def test_other_things_of_that_name(text: str, file: str, lines: list[int]) -> None:
    assert [row[0] for row in told(text, file)] == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("chainer\nnumpy>=2\n", [2]),
        ("chainer\nnumpy==2.0.1\n", [2]),
        ("chainer\nnumpy~=2.0\n", [2]),
        ("chainer\nnumpy>=1.22\n", []),
        ("chainer\nnumpy>=2 ; python_version > '3.8'\n", []),
        ("ideep4py\nnumpy>=1.22\n", [2]),
        ("ideep4py\nnumpy==1.21.6\n", []),
        ("ideep4py\nnumpy>=1.16\n", []),
        ("ideep4py\nnumpy==1.12.0\n", [2]),
        ("ideep4py\nnumpy<1.13\n", []),
        ("ideep4py==2.0.0.post3+doctor\nnumpy==1.26.4\n", []),
        ("ideep4py @ file:///w.whl\nnumpy==1.26.4\n", []),
        ("ideep4py ; python_version < '3.8'\nnumpy==1.26.4\n", []),
        ("# chainer\nnumpy>=2\n", []),
    ],
)
def test_numpy(text: str, lines: list[int]) -> None:
    assert [row[0] for row in told(text)] == lines


@pytest.mark.parametrize(
    ("image", "demand", "wrong"),
    [
        ("3.10", "setuptools>=74", True),
        ("3.11", "setuptools==80.9.0", True),
        ("3.11", "'setuptools<74'", False),
        ("3.11", "setuptools", False),
        ("3.11", "setuptools>=73", False),
        ("3.9", "setuptools>=74", False),
        ("3.7", "setuptools>=74", False),
    ],
)
def test_setuptools(image: str, demand: str, wrong: bool) -> None:
    text = f"FROM python:{image}\nRUN pip install chainer \\\n {demand}\n"
    assert [row[0] for row in told(text, "Dockerfile")] == ([3] if wrong else [])
    assert told(text.replace("chainer", "chainercv"), "Dockerfile") == []


def test_setuptools_where_the_python_is_open() -> None:
    text = '[project]\n{}\ndependencies = ["chainer", "setuptools>=74{}"]\n'
    assert told(text.format("", ""), "pyproject.toml") == []
    assert told(text.format('requires-python = ">=3.7"', ""), "pyproject.toml") == []
    assert [row[0] for row in told(text.format('requires-python = ">=3.10"', ""), "pyproject.toml")] == [3]
    assert told(text.format('requires-python = ">=3.10"', " ; os_name == 'nt'"), "pyproject.toml") == []


def test_stages_are_environments_of_their_own() -> None:
    text = "FROM python:3.7 AS a\nRUN pip install chainer==4.5.0\nFROM python:3.7\nRUN pip install ideep4py\n"
    assert told(text, "Dockerfile") == []


def test_one_finding_for_a_line() -> None:
    assert told("FROM python:3.8\nRUN pip install ideep4py==2.0.0 'numpy>=2'\n", "Dockerfile") == [(2, "error", NONE)]


def test_silence_and_programs() -> None:
    assert found("ideep4py==2.0.0  # noqa: IDP917\n", "requirements.txt") == ()
    assert found("# ideepdoctor: ignore-file\nideep4py==2.0.0\n", "requirements.txt") == ()
    assert found("import chainer\nideep4py = 2\n") == ()
    assert IDP917.severity == "error"
