"""IDP310: the import of ideep4py fails."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import classify, explained, failed, how_it_ended, killed, last_line
from ideepdoctor.rules.idp408 import ended_by_the_clash
from ideepdoctor.rules.installed import outcome, package, python_command, tried


class IDP310(Rule):
    """``import ideep4py`` fails or ends the process, for a known reason that no other rule finds.

    What it checks
        How a child ended that imported it: exception text, signal, time.

    Why it matters
        Chainer hides an ImportError and goes on with NumPy; a signal takes your program with it.

    How to fix
        By the cause that the finding names.

    References
        intel/ideep #25; oneDNN #294; chainer PR 4385; CTranslate2 #1849 (executable stack).
    """

    title = "ideep4py cannot be imported"
    severity = Severity.ERROR
    requires = (
        "IDP103",
        "IDP110",
        "IDP111",
        "IDP116",
        "IDP201",
        "IDP204",
        "IDP301",
        "IDP302",
        "IDP305",
        "IDP309",
        "IDP314",
        "IDP401",
        "IDP402",
        "IDP403",
        "IDP405",
        "IDP406",
        "IDP409",
        "IDP411",
        "IDP707",
    )
    ok = (Example("imported"), Example("not tried", {"imports": None, "first_op": None, "mode": "quick"}))
    bad = (
        Example(
            "a missing library",
            {"imports": {"ideep4py": failed("ImportError", "libmkldnn.so.0: cannot open shared object file")}},
        ),
        Example("an old processor", {"imports": {"ideep4py": killed("SIGILL")}}),
        Example("says why", {"imports": {"ideep4py": killed("SIGABRT", "OMP: Error #15: Initializing libiomp5.so")}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Classify a failed import."""
        if package(facts, "ideep4py") is None:
            return
        if facts.native is not None and ended_by_the_clash(facts.native):
            return  # IDP408 tells of it
        result, numpy = tried(facts, "ideep4py"), outcome(facts, "numpy")
        if result is None or result.ok or not explained(result):
            return
        cause = classify(result)
        below = "" if numpy is None or numpy.ok else "NumPy itself cannot be imported: "
        yield self.finding(
            found=how_it_ended(result),
            needed="an import that succeeds",
            consequence=below + cause.consequence,
            next_step=cause.next_step,
            evidence=(Evidence(last_line(result), None, python_command(facts, "-c 'import ideep4py'")),),
        )
