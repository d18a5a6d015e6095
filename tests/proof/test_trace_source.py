"""Where a name was given its value, and what to write there; in Python 3 and Python 2."""

from __future__ import annotations

import textwrap

import pytest

from ideepdoctor.proof.trace_source import Sources

PROGRAM = textwrap.dedent("""\
    import numpy as np
    x = np.zeros((2, 3))
    def train(model, data, flag):
        x = data / 255.0
        if flag:
            x = chainer.Variable(np.random.rand(2, 3), name='x')
        for x, t in batches:
            model(x)
        y = x[0]
        with made() as z:
            pass
        z += 1
        def inner():
            data = 5
    @decorated
    def other(x):
        model(x)
        x: object = np.ones(3)
    optimizer.setup(
        net.model)
    optimizer.setup(L.Classifier(Net(1, 2, 3), lossfun=F.mean_squared_error, accfun=None))
    """)


def sources(text: str = PROGRAM) -> Sources:
    return Sources(lambda path: text.encode() if path == "/a.py" else None)


def found(name: str, line: int, function: str = "train", first: int = 3, text: str = PROGRAM) -> tuple[int, str] | None:
    got = sources(text).assigned("/a.py", function, first, name, line)
    return None if got is None else (got.line, got.narrowed())


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("x", 5, (4, "x = (data / 255.0).astype('float32')")),
        ("x", 6, (6, "x = chainer.Variable(np.random.rand(2, 3).astype('float32'), name='x')")),
        ("x", 8, (7, "x = x.astype('float32')")),
        ("t", 8, (7, "t = t.astype('float32')")),
        ("y", 14, (9, "y = x[0].astype('float32')")),
        ("y", 4, (9, "y = x[0].astype('float32')")),  # of the round before, in a loop around it
        ("z", 11, (10, "z = z.astype('float32')")),
        ("z", 12, (12, "z = z.astype('float32')")),
        ("data", 9, None),  # an argument; another function's variable is another one
        ("model", 9, None),
    ],
)
def test_in_a_function_the_last_statement_above_counts(name: str, line: int, expected: tuple[int, str] | None):
    assert found(name, line) == expected


def test_elsewhere():
    assert found("x", 19, "<module>", 1) == (2, "x = np.zeros((2, 3)).astype('float32')")
    assert found("x", 18, "other", 15) == (18, "x = np.ones(3).astype('float32')")
    assert found("x", 18, "other", 16) == found("x", 18, "other", 15)
    assert found("x", 18, "missing", 16) is None
    assert found("x", 18, "other", 3) is None


def test_long_expressions_are_not_repeated():
    text = f"x = f({', '.join('abcdefgh' * 2 for _ in range(9))})\n"
    assert found("x", 2, "<module>", 1, text) == (1, "x = x.astype('float32')")


def test_python_2_is_read_too_at_its_own_lines():
    text = "print 'x'\nx = numpy.array([1.], 'd')\nexec 'y'\n"
    assert found("x", 3, "<module>", 1, text) == (2, "x = numpy.array([1.0], 'd').astype('float32')")


@pytest.mark.parametrize("text", ["x = (", "\0", "((((" * 5000])
def test_what_is_no_source_says_nothing(text: str):
    assert found("x", 1, "<module>", 1, text) is None


def test_files_that_are_not_there_say_nothing():
    for file in ("/b.py", "<stdin>", ""):
        assert sources().assigned(file, "<module>", 1, "x", 1) is None
        assert sources().argument(file, 1, "setup") is None


def test_what_the_value_was_made_from():
    got = sources().assigned("/a.py", "train", 3, "x", 6)
    assert got is not None
    assert "np" in got.mentions
    assert "x" not in got.mentions


def test_the_argument_of_a_call():
    assert sources().argument("/a.py", 19, "setup") == "net.model"
    assert sources().argument("/a.py", 20, "setup") == "net.model"
    assert sources().argument("/a.py", 21, "setup") is None  # too long to be repeated
    assert sources().argument("/a.py", 2, "setup") is None


def test_each_file_is_read_once():
    asked: list[str] = []

    def content(path: str) -> bytes | None:
        asked.append(path)
        return PROGRAM.encode()

    made = Sources(content)
    for _ in range(3):
        made.assigned("/a.py", "<module>", 1, "x", 3)
        made.argument("/a.py", 19, "setup")
    assert asked == ["/a.py"]


BRANCHES = textwrap.dedent("""\
    for number in range(6):
        x = random(32, 3)
        if number % 2:
            x = x.astype('f')
            use(x)
        elif number == 4:
            x = other()
        else:
            use(x)
    """)


def test_what_another_branch_does_is_not_taken():
    assert found("x", 9, "<module>", 1, BRANCHES) == (2, "x = random(32, 3).astype('float32')")
    assert found("x", 5, "<module>", 1, BRANCHES) == (4, "x = x.astype('f').astype('float32')")
    only = "if flag:\n    x = one()\nelse:\n    use(x)\n"
    assert found("x", 4, "<module>", 1, only) == (2, "x = one().astype('float32')")
