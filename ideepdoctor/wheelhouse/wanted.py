"""What belongs into a wheelhouse, as data: sets of releases with the digests of their files. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ideepdoctor.errors import UsageError
from ideepdoctor.model.plan import Requirement
from ideepdoctor.stacks.catalog import Lock, Stack, all_stacks


@dataclass(frozen=True, slots=True)
class FileSet:
    """What one purpose needs.

    Attributes:
        name: such as ``chainer7.8.1-ideep4py2.0.0.post3 for Python 3.7``.
        slug: the same for a file name: ``chainer7.8.1-ideep4py2.0.0.post3-py3.7``.
        requirements: releases with the digests of their files.
        every: a file for each digest (a lock: each ABI has its own); False: one file for any of them.
        missing: names that no index has for this Python; they are built.
        index: whether an index has them; False: the user brought them.
    """

    name: str
    slug: str
    requirements: tuple[Requirement, ...]
    every: bool
    missing: tuple[str, ...] = ()
    index: bool = True

    @property
    def requirements_name(self) -> str:
        """Name of its requirements file."""
        return f"requirements-{self.slug}.txt"

    def lacking(self, digests: Iterable[str]) -> tuple[Requirement, ...]:
        """The releases whose files are not all among these digests, each with the digests that are still wanted."""
        have, found = frozenset(digests), []
        for item in self.requirements:
            left = tuple(digest for digest in item.sha256 if digest not in have)
            if left and (self.every or len(left) == len(item.sha256)):
                found.append(Requirement(item.name, item.version, left))
        return tuple(found)

    def text(self) -> str:
        """The requirements file."""
        first = [item.line() for item in self.requirements if item.name in ("setuptools", "wheel")]
        rest = [item.line() for item in self.requirements if item.name not in ("setuptools", "wheel")]
        return "".join(f"{line}\n" for line in (*first, *rest))


def lock_set(lock: Lock) -> FileSet:
    """What a lock needs."""
    name, slug = f"{lock.stack} for Python {lock.python}", f"{lock.stack}-py{lock.python}"
    return FileSet(name, slug, lock.requirements, every=True, missing=lock.built)


def pins_set(name: str, slug: str, text: str) -> FileSet:
    """What a requirements file with hashes needs; of each release any one of its files."""
    joined = re.sub(r"\\\n\s*", "", text)
    found = []
    for line in joined.splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+)==(\S+)", line):
            found.append(Requirement(match[1], match[2], tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))))
    return FileSet(name, slug, tuple(found), every=False)


def locks_for(
    stack_name: str | None, pythons: Sequence[str], *, every: bool, build: bool
) -> tuple[tuple[Stack, Lock], ...]:
    """The locks that were asked for.

    Args:
        stack_name: of one stack; None: for each Python the best that is locked for it.
        pythons: minor versions; none: the newest one that needs no build.
        every: all Pythons of the stack (or of all stacks).
        build: also locks whose ideep4py must be built.

    Raises:
        UsageError: no such stack, or it is not locked for a Python.
    """
    stacks = [stack for stack in all_stacks() if stack_name in (None, stack.name)]
    if not stacks:
        known = ", ".join(stack.name for stack in all_stacks())
        raise UsageError(f"no stack is called {stack_name}", hint=f"known stacks: {known}")
    best: dict[str, tuple[Stack, Lock]] = {}
    # What runs on every processor goes before what does not.
    for stack in sorted(stacks, key=lambda item: item.cpu_vendor is not None):
        for lock in stack.locks:
            if build or not lock.built:
                best.setdefault(lock.python, (stack, lock))
    if every:
        return tuple(best.values())
    if not pythons:
        ready = [pair for pair in best.values() if not pair[1].built]
        return tuple(ready[:1] or list(best.values())[:1])
    unknown = [python for python in pythons if python not in best]
    if unknown:
        name = stack_name or "every known stack"
        built = {lock.python for stack in stacks for lock in stack.locks if lock.built}
        hint = f"locked: Python {', '.join(best)}"
        if not build and set(unknown) <= built:
            hint = "ideep4py must be built for it: add --with-build, and put the wheel there with build -o DIR"
        raise UsageError(f"{name} is not locked for Python {', '.join(unknown)}", hint=hint)
    return tuple(best[python] for python in dict.fromkeys(pythons))


def stack_command(requirements: Iterable[Requirement], folder: str) -> str:
    """The command that brings these releases into a wheelhouse: with the stack and the Python that pin all of them."""
    # What makes environments of Python 2.7 comes along with any of its stacks.
    tool = ("virtualenv", "distlib", "platformdirs")
    wanted = {(item.name, item.version) for item in requirements}
    digests: Mapping[str, frozenset[str]] = {item.name: frozenset(item.sha256) for item in requirements}
    if any(item.name in tool for item in requirements):
        return f"ideepdoctor wheelhouse {folder} --python 2.7"
    for stack in all_stacks():
        for lock in stack.locks:
            held = {(item.name, item.version): item for item in lock.requirements}
            if wanted and all(key in held and digests[key[0]] & frozenset(held[key].sha256) for key in wanted):
                return f"ideepdoctor wheelhouse {folder} --stack {stack.name} --python {lock.python}"
    return f"ideepdoctor wheelhouse {folder}"
