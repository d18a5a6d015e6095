"""The parts of auto that need no ideep4py, with stand-ins for Chainer, under old and new Pythons."""

from __future__ import annotations

from pathlib import Path

import pytest

from ideepdoctor.targets.target import payload_source
from tests.payload.test_guard import PYTHONS, World, interpreter

CHAINER = """
import sys, types
__version__ = "%s"
import ideep4py
backends = types.ModuleType("chainer.backends")
backends.intel64 = types.ModuleType("chainer.backends.intel64")
backends.intel64.is_ideep_available = lambda: %s
sys.modules["chainer.backends"] = backends
sys.modules["chainer.backends.intel64"] = backends.intel64
"""


@pytest.fixture
def world(tmp_path: Path, version: str) -> World:
    made = World(tmp_path, version)
    made.write("_ideepdoctor_auto", payload_source("auto").decode("ascii"))
    return made


ASK = "import _ideepdoctor_guard, _ideepdoctor_auto as auto, chainer; tell(auto=auto.status())"


@PYTHONS
@pytest.mark.parametrize(
    ("chainer", "ideep", "environ", "why"),
    [
        ("4.5.0", True, {}, "Chainer 4.5.0 is not supported"),
        ("7.8.1", False, {}, "iDeep is not available"),
        ("7.8.1", True, {"IDEEPDOCTOR_AUTO": "OFF"}, "switched off by IDEEPDOCTOR_AUTO"),
    ],
)
def test_where_nothing_is_moved_it_says_why(
    world: World, chainer: str, ideep: bool, environ: dict[str, str], why: str
) -> None:
    world.write("chainer", CHAINER % (chainer, ideep))
    told, stderr = world.run(ASK, **environ)
    assert (told["auto"]["active"], told["auto"]["why_not"]) == (False, why)
    assert "ideepdoctor.auto" not in stderr
    assert told["auto"]["moved"] == {"optimizer": 0, "inference": 0}


@PYTHONS
def test_a_chainer_that_is_another_one_is_told_once_and_left_alone(world: World) -> None:
    world.write("chainer", CHAINER % ("7.8.1", True))
    told, stderr = world.run(ASK + "\nauto.apply_again = auto._apply_quietly(chainer)")
    assert not told["auto"]["active"]
    assert "AttributeError" in told["auto"]["why_not"]
    assert stderr.count("ideepdoctor.auto: start: AttributeError") == 1


@PYTHONS
def test_without_the_guard_it_does_nothing(world: World) -> None:
    (world.folder / "_ideepdoctor_guard.py").unlink()
    told, _ = world.run("import _ideepdoctor_auto as auto, chainer; tell(auto=auto.status(), done=chainer.done)")
    assert told["done"]
    assert not told["auto"]["active"]
    assert "_ideepdoctor_guard" in told["auto"]["why_not"]


@PYTHONS
def test_it_costs_nothing_until_chainer_is_imported(world: World) -> None:
    before = "before = set(sys.modules)\nimport _ideepdoctor_guard, _ideepdoctor_auto as auto\n"
    told, _ = world.run(before + "tell(new=sorted(set(sys.modules) - before), auto=auto.status())")
    assert told["new"] == ["_ideepdoctor_auto", "_ideepdoctor_guard"]
    assert told["auto"]["why_not"] == "chainer was not imported"


@PYTHONS
def test_numbers_are_of_objects_and_go_with_them(world: World) -> None:
    told, _ = world.run(
        """
        import _ideepdoctor_guard, _ideepdoctor_auto as auto

        class Thing(object):
            __hash__ = None

            def __eq__(self, other):
                return True

        numbers, one, other = auto._Numbers(), Thing(), Thing()
        numbers.set(one, 3)
        numbers.set(one, numbers.get(one) + 1)
        tell(one=numbers.get(one), other=numbers.get(other), written=vars(one))
        del one
        tell(left=len(numbers.rows))
        """
    )
    assert (told["one"], told["other"], told["written"], told["left"]) == (4, 0, {}, 0)


def test_the_stand_ins_are_those_of_the_guard(tmp_path: Path) -> None:
    """A stand-in that made auto inactive for another reason would make these tests say nothing."""
    made = World(tmp_path, "newest")
    assert made.python == interpreter("newest")
    made.write("_ideepdoctor_auto", payload_source("auto").decode("ascii"))
    made.write("chainer", CHAINER % ("7.8.1", True) + "class Optimizer: pass\n")
    told, _ = made.run(ASK)
    assert "Parameter" in told["auto"]["why_not"]
