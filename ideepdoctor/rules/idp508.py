"""IDP508: a variable that hides a second OpenMP runtime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.idp408 import hides_the_clash, runtimes
from ideepdoctor.rules.installed import variable


def _set(value: str, **others: Any) -> dict[str, Any]:
    return {"variables": {"effective": {"KMP_DUPLICATE_LIB_OK": value}}, **others}


class IDP508(Rule):
    """KMP_DUPLICATE_LIB_OK is on, and no second OpenMP runtime is here.

    What it checks
        The variable, where at most one runtime of Intel's kind is mapped: where there are two, IDP408 says so and names
        the variable.

    Why it matters
        It cures nothing. Today it has nothing to hide; on the day when another package brings a second runtime, the
        process goes on with two sets of threads and results that nobody vouches for, instead of telling you.

    How to fix
        ``unset KMP_DUPLICATE_LIB_OK``, and take it out of the file that sets it.

    References
        apache/mxnet #8532; dmlc/xgboost #1715. Measured with a second libiomp5 of another SONAME: SIGABRT without it
        ("OMP: Error #15"), and with it the program runs.
    """

    title = "KMP_DUPLICATE_LIB_OK is set and has nothing to hide"
    severity = Severity.INFO
    ok = (Example("not set"), Example("off", _set("FALSE")), Example("nothing of value", _set("")))
    bad = (Example("TRUE", _set("TRUE")), Example("1, and nothing was started", _set("1", native={"started": None})))

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the variable where IDP408 has nothing to say."""
        if not hides_the_clash(facts) or (facts.native is not None and len(runtimes(facts.native)) > 1):
            return
        yield self.finding(
            found=f"KMP_DUPLICATE_LIB_OK={variable(facts, 'KMP_DUPLICATE_LIB_OK')}",
            needed="a process that says when a second OpenMP runtime comes in",
            consequence="a second runtime, when one comes, is hidden instead of reported",
            next_step="unset KMP_DUPLICATE_LIB_OK",
            evidence=(Evidence("the variable", None, "echo $KMP_DUPLICATE_LIB_OK"),),
        )
