"""What a rule is: a document, a pure check, a treatment, and examples that are both its tests and its docs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step


class Unknown(Exception):
    """Raised by a check that cannot decide; the text says which fact is missing and why."""


@dataclass(frozen=True, slots=True)
class Example:
    """A recorded host with some facts changed.

    Attributes:
        name: what the example shows, a few words.
        overlay: nested mapping laid over the host's Facts JSON: mappings are merged, everything else replaces; for
            ``packages`` the overlay may be a mapping of name to version (None removes), see ``overlay.apply``.
        host: name of the recorded machine, a file of tests/hosts without ``.json``.
        also: codes of other rules whose findings are true at the same time.
    """

    name: str
    overlay: Mapping[str, Any] = field(default_factory=dict)
    host: str = "py37-healthy"
    also: tuple[str, ...] = ()


class Rule(ABC):
    """One rule. Subclasses are named by their code (``IDP`` and three digits) and live in a file each.

    The docstring is what ``ideepdoctor explain CODE`` prints and has the headings What it checks, Why it matters,
    How to fix, References.
    """

    title: ClassVar[str]
    """Fixed text, no full stop: the kind of fault."""
    severity: ClassVar[Severity]
    requires: ClassVar[tuple[str, ...]] = ()
    """Codes that must hold first; when one of them has a finding or is unknown, this rule is skipped because of it."""
    fix: ClassVar[FixSafety] = FixSafety.MANUAL
    ok: ClassVar[tuple[Example, ...]] = ()
    bad: ClassVar[tuple[Example, ...]] = ()

    @classmethod
    def code(cls) -> str:
        """The rule's code, which is the class's name."""
        return cls.__name__

    def concerns(self, facts: Facts) -> bool:
        """Whether there is anything here to judge; a rule that does not concern these facts has no outcome at all."""
        return True

    @abstractmethod
    def check(self, facts: Facts) -> Iterator[Finding]:
        """Yield a finding for each fault. Raises Unknown where a needed fact is not known."""

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Steps that cure the finding; none where only a person can."""
        return ()

    def finding(
        self,
        *,
        found: str,
        needed: str,
        consequence: str,
        next_step: str,
        evidence: tuple[Evidence, ...] = (),
        severity: Severity | None = None,
        fix: FixSafety | None = None,
    ) -> Finding:
        """Build a finding of this rule; severity and fix safety default to the rule's."""
        return Finding(
            code=self.code(),
            severity=severity or self.severity,
            title=self.title,
            found=found,
            needed=needed,
            consequence=consequence,
            next_step=next_step,
            evidence=evidence,
            fix=fix or self.fix,
        )
