"""IDP313: the first operation dies."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.deaths import classify, explained, how_it_ended, killed, last_line
from ideepdoctor.rules.idp509 import stacks_beyond_memory
from ideepdoctor.rules.installed import outcome
from ideepdoctor.symptoms.causes import THREADS_REFUSED


class IDP313(Rule):
    """The import works and the first operation ends the process.

    What it checks
        A relu through ideep4py in a child of its own.

    Why it matters
        ``import ideep4py`` and ``is_ideep_available()`` say that all is well; the first operation then takes your
        program with it: another MKL-DNN than ideep4py's own (SIGABRT, mkldnn::error), or a processor that is too old
        (SIGILL).

    How to fix
        By the cause that the finding names.

    References
        apache/mxnet #15419; PaddlePaddle #14784. All 50 symbols exist in every MKL-DNN from 0.12 to 0.21, so only
        running one tells.
    """

    title = "The first operation of ideep4py ends the process"
    severity = Severity.ERROR
    requires = (
        "IDP110",
        "IDP111",
        "IDP114",
        "IDP115",
        "IDP116",
        "IDP301",
        "IDP302",
        "IDP305",
        "IDP309",
        "IDP310",
        "IDP401",
        "IDP402",
        "IDP403",
        "IDP405",
        "IDP406",
        "IDP707",
    )
    ok = (Example("it runs"), Example("not tried", {"imports": None, "first_op": None, "mode": "quick"}))
    bad = (
        Example("another MKL-DNN", {"first_op": killed("SIGABRT", "what():  std::exception\nmkldnn::error")}),
        Example("an old processor", {"first_op": killed("SIGILL")}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Classify a bad ending."""
        result, imported = facts.first_op, outcome(facts, "ideep4py")
        if result is None and imported is not None and imported.ok:
            raise Unknown("the first operation was not tried, although ideep4py can be imported")
        if result is None or result.ok or not explained(result):
            return
        cause = classify(result)
        if cause == THREADS_REFUSED and stacks_beyond_memory(facts):
            return  # IDP509 has the cause
        yield self.finding(
            found=how_it_ended(result),
            needed="a relu that gives its result",
            consequence=f"your program dies at its first operation: {cause.consequence}",
            next_step=cause.next_step,
            evidence=(Evidence(last_line(result), None, "ideepdoctor smoke"),),
        )
