"""Distributions from lines of their metadata."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.packages import parse_metadata, parse_requires_txt, read_duplicates, read_packages
from ideepdoctor.model.facts import AlteredFile, Package

PROTOBUF = "Name: typing_extensions\nVersion: 4.7.1\nRequires-Dist: six >=1.9.0\nRequires-Dist: mock ; extra == 'test'"


def test_metadata() -> None:
    assert parse_metadata(PROTOBUF, None, "/site") == Package(
        "typing-extensions", "4.7.1", "/site", ("six >=1.9.0", "mock ; extra == 'test'")
    )
    assert parse_metadata("Version: 1", None, "/site") is None
    assert parse_metadata("Name: a", "six\n", "/site") == Package("a", "", "/site", ("six",))


def test_requires_txt() -> None:
    text = "six>=1.9\n\n[:python_version < '3']\nenum34\n\n[test]\nmock\n[test:sys_platform == 'win32']\ncolorama\n"
    assert parse_requires_txt(text) == (
        "six>=1.9",
        "enum34; (python_version < '3')",
        'mock; extra == "test"',
        "colorama; (sys_platform == 'win32') and extra == \"test\"",
    )


def test_packages_of_an_answer() -> None:
    found = [
        {"metadata": "Name: ideep4py\nVersion: 2.0.0.post3", "location": "/site"},
        {"metadata": "nothing", "location": "/site"},
        {"metadata": "Name: numpy\nVersion: 1.21.6", "location": "/site"},
    ]
    rows = [["/site/b", "size", "2 bytes", "0 bytes"], ["/site/a", "missing", "1 bytes", "no such file"]]
    integrity = {"distribution": "ideep4py", "by": "size", "altered": rows}
    packages = read_packages(Answer({"distributions": found, "integrity": integrity}))
    assert packages is not None
    assert [(package.name, package.integrity) for package in packages] == [("ideep4py", "size"), ("numpy", None)]
    assert packages[0].altered[0] == AlteredFile("/site/a", "missing", "1 bytes", "no such file")
    assert read_packages(Answer({})) is None
    with pytest.raises(CouldNotCheck, match="rows"):
        read_packages(Answer({"distributions": found, "integrity": {**integrity, "altered": [["/site/b"]]}}))


@given(st.text())
def test_arbitrary_text(text: str) -> None:
    package = parse_metadata("Name: x\n" + text, text, "/")
    assert package is not None and package.name == "x"


def installed(name: str, version: str, **more: object) -> dict[str, object]:
    return {"metadata": f"Name: {name}\nVersion: {version}", "location": "/site", "info": "/site/x", **more}


def test_tags_and_installers() -> None:
    tags = ["cp37-cp37m-manylinux1_x86_64"]
    found = [installed("ideep4py", "2", tags=tags, installer="pip"), installed("six", "1", tags=None, installer=None)]
    first, second = read_packages(Answer({"distributions": found})) or ()
    assert (first.tags, first.installer) == (("cp37-cp37m-manylinux1_x86_64",), "pip")
    assert (second.tags, second.installer) == (None, None)


def test_further_distributions() -> None:
    again = [installed("NumPy", "1.16.6", installer="conda"), {"metadata": "nothing", "location": "/site"}]
    answer = Answer({"distributions": [installed("numpy", "1.21.6")], "further_distributions": again})
    assert read_duplicates(answer) == (Package("numpy", "1.16.6", "/site", installer="conda"),)
    assert read_duplicates(Answer({"distributions": None})) == ()


@pytest.mark.parametrize(
    ("version", "installer", "listed", "doubled"),
    [
        ("1.21.5", "conda", "1.21.5", False),
        ("1.21.5", None, "1.21.5", False),
        ("1.21.5", "pip", "1.21.5", True),
        ("1.21.6", "pip", "1.21.5", True),
        ("1.21.6", None, "1.21.5", True),
    ],
)
def test_what_conda_lists_and_pip_has_replaced(version: str, installer: str | None, listed: str, doubled: bool) -> None:
    answer = Answer(
        {
            "distributions": [installed("numpy", version, installer=installer)],
            "conda_packages": [["numpy", listed], ["chainer", "7"]],
            "python": {"prefix": "/opt/conda"},
        }
    )
    expected = (Package("numpy", listed, "/opt/conda/conda-meta", installer="conda"),) if doubled else ()
    assert read_duplicates(answer) == expected
