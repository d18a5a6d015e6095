"""Who needs ideep4py first: by the libraries where they are known, else by the release of torch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.model.facts import Facts, Guard, Variables
from ideepdoctor.model.native import ElfFile, LibraryFile, Native, PairCheck
from ideepdoctor.model.outcome import Outcome
from ideepdoctor.rules.installed import variable_steps
from ideepdoctor.stacks.catalog import choose
from ideepdoctor.treatment import plan
from ideepdoctor.treatment.order import packages_first
from tests.treatment.sample import INTEL, facts

FINE, DEAD = Outcome(ok=True, seconds=1.0), Outcome(ok=False, seconds=1.0, signal="SIGABRT")


def contained(owner: str | None) -> LibraryFile:
    return LibraryFile(ElfFile("/site/x.so", "/site/x.so"), "contained", "MKL-DNN", owner=owner)


def with_torch(version: str | None, *files: LibraryFile, complete: bool = True, looked: bool = True) -> Facts:
    given = facts(packages={} if version is None else {"torch": version})
    return replace(given, native=Native(None, files=files, complete=complete) if looked else None)


@pytest.mark.parametrize(
    ("version", "first"),
    [
        ("1.0.0", True),
        ("1.1.0", True),
        ("1.4.0", True),
        ("1.4.0+cpu", True),
        ("1.4.1.post2", True),
        ("1.5.0", False),
        ("1.5.0a0+git", False),
        ("1.7.1", False),
        ("0.4.1", False),
        ("2.1", False),
        ("a build of mine", False),
        (None, False),
    ],
)
def test_by_the_release_where_the_libraries_are_not_known(version, first):
    assert packages_first(with_torch(version, looked=False)) == (("torch",) if first else ())
    assert packages_first(with_torch(version, complete=False)) == (("torch",) if first else ())


@pytest.mark.parametrize(
    ("owner", "first"),
    [
        ("torch 1.4.0", True),
        ("conda pytorch 1.1.0", True),
        ("torch 0.4.1", True),
        ("torch of mine", True),
        ("torch 1.7.1", False),
        ("mxnet-mkl 1.5.0", False),
        ("torchvision 0.5.0", False),
        (None, True),
    ],
)
def test_by_the_libraries_where_they_are_known(owner, first):
    assert packages_first(with_torch("1.4.0", contained(owner))) == (("torch",) if first else ())


def test_a_torch_without_such_symbols_needs_nothing():
    mkldnn = LibraryFile(ElfFile("/a", "/a"), "mkldnn", "MKL-DNN 0.14", owner="torch 1.4.0")
    assert packages_first(with_torch("1.4.0", mkldnn)) == ()
    assert packages_first(with_torch(None, contained(None))) == (), "nobody's library, and no torch"
    assert packages_first(with_torch("2.1", contained(None))) == ()


def orders(steps: tuple[object, ...]) -> list[bool]:
    return ["\nFIRST = ('torch',)\n" in step.content for step in steps if step.path.endswith("_startup.py")]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("version", "first"), [("1.4.0", True), ("1.7.1", False)])
def test_whoever_writes_the_file_writes_the_order(version, first):
    given = with_torch(version, looked=False)
    assert orders(variable_steps(given)) == [first]
    stack, lock = choose("cp37m", INTEL)
    planned = plan.in_place_plan(given, stack, lock).steps
    assert orders(tuple(step for step in planned if hasattr(step, "content"))) == [first]


def test_a_new_environment_has_no_torch():
    stack, lock = choose("cp37m", INTEL)
    made = plan.setup_plan(with_torch("1.4.0", looked=False), stack, lock, "/new", "/usr/bin/python3.7", "/new/site")
    assert orders(made.steps[2:]) == [False]


@pytest.mark.parametrize(
    ("pairs", "written"),
    [
        (None, True),
        ((), True),
        ((PairCheck("torch 1.4.0", "torch", DEAD, FINE),), True),
        ((PairCheck("torch 1.4.0", "torch", FINE, FINE),), False),
        ((PairCheck("other 1.0", "other", FINE, FINE),), True),
    ],
)
def test_in_place_the_file_is_written_until_torch_gets_on_with_ideep4py(pairs, written):
    stack, lock = choose("cp37m", INTEL)
    pinned = {item.name: item.version for item in lock.requirements}
    hold = Variables(effective={"CHAINER_USE_IDEEP": "auto"}, set_by_doctor=("CHAINER_USE_IDEEP",))
    given = facts(packages={**pinned, "torch": "1.4.0"}, variables=hold)
    given = replace(given, guard=Guard(choice=True, path="/g", current=True))
    given = replace(given, native=Native(None, files=(contained("torch 1.4.0"),), pairs=pairs))
    assert orders(plan.in_place_plan(given, stack, lock).steps) == [True] * written
