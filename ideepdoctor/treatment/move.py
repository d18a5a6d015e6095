"""Between two stacks: what an environment loses, what is left over, and what the user's own packages say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ideepdoctor.model.facts import Facts
from ideepdoctor.rules.compat import guarded
from ideepdoctor.rules.installed import installed_pair
from ideepdoctor.stacks.catalog import Lock, Stack, all_stacks, same_version


@dataclass(frozen=True, slots=True)
class Move:
    """What a change of stack means beside its steps; a phrase each.

    Attributes:
        direction: -1 to an older stack, 1 to a newer one, 0 neither.
        lost: what programs may miss, and the faults that come (back).
        left_over: names of packages that the old stack brought and nothing needs any more.
        kept: packages that only the old stack brought, but another package needs.
        conflicts: requirements of the user's own packages that the new stack does not meet.
        own: names of packages that no stack brought.
    """

    direction: int
    lost: tuple[str, ...]
    left_over: tuple[str, ...]
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]
    own: tuple[str, ...]


def move(facts: Facts, stack: Stack, lock: Lock) -> Move:
    """Compare an environment with the stack that it shall become.

    Args:
        facts: of the environment, with its packages; it has Chainer.
        stack: what it shall become.
        lock: the one for its ABI.
    """
    old = _present_stack(facts)
    old_lock = None if old is None else old.lock_for(facts.python.abi)
    brought = {item.name for item in old_lock.requirements} if old_lock else set()
    pins = {item.name: item.version for item in lock.requirements}
    candidates = {name for name in brought - pins.keys() if facts.package(name) is not None}
    needed: dict[str, str] = {}
    # What is needed by something that stays, stays.
    while more := {
        name: user
        for name in candidates - needed.keys()
        if (user := _user_of(facts, name, candidates - needed.keys(), pins)) is not None
    }:
        needed |= more
    own = tuple(item.name for item in facts.packages or () if item.name not in brought and item.name not in pins)
    direction = _direction(facts, stack)
    return Move(
        direction=direction,
        lost=tuple(_lost(facts, old, stack)) if direction < 0 else (),
        left_over=tuple(sorted(candidates - needed.keys())),
        kept=tuple(f"{name} (needed by {user})" for name, user in sorted(needed.items())),
        conflicts=tuple(_conflicts(facts, own, pins)),
        own=own,
    )


def _present_stack(facts: Facts) -> Stack | None:
    """The stack that the environment is, by its pair of releases; None: of no known stack."""
    chainer, ideep4py = installed_pair(facts)
    for stack in all_stacks():
        if same_version(stack.chainer, chainer or "") and (ideep4py or stack.ideep4py).split("+")[0] == stack.ideep4py:
            return stack
    return None


def _direction(facts: Facts, stack: Stack) -> int:
    chainer, ideep4py = installed_pair(facts)
    for there, wanted in ((chainer, stack.chainer), (ideep4py, stack.ideep4py)):
        try:
            # A build of a release (a local version) stands where the release stands.
            has = None if there is None else Version(Version(there).public)
            if has is not None and has != Version(wanted):
                return 1 if Version(wanted) > has else -1
        except InvalidVersion:
            continue
    return 0


def _lost(facts: Facts, old: Stack | None, new: Stack) -> Iterable[str]:
    chainer, ideep4py = installed_pair(facts)
    if chainer is not None and Version(chainer).major != Version(new.chainer).major:
        later = Version(new.chainer).major + 1
        yield (
            f"Chainer {chainer} becomes {new.chainer}: what came with Chainer {later} or later is gone; scripts and "
            "snapshots may need changes"
        )
    known = old.known if old is not None else ()
    for hazard in new.known:
        if hazard not in known:
            yield f"known of {new.name}: {hazard}"
    uncorrected = guarded(chainer, ideep4py) - guarded(new.chainer, new.ideep4py)
    if uncorrected:
        names = ", ".join(sorted(uncorrected, key=lambda hazard: int(hazard[1:])))
        yield f"the guard does not correct in {new.name}: {names} (the smoke test says which of them it has)"


def _requirements(lines: Iterable[str], facts: Facts) -> Iterable[Requirement]:
    """Requirements that hold for the target's Python; lines that are none, and extras, are left out."""
    minor = facts.python.minor
    environment: Mapping[str, str] = {
        "python_version": minor,
        "python_full_version": facts.python.version,
        "extra": "",
        "platform_system": facts.platform.system,
        "sys_platform": facts.platform.system.lower(),
        "implementation_name": facts.python.implementation.lower(),
        "platform_python_implementation": facts.python.implementation,
    }
    for line in lines:
        try:
            asked = Requirement(line)
            if asked.marker is None or asked.marker.evaluate(dict(environment)):
                yield asked
        except (InvalidRequirement, UndefinedEnvironmentName, InvalidVersion):
            continue


def _user_of(facts: Facts, name: str, leaving: set[str], pins: Mapping[str, str]) -> str | None:
    """A package that stays and asks for this one. What the new stack replaces asks for what the new stack holds."""
    for package in facts.packages or ():
        if package.name in leaving or package.name in pins:
            continue
        if any(canonicalize_name(asked.name) == name for asked in _requirements(package.requires, facts)):
            return package.name
    return None


def _conflicts(facts: Facts, own: Iterable[str], pins: Mapping[str, str]) -> Iterable[str]:
    for name in own:
        package = facts.package(name)
        for asked in _requirements(package.requires if package else (), facts):
            pin = pins.get(canonicalize_name(asked.name))
            there = facts.package(canonicalize_name(asked.name))
            if pin is None or asked.specifier.contains(pin, prereleases=True):
                continue
            if there is not None and there.version == pin:
                continue
            yield f"{name} asks for {asked.name}{asked.specifier}, and {asked.name} becomes {pin}"
