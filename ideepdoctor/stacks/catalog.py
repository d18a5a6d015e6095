"""Known-good stacks: which releases go together, for which interpreter and processor, pinned by hash.

One TOML file per stack lies beside this module. They are written by ``tests/stacks/lock.py``, which downloads, installs
and proves what it writes; nothing in them is typed by hand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files

from packaging.version import InvalidVersion, Version

from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import Cpu
from ideepdoctor.model.plan import Requirement
from ideepdoctor.stacks.data import Lock, Stack, lock_from_toml, stack_from_toml

__all__ = [
    "Lock",
    "Stack",
    "all_stacks",
    "choose",
    "lock_for_build",
    "lock_from_toml",
    "nearest",
    "obstacle",
    "same_version",
    "stack_from_toml",
    "with_built",
]


@lru_cache(maxsize=1)
def all_stacks() -> tuple[Stack, ...]:
    """Every known stack, best (newest Chainer, then newest ideep4py) first."""
    folder = files("ideepdoctor") / "stacks"
    texts = (item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".toml"))
    stacks = (stack_from_toml(tomllib.loads(text)) for text in texts)
    return tuple(sorted(stacks, key=lambda stack: (Version(stack.chainer), Version(stack.ideep4py)), reverse=True))


def choose(
    abi: str,
    cpu: Cpu,
    *,
    name: str | None = None,
    chainer: str | None = None,
    ideep4py: str | None = None,
    built: bool = False,
) -> tuple[Stack, Lock]:
    """Choose the best stack for an interpreter and a processor.

    Args:
        abi: ABI tag of the interpreter, such as cp37m.
        cpu: of the machine that the stack will run on. Where its flags are not known, they are not judged: the smoke
            test after the installation shows a missing one.
        name: this stack and no other.
        chainer: only stacks with this release of Chainer.
        ideep4py: only stacks with this release of ideep4py.
        built: also locks without ideep4py, where no index has it for this interpreter and it is built.

    Raises:
        UsageError: no stack has that name, or no known stack has those releases; the hint names the known ones.
        NotPossibleHere: the stacks asked for cannot run on this processor or interpreter; says why, and the nearest
            right stack where there is one.
    """
    asked = _asked(name, chainer, ideep4py)
    for stack in asked:
        lock = stack.lock_for(abi) or (stack.lock_to_build(abi) if built else None)
        if lock is not None and obstacle(stack, cpu) is None:
            return stack, lock
    raise _not_here(abi, cpu, asked, chainer)


def lock_for_build(abi: str, chainer: str | None) -> tuple[Stack, Lock]:
    """The newest stack for an interpreter that ideep4py is built for, whatever processor it will run on.

    Args:
        abi: ABI tag of the interpreter, such as cp311.
        chainer: release of Chainer; None: the newest that is locked for this interpreter.

    Returns:
        The stack, and its lock without ideep4py (``Lock.built``), also where an index has an ideep4py.

    Raises:
        UsageError: no stack has this Chainer; the hint names the known ones.
        NotPossibleHere: Chainer is not locked for this interpreter; the hint names those that it is locked for.
    """
    asked = _asked(None, chainer, None)
    for stack in asked:
        lock = stack.lock_to_build(abi)
        if lock is not None:
            return stack, lock
    pythons = sorted({lock.python for stack in asked for lock in stack.locks}, key=Version, reverse=True)
    what = f"Chainer {chainer}" if chainer else "Chainer"
    others = [stack.chainer for stack in all_stacks() if stack.lock_to_build(abi) is not None]
    hints = [f"use Python {_or(pythons)} (--python)"]
    if others:
        hints.append(f"with this interpreter: --chainer {_or(list(dict.fromkeys(others)))}")
    raise NotPossibleHere(
        f"{what} is not known to run on an interpreter with the ABI {abi}",
        hint="\n".join(hints),
        context={"abi": abi},
    )


def with_built(lock: Lock, requirement: Requirement) -> Lock:
    """A lock that is whole: with what was built for it, which it waits for.

    Raises:
        ValueError: the lock does not wait for a distribution of this name.
    """
    if requirement.name not in lock.built:
        raise ValueError(f"{lock.stack} for Python {lock.python} does not wait for {requirement.name}")
    return replace(
        lock,
        requirements=tuple(sorted((*lock.requirements, requirement), key=lambda item: item.name)),
        built=tuple(name for name in lock.built if name != requirement.name),
    )


def nearest(abi: str, cpu: Cpu, chainer: str | None, ideep4py: str | None = None) -> tuple[Stack, Lock] | None:
    """Find the right stack that changes least for its user.

    Args:
        abi: ABI tag of the interpreter.
        cpu: of the machine.
        chainer: release that the user has; None: no preference, so the best stack.
        ideep4py: release to keep among stacks that are equally near, if possible.

    Returns:
        A stack with the same Chainer, else one with the closest newer Chainer, else None (also where ``chainer`` is no
        version).
    """
    usable = _usable(abi, cpu)
    if chainer is None:
        return next((pair for pair in usable if ideep4py is None or pair[0].ideep4py == ideep4py), None) or next(
            iter(usable), None
        )
    try:
        wanted = Version(chainer)
    except InvalidVersion:
        return None
    right = [pair for pair in usable if Version(pair[0].chainer) >= wanted]
    return min(
        right,
        # The list is best first and min keeps the first of equals, so a tie goes to the newer ideep4py.
        key=lambda pair: (Version(pair[0].chainer), pair[0].ideep4py != ideep4py),
        default=None,
    )


def obstacle(stack: Stack, cpu: Cpu) -> str | None:
    """Why a processor cannot run a stack, as a clause for a message; None: nothing known against it."""
    if stack.cpu_vendor is not None and cpu.vendor != stack.cpu_vendor:
        found = cpu.vendor or "of unknown vendor"
        return (
            f"ideep4py {stack.ideep4py} runs on {stack.cpu_vendor} processors only (on others its code generator kills "
            f"Python at import: Xbyak::Error), and this one is {found}"
        )
    flags = cpu.flags
    missing = [] if flags is None else [flag for flag in stack.cpu_flags if flag not in flags]
    if missing:
        return (
            f"ideep4py {stack.ideep4py} needs {', '.join(missing).upper()}, which this processor does not have "
            "(it would die of SIGILL at the first array)"
        )
    return None


def _asked(name: str | None, chainer: str | None, ideep4py: str | None) -> tuple[Stack, ...]:
    """The stacks that the user's words allow. Raises UsageError where there is none."""
    known = all_stacks()
    found = tuple(
        stack
        for stack in known
        if (name is None or stack.name == name)
        and (chainer is None or same_version(stack.chainer, chainer))
        and (ideep4py is None or same_version(stack.ideep4py, ideep4py))
    )
    if found:
        return found
    names = _names(known)
    if name is not None and all(stack.name != name for stack in known):
        raise UsageError(f"no stack is called {name}", hint=f"known stacks: {names}")
    if name is not None:
        raise UsageError(
            f"the stack {name} does not have {_words(chainer, ideep4py)}",
            hint="give the stack's name alone, or the versions alone",
        )
    raise UsageError(f"no stack with {_words(chainer, ideep4py)} is known to be right", hint=f"known stacks: {names}")


def _not_here(abi: str, cpu: Cpu, asked: tuple[Stack, ...], chainer: str | None) -> NotPossibleHere:
    """The error that says why none of the stacks asked for can be here, and what can."""
    runs = [stack for stack in asked if obstacle(stack, cpu) is None]
    pythons = sorted({lock.python for stack in runs for lock in stack.index_locks}, key=Version, reverse=True)
    reasons = [
        obstacle(stack, cpu) for stack in asked if stack not in runs and (stack.lock_for(abi) or len(asked) == 1)
    ]
    if runs:
        names = asked[0].name if len(asked) == 1 else "what can run on this processor"
        reasons.append(f"{names} is locked for Python {_or(pythons)}, not for the ABI {abi} of this interpreter")
    # Nothing as new as what was asked for may run here; then the best of what does is still an answer.
    other = nearest(abi, cpu, chainer or min((stack.chainer for stack in asked), key=Version)) or nearest(
        abi, cpu, None
    )
    hints = [f"use Python {_or(pythons)} (--python)"] if pythons else []
    if other is not None:
        hints.append(f"the nearest one that is right with this interpreter: --stack {other[0].name}")
    return NotPossibleHere(
        "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or f"no stack is locked for the ABI {abi}",
        hint="\n".join(hints) or "no known stack runs on this processor",
        context={"abi": abi, "cpu vendor": cpu.vendor or "unknown"},
    )


def _or(words: Sequence[str]) -> str:
    """``3.7, 3.6 or 2.7``."""
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _usable(abi: str, cpu: Cpu) -> list[tuple[Stack, Lock]]:
    """All pairs that can be here, best first."""
    found = []
    for stack in all_stacks():
        lock = stack.lock_for(abi)
        if lock is not None and obstacle(stack, cpu) is None:
            found.append((stack, lock))
    return found


def same_version(one: str, other: str) -> bool:
    """Whether two version texts mean the same release; texts that are no versions never do."""
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _names(stacks: Iterable[Stack]) -> str:
    """Names for a message."""
    return ", ".join(stack.name for stack in stacks)


def _words(chainer: str | None, ideep4py: str | None) -> str:
    """``Chainer 5.0.0 and ideep4py 1.0.4`` of what was given."""
    given = [f"{label} {value}" for label, value in (("Chainer", chainer), ("ideep4py", ideep4py)) if value is not None]
    return " and ".join(given)
