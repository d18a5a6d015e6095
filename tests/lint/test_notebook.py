"""Notebooks: code cells as one program, IPython's own syntax, cells that are no Python."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ideepdoctor.lint.engine import lint, position
from ideepdoctor.lint.notebook import read_notebook
from ideepdoctor.lint.source import Place, Unreadable


def book(*cells: str | list[str], language: str | None = "python", **more: Any) -> bytes:
    parts = [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells]
    parts.insert(0, {"cell_type": "markdown", "source": ["# A title\n"], "metadata": {}, "outputs": []})
    metadata = {} if language is None else {"kernelspec": {"language": language, "name": "k"}}
    return json.dumps({"nbformat": 4, "metadata": metadata, "cells": parts, **more}).encode()


def places(data: bytes) -> list[str]:
    result = lint(read_notebook("a.ipynb", data))
    return [f"{position(item.path, item.place)} {item.finding.code}" for item in result.found]


def test_cells_are_one_program_and_a_place_is_that_of_the_cell():
    data = book(
        "import chainer.links as L\nfrom chainer import serializers",
        "",
        "\nm = L.Convolution2D(3, 64, 3)",
        ["m.to_intel64()\n", "\n", "if x:\n", "    serializers.load_npz('é', m)"],
    )
    assert places(data) == ["a.ipynb:cell 4:4:5 IDP902"]


def test_the_line_that_a_sentence_names_is_the_cells():
    data = book(
        "import chainer.links as L\nfrom chainer import serializers",
        "m = L.Convolution2D(3, 64, 3)\nm.to_intel64()\nserializers.load_npz('a', m)",
    )
    [item] = lint(read_notebook("a.ipynb", data)).found
    assert "(line 2)" in item.finding.found
    assert item.finding.evidence[0].text.startswith("code cell 2, line 3, column 1: ")


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline",
        "!pip install chainer",
        "files = !ls",
        "t = %timeit -o f()",
        "L?",
        "?L",
        "chainer.links??",
        "if x:\n    %time f()",
        "%%time",
        "%%capture out\n!ls",
    ],
)
def test_ipythons_own_syntax_is_passed_over(line: str):
    data = book(f"{line}\nimport chainer\nchainer.config.use_ideep = 1")
    assert [item.split()[-1] for item in places(data)] == ["IDP906"]


def test_a_line_that_only_looks_like_it_is_left_alone():
    data = book("import chainer\nx = ('%d'\n% 3)\nchainer.config.use_ideep = 1")
    assert places(data) == ["a.ipynb:cell 1:4:1 IDP906"]


def test_cells_of_another_language_are_passed_over():
    data = book("%%bash\nls | wc -l", "%%html\n<b>x</b>", "import chainer\nchainer.config.use_ideep = 1")
    result = lint(read_notebook("a.ipynb", data))
    assert ([item.place for item in result.found], result.unread) == ([Place(2, 1, 3)], ())


def test_a_cell_that_is_no_python_is_told_and_the_others_are_linted():
    data = book("import chainer", "x = (", "chainer.config.use_ideep = 1")
    result = lint(read_notebook("a.ipynb", data))
    assert [item.place for item in result.found] == [Place(1, 1, 3)]
    assert [(item.place, item.reason) for item in result.unread] == [
        (Place(1, 1, 2), "syntax error: '(' was never closed")
    ]


def test_python_2_and_the_old_format_are_read():
    cell = {
        "cell_type": "code",
        "input": ["import chainer; print 'x'\n", "chainer.config.use_ideep = 1"],
        "language": "python",
    }
    old = {"nbformat": 3, "metadata": {"name": ""}, "worksheets": [{"cells": [cell]}]}
    source = read_notebook("a.ipynb", json.dumps(old).encode())
    assert source.python2
    assert [item.place for item in lint(source).found] == [Place(2, 1, 1)]


def test_an_empty_notebook_is_clean():
    assert places(book()) == []
    assert places(book("", language=None)) == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x = 1", "is no notebook: it is not JSON"),
        (b"\xff\xfe", "is no notebook: it is not JSON"),
        (b"[1, 2]", "is no notebook: it has no cells"),
        (b'{"cells": 3}', "is no notebook: it has no cells"),
        (book("x <- 1", language="R"), "is a notebook of R"),
        (book("x = (", "y = ("), "none of its code cells is Python; cell 1: syntax error"),
        (b"[" * 100000, "is no notebook: it is not JSON"),
        (book("x = '\ud800'"), "none of its code cells is Python; cell 1: cannot be parsed"),
    ],
)
def test_what_is_no_python_notebook_is_refused(data: bytes, reason: str):
    with pytest.raises(Unreadable) as caught:
        read_notebook("a.ipynb", data)
    assert reason in caught.value.reason
