"""What belongs into a wheelhouse, and which command brings it."""

from __future__ import annotations

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.model.plan import Requirement
from ideepdoctor.stacks.catalog import all_stacks
from ideepdoctor.treatment.installers import virtualenv_pins
from ideepdoctor.wheelhouse.build_sets import build_sets
from ideepdoctor.wheelhouse.wanted import FileSet, lock_set, locks_for, pins_set, stack_command


def names(*args, **kwargs) -> list[tuple[str, str]]:
    return [(stack.name, lock.python) for stack, lock in locks_for(*args, **{"every": False, "build": False, **kwargs})]


def test_each_python_gets_its_best_stack_that_runs_on_every_processor():
    assert names(None, ("3.7", "2.7")) == [
        ("chainer7.8.1-ideep4py2.0.0.post3", "3.7"),
        ("chainer6.7.0-ideep4py2.0.0.post3", "2.7"),
    ]
    assert names(None, ()) == [("chainer7.8.1-ideep4py2.0.0.post3", "3.7")]
    assert names("chainer4.5.0-ideep4py1.0.4", ("3.6",)) == [("chainer4.5.0-ideep4py1.0.4", "3.6")]
    every = names("chainer7.8.1-ideep4py2.0.0.post3", (), every=True)
    assert [python for _name, python in every] == ["3.7", "3.6", "3.5"]


@pytest.mark.parametrize(
    ("stack", "python", "told"),
    [
        ("chainer9-ideep4py9", "3.7", "no stack is called"),
        (None, "2.6", "not locked for Python 2.6"),
        ("chainer4.5.0-ideep4py1.0.4", "3.7", "not locked for Python 3.7"),
    ],
)
def test_what_is_not_locked_is_refused_with_what_is(stack, python, told):
    with pytest.raises(UsageError, match=told) as caught:
        names(stack, (python,))
    assert "lock" in caught.value.hint or "known" in caught.value.hint


A, B, C = (letter * 64 for letter in "abc")
BOTH = (Requirement("one", "1", (A, B)), Requirement("two", "2", (C,)))


def test_a_lock_wants_every_file_and_a_tool_any():
    lock = FileSet("lock", "lock", BOTH, every=True)
    tool = FileSet("tool", "tool", BOTH, every=False)
    assert [(item.name, item.sha256) for item in lock.lacking({A})] == [("one", (B,)), ("two", (C,))]
    assert [(item.name, item.sha256) for item in tool.lacking({A})] == [("two", (C,))]
    assert lock.lacking({A, B, C}) == tool.lacking({B, C}) == ()


def test_the_requirements_file_begins_with_what_others_are_built_with():
    lock = locks_for(None, ("3.7",), every=False, build=False)[0][1]
    lines = lock_set(lock).text().splitlines()
    assert [line.partition("==")[0] for line in lines[:3]] == ["setuptools", "wheel", "chainer"]
    assert len(lines) == len(lock.requirements)
    assert all(" --hash=sha256:" in line for line in lines)


def test_pins_with_continued_lines_are_read():
    found = pins_set("tool", "tool", virtualenv_pins().decode("ascii"))
    assert [item.name for item in found.requirements] == ["distlib", "filelock", "platformdirs", "virtualenv"]
    assert all(len(item.sha256) == 2 for item in found.requirements)


def test_every_lock_of_the_index_is_brought_by_the_command_that_an_error_names():
    for stack in all_stacks():
        for lock in stack.index_locks:
            command = stack_command(lock.requirements, "DIR")
            assert f"--stack {stack.name} --python {lock.python}" in command
    assert stack_command((Requirement("six", "0", (A,)),), "DIR") == "ideepdoctor wheelhouse DIR"
    tool = pins_set("", "", virtualenv_pins().decode("ascii")).requirements
    assert stack_command(tool, "DIR") == "ideepdoctor wheelhouse DIR --python 2.7"


def test_a_build_brings_its_toolchain_for_each_abi_and_mkl():
    chosen = locks_for(None, ("3.7", "2.7"), every=False, build=True)
    sets = {held.slug: held for held in build_sets(chosen)}
    assert {"build-programs", "build-cp37m", "build-cp27m", "build-cp27mu", "build-mkl-2.0.0.post3"} <= sets.keys()
    assert [item.name for item in sets["build-programs"].requirements] == ["cmake", "swig"]
    assert {item.name for item in sets["build-mkl-2.0.0.post3"].requirements} == {"mkl-include", "ideep4py"}
    assert "numpy" in {item.name for item in sets["build-cp37m"].requirements}
