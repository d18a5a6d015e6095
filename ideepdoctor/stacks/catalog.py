"""Known-good stacks: which releases go together, for which interpreter and processor, pinned by hash.

One TOML file per stack lies beside this module. They are written by ``tests/stacks/lock.py``, which downloads, installs
and proves what it writes; nothing in them is typed by hand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from packaging.version import InvalidVersion, Version

from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.facts import Cpu
from ideepdoctor.model.plan import Requirement


@dataclass(frozen=True, slots=True)
class Lock:
    """The closed set of distributions of a stack for one minor version of Python."""

    stack: str
    """Name of the stack."""
    python: str
    """Minor version: 3.7."""
    abis: tuple[str, ...]
    """ABI tags that the hashes cover: cp37m; cp27mu and cp27m together, where each has its own wheels."""
    requirements: tuple[Requirement, ...]
    """Sorted by name; Chainer is a source distribution, everything else a wheel."""
    installer: str
    """``uv``, or ``virtualenv`` for interpreters that uv refuses (2.7, 3.5)."""
    download_bytes: int
    """Size of the files of the first ABI, measured."""
    installed_bytes: int
    """Growth of the environment's folder by installing them, measured; 0: not measured."""
    proved: str
    """What was run on it, short; begins with ``untried`` where nothing was."""

    @property
    def tried(self) -> bool:
        """Whether the lock was installed and run at all."""
        return not self.proved.startswith("untried")

    def requirement(self, name: str) -> Requirement | None:
        """The pin of this (normalised) name, or None."""
        return next((item for item in self.requirements if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Stack:
    """A pair of Chainer and ideep4py that is right, and where."""

    name: str
    """``chainerVERSION-ideep4pyVERSION``."""
    chainer: str
    ideep4py: str
    cpu_flags: tuple[str, ...]
    """Flags of /proc/cpuinfo without which ideep4py dies of SIGILL."""
    cpu_vendor: str | None
    """The only CPUID vendor that it runs on; None: any."""
    known: tuple[str, ...]
    """Hazards and limits that are known, one short phrase each."""
    locks: tuple[Lock, ...]
    """Newest Python first."""

    def lock_for(self, abi: str) -> Lock | None:
        """The lock that covers an ABI tag, or None."""
        return next((lock for lock in self.locks if abi in lock.abis), None)


@lru_cache(maxsize=1)
def all_stacks() -> tuple[Stack, ...]:
    """Every known stack, best (newest Chainer, then newest ideep4py) first."""
    folder = files("ideepdoctor") / "stacks"
    texts = (item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".toml"))
    stacks = (stack_from_toml(tomllib.loads(text)) for text in texts)
    return tuple(sorted(stacks, key=lambda stack: (Version(stack.chainer), Version(stack.ideep4py)), reverse=True))


def stack_from_toml(data: Mapping[str, Any]) -> Stack:
    """Build a stack from the parsed text of its file. Raises KeyError where a key is missing."""
    locks = tuple(lock_from_toml(data["name"], item) for item in data["lock"])
    return Stack(
        name=data["name"],
        chainer=data["chainer"],
        ideep4py=data["ideep4py"],
        cpu_flags=tuple(data["cpu_flags"]),
        cpu_vendor=data.get("cpu_vendor"),
        known=tuple(data["known"]),
        locks=tuple(sorted(locks, key=lambda lock: Version(lock.python), reverse=True)),
    )


def lock_from_toml(stack: str, item: Mapping[str, Any]) -> Lock:
    """Build a lock of a stack from its table. Raises KeyError where a key is missing."""
    return Lock(
        stack=stack,
        python=item["python"],
        abis=tuple(item["abis"]),
        requirements=tuple(
            Requirement(name, version, tuple(digests))
            for name, (version, *digests) in sorted(item["requirements"].items())
        ),
        installer=item["installer"],
        download_bytes=item["download_bytes"],
        installed_bytes=item["installed_bytes"],
        proved=item["proved"],
    )


def choose(
    abi: str, cpu: Cpu, *, name: str | None = None, chainer: str | None = None, ideep4py: str | None = None
) -> tuple[Stack, Lock]:
    """Choose the best stack for an interpreter and a processor.

    Args:
        abi: ABI tag of the interpreter, such as cp37m.
        cpu: of the machine that the stack will run on. Where its flags are not known, they are not judged: the smoke
            test after the installation shows a missing one.
        name: this stack and no other.
        chainer: only stacks with this release of Chainer.
        ideep4py: only stacks with this release of ideep4py.

    Raises:
        UsageError: no stack has that name, or no known stack has those releases; the hint names the known ones.
        NotPossibleHere: the stacks asked for cannot run on this processor or interpreter; says why, and the nearest
            right stack where there is one.
    """
    asked = _asked(name, chainer, ideep4py)
    for stack in asked:
        lock = stack.lock_for(abi)
        if lock is not None and obstacle(stack, cpu) is None:
            return stack, lock
    raise _not_here(abi, cpu, asked, chainer)


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
    pythons = sorted({lock.python for stack in runs for lock in stack.locks}, key=Version, reverse=True)
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
