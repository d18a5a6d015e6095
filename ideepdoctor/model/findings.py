"""What the rules say: findings with evidence, and the outcome of every rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is; the order of the members is the order of display."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class FixSafety(StrEnum):
    """What a rule's treatment may be trusted with."""

    SAFE = "safe"
    """Applied by ``fix`` after one question."""
    UNSAFE = "unsafe"
    """Changes what the user may rely on (a version of Chainer): applied only with ``--unsafe``."""
    MANUAL = "manual"
    """Only a person can do it; the finding says how."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that the reader can look at to see that a finding is true."""

    text: str
    """What was seen."""
    path: str | None = None
    command: str | None = None
    """A command that shows it."""
    line: int | None = None
    """In the file ``path``, from 1; None: the whole file."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, or a fact worth knowing, on this target."""

    code: str
    severity: Severity
    title: str
    """The rule's title: same for all its findings."""
    found: str
    """What is there: "numpy 1.15.4"."""
    needed: str
    """What must be there instead: "numpy 1.16.6 to 1.21.6"."""
    consequence: str
    """What happens because of it, one sentence."""
    next_step: str
    """One command, or one thing to do."""
    evidence: tuple[Evidence, ...] = ()
    fix: FixSafety = FixSafety.MANUAL

    @property
    def explain(self) -> str:
        """The command that prints the rule as a document."""
        return f"ideepdoctor explain {self.code}"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that was not tried because another one, on which it rests, does not hold."""

    code: str
    because: str
    """Code of that other rule."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A rule that could not be decided; never counted as healthy."""

    code: str
    title: str
    reason: str


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding, or an undecided rule, that somebody has accepted: listed, and not counted."""

    code: str
    severity: Severity | None
    """None: the rule could not be decided."""
    title: str
    found: str
    """What is there, or why it could not be decided."""
    reason: str
    """Why it was accepted."""
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcomes of all rules on one set of facts."""

    findings: tuple[Finding, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unknown: tuple[NotKnown, ...] = ()
    ok: tuple[str, ...] = ()
    """Codes of the rules that hold."""
    suppressed: tuple[Suppressed, ...] = ()
    """What was found and accepted before."""

    def worst(self) -> Severity | None:
        """The worst severity among the findings; None where there are none."""
        order = list(Severity)
        return min((finding.severity for finding in self.findings), key=order.index, default=None)
