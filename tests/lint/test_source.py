"""Bytes become text and trees: encodings, both languages, comments that silence."""

from __future__ import annotations

import ast

import pytest

from ideepdoctor.lint.engine import lint
from ideepdoctor.lint.source import Place, Unreadable, read
from tests.lint.sources import HEAD, codes


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"x = 1",
        b"\xef\xbb\xbfx = '\xc3\xa9'\n",
        "# -*- coding: euc-jp -*-\nx = 'あ'\n".encode("euc-jp"),
        "#!/usr/bin/python\n# vim: set fileencoding=shift_jis :\nprint u'表'\n".encode("shift_jis"),
        b"# coding: latin-1\nx = '\xe9'\n",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        b"x = '\\d'\n",
        b"\x0cx = 1\n",
    ],
)
def test_what_python_reads_is_read(data: bytes, recwarn: pytest.WarningsRecorder):
    assert isinstance(read("a.py", data).tree, ast.Module)
    assert len(recwarn) == 0


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"\x7fELF\x00\x01", None, "is a binary file"),
        ("x = 1".encode("utf-16"), None, "is UTF-16"),
        (b"x = 1\ny = '\xe9'\n", 2, "byte 0xe9 is not UTF-8, and no coding cookie says what it is"),
        (b"# coding: ascii\n\ny = '\xe9'\n", 3, "byte 0xe9 cannot be decoded by its cookie (ascii)"),
        (b"# coding: klingon\n", None, "unknown encoding: klingon"),
        (b"# coding: rot13\nk = 1\n", None, "rot13, which is no text encoding"),
        (b"\xef\xbb\xbf# coding: latin-1\n", None, "contradicts its byte order mark"),
        (b"x = 1\ndef f(:\n", 2, "syntax error: invalid syntax"),
        (b"print 'a'\nx = = 2\n", 1, "as Python 2: invalid syntax, line 2"),
        (b"(" * 250 + b")" * 250, 1, "too many nested parentheses"),
        (b"+".join([b"1"] * 30000), None, "is nested too deeply"),
        (b"  x = 1\n y = 2", 1, "unexpected indent"),
    ],
)
def test_what_python_does_not_read_is_refused_with_the_reason(data: bytes, line: int | None, reason: str):
    with pytest.raises(Unreadable) as caught:
        read("a.py", data)
    assert reason in caught.value.reason
    assert "\n" not in caught.value.reason
    assert caught.value.line == line


def test_columns_count_characters_and_not_bytes():
    source = read("a.py", "é = 'ü'; f(x)\n".encode())
    call = next(node for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    assert source.place(call) == Place(1, 10)


FAULT = "chainer.config.use_ideep = 1"


@pytest.mark.parametrize(
    "comment",
    ["# noqa", "#noqa", "# NOQA", "# noqa: IDP906", "# noqa:IDP906,E501", "# noqa: E501 IDP906", "# noqa: IDP9"],
)
def test_a_comment_silences_its_line(comment: str):
    result = lint(read("a.py", f"import chainer\n{FAULT}  {comment}\n".encode()))
    assert (result.found, result.suppressed) == ((), 1)


@pytest.mark.parametrize("comment", ["# noqa: E501", "# noqa: IDP905", "# no qa", "# type: ignore"])
def test_a_comment_for_something_else_does_not(comment: str):
    assert codes(f"import chainer\n{FAULT}  {comment}\n") == ["IDP906"]


def test_a_comment_silences_a_call_from_its_last_line_too():
    text = HEAD + "serializers.load_npz(\n    'a.npz',\n    L.Convolution2D(3, 64, 3).to_intel64(),\n)"
    assert codes(text) == ["IDP902"]
    assert codes(text + "  # noqa: IDP902") == []


@pytest.mark.parametrize("comment", ["# ideepdoctor: ignore-file", "  #  because of X; ideepdoctor:ignore-file"])
def test_a_comment_line_silences_the_file(comment: str):
    result = lint(read("a.py", f"import chainer\n{comment}\n{FAULT}\n".encode()))
    assert (result.ignored, result.found) == (True, ())


def test_the_words_elsewhere_do_not_silence_it():
    assert codes(f"import chainer\nx = 'ideepdoctor: ignore-file'\n{FAULT}\n") == ["IDP906"]
