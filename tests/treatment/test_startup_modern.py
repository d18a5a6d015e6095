"""On Python 3.12 and later Chainer finds what NumPy no longer has; NumPy and Chainer are played by small packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.treatment.test_startup import made_or_skipped
from tests.treatment.test_startup_order import Ordered

CHAINER = """
import sys
from chainer import functions
import numpy.distutils.system_info
sys.order = [numpy.distutils.system_info.get_info("blas_opt")]
"""
STRIDED = "import numpy as np\nsizes = {t().itemsize: t for t in np.sctypes['int']}\n"
# Enough of NumPy 2 for a table of types: letters name types of some size.
NUMPY = """
__version__ = VERSION
class dtype(object):
    def __init__(self, code):
        self.itemsize = dict(zip("bhilqBHILQefdgFDG", (1, 2, 4, 8, 8, 1, 2, 4, 8, 8, 2, 4, 8, 16, 8, 16, 32)))[code]
        self.type = type(code, (), {"itemsize": self.itemsize})
void = "void"
def __getattr__(name):
    raise AttributeError("no " + name)
"""
NAMES = "{kind: [t.__name__ for t in numpy.sctypes[kind]] for kind in ('int', 'uint', 'float', 'complex')}"
TABLE = {"int": ["b", "h", "i", "l"], "uint": ["B", "H", "I", "L"], "float": ["e", "f", "d", "g"]}
TABLE |= {"complex": ["F", "D", "G"]}


@pytest.fixture(params=["3.11", "3.12", "3.13", "3.14"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Ordered:
    made = made_or_skipped(Ordered, request.param, tmp_path)
    made.package("numpy", NUMPY.replace("VERSION", "'2.2.6'"))
    made.package("chainer", CHAINER)
    for folder, text in (("functions", "from chainer.functions.array import as_strided\n"), ("functions/array", "")):
        (made.site / "chainer" / folder).mkdir()
        (made.site / "chainer" / folder / "__init__.py").write_text(text)
    (made.site / "chainer/functions/array/as_strided.py").write_text(STRIDED)
    made.install(())
    return made


def needs_it(environment: Ordered) -> None:
    if environment.version < (3, 12):
        pytest.skip("only from 3.12 on")


def last_line(environment: Ordered, code: str) -> str:
    done = environment.start("-c", code)
    return (done.stderr.strip().splitlines() or ["fine"])[-1]


def test_chainer_imports(environment):
    needs_it(environment)
    assert environment.order("import chainer") == [{}]
    assert environment.order(f"import chainer, numpy; sys = __import__('sys'); sys.order = [{NAMES}]") == [TABLE]
    assert environment.order(
        "import chainer.functions.array.as_strided as a; import sys; sys.order = sorted(a.sizes)"
    ) == [
        1,
        2,
        4,
        8,
    ]


def test_before_3_12_nothing_is_done(environment):
    if environment.version >= (3, 12):
        pytest.skip("only before 3.12")
    assert last_line(environment, "import chainer") == "AttributeError: no sctypes"


def test_a_program_without_chainer_sees_nothing_of_it(environment):
    missing = "ModuleNotFoundError: No module named 'numpy.distutils'"
    assert last_line(environment, "import numpy.distutils.system_info") == missing
    assert last_line(environment, "import numpy; numpy.sctypes") == "AttributeError: no sctypes"


def test_other_modules_of_it_are_missing_as_before(environment):
    needs_it(environment)
    text = "ModuleNotFoundError: No module named 'numpy.distutils.core'"
    assert last_line(environment, "import chainer; import numpy.distutils.core") == text


def test_what_is_there_is_taken(environment):
    needs_it(environment)
    (environment.site / "numpy/distutils").mkdir()
    (environment.site / "numpy/distutils/__init__.py").write_text("")
    (environment.site / "numpy/distutils/system_info.py").write_text("get_info = str.upper\n")
    environment.package("numpy", NUMPY.replace("VERSION", "'2.2.6'") + "sctypes = {'int': (int,), 'mine': 1}\n")
    (environment.site / "chainer/functions/array/as_strided.py").write_text("import numpy\nnumpy.sctypes['mine']\n")
    assert environment.order("import chainer") == ["BLAS_OPT"]


def test_numpy_1_is_left_alone(environment):
    needs_it(environment)
    environment.package("numpy", NUMPY.replace("VERSION", "'1.26.4'"))
    assert last_line(environment, "import chainer") == "AttributeError: no sctypes"


def test_a_broken_numpy_is_told_by_chainers_own_import(environment):
    needs_it(environment)
    environment.package("numpy", "raise ImportError('broken')")
    assert last_line(environment, "import chainer") == "ImportError: broken"


def test_with_the_guard_too(environment):
    needs_it(environment)
    from ideepdoctor.treatment.startup import startup_files

    for choice in (True, False):
        for step in startup_files((), str(environment.site), guard=choice):
            Path(step.path).write_text(step.content)
        done = environment.start("-c", "import chainer, sys; print(sys.order)")
        assert (done.returncode, done.stdout) == (0, "[{}]\n"), done.stderr
