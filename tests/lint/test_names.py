"""What names mean, and in which order a function runs."""

from __future__ import annotations

import ast

import pytest

from ideepdoctor.lint.flow import Flow, condition, dotted
from ideepdoctor.lint.names import Names, canonical


def path(text: str) -> str | None:
    """The path of the last expression of a text."""
    tree = ast.parse(text)
    names = Names(tree)
    last = [node for node in names.nodes if isinstance(node, ast.Expr)][-1]
    return names.path(last.value.func if isinstance(last.value, ast.Call) else last.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import chainer\nchainer.links.Linear", "chainer.links.Linear"),
        ("import chainer.links\nchainer.links.Linear", "chainer.links.Linear"),
        ("import chainer as c\nc.links.Linear", "chainer.links.Linear"),
        ("import chainer.links as L\nL.Linear", "chainer.links.Linear"),
        ("from chainer import links as L, functions\nL.Linear", "chainer.links.Linear"),
        ("from chainer.links import Linear as Full\nFull(1)", "chainer.links.Linear"),
        ("from chainer.links.connection.linear import Linear\nLinear", "chainer.links.Linear"),
        ("import chainer.links as L\nMine = L.Linear\nMine(1)", "chainer.links.Linear"),
        ("from chainer.links import *\nLinear", "chainer.links.Linear"),
        ("from chainer.links import *\nfrom numpy import *\nLinear", "chainer.links.Linear"),
        ("def f():\n    import chainer.links as L\n    L.Linear", "chainer.links.Linear"),
        ("import chainer.links as L\ndef f():\n    L.Linear", "chainer.links.Linear"),
        ("import chainer.links as L\nclass A:\n    L = 1\n    def f(self):\n        L.Linear", "chainer.links.Linear"),
        ("try:\n    import chainer\nexcept ImportError:\n    chainer = None\nchainer.links", "chainer.links"),
        ("from chainer import cuda\ncuda.get_device", "chainer.cuda.get_device"),
        ("from chainer.backends import cuda\ncuda.get_device", "chainer.cuda.get_device"),
        ("from chainer import links\ndef f():\n    global links\n    links.Linear", "chainer.links.Linear"),
    ],
)
def test_a_name_that_is_certain_has_its_path(text: str, expected: str):
    assert path(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Linear",
        "from mine import *\nLinear",
        "from chainer.links import *\nclass Linear: pass\nLinear",
        "from chainer.links import *\nsomething",
        "import chainer.links as L\nL = 3\nL.Linear",
        "import chainer.links as L\ndef f(L):\n    L.Linear",
        "import chainer.links as L\ndef f():\n    for L in x:\n        L.Linear",
        "import chainer.links as L\nimport torch.nn as L\nL.Linear",
        "import chainer.links as L\nx = [L.Linear for L in y]\nL.Linear",
        "import chainer.links as L\nwith a as L:\n    L.Linear",
        "import chainer.links as L\nL, M = 1, 2\nL.Linear",
        "import chainer.links as L\nlambda L: L\ndef L(): pass\nL.Linear",
        "def f():\n    import chainer.links as L\nL.Linear",
        "a = b\nb = a\na.Linear",
        "f().Linear",
    ],
)
def test_a_name_that_is_not_has_none(text: str):
    assert path(text) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("chainer.functions.connection.convolution_2d.convolution_2d", "chainer.functions.convolution_2d"),
        ("chainer.links.caffe.caffe_function.CaffeFunction", "chainer.links.caffe.caffe_function.CaffeFunction"),
        ("chainer.backends.cuda", "chainer.cuda"),
        ("chainer.backends.cudart", "chainer.backends.cudart"),
        ("cPickle.dump", "pickle.dump"),
        ("chainer.configuration.config", "chainer.config"),
        ("chainermn.links.Linear", "chainermn.links.Linear"),
    ],
)
def test_a_thing_has_one_path(path: str, expected: str):
    assert canonical(path) == expected


def reaches(text: str) -> bool:
    """Whether a run comes from the call ``a()`` to the call ``b()``."""
    flow = Flow(ast.parse(text))
    steps = {dotted(step.node.func): step for step in flow.calls() if isinstance(step.node, ast.Call)}
    return flow.reaches(steps["a"], steps["b"])


@pytest.mark.parametrize(
    "text",
    [
        "a(); b()",
        "b(a())",
        "if x:\n    a()\nb()",
        "if x:\n    a()\nif y:\n    b()",
        "if x:\n    a()\nif x:\n    b()",
        "if x:\n    a()\n    b()\n    c = 1",
        "for i in x:\n    a()\nb()",
        "while a():\n    b()",
        "with a():\n    b()",
        "try:\n    a()\nfinally:\n    b()",
        "try:\n    a()\nexcept E:\n    pass\nb()",
        "try:\n    a()\nexcept E:\n    pass\nelse:\n    b()",
        "a() and b()",
        "x = a() if y else 1\nb()",
        "if x:\n    if y:\n        raise E\n    a()\nb()",
        "match x:\n    case 1:\n        a()\nb()",
        "async_ = [a() for i in x]\nb()",
    ],
)
def test_a_run_comes_from_one_to_the_other(text: str):
    assert reaches(text)


@pytest.mark.parametrize(
    "text",
    [
        "b(); a()",
        "a(b())",
        "if x:\n    a()\nelse:\n    b()",
        "if x:\n    a()\nelif y:\n    b()",
        "if x:\n    a()\nif not x:\n    b()",
        "if x == 1:\n    a()\nif x != 1:\n    b()",
        "if x < 0:\n    a()\nif x >= 0:\n    b()",
        "if x in y:\n    a()\nif x not in y:\n    b()",
        "if x:\n    a()\n    raise E\nb()",
        "if x:\n    a()\n    sys.exit(1)\nb()",
        "if x:\n    a()\n    with y:\n        raise E\nb()",
        "if x:\n    a()\n    if y:\n        raise E\n    else:\n        exit()\nb()",
        "for i in x:\n    if i:\n        a()\n        break\n    b()",
        "try:\n    a()\nexcept E:\n    b()",
        "try:\n    x()\nexcept E:\n    a()\nexcept F:\n    b()",
        "a() if x else b()",
        "x or a()\nif x:\n    b()",
        "match x:\n    case 1:\n        a()\n    case 2:\n        b()",
    ],
)
def test_no_run_does(text: str):
    assert not reaches(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v = 1\nend()", ["1"]),
        ("v = 1\nv = 2\nend()", ["2"]),
        ("v = 1\nif x:\n    v = 2\nend()", ["2", "1"]),
        ("if x:\n    v = 1\nelse:\n    v = 2\nend()", ["2", "1"]),
        ("v = 0\nif x:\n    v = 1\nelif y:\n    v = 2\nelse:\n    v = 3\nend()", ["3", "2", "1"]),
        ("if x:\n    v = 1\nelif y:\n    v = 2\nelse:\n    raise E\nend()", ["2", "1"]),
        ("v = 0\nif x:\n    v = 1\n    end()", ["1"]),
        ("v = 0\nif x:\n    v = 1\nelse:\n    end()", ["0"]),
        ("v = 0\nif x:\n    v = 1\n    raise E\nend()", ["0"]),
        ("v = w = 1\nend()", ["1"]),
        ("(v, w) = 1, 2\nend()", ["1"]),
        ("if x:\n    v = 1\nend()", None),
        ("if x:\n    v = 1\nelif y:\n    v = 2\nend()", None),
        ("for i in x:\n    v = 1\nend()", None),
        ("try:\n    v = 1\nexcept E:\n    v = 2\nend()", None),
        ("match x:\n    case 1:\n        v = 1\n    case 2:\n        v = 2\nend()", None),
        ("end()", None),
    ],
)
def test_what_a_name_can_hold(text: str, expected: list[str] | None):
    flow = Flow(ast.parse(text))
    [end] = [step for step in flow.calls() if ast.unparse(step.node) == "end()"]
    held = flow.held("v", end)
    assert (None if held is None else [ast.unparse(step.value) for step in held if step.value]) == expected


def test_conditions_that_say_the_same_are_the_same():
    def told(text: str) -> tuple[str, object]:
        return condition(ast.parse(text, mode="eval").body)

    assert told("not a") == (told("a")[0], False)
    assert told("not not a") == told("a")
    assert told("a >= b") == (told("a < b")[0], False)
    assert told("not a >= b") == told("a < b")
    assert told("a is not None")[0] == told("a is None")[0]
    assert told("a < b")[0] != told("b < a")[0]
