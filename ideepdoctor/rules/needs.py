"""What installed distributions say that they need, judged for the target's Python. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.markers import InvalidMarker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from ideepdoctor.model.facts import Facts, Package

ROOTS = ("chainer", "ideep4py", "numpy")
"""What this doctor is about: with what these need, and what that needs."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that is not met."""

    by: Package
    line: str
    """As the distribution declares it, without its marker."""
    name: str
    """Normalised name of what it needs."""
    found: Package | None
    """What is installed of it; None: nothing."""


def environment(facts: Facts) -> dict[str, str]:
    """What markers are evaluated with: the target's Python and machine, no extra."""
    python, platform = facts.python, facts.platform
    name = {"CPython": "cpython", "PyPy": "pypy"}.get(python.implementation, python.implementation.lower())
    old = python.version.startswith("2.")
    system = {"Linux": "linux2" if old else "linux", "Darwin": "darwin", "Windows": "win32"}
    return {
        "python_version": python.minor,
        "python_full_version": python.version,
        "implementation_name": "" if old else name,
        "implementation_version": "0" if old else python.version,
        "platform_python_implementation": python.implementation,
        "sys_platform": system.get(platform.system, platform.system.lower()),
        "os_name": "nt" if platform.system == "Windows" else "posix",
        "platform_system": platform.system,
        "platform_machine": platform.machine,
        "platform_release": platform.kernel or "",
        "platform_version": "",
        "extra": "",
    }


def unmet(facts: Facts) -> Iterator[Unmet]:
    """The requirements of ``ROOTS``, and of what they need, that are not met; each once.

    Lines that are no requirement (a URL of an old kind), extras and other platforms' lines are left out. A version
    that is a build (a local version) counts as the release that it was built from.
    """
    there = {package.name: package for package in reversed(facts.packages or ())}
    given = environment(facts)
    waiting, seen = [name for name in ROOTS if name in there], set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        for line in there[name].requires:
            needed = _applying(line, given)
            if needed is None:
                continue
            wanted = canonicalize_name(needed.name)
            found = there.get(wanted)
            if found is None or not _fits(needed, found.version):
                yield Unmet(there[name], f"{needed.name}{needed.specifier}", wanted, found)
            if found is not None:
                waiting.append(wanted)


def _applying(line: str, given: dict[str, str]) -> Requirement | None:
    try:
        needed = Requirement(line)
        return needed if needed.marker is None or needed.marker.evaluate(given) else None
    except (InvalidRequirement, InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        return None


def _fits(needed: Requirement, version: str) -> bool:
    """Whether a version meets a requirement; one that is no version is not judged."""
    try:
        return needed.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:
        return True
