"""``lint``: what it is given, what it answers, and how it ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from ideepdoctor.commands import lint_files
from ideepdoctor.commands.lint import LintOptions, lint_sources
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import UsageError
from ideepdoctor.model.report import Report
from ideepdoctor.model.summary import FailOn, summarize
from ideepdoctor.render.json import envelope
from ideepdoctor.treatment.progress import Quiet
from tests.doubles import FakeSystem

SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))
ERROR = "import chainer\nchainer.config.use_ideep = 1\n"
WARNING = "import torch\nimport chainer\n"
NOTE = "import onnx_chainer\nimport chainer\n"
CLEAN = "import chainer\nprint('x')\n"


def lint(
    folder: Path,
    *paths: str,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    baseline: str | None = None,
) -> Report:
    system = FakeSystem()
    report = lint_sources(
        Session(system, {}, str(folder), Quiet(), lambda report: False), LintOptions(paths, select, ignore, baseline)
    )
    assert system.calls == []
    jsonschema.validate(envelope(report), SCHEMA)
    return report


def refused(folder: Path, *paths: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        lint(folder, *paths)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def write(folder: Path, **texts: str | bytes) -> None:
    for name, text in texts.items():
        path = folder / f"{name}.py"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def exit_code(report: Report, fail_on: FailOn = FailOn.ERROR) -> int:
    return summarize(report, fail_on).exit_code


def read_paths(report: Report) -> list[str]:
    return [item["path"] for item in report.extra["lint"]["files"]]


def test_the_text_names_place_severity_code_and_cure(tmp_path):
    write(tmp_path, a=ERROR, b=CLEAN)
    report = lint(tmp_path, "a.py", "b.py")
    assert report.text.splitlines() == [
        "a.py:2:1: error IDP906 use_ideep is set to 1: "
        "the first function raises ValueError: invalid use_ideep configuration",
        "  do: chainer.config.use_ideep = 'auto'",
        "1 error in 2 files",
    ]


def test_the_document_has_the_place_in_evidence_and_under_its_own_key(tmp_path):
    write(tmp_path, a=ERROR)
    document = envelope(lint(tmp_path, "a.py"))
    assert document["findings"][0]["evidence"] == [
        {"text": "line 2, column 1: chainer.config.use_ideep = 1", "path": "a.py", "command": None, "line": 2}
    ]
    [row] = document["lint"]["findings"]
    assert {key: row[key] for key in ("path", "line", "column", "cell", "code", "severity")} == {
        "path": "a.py",
        "line": 2,
        "column": 1,
        "cell": None,
        "code": "IDP906",
        "severity": "error",
    }
    assert document["lint"]["files"] == [{"path": "a.py", "python": 3, "ignored": False}]
    assert row["fingerprint"] == document["findings"][0]["fingerprint"]


def test_what_a_baseline_knows_counts_no_more_and_what_is_new_does(tmp_path):
    write(tmp_path, a=ERROR)
    (tmp_path / "known.json").write_text(json.dumps(envelope(lint(tmp_path, "a.py"))))
    (tmp_path / "a.py").write_text(f"# moved down\n{ERROR}")
    again = lint(tmp_path, "a.py", baseline="known.json")
    assert exit_code(again) == 0
    assert again.text == "no fault seen in 1 file; 1 in the baseline\n"
    assert again.extra["lint"]["findings"] == []
    assert (again.extra["baseline"]["known"], again.extra["baseline"]["met"]) == (1, 1)
    (tmp_path / "a.py").write_text(ERROR + ERROR)
    assert len(lint(tmp_path, "a.py", baseline="known.json").extra["lint"]["findings"]) == 1


@pytest.mark.parametrize(
    ("text", "fail_on", "code"),
    [
        (ERROR, FailOn.ERROR, 1),
        (ERROR, FailOn.NEVER, 0),
        (WARNING, FailOn.ERROR, 0),
        (WARNING, FailOn.WARNING, 1),
        (NOTE, FailOn.WARNING, 0),
        (CLEAN, FailOn.WARNING, 0),
        (ERROR.replace("= 1", "= 1  # noqa"), FailOn.WARNING, 0),
    ],
)
def test_the_exit_code_goes_by_the_worst_finding(tmp_path, text: str, fail_on: FailOn, code: int):
    write(tmp_path, a=text)
    assert exit_code(lint(tmp_path, "a.py"), fail_on) == code


def test_a_file_that_cannot_be_read_is_unknown_and_the_others_are_linted(tmp_path):
    write(tmp_path, bad="x = (\n", good=CLEAN, wrong=ERROR)
    report = lint(tmp_path, "bad.py", "good.py")
    assert (exit_code(report), exit_code(report, FailOn.NEVER)) == (3, 0)
    assert report.judgement is not None
    assert [(item.code, item.reason) for item in report.judgement.unknown] == [
        ("IDP900", "bad.py:1:1: syntax error: '(' was never closed")
    ]
    assert "bad.py:1:1: unknown IDP900 syntax error: '(' was never closed\n" in report.text
    assert report.text.endswith("no fault seen in 1 file; 1 NOT read\n")
    assert report.extra["lint"]["unread"][0]["line"] == 1
    assert exit_code(lint(tmp_path, "bad.py", "wrong.py")) == 1
    assert exit_code(lint(tmp_path, "bad.py", "good.py", select=("902",))) == 3
    assert exit_code(lint(tmp_path, "bad.py", "good.py", ignore=("90x",))) == 3
    assert exit_code(lint(tmp_path, "bad.py", "good.py", ignore=("IDP900",))) == 0


def test_select_and_ignore(tmp_path):
    write(tmp_path, a=WARNING + ERROR)
    assert [f.code for f in lint(tmp_path, "a.py").judgement.findings] == ["IDP908", "IDP906"]
    assert [f.code for f in lint(tmp_path, "a.py", select=("906",)).judgement.findings] == ["IDP906"]
    assert [f.code for f in lint(tmp_path, "a.py", ignore=("idp906",)).judgement.findings] == ["IDP908"]
    for select, ignore in ((("IDP305",), ()), ((), ("IDP9",))):
        with pytest.raises(UsageError):
            lint(tmp_path, "a.py", select=select, ignore=ignore)


def test_bad_input_is_one_clear_line(tmp_path):
    write(tmp_path, bad="def f(:\n", binary=b"\x7fELF\0", latin=b"x = '\xe9'\n", cookie=b"# coding: klingon\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "book.ipynb").write_text("{}")
    (tmp_path / "dangling.py").symlink_to("nowhere.py")
    (tmp_path / "ring.py").symlink_to("ring.py")
    expected = {
        "none.py": "none.py: there is no such file or folder",
        "empty": "empty: is a folder without a Python file, a notebook or a file of requirements",
        "bad.py": "bad.py:1:1: syntax error: invalid syntax",
        "binary.py": "binary.py: is a binary file, not Python source",
        "latin.py": "latin.py:1:1: byte 0xe9 is not UTF-8, and no coding cookie says what it is",
        "cookie.py": "cookie.py: its coding cookie names an unknown encoding: klingon",
        "book.ipynb": "book.ipynb: is no notebook: it has no cells",
        "dangling.py": "dangling.py: there is no such file or folder",
        "ring.py": "ring.py: too many levels of symbolic links",
        "/dev/zero": "/dev/zero: is larger than 4 MB: no program that a person wrote",
        "a\0b": "a\0b: no file can have this name",
        "a/b.py/c.py": "a/b.py/c.py: there is no such file or folder",
        "bad.py/c.py": "bad.py/c.py: not a directory",
        "n" * 300: f"{'n' * 300}: file name too long",
    }
    for word, message in expected.items():
        assert refused(tmp_path, word).message == message
    error = refused(tmp_path, *expected)
    assert error.message == f"none of these {len(expected)} could be read"
    assert sorted(error.hint.splitlines()) == sorted(expected.values())
    assert refused(tmp_path, *(f"none{number}.py" for number in range(25))).hint.endswith("\nand 5 more")


def test_a_file_without_permission(tmp_path):
    write(tmp_path, secret=CLEAN)
    (tmp_path / "secret.py").chmod(0)
    if os.access(tmp_path / "secret.py", os.R_OK):
        pytest.skip("this user may read everything")
    assert refused(tmp_path, "secret.py").message == "secret.py: permission denied"


def test_a_folder_is_walked_by_name_without_what_is_not_ours(tmp_path):
    for name in (
        ".git/a.py",
        "venv/lib/a.py",
        "__pycache__/a.py",
        "lib/site-packages/a.py",
        "b/z.py",
        "b/a.py",
        "c.py",
    ):
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CLEAN)
    (tmp_path / "p" / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "p" / "data.txt").write_text("x = (")
    (tmp_path / "p" / ".hidden.py").write_text("x = (")
    assert read_paths(lint(tmp_path, "p")) == ["p/c.py", "p/b/a.py", "p/b/z.py"]
    assert read_paths(lint(tmp_path / "p", ".")) == ["c.py", "b/a.py", "b/z.py"]
    assert read_paths(lint(tmp_path / "p", "./b/", "b/a.py", "c.py")) == ["b/a.py", "b/z.py", "c.py"]
    assert read_paths(lint(tmp_path, "p/venv")) == ["p/venv/lib/a.py"]


def test_links_end_and_nothing_is_read_twice(tmp_path):
    write(tmp_path, a=ERROR)
    (tmp_path / "b.py").symlink_to("a.py")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "up").symlink_to("..")
    (tmp_path / "in" / "self").symlink_to(".")
    os.mkfifo(tmp_path / "pipe.py")
    report = lint(tmp_path, ".", "a.py", str(tmp_path / "a.py"))
    assert read_paths(report) == ["a.py"]
    assert report.extra["lint"]["unread"] == []


def test_a_name_that_is_no_utf_8_can_be_printed(tmp_path):
    name = os.fsdecode(b"caf\xe9.py")
    (tmp_path / name).write_text(ERROR)
    report = lint(tmp_path, name)
    assert report.text.startswith("caf\\xe9.py:2:1: error")


def test_standard_input(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ERROR.encode())))
    assert lint(tmp_path, "-", "-").text.startswith("<stdin>:2:1: error IDP906")
    monkeypatch.setattr("sys.stdin", None)
    assert refused(tmp_path, "-").message == "<stdin>: is closed"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b" " * (lint_files.SOURCE_LIMIT + 1))))
    assert "is larger than 4 MB" in refused(tmp_path, "-").message


def test_python_2_and_notebooks_are_told(tmp_path):
    write(tmp_path, old=f"print 'x'\n{ERROR}")
    cell = {"cell_type": "code", "source": ERROR, "metadata": {}, "outputs": []}
    broken = {"cell_type": "code", "source": "x = (", "metadata": {}, "outputs": []}
    (tmp_path / "book.ipynb").write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": [cell, broken]}))
    report = lint(tmp_path, "old.py", "book.ipynb")
    assert [line.split(": ")[0] for line in report.text.splitlines() if " error " in line] == [
        "old.py:3:1",
        "book.ipynb:cell 1:2:1",
    ]
    assert "book.ipynb:cell 2:1:1: unknown IDP900 syntax error" in report.text
    assert [item["python"] for item in report.extra["lint"]["files"]] == [2, 3]
    assert report.extra["lint"]["findings"][1]["cell"] == 1


def test_a_helper_in_the_same_folder_that_converts_is_trusted(tmp_path):
    train = (
        "import chainer, helper\nimport chainer.links as L\nmodel = L.Linear(2, 3)\n"
        "helper.prepare(model)\no = chainer.optimizers.SGD()\no.setup(model)\n"
    )
    write(tmp_path, train=train, helper="def prepare(model):\n    model.to_intel64()\n")
    assert lint(tmp_path, ".").judgement.findings == ()
    assert [f.code for f in lint(tmp_path, "train.py").judgement.findings] == ["IDP901"]


def test_what_is_silenced_is_counted(tmp_path):
    write(tmp_path, a=ERROR.replace("= 1", "= 1  # noqa: IDP906"), b="# ideepdoctor: ignore-file\n" + ERROR)
    assert lint(tmp_path, ".").text == "no fault seen in 2 files; 1 silenced by noqa; 1 file ignored by a comment\n"


def test_as_a_process(tmp_path):
    def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ideepdoctor", "lint", *words]
        return subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, timeout=60)

    write(tmp_path, a=WARNING)
    assert (run("a.py").returncode, run("a.py", "--fail-on", "warning").returncode) == (0, 1)
    done = run("-", "--format", "json", "--select", "906", text=ERROR)
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["code"] == "IDP906"
    done = run("none.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.py: there is no such file or folder" in done.stderr
    assert run().returncode == 2


def test_a_folder_is_searched_for_files_of_requirements_too(tmp_path):
    write(tmp_path, a=CLEAN)
    (tmp_path / "requirements.txt").write_text("chainer\nideep4py==2.0.0\n")
    (tmp_path / "notes.txt").write_text("ideep4py==2.0.0\n")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "base.txt").write_text("six\n")
    (tmp_path / "Dockerfile").write_text("FROM python:3.8\nRUN pip install ideep4py\n")
    report = lint(tmp_path, ".")
    assert report.extra["lint"]["files"] == [
        {"path": "Dockerfile", "python": None, "ignored": False},
        {"path": "a.py", "python": 3, "ignored": False},
        {"path": "requirements.txt", "python": None, "ignored": False},
        {"path": "requirements/base.txt", "python": None, "ignored": False},
    ]
    assert [(row["path"], row["line"], row["code"]) for row in report.extra["lint"]["findings"]] == [
        ("Dockerfile", 2, "IDP917"),
        ("requirements.txt", 2, "IDP917"),
    ]
    assert exit_code(report) == 1
    assert "requirements.txt:2:1: error IDP917 ideep4py==2.0.0 is required: no release" in report.text
    assert lint(tmp_path, "requirements").extra["lint"]["findings"] == []
    assert "NOT read" not in report.text


def test_a_file_of_requirements_may_be_named_alone(tmp_path):
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "cpu.txt").write_text("ideep4py==2.0.0\n")
    assert exit_code(lint(tmp_path, "requirements/cpu.txt")) == 1
    assert exit_code(lint(tmp_path / "requirements", "cpu.txt")) == 1
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert refused(tmp_path, "pyproject.toml").message.startswith("pyproject.toml: no TOML: ")
    report = lint(tmp_path, ".")
    assert "pyproject.toml: unknown IDP900 no TOML" in report.text
