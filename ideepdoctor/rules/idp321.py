"""IDP321: Chainer dies, and no rule knows why."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts, Outcome
from ideepdoctor.model.findings import Finding
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.deaths import explained, failed, killed
from ideepdoctor.rules.idp311 import failed_chainer
from ideepdoctor.rules.installed import outcome
from ideepdoctor.rules.reproduce import IMPORT_CHAINER
from ideepdoctor.rules.unexplained import UnexplainedDeath, unexplained


class IDP321(UnexplainedDeath):
    """The import of Chainer fails, ends the process or hangs, and no rule knows why; ideep4py is not to blame.

    What it checks
        How a child ended that imported Chainer, after all other rules have looked; where ideep4py itself fails in the
        same way, that alone is told (IDP320).

    Why it matters
        Nothing of yours that uses Chainer runs, and a guess at the cause would cost you a day.

    How to fix
        Run the command in the evidence to see the fault alone. Then write the report, look at it, and send it to
        whoever maintains the file in which it died: ``ideepdoctor report -o report.md`` leaves out names, folders and
        secrets.

    References
        CPython's faulthandler; ld.so(8): LD_DEBUG=files.
    """

    title = "Chainer fails, and the cause is not known"
    requires = ("IDP311",)
    ok = (Example("all went well"), Example("not tried", {"imports": None, "first_op": None, "mode": "quick"}))
    bad = (
        Example("an import is killed", {"imports": {"chainer": killed("SIGSEGV")}, "chainer": None}),
        Example("an import hangs", {"imports": {"chainer": {"ok": False, "timed_out": True}}, "chainer": None}),
        Example("without ideep4py", {"imports": {"chainer": failed("OddError", "nobody knows")}, "chainer": None}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the import, unless ideep4py dies of the same."""
        result, below = failed_chainer(facts), outcome(facts, "ideep4py")
        if result is not None and below is not None and _same(below, result):
            return
        death = unexplained("import chainer", "an import that succeeds", result, IMPORT_CHAINER)
        if death is not None:
            yield self.report(facts, death)


def _same(below: Outcome, result: Outcome) -> bool:
    """Whether ideep4py failed for no known reason, and with the same exception."""
    same = (below.error_type, below.error_text) == (result.error_type, result.error_text)
    return not below.ok and not explained(below) and same
