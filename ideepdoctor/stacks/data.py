"""What a stack is, as its file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import Version

from ideepdoctor.model.plan import Requirement

BUILT = ("ideep4py",)
"""What is built where no index has it."""


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
    built: tuple[str, ...] = ()
    """Names that are not among the requirements because no index has them for this Python: they are built."""
    known: tuple[str, ...] = ()
    """Limits that are known of this Python alone, one short phrase each."""

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

    @property
    def index_locks(self) -> tuple[Lock, ...]:
        """The locks whose every distribution an index has."""
        return tuple(lock for lock in self.locks if not lock.built)

    def lock_for(self, abi: str) -> Lock | None:
        """The lock that covers an ABI tag and needs no build, or None."""
        return next((lock for lock in self.index_locks if abi in lock.abis), None)

    def lock_to_build(self, abi: str) -> Lock | None:
        """The lock that covers an ABI tag, without its ideep4py, which is to be built; None: there is none."""
        lock = next((lock for lock in self.locks if abi in lock.abis), None)
        if lock is None or lock.built:
            return lock
        kept = tuple(item for item in lock.requirements if item.name not in BUILT)
        return replace(lock, requirements=kept, built=BUILT)


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
        built=tuple(item.get("built", ())),
        known=tuple(item.get("known", ())),
    )
