"""Reading files of requirements: which ones, what each demands, on which line."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from ideepdoctor.lint.demands import read_demands, read_named
from ideepdoctor.lint.pins import Pin, Scope, kind_of, scopes
from ideepdoctor.lint.source import Unreadable


def pins(kind: str, text: str) -> list[tuple[int, str, str]]:
    """Line, name and specifier of each requirement."""
    return [(item.line, item.name, str(item.specifier)) for scope in scopes(kind, text) for item in scope.pins]


def only(kind: str, text: str) -> Scope:
    (scope,) = scopes(kind, text)
    return scope


@pytest.mark.parametrize(
    ("name", "folder", "kind"),
    [
        ("requirements.txt", "", "listed"),
        ("requirements-dev.txt", "", "listed"),
        ("dev-requirements.txt", "", "listed"),
        ("constraints.txt", "", "listed"),
        ("requirements.in", "", "listed"),
        ("base.txt", "requirements", "listed"),
        ("base.in", "Requirements", "listed"),
        ("Dockerfile", "", "docker"),
        ("Dockerfile.cpu", "", "docker"),
        ("train.dockerfile", "", "docker"),
        ("Containerfile", "", "docker"),
        ("environment.yml", "", "conda"),
        ("environment-cpu.yaml", "", "conda"),
        ("setup.cfg", "", "cfg"),
        ("pyproject.toml", "", "toml"),
        ("Pipfile", "", "pipfile"),
        ("notes.txt", "", None),
        ("base.txt", "docs", None),
        ("LICENSE.txt", "requirements.d", None),
        ("MANIFEST.in", "", None),
        ("config.h.in", "", None),
        ("Pipfile.lock", "", None),
        ("docker-compose.yml", "", None),
        ("Dockerfiles", "", None),
        ("setup.py", "", None),
        ("requirements.py", "", None),
    ],
)
def test_which_files_are_read(name: str, folder: str, kind: str | None) -> None:
    assert kind_of(name, folder) == kind


def test_requirements_of_pip() -> None:
    text = """\
# ideep4py==1.0.1
-r base.txt
--no-binary :all:
Chainer == 7.8.1  # the last one
ideep4py==2.0.0.post3 \\
    --hash=sha256:00
numpy<1.22 ; python_version < "3.8"
-e git+ssh://git@host/intel/ideep
ideep4py @ file:///wheels/ideep4py.whl
./local.whl
{{ template }}
--no-binary=a,b
--index-url
"""
    scope = only("listed", text)
    assert [(item.line, item.name, str(item.specifier), item.marked, item.url) for item in scope.pins] == [
        (4, "chainer", "==7.8.1", False, ""),
        (5, "ideep4py", "==2.0.0.post3", False, ""),
        (7, "numpy", "<1.22", True, ""),
        (8, "", "", False, "git+ssh://git@host/intel/ideep"),
        (9, "ideep4py", "", False, "file:///wheels/ideep4py.whl"),
    ]
    assert scope.not_binary == ((3, ":all:"), (12, "a"), (12, "b"))
    assert pins("listed", "chainer \\") == [(1, "chainer", "")]


def test_an_environment_of_conda() -> None:
    text = """\
name: x
channels:
  - ideep
dependencies:
  - python=3.8
  - conda-forge::numpy=1.21.*
  - "scipy>=1.2"
  - pip
  - pip:  # from the index
      - ideep4py==2.0.0
      - chainer
  - mkl=2018.0.3=1
  - cython ==0.29
variables:
  - A
"""
    scope = only("conda", text)
    assert str(scope.python) == "==3.8.*"
    assert [(item.line, item.name, str(item.specifier)) for item in scope.pins] == [
        (6, "numpy", "==1.21.*"),
        (7, "scipy", ">=1.2"),
        (8, "pip", ""),
        (10, "ideep4py", "==2.0.0"),
        (11, "chainer", ""),
        (12, "mkl", "==2018.0.3.*"),
        (13, "cython", "==0.29"),
    ]


def test_setup_cfg() -> None:
    text = """\
[metadata]
name = x
[options]
python_requires = >=3.8
setup_requires = setuptools>=74
install_requires =
    # a comment
    chainer
    ideep4py==2.0.0  # pinned
[options.extras_require]
cpu = numpy>=2
"""
    scope = only("cfg", text)
    assert scope.python == SpecifierSet(">=3.8")
    found = sorted((item.line, item.name, str(item.specifier)) for item in scope.pins)
    assert found == [
        (5, "setuptools", ">=74"),
        (8, "chainer", ""),
        (9, "ideep4py", "==2.0.0"),
        (11, "numpy", ">=2"),
    ]
    assert only("cfg", "[flake8]\nx = 1\n") == Scope()


def test_pyproject() -> None:
    text = """\
[project]
requires-python = ">=3.9"
dependencies = [
    # "ideep4py==2.0.0"
    "chainer",
    "ideep4py==2.0.0",
]
[project.optional-dependencies]
gpu = ["cupy"]
[dependency-groups]
dev = ["numpy>=2", {include-group = "x"}]
"""
    assert only("toml", text).python == SpecifierSet(">=3.9")
    assert pins("toml", text) == [
        (5, "chainer", ""),
        (6, "ideep4py", "==2.0.0"),
        (9, "cupy", ""),
        (11, "numpy", ">=2"),
    ]
    assert only("toml", "[tool.x]\ny = 1\n") == Scope()
    assert only("toml", "project = 1\n") == Scope()


def test_poetry() -> None:
    text = """\
[tool.poetry.dependencies]
python = "^3.8"
chainer = "*"
ideep4py = "2.0.0"
numpy = {version = ">=2", markers = "x"}
[tool.poetry.group.dev.dependencies]
setuptools = [{version = ">=74"}]
ideep = {git = "ssh://host/intel/ideep", branch = "master"}
"""
    scope = only("toml", text)
    assert scope.python == SpecifierSet(">=3.8")
    assert [(item.line, item.name, str(item.specifier), item.marked, item.url) for item in scope.pins] == [
        (3, "chainer", "", False, ""),
        (4, "ideep4py", "==2.0.0", False, ""),
        (5, "numpy", ">=2", True, ""),
        (7, "setuptools", ">=74", False, ""),
        (8, "ideep", "", False, "ssh://host/intel/ideep@master"),
    ]


def test_a_pipfile() -> None:
    text = '[packages]\nchainer = "*"\n[dev-packages]\nideep4py = "==2.0.0"\n[requires]\npython_version = "3.8"\n'
    assert only("pipfile", text).python == SpecifierSet("==3.8.*")
    assert pins("pipfile", text) == [(2, "chainer", ""), (4, "ideep4py", "==2.0.0")]


def test_a_dockerfile_stage_by_stage() -> None:
    text = """\
ARG VERSION=3.8
FROM --platform=linux/amd64 library/python:${VERSION}-slim AS base
RUN apt-get update && apt-get install -y libideep-dev \\
    # why
    git

RUN python -m pip install --no-cache-dir -i https://x/simple "chainer==7.8.1" \\
    && pip3 install --no-binary :all: \\
       'ideep4py==2.0.0' numpy<2
FROM base AS next
RUN ["pip", "install", "ideep4py"]
FROM debian:12
RUN --mount=type=cache,target=/x FLAG=1 pip install -r r.txt --no-binary=a,b six; git clone ssh://x/intel/ideep y
RUN echo pip && uv pip install --python /v ideep4py
RUN pip download chainer
RUN pip install 'unterminated
RUN pip install last \\"""
    first, second, third = scopes("docker", text)
    assert (str(first.python), str(second.python), third.python) == ("==3.8.*", "==3.8.*", None)
    assert [(item.line, item.name, str(item.specifier)) for item in first.pins] == [
        (7, "chainer", "==7.8.1"),
        (9, "ideep4py", "==2.0.0"),
        (9, "numpy", "<2"),
    ]
    assert first.not_binary == ((8, ":all:"),)
    assert (3, "libideep-dev") in first.system and (5, "git") in first.system
    assert [(item.line, item.name) for item in second.pins] == [(11, "ideep4py")]
    assert [(item.line, item.name) for item in third.pins] == [(13, "six"), (14, "ideep4py"), (17, "last")]
    assert third.not_binary == ((13, "a"), (13, "b"))
    assert third.cloned == ((13, "git clone ssh://x/intel/ideep y"),)


@pytest.mark.parametrize(
    ("image", "python"),
    [
        ("python:3.7", "==3.7.*"),
        ("python:3.7.17-slim-buster", "==3.7.*"),
        ("python:3.10-alpine", "==3.10.*"),
        ("host:5000/x/python:3.6", "==3.6.*"),
        ("python:2.7@sha256:0", "==2.7.*"),
        ("python:2-slim", "==2.7.*"),
        ("python", ">=3.12"),
        ("python:3", ">=3.12"),
        ("python:slim", ">=3.12"),
        ("python:$V", "None"),
        ("mypython:3.8", "None"),
        ("continuumio/miniconda3:4", "None"),
    ],
)
def test_the_python_of_an_image(image: str, python: str) -> None:
    assert str(only("docker", f"FROM {image}\n").python) == python


def test_nothing_before_the_first_stage() -> None:
    assert scopes("docker", "RUN pip install ideep4py\n# FROM x\n") == ()


@pytest.mark.parametrize(
    ("file", "data", "reason"),
    [
        ("pyproject.toml", b"[project\n", "no TOML"),
        ("setup.cfg", b"x = 1\n", "no section headers"),
        ("requirements.txt", b"a\xff\n", "is no text in UTF-8"),
        ("requirements.txt", b"a\0\n", "is a binary file"),
    ],
)
def test_what_cannot_be_read_is_said(file: str, data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        read_named(file, data)


def test_a_source_has_the_lines_and_no_program() -> None:
    source = read_demands("r.txt", "listed", b"\xef\xbb\xbfchainer\r\nsix\r\n")
    assert source.lines == ("chainer", "six", "")
    assert source.tree.body == []
    assert source.demanded == (Scope((Pin(1, "chainer", SpecifierSet()), Pin(2, "six", SpecifierSet()))),)
    assert read_named("x/requirements/base.txt", b"six\n").demanded is not None
    assert read_named("x/docs/base.py", b"six\n").demanded is None
