"""What the rules about a build from source share: they judge what there is before it starts, and what its log says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ideepdoctor.model.build import BuildFacts, LogHit
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Rule

DOES = "ideepdoctor build"
"""The command that has the cure in it."""
_SEND = "the build was to cure this by itself: ask with its log"


@dataclass(frozen=True, slots=True)
class Cure:
    """What a line of a log means and what to do about it.

    Attributes:
        needed: what must be there instead.
        cause: one sentence.
        by_hand: what a person does who goes on by hand.
        build: what ``ideepdoctor build`` does about it by itself; empty: it needs the same as the person.
        own: what to do where it was ``ideepdoctor build`` that said it; empty: as by hand, but where it was to cure it.
        severity: None: the rule's.
    """

    needed: str
    cause: str
    by_hand: str
    build: str = ""
    own: str = ""
    severity: Severity | None = None

    def next_step(self, build: BuildFacts) -> str:
        """The step for whoever wrote the log: the doctor's own build has a request."""
        if build.request is not None:
            return self.own or (_SEND if self.build else self.by_hand)
        return f"{self.by_hand}; or {DOES}, which {self.build}" if self.build else self.by_hand


class BuildRule(Rule):
    """A rule about a build. It has no outcome where no build was asked for and no log was read."""

    def concerns(self, facts: Facts) -> bool:
        """Whether a build is looked at."""
        return facts.build is not None

    def check(self, facts: Facts) -> Iterator[Finding]:
        """What is wrong before it starts; then what the log says, once, with the other lines as evidence."""
        build = facts.build
        if build is None:
            return
        yield from self.before(build, facts)
        hits = [hit for hit in build.hits if hit.code == self.code()]
        if hits:
            yield self._of_log(hits, build, facts)

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """Yield a finding for each fault of a build that has not begun. What is None was not looked at."""
        yield from ()

    @abstractmethod
    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """What a line of this code means."""

    def _of_log(self, hits: list[LogHit], build: BuildFacts, facts: Facts) -> Finding:
        first = hits[0]
        cure = self.cure(first.line, build, facts)
        return self.finding(
            found=f"line {first.line_number}: {first.line}",
            needed=cure.needed,
            consequence=cure.cause,
            next_step=cure.next_step(build),
            evidence=tuple(Evidence(f"line {hit.line_number}: {hit.line}") for hit in hits),
            severity=cure.severity,
        )


def logged(code: str, line: str, **more: Any) -> dict[str, Any]:
    """An example's overlay: a log in which this line is the first that is known."""
    return {"build": {"hits": [{"code": code, "line_number": 41, "line": line}], **more}}


def planned(**build: Any) -> dict[str, Any]:
    """An example's overlay: a build that is about to start.

    Args:
        build: fields of BuildFacts, the others are not known; ``request`` is laid over the example's request. None at
            all: a machine that has everything.
    """
    asked: Mapping[str, Any] = build.pop("request", {})
    return {"build": {**(build or READY), "request": {**READY["request"], **asked}}}


READY: dict[str, Any] = {
    "request": {"python": "/env/bin/python", "output": "/out"},
    "compiler": "c++ (Debian 12.2.0-14) 12.2.0",
    "compiler_version": [12, 2, 0],
    "compiler_works": "",
    "headers": "/usr/include/python3.7m",
    "git": "2.39.5",
    "make": "4.3",
    "cmake": "3.18.4.post1",
    "swig": "3.0.12",
    "network": "",
    "disk_free_bytes": 20_000_000_000,
    "memory_bytes": 8_000_000_000,
    "jobs": 2,
    "python_minor": "3.7",
    "march": {"asked": "native", "label": "v3", "flags": ["avx", "avx2", "bmi1", "bmi2", "fma"]},
    "cpu_vendor": "AuthenticAMD",
    "ref": "8800808",
    "release": "2.0.0.post3",
}
"""A machine that can build."""
