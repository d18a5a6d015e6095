"""Between two stacks: what is lost, what is left over, what the user's own packages say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.commands.upgrade import _refuse_other_way
from ideepdoctor.errors import UsageError
from ideepdoctor.model.facts import Facts, Package
from ideepdoctor.model.plan import Install
from ideepdoctor.stacks.catalog import Lock, Stack, all_stacks
from ideepdoctor.treatment.move import Move, move
from ideepdoctor.treatment.plan import in_place_plan, install_steps
from tests.rules.hosts import facts_on

NEW, MIDDLE, OLD = "chainer7.8.1-ideep4py2.0.0.post3", "chainer5.4.0-ideep4py2.0.0.post3", "chainer4.5.0-ideep4py1.0.4"


def stack_of(name: str, python: str = "3.6") -> tuple[Stack, Lock]:
    stack = next(stack for stack in all_stacks() if stack.name == name)
    return stack, next(lock for lock in stack.locks if lock.python == python)


def environment(name: str, *own: Package) -> Facts:
    """A 3.6 that is this stack, with packages of the user's own."""
    _stack, lock = stack_of(name)
    packages = tuple(Package(item.name, item.version, "/env/lib") for item in lock.requirements)
    return replace(facts_on("py36-healthy"), packages=(*packages, *own))


def moved(was: str, to: str, *own: Package) -> Move:
    return move(environment(was, *own), *stack_of(to))


@pytest.mark.parametrize(
    ("was", "to", "direction"), [(NEW, OLD, -1), (NEW, MIDDLE, -1), (OLD, NEW, 1), (NEW, NEW, 0), (MIDDLE, NEW, 1)]
)
def test_the_direction(was, to, direction):
    assert moved(was, to).direction == direction


def test_a_build_stands_where_its_release_stands():
    facts = environment(NEW)
    built = tuple(
        replace(item, version="2.0.0.post3+doctor.v3") if item.name == "ideep4py" else item
        for item in facts.packages or ()
    )
    facts = replace(facts, packages=built)
    assert move(facts, *stack_of(NEW)).direction == 0
    found = move(facts, *stack_of(OLD))
    assert (found.direction, found.left_over) == (-1, ("typing-extensions",))


def test_a_downgrade_says_what_it_costs_and_an_upgrade_nothing():
    lost = moved(NEW, OLD).lost
    assert any("Chainer 7.8.1 becomes 4.5.0" in phrase and "scripts and snapshots" in phrase for phrase in lost)
    assert moved(OLD, NEW).lost == ()
    assert any(phrase.startswith(f"the guard does not correct in {OLD}: H1, H2,") for phrase in lost)
    # A hazard that was there before is no news.
    assert not any("H7" in phrase for phrase in lost)


def test_what_only_the_old_stack_needed_is_named():
    assert moved(NEW, OLD).left_over == ("typing-extensions",)
    assert moved(OLD, NEW).left_over == ()


def test_what_a_package_of_the_users_needs_stays():
    mine = Package("mine", "1", "/env/lib", requires=("typing_extensions>=3", "six"))
    found = moved(NEW, OLD, mine)
    assert (found.left_over, found.kept, found.own) == ((), ("typing-extensions (needed by mine)",), ("mine",))
    elsewhere = Package("mine", "1", "/env/lib", requires=("typing_extensions; python_version<'3'", "x; extra=='a'"))
    assert moved(NEW, OLD, elsewhere).left_over == ("typing-extensions",)


def test_requirements_of_the_users_packages_that_the_new_stack_does_not_meet():
    mine = Package("mine", "1", "/env/lib", requires=("numpy>=1.15,<2", "six", "chainer (>=7)", "not a requirement!"))
    assert moved(NEW, OLD, mine).conflicts == (
        "mine asks for numpy<2,>=1.15, and numpy becomes 1.13.0",
        "mine asks for chainer>=7, and chainer becomes 4.5.0",
    )
    assert moved(NEW, NEW, mine).conflicts == ()


def test_the_plan_installs_what_differs_and_leaves_the_users_packages_alone():
    facts = environment(NEW, Package("mine", "1", "/env/lib"))
    stack, lock = stack_of(OLD)
    [step] = install_steps(facts, lock, [item.name for item in lock.requirements])
    assert {item.name for item in step.requirements} == {"chainer", "ideep4py", "numpy"}
    assert step.snapshot
    [install] = [step for step in in_place_plan(facts, stack, lock).steps if isinstance(step, Install)]
    assert install.remove == ()


@pytest.mark.parametrize(("command", "direction", "was", "to"), [("upgrade", 1, NEW, OLD), ("downgrade", -1, OLD, NEW)])
def test_the_other_way_is_refused_with_the_other_command(command, direction, was, to):
    facts = environment(was)
    stack, lock = stack_of(to)
    with pytest.raises(UsageError) as caught:
        _refuse_other_way(facts, stack, move(facts, stack, lock), command, direction)
    assert f"ideepdoctor {'downgrade' if command == 'upgrade' else 'upgrade'} --to {to}" in caught.value.hint
    _refuse_other_way(facts, stack, move(facts, stack, lock), command, -direction)
