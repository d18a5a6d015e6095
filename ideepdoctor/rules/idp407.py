"""IDP407: the libraries that were mapped are not those that were predicted."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.loading import native


class IDP407(Rule):
    """The model of the dynamic loader and a real process disagree about a library.

    What it checks
        The file that the search rules give for every library of interest, against what a child that imported
        ideep4py has mapped.

    Why it matters
        What the doctor says about libraries rests on that model. Where it is wrong, or something that it does not know
        has a hand in it (LD_AUDIT, a patched loader, a start-up file that opens libraries), the other findings about
        libraries may be wrong, too.

    How to fix
        Look at both files with ``ideepdoctor libs --tree``, and report it with the facts.

    References
        man ld.so.
    """

    title = "The loader took other libraries than predicted"
    severity = Severity.WARNING
    requires = ("IDP101", "IDP102", "IDP301")
    ok = (Example("they agree"), Example("nothing was started", {"native": {"started": None}}))
    bad = (
        Example(
            "another file",
            {"native": {"disagreements": ["libiomp5.so: predicted /a/libiomp5.so, mapped /b/libiomp5.so"]}},
        ),
        Example(
            "two of them",
            {"native": {"disagreements": ["a.so: predicted /a, not mapped", "b.so: predicted /b, mapped /c"]}},
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the first difference, the others as evidence."""
        found = native(facts)
        if found is None or not found.disagreements:
            return
        more = len(found.disagreements) - 1
        yield self.finding(
            found=found.disagreements[0] + (f", and {more} more" if more else ""),
            needed="the same file by prediction and in the process",
            consequence="which library computes is not certain here; other findings about libraries may be wrong",
            next_step="ideepdoctor libs --tree; then report it with: ideepdoctor diagnose --save-facts FILE",
            evidence=tuple(Evidence(text) for text in found.disagreements),
        )
