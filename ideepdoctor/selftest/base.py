"""What a check of the doctor itself is: a document and a pure look at what was seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from ideepdoctor.fleet.merge_pages import Page
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.own import Own

_AGAIN = "pip install --force-reinstall ideepdoctor"


class SelfCheck(Page, ABC):
    """One check. Subclasses are named by their code (``IDP09`` and a digit).

    The docstring is what ``ideepdoctor explain CODE`` prints and has the headings of a rule.
    """

    severity: ClassVar[Severity] = Severity.ERROR

    @abstractmethod
    def check(self, own: Own) -> Iterator[Finding]:
        """Yield a finding for each fault. Raises ``rules.base.Unknown`` where it cannot tell."""

    def finding(
        self, *, found: str, needed: str, consequence: str, next_step: str = _AGAIN, path: str | None = None
    ) -> Finding:
        """Build a finding of this check."""
        evidence = (Evidence(found, path),) if path else ()
        return Finding(
            self.code(), self.severity, self.title, found, needed, consequence, next_step, evidence, self.fix
        )
