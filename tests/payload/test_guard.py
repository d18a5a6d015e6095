"""The guard's own machinery, with stand-ins for Chainer and ideep4py, under old and new Pythons."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ideepdoctor.targets.target import payload_source
from tests.conftest import installed_interpreters, legacy_python

SOURCE = payload_source("guard").decode("ascii")

CHAINER = """
__version__ = "7.8.1"
import ideep4py

class utils(object):
    pass

done = True
"""

# Enough of ideep4py for those corrections that are made of Python alone: load, concat, split, lrn, maxpool, pickle.
IDEEP = """
import numpy
__version__ = "2.0.0.post3"
CALLS = []

class mdarray(object):
    ndim = 4
    def __init__(self, channels=16):
        self.shape, self.size = (1, channels, 1, 1), channels
    def __mul__(self, other):
        return "product"
    __imul__ = __mul__
    def axpby(self, a, b, other):
        return self
    def sum(self, axis=None):
        return "sum"

def call(name):
    def function(*args):
        CALLS.append(name)
        return name
    return function

class concat(object):
    Forward, Backward = staticmethod(call("concat")), staticmethod(call("split"))

class pooling2D(object):
    Forward, Backward = staticmethod(call("pooling")), staticmethod(call("pooling backward"))

class localResponseNormalization(object):
    Forward, Backward = staticmethod(call("lrn")), staticmethod(call("lrn backward"))

class batchNormalization(object):
    Forward, Backward = staticmethod(call("bn")), staticmethod(call("bn backward"))

class pooling2DParam(object):
    pooling_max = 0

class mdarrayVector(list):
    push_back = list.append

basic_copyto = call("copyto")

def array(x, itype="d"):
    return mdarray(x.shape[1])
"""

NUMPY = """
float32 = float
multiply = true_divide = divide = add = subtract = None

class ndarray(object):
    def __init__(self, shape):
        self.shape = shape

def asarray(x):
    return ndarray(x.shape)

array = asarray

def zeros(shape, kind=None):
    return ndarray((1, 16, 1, 1))
"""


PYTHONS = pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "newest"])
"""Those that have ideep4py, and one that never will."""


def interpreter(version: str) -> str:
    """Path of a Python; the newest may be the one that runs the tests."""
    if version != "newest":
        return legacy_python(version)
    return max(
        (tuple(map(int, who.version.split(".")[:2])), found.place.path)
        for found in installed_interpreters()
        for who in [found.identity]
        if who.implementation == "CPython" and not who.is_virtual
    )[1]


class World:
    """A folder with the guard and stand-ins, and a Python that sees it."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder, self.version, self.python = folder, version, interpreter(version)
        self.write("_ideepdoctor_guard", SOURCE)
        self.write("chainer", CHAINER)
        self.write("ideep4py", IDEEP)
        self.write("numpy", NUMPY)

    def write(self, module: str, text: str) -> None:
        """A module, or the start of a package: ``chainer.__init__``."""
        path = self.folder / (module.replace(".", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def run(self, code: str, **environ: str) -> tuple[dict[str, Any], str]:
        """Run a program that may say ``tell(name=value)``; return what it told, with the guard's status, and stderr."""
        program = "import sys, json\nsys.path.insert(0, sys.argv[1])\ntold = {}\ntell = told.update\n"
        program += textwrap.dedent(code)
        program += "\nguard = sys.modules.get('_ideepdoctor_guard')\n"
        program += "print(json.dumps(dict(told, status=guard and guard.status())))\n"
        env = {"PATH": os.defpath, "LANG": "C.UTF-8", **environ}
        done = subprocess.run(
            [self.python, "-B", "-c", program, str(self.folder)], env=env, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture
def world(tmp_path: Path, version: str) -> World:
    return World(tmp_path, version)


def active(told: dict[str, Any]) -> set[str]:
    return {name for name, row in told["status"]["corrections"].items() if row["active"]}


MADE = {"load", "concat", "split", "lrn", "maxpool", "pickle"}
"""What can be corrected in the stand-ins."""


@PYTHONS
def test_it_imports_nothing_and_leaves_one_finder(world: World) -> None:
    told, stderr = world.run(
        """
        import os
        before, finders = set(sys.modules), len(sys.meta_path)
        import _ideepdoctor_guard
        new = sorted(set(sys.modules) - before - set(["_ideepdoctor_guard"]))
        try:
            import not_there
        except ImportError as error:
            name = type(error).__name__
        tell(new=new, finders=len(sys.meta_path) - finders, name=name)
        sys.modules["copied"] = sys.modules.pop("_ideepdoctor_guard")
        import _ideepdoctor_guard
        tell(again=len(sys.meta_path) - finders)
        """
    )
    assert (told["new"], told["finders"], told["again"], stderr) == ([], 1, 1, "")
    assert told["name"] in ("ImportError", "ModuleNotFoundError")
    assert active(told) == set()
    assert told["status"]["why_not"] == "chainer was not imported"


@PYTHONS
@pytest.mark.parametrize(
    "order",
    [
        "import _ideepdoctor_guard, chainer",
        "import chainer, _ideepdoctor_guard",
        "import ideep4py, _ideepdoctor_guard, chainer",
        "import _ideepdoctor_guard; from chainer import utils",
        "import _ideepdoctor_guard; import chainer; import chainer as again",
        "import _ideepdoctor_guard; __import__('chainer')",
    ],
)
def test_it_works_in_any_order_of_imports(world: World, order: str) -> None:
    told, _ = world.run(
        f"""
        {order}
        import chainer, ideep4py
        array = ideep4py.mdarray(16)
        result = ideep4py.concat.Forward([array, ideep4py.mdarray(5)], 1)
        tell(done=chainer.done, calls=ideep4py.CALLS, result=result, doc=ideep4py.concat.__name__)
        """
    )
    assert active(told) >= MADE
    assert told["status"]["versions"] == {"chainer": "7.8.1", "ideep4py": "2.0.0.post3"}
    assert (told["done"], told["calls"], told["result"], told["doc"]) == (True, ["concat"], "concat", "concat")
    assert told["status"]["corrections"]["concat"]["applied"] == 1


@PYTHONS
def test_a_package_in_an_archive_works_too(world: World, tmp_path: Path) -> None:
    archive = tmp_path / "chainer.zip"
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("chainer/__init__.py", CHAINER)
    (tmp_path / "chainer.py").unlink()
    told, _ = world.run("sys.path.insert(1, sys.argv[1] + '/chainer.zip')\nimport _ideepdoctor_guard, chainer")
    # Before 3.8 the importer of archives loads in the old way, which the guard leaves alone.
    assert told["status"]["active"] is (world.version not in ("3.6", "3.7"))


@PYTHONS
@pytest.mark.parametrize("word", ["off", "0", "OFF", "no", "bn,off"])
def test_switched_off_it_changes_nothing(world: World, word: str) -> None:
    told, stderr = world.run(
        """
        import ideep4py, copy
        before = dict(vars(ideep4py))
        import _ideepdoctor_guard, chainer
        tell(changed=[name for name in before if getattr(ideep4py, name) is not before[name]])
        """,
        IDEEPDOCTOR_GUARD=word,
    )
    assert told["changed"] == [] and active(told) == set()
    assert told["status"]["why_not"] == "switched off by IDEEPDOCTOR_GUARD"
    assert ("'bn' is no correction" in stderr) is word.startswith("bn")


@PYTHONS
@pytest.mark.parametrize("switch", ["-lrn,-concat", " -LRN -concat ", "on,-concat,-lrn", "-lrn,,-concat,-lrn"])
def test_single_corrections_are_switched_off(world: World, switch: str) -> None:
    told, _ = world.run("import _ideepdoctor_guard, chainer", IDEEPDOCTOR_GUARD=switch)
    assert active(told) & MADE == MADE - {"lrn", "concat"}
    for name in ("lrn", "concat"):
        assert told["status"]["corrections"][name]["why_not"] == "switched off by IDEEPDOCTOR_GUARD"


@PYTHONS
def test_an_unknown_name_is_told_once_and_ignored(world: World) -> None:
    code = "import _ideepdoctor_guard, chainer\n_ideepdoctor_guard.apply(chainer)"
    told, stderr = world.run(code, IDEEPDOCTOR_GUARD="-lnr,-lrn")
    assert stderr.count("'-lnr' is no correction") == 1 and "-lrn" in stderr
    assert active(told) >= MADE - {"lrn"}


@PYTHONS
@pytest.mark.parametrize(
    ("chainer", "ideep"),
    [
        ("8.0.0", "2.0.0.post3"),
        ("7.8.2", "2.0.0.post3"),
        ("5.0.0b4", "2.0.0.post3"),
        ("4.5.0", "2.0.0.post3"),
        ("7.8.1", "2.0.0.post2"),
        ("7.8.1", "2.1.0"),
        ("strange", "2.0.0.post3"),
    ],
)
def test_unknown_versions_are_left_alone_and_told_once(world: World, chainer: str, ideep: str) -> None:
    world.write("chainer", CHAINER.replace("7.8.1", chainer))
    world.write("ideep4py", IDEEP.replace("2.0.0.post3", ideep))
    told, stderr = world.run(
        """
        import ideep4py
        before = dict(vars(ideep4py))
        import _ideepdoctor_guard, chainer
        _ideepdoctor_guard.apply(chainer)
        tell(changed=[name for name in before if getattr(ideep4py, name) is not before[name]])
        """
    )
    assert told["changed"] == [] and active(told) == set()
    why = f"nothing is known about Chainer {chainer} with ideep4py {ideep}"
    assert told["status"]["why_not"] == why
    assert [line for line in stderr.splitlines() if why in line] == [f"ideepdoctor.guard: {why}: nothing is corrected"]


@PYTHONS
@pytest.mark.parametrize("by", ["__version__", "metadata"])
def test_what_ideepdoctor_built_is_corrected_as_its_release(world: World, by: str) -> None:
    """By its attribute, or by the folder of its metadata: ideep4py 1.x has no attribute."""
    version = "2.0.0.post3+doctor.v4.znver4"
    text = IDEEP.replace("2.0.0.post3", version)
    (world.folder / "ideep4py.py").unlink()
    world.write("ideep4py.__init__", text if by == "__version__" else text.replace("__version__ =", "unsaid ="))
    (world.folder / f"ideep4py-{version}.dist-info").mkdir()
    told, _ = world.run("import _ideepdoctor_guard, chainer")
    assert told["status"]["versions"]["ideep4py"] == "2.0.0.post3"
    assert active(told) >= MADE


@PYTHONS
def test_without_ideep_it_is_silent(world: World) -> None:
    world.write("chainer", '__version__ = "7.8.1"\n')
    told, stderr = world.run("import _ideepdoctor_guard, chainer")
    assert (told["status"]["why_not"], stderr) == ("Chainer did not import ideep4py", "")


@PYTHONS
def test_a_chainer_that_does_not_import_fails_as_ever(world: World) -> None:
    world.write("chainer", "raise KeyError('broken')\n")
    told, stderr = world.run(
        """
        import _ideepdoctor_guard
        for _ in range(2):
            try:
                import chainer
            except KeyError as error:
                tell(error=str(error))
        tell(there="chainer" in sys.modules)
        with open(sys.argv[1] + "/chainer.py", "w") as stream:
            stream.write("__version__ = '7.8.1'\\nimport ideep4py\\n# longer than before, so that no cache is taken\\n")
        try:
            import importlib
            importlib.invalidate_caches()
        except AttributeError:
            pass
        import chainer
        """
    )
    assert (told["error"], told["there"], stderr) == ("'broken'", False, stderr)
    assert active(told) >= MADE


@PYTHONS
def test_no_chainer_is_an_import_error(world: World, tmp_path: Path) -> None:
    (tmp_path / "chainer.py").unlink()
    told, stderr = world.run(
        """
        import _ideepdoctor_guard
        try:
            import chainer
        except ImportError as error:
            tell(text=str(error))
        """
    )
    assert "No module named" in told["text"] and "chainer" in told["text"] and stderr == ""


@PYTHONS
def test_what_cannot_be_installed_is_told_and_the_rest_is(world: World) -> None:
    world.write("ideep4py", IDEEP + "\ndel concat, basic_copyto\n")
    told, stderr = world.run(
        """
        import _ideepdoctor_guard, chainer, ideep4py
        _ideepdoctor_guard.apply(chainer)
        array = ideep4py.mdarray()
        tell(product=array * 2)
        array *= 2
        tell(inplace=array)
        """
    )
    assert active(told) & MADE == {"lrn", "maxpool", "pickle"}
    assert told["product"] == told["inplace"] == "product"
    corrections = told["status"]["corrections"]
    for name in ("concat", "split", "load"):
        assert "AttributeError" in corrections[name]["why_not"]
        assert stderr.count(f"left out: {name}: AttributeError") == 1
    # A stand-in is no C type, and there is no OpenMP library.
    assert "OpenMP" in corrections["bn"]["why_not"] and "LookupError" in corrections["product"]["why_not"]
    assert any(problem.startswith("bn: LookupError") for problem in told["status"]["problems"])


@PYTHONS
def test_an_exception_in_a_correction_gives_the_original(world: World) -> None:
    told, stderr = world.run(
        """
        import _ideepdoctor_guard, chainer, ideep4py
        results = [ideep4py.concat.Forward([1, 2], 1) for _ in range(3)]
        results += [ideep4py.pooling2D.Forward("x", "p"), ideep4py.localResponseNormalization.Backward(1, 2, 3, 4)]
        results += [ideep4py.concat.Backward(1, 2, 1), ideep4py.basic_copyto(ideep4py.mdarray(), 1)]
        tell(results=results, calls=ideep4py.CALLS)
        """
    )
    expected = ["concat"] * 3 + ["pooling", "lrn backward", "split", "copyto"]
    assert told["results"] == told["calls"] == expected
    for name in ("concat", "split", "lrn", "maxpool", "load"):
        assert stderr.count(f"left out: {name}: ") == 1
    assert told["status"]["corrections"]["concat"]["applied"] == 0


@PYTHONS
def test_an_exception_of_the_original_is_the_programs(world: World) -> None:
    world.write("ideep4py", IDEEP + "\ndef fail(*args): raise ZeroDivisionError(1)\nbasic_copyto = fail\n")
    told, _ = world.run(
        """
        import _ideepdoctor_guard, chainer, ideep4py
        try:
            ideep4py.basic_copyto(1, 2)
        except ZeroDivisionError as error:
            tell(error="%s" % error)
        """
    )
    assert told["error"] == "1" and told["status"]["corrections"]["load"]["active"]


@PYTHONS
def test_reloads_and_second_imports_wrap_nothing_twice(world: World) -> None:
    told, _ = world.run(
        """
        import _ideepdoctor_guard, chainer, ideep4py
        try:
            from importlib import reload
        except ImportError:
            pass
        first = ideep4py.concat.Forward
        reload(chainer)
        del sys.modules["chainer"]
        import chainer
        reload(_ideepdoctor_guard)
        tell(same=ideep4py.concat.Forward is first, done=chainer.done)
        old = sys.modules.pop("ideep4py")
        del sys.modules["chainer"]
        import chainer, ideep4py
        ideep4py.concat.Forward([ideep4py.mdarray(16), ideep4py.mdarray(5)], 1)
        tell(calls=ideep4py.CALLS, old=old.CALLS, new=ideep4py is not old)
        """
    )
    assert told["same"] and told["done"] and told["new"]
    # A second ideep4py is corrected like the first.
    assert (told["calls"], told["old"]) == (["concat"], [])
    assert told["status"]["corrections"]["concat"]["applied"] == 1


@PYTHONS
def test_the_loader_of_chainer_stays_its_own(world: World, tmp_path: Path) -> None:
    (tmp_path / "chainer.py").unlink()
    world.write("chainer.__init__", CHAINER)
    world.write("chainer.functions", "here = True\n")
    (tmp_path / "chainer" / "data.txt").write_text("data")
    told, _ = world.run(
        """
        import _ideepdoctor_guard, pkgutil
        import chainer.functions
        loaders = [getattr(chainer, "__loader__", None), getattr(getattr(chainer, "__spec__", None), "loader", None)]
        tell(data=pkgutil.get_data("chainer", "data.txt").decode("ascii"), here=chainer.functions.here)
        tell(loaders=[type(loader).__module__ for loader in loaders], path=list(chainer.__path__))
        """
    )
    assert (told["data"], told["here"]) == ("data", True)
    assert "_ideepdoctor_guard" not in told["loaders"]
    assert told["path"] == [str(tmp_path / "chainer")]
    assert active(told) >= MADE


@PYTHONS
def test_many_threads_may_import_chainer_at_once(world: World) -> None:
    world.write("chainer", "import time; time.sleep(0.2)\n" + CHAINER)
    told, _ = world.run(
        """
        import _ideepdoctor_guard, threading
        seen = []

        def work():
            import chainer, ideep4py
            seen.append(chainer.done and ideep4py.concat.Forward([ideep4py.mdarray(16), ideep4py.mdarray(5)], 1))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        import ideep4py
        tell(seen=seen, calls=len(ideep4py.CALLS))
        """
    )
    assert told["seen"] == ["concat"] * 8 and told["calls"] == 8
    assert told["status"]["corrections"]["concat"]["applied"] == 8


@pytest.mark.parametrize("version", ["newest"])
def test_another_finder_that_asks_the_rest_may_stand_before_or_after(world: World) -> None:
    for place in ("0", "len(sys.meta_path)"):
        told, _ = world.run(
            f"""
            import importlib.util
            import _ideepdoctor_guard

            class Other(object):
                busy = False
                def find_spec(self, name, path=None, target=None):
                    if name != "chainer" or self.busy:
                        return None
                    self.busy = True
                    try:
                        return importlib.util.find_spec(name)
                    finally:
                        self.busy = False

            sys.meta_path.insert({place}, Other())
            tell(found=importlib.util.find_spec("chainer") is not None)
            import chainer
            """
        )
        assert told["found"] and active(told) >= MADE


# Measured: shape and threads on a processor that is not Intel's, and how many of the last channels were wrong.
SEEN = (
    ((8, 16, 56, 56), 2, 1),
    ((32, 16, 28, 28), 2, 1),
    ((4, 3, 112, 112), 2, 1),
    ((8, 64, 56, 56), 2, 0),
    ((8, 16, 56, 56), 3, 2),
    ((8, 64, 56, 56), 3, 1),
    ((4, 3, 112, 112), 3, 0),
    ((8, 32, 56, 56), 3, 0),
    ((8, 32, 56, 56), 4, 2),
    ((32, 64, 28, 28), 4, 0),
    ((4, 5, 150, 150), 4, 0),
    ((8, 64, 56, 56), 8, 4),
    ((32, 64, 28, 28), 8, 4),
    ((8, 200, 28, 28), 8, 0),
    ((8, 16, 56, 56), 1, 0),
)


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    """The guard as a module of this process, which it leaves as it was."""
    found = ModuleType("_ideepdoctor_guard")
    path = list(sys.meta_path)
    exec(compile(SOURCE, "guard.py", "exec"), found.__dict__)
    yield found
    sys.meta_path[:] = path
    del sys._ideepdoctor_guard_state  # type: ignore[attr-defined]


@pytest.mark.parametrize(("shape", "threads", "wrong"), SEEN)
def test_the_rule_of_batch_normalization(module: ModuleType, shape: Any, threads: int, wrong: int) -> None:
    assert module.wrong_channels(shape, threads, 1024000) == wrong
    # Where less is known, as many or more are computed again.
    assert wrong <= module.wrong_channels(shape, threads, 1024000, fewer=True) < max(2, threads)
    assert wrong <= module.wrong_channels(shape, threads, None) < max(2, threads)


def test_small_batch_normalizations_are_never_suspected(module: ModuleType) -> None:
    assert module.wrong_channels((2, 64, 7, 7), 4, None) == 0
    assert module.wrong_channels((64, 4, 112, 112), 4, None) == 0  # fewer channels than a block that could go wrong


@pytest.mark.parametrize(
    ("chainer", "ideep", "first"),
    [
        ("7.8.1", "2.0.0.post3", "bn"),
        ("7.8.1.post1", "2.0.0.post3", "bn"),
        ("7.0.0b3", "2.0.0.post3", "bn"),
        ("5.0.0rc1", "2.0.0.post3", "bn"),
        ("5.0.0", "2.0.0.post3", "bn"),
        ("5.0.0b4", "2.0.0.post3", None),
        ("8.0.0b1", "2.0.0.post3", None),
        ("4.5.0", "1.0.4", "concat"),
        ("4.0.0b4", "1.0.4", "concat"),
        ("3.5.0", "1.0.4", None),
        ("4.5.0", "1.0.3", None),
        ("", "", None),
    ],
)
def test_the_pairs_of_versions_that_are_known(module: ModuleType, chainer: str, ideep: str, first: str | None) -> None:
    needed = module._needs(chainer, ideep)
    assert (needed and needed[0]) == first


def test_the_processor_is_asked_as_mkl_dnn_asks(module: ModuleType) -> None:
    vendor = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("vendor_id"))
    assert module._is_intel() is ("GenuineIntel" in vendor)


def test_each_correction_has_an_installer_and_a_rule(module: ModuleType) -> None:
    assert set(module.INSTALL) == {row[0] for row in module.CORRECTIONS}
    for _, code, _, _ in module.CORRECTIONS:
        assert importlib.import_module(f"ideepdoctor.rules.{code.lower()}")


def test_the_file_is_a_payload() -> None:
    assert SOURCE.isascii() and len(SOURCE.splitlines()) <= 1150
