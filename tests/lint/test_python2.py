"""Python 2 source: what is read has the names of the source, each in its place, by Python 2.7's own parser."""

from __future__ import annotations

import ast
import json
import subprocess
import warnings
from pathlib import Path

import pytest

from ideepdoctor.lint.python2 import Converted, NotPython2, convert

NAMES = r"""
import ast, json, sys
told = {}
for path in json.loads(sys.stdin.read()):
    tree = ast.parse(open(path, "rU").read())
    told[path] = sorted(
        (node.id, node.lineno, node.col_offset)
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        and node.id not in ("None", "True", "False", "print", "exec", "async", "await")
    )
print(json.dumps(told))
"""
DENSE = (
    "test/test_grammar",
    "test/test_compile",
    "test/test_exceptions",
    "test/test_print",
    "lib2to3/tests/test_fixers",
)
"""Modules with every construct there is."""


def names(converted: Converted) -> set[tuple[str, int, int]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(converted.text)
    return {
        (node.id, node.lineno, converted.column(node.lineno, node.col_offset))
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
    }


def test_names_of_python_2s_own_library_stay_in_their_places(legacy):
    python = legacy("2.7")
    where = subprocess.run([python, "-c", "import os; print(os.__file__)"], capture_output=True, text=True, check=True)
    library = Path(where.stdout.strip()).parent
    texts: dict[str, str] = {}
    chosen = [*sorted(library.glob("*.py"))[::6], *(library / f"{name}.py" for name in DENSE)]
    for path in chosen:
        text = path.read_bytes().decode("latin-1").replace("\r\n", "\n").replace("\r", "\n")
        if text.isascii():
            texts[str(path)] = text
    assert len(texts) > 30
    told = subprocess.run(
        [python, "-c", NAMES], input=json.dumps(list(texts)), capture_output=True, text=True, check=True
    )
    for path, expected in json.loads(told.stdout).items():
        converted = convert(texts[path])
        assert converted.text.count("\n") == texts[path].count("\n"), path
        assert {tuple(item) for item in expected} <= names(converted), path


@pytest.mark.parametrize(
    "text",
    [
        "print",
        "print x",
        "print x, y,",
        "print(x), y",
        'print"x"',
        "print >>f",
        "print >>f, x,",
        "print>>f,x; y",
        "print \\\n  x",
        "print '''a\nb''' % x; y = z",
        "from __future__ import print_function\nprint(x, file=f)\nexec y",
        "exec code",
        "exec code in d, e",
        "exec 'x' in {}; y",
        "raise E, 'text'",
        "raise E, 'text', tb",
        "raise E",
        "try:\n  x\nexcept E, e:\n  y",
        "try:\n  x\nexcept E,e: y(e)",
        "try:\n  x\nexcept (E, F), e:\n  y",
        "try:\n  x\nexcept E, (a, b): y",
        "try:\n  x\nexcept E, self.error: y",
        "`x` + `y, z`",
        "a <> b",
        "x = 0777L + 10l + 0xFFL + 00 + 0",
        "x = ur'\\d' + y",
        "def f():\n    ur'''text\n    more'''\n    return x",
        "x = 'C:\\Users\\name' + y",
        "x = b'\\xe9' 'caf\u00e9' + y",
        "x = 'a' br'\\d' B'c' + y",
        "def f(a, (b, (c, d)), e=1): return a",
        "def f((a)): return x",
        "def f(a, (b,\n       c)): return a",
        "f = lambda (a, b): x; y",
        "f = lambda(a, b): x",
        "f = lambda x, (a,\n b): (y)",
        "[x for x in 1, 2, 3]",
        "[x for x in a, b if x]; y",
        "model.to_gpu(async=True); await = x",
        "import xmlrpclib\ny(xmlrpclib.True)",
        "from __builtin__ import True\ny",
        "if x:\n\tprint 1\n        print y",
        "class A:\n\tdef f(self):\n\t\tif x:\n\t\t    print y\n\t        return z",
        "print 'x' if y else z",
        "print (x for x in y)",
        "print -x",
        "print {x: y}, [z]",
        "print lambda: x",
        "while 1: print x; continue",
        "@x\ndef f(): print y",
        "x = 1 if y else 2; print x,; z",
        "print x # a comment\nprint y",
        "print",
    ],
)
def test_a_construct_of_python_2_is_read_with_its_lines(text: str):
    converted = convert(text)
    tree = ast.parse(converted.text)
    assert converted.text.count("\n") == text.count("\n")
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not node.id.startswith("_") and node.id not in ("print", "exec", "awai_"):
            raw = converted.text.split("\n")[node.lineno - 1].encode()[: node.col_offset].decode()
            column = converted.column(node.lineno, len(raw))
            if node.id not in ("raise", "True_"):
                assert lines[node.lineno - 1][column:].startswith(node.id), (converted.text, node.id)


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = (", None), ("print x y", 1), ("x\n  y", 2), ("def f(:", 1), ("if x:\npass", 2), ("'''a", None)],
)
def test_what_is_no_python_2_is_refused_with_its_line(text: str, line: int | None):
    with pytest.raises(NotPython2) as caught:
        convert(text)
    assert line is None or caught.value.line == line


def test_nothing_is_written_to_the_users_cache(tmp_path, monkeypatch):
    from ideepdoctor.lint import python2

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    python2._grammars.cache_clear()
    convert("print x")
    assert list(tmp_path.iterdir()) == []
