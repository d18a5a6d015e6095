"""Where reports go: files whole or not at all, errors of one line, the exit code that is left."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest
import typer

from ideepdoctor.answering import answer
from ideepdoctor.cli_options import also_of
from ideepdoctor.model.findings import Judgement
from ideepdoctor.model.report import Failure, Report
from ideepdoctor.model.summary import FailOn
from ideepdoctor.options import Format, Output
from tests.formats import READ
from tests.reports import FINDINGS, REPORTS, many

HEALTHY = Report("diagnose", judgement=Judgement(ok=("IDP101",)))
FOUND = Report("diagnose", judgement=Judgement(FINDINGS))
FAILED = Report("setup", failure=Failure("apply-failed", "a step failed", "", 4))


def names(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


def told(report: Report, output: Output) -> int:
    return answer(report, output, FailOn.ERROR)


def test_what_cannot_be_written_is_a_line_and_the_others_are_whole(tmp_path: Path, capsys):
    also = ((Format.SARIF, str(tmp_path / "none" / "a")), (Format.JUNIT, str(tmp_path / "b")))
    assert told(HEALTHY, Output(Format.JSON, str(tmp_path / "c"), also=also)) == 3
    READ[Format.JUNIT]((tmp_path / "b").read_text("utf-8"))
    READ[Format.JSON]((tmp_path / "c").read_text("utf-8"))
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"error  cannot write {tmp_path}/none/a: No such file or directory\n"
    assert names(tmp_path) == ["b", "c"]


@pytest.mark.parametrize("name", ["", "file/below"])
def test_a_folder_or_a_place_below_a_file_is_no_place(tmp_path: Path, capsys, name: str):
    (tmp_path / "file").write_text("kept")
    assert told(FOUND, Output(Format.TEXT, also=((Format.GITLAB, str(tmp_path / name)),))) == 3
    assert capsys.readouterr().err.count("error  cannot write") == 1
    assert (tmp_path / "file").read_text() == "kept"
    assert names(tmp_path) == ["file"]


def test_a_result_whose_file_cannot_be_written_is_not_lost(tmp_path: Path, capsys):
    assert told(FOUND, Output(Format.JSON, str(tmp_path / "none" / "a"))) == 3
    assert READ[Format.JSON](capsys.readouterr().out)["findings"]


def test_a_failed_command_keeps_its_code(tmp_path: Path, capsys):
    assert told(FAILED, Output(Format.TEXT, also=((Format.JSON, str(tmp_path / "none" / "a")),))) == 4


def test_an_older_file_stays_where_a_new_one_cannot_be_written(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "a").write_text("old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert told(HEALTHY, Output(Format.JSON, str(tmp_path / "a"))) == 3
    assert (tmp_path / "a").read_text() == "old"
    assert names(tmp_path) == ["a"]
    assert "No space left on device" in capsys.readouterr().err


def test_a_file_keeps_its_mode_and_a_link_its_file(tmp_path: Path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    mask = os.umask(0o027)
    try:
        also = ((Format.SARIF, str(tmp_path / "new")),)
        assert told(HEALTHY, Output(Format.JSON, str(tmp_path / "link"), also=also)) == 0
    finally:
        os.umask(mask)
    assert (tmp_path / "link").is_symlink()
    assert READ[Format.JSON]((tmp_path / "real").read_text("utf-8"))
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("real", "new")] == [0o600, 0o640]


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert told(HEALTHY, Output(Format.JSON, str(pipe))) == 0
    assert READ[Format.JSON](os.read(reader, 65536).decode("utf-8"))
    os.close(reader)
    assert pipe.is_fifo()


def test_standard_output_has_a_name(capsys, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told(HEALTHY, Output(Format.JSON, "-")) == 0
    assert READ[Format.JSON](capsys.readouterr().out)
    assert names(tmp_path) == []


def test_a_fault_of_a_renderer_is_a_document_too(tmp_path: Path, monkeypatch, capsys):
    def broken(report: Report, _fail_on: FailOn) -> str:
        assert report.failure is not None, "of its own"
        return "told"

    monkeypatch.setattr("ideepdoctor.render.sarif.render", broken)
    assert told(HEALTHY, Output(Format.JSON, also=((Format.SARIF, str(tmp_path / "a")),))) == 3
    document = READ[Format.JSON](capsys.readouterr().out)
    assert document["error"]["code"] == "internal"
    assert (tmp_path / "a").read_text() == "told\n"


@pytest.mark.parametrize("form", [Format.JSON, Format.TEXT, Format.MARKDOWN, Format.HTML])
def test_what_the_terminal_has_no_letters_for_is_told_all_the_same(form: Format, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    odd = Report("lint", text="/home/\u65e5\u672c/\udcff.py\n", extra={"x": "/home/\u65e5\u672c/\udcff.py"})
    assert told(odd, Output(form)) == 0
    stream.seek(0)
    data = stream.buffer.read()
    READ[form](data.decode("latin-1" if form is Format.TEXT else "utf-8"))


@pytest.mark.parametrize(
    ("words", "output", "said"),
    [
        (["json:a", "sarif:a"], None, "named twice"),
        (["json:a", "sarif:./b/../a"], None, "named twice"),
        (["json:a"], "a", "named twice"),
        (["text:-"], None, "standard output"),
        (["-"], None, "not FORMAT:FILE"),
        (["yaml:a"], None, "not FORMAT:FILE"),
        (["json:"], None, "not FORMAT:FILE"),
    ],
)
def test_files_that_cannot_be_meant_are_refused(words: list[str], output: str | None, said: str):
    with pytest.raises(typer.BadParameter, match=said):
        also_of(words, output)


def test_a_file_of_every_format_is_what_it_names(tmp_path: Path, capsys):
    also = tuple((form, str(tmp_path / form)) for form in Format)
    assert told(many(40), Output(Format.TEXT, also=also)) == 1
    for form in Format:
        READ[form]((tmp_path / form).read_text("utf-8"))


def test_the_same_report_says_the_same_twice(tmp_path: Path, capsys):
    for name in ("diagnose", "smoke", "libs"):
        also = tuple((form, str(tmp_path / f"{form}-{turn}")) for form in Format for turn in (1, 2))
        told(REPORTS[name](), Output(Format.TEXT, also=also))
        for form in Format:
            assert (tmp_path / f"{form}-1").read_bytes() == (tmp_path / f"{form}-2").read_bytes()
