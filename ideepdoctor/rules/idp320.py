"""IDP320: ideep4py dies, and no rule knows why."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.deaths import failed, killed
from ideepdoctor.rules.installed import package, tried
from ideepdoctor.rules.reproduce import FIRST_OPERATION, IMPORT_IDEEP4PY
from ideepdoctor.rules.unexplained import UnexplainedDeath, unexplained


class IDP320(UnexplainedDeath):
    """The import of ideep4py or its first operation fails, ends the process or hangs, and no rule knows why.

    What it checks
        The import and the first operation in a child of its own, after all other rules have looked: what is left has no
        known text and no known signal. Also a process that did all it was asked and dies while Python ends.

    Why it matters
        A guess would cost you a day. What is known is put together instead, as a report of the fault needs it: a
        command that shows it again, how it ended, the last lines of standard error, the call in which it died, the
        libraries that were loaded (the last one first, where the loader told), and all versions.

    How to fix
        Run the command in the evidence to see the fault alone. Then write the report, look at it, and send it to
        whoever maintains the file in which it died: ``ideepdoctor report -o report.md`` leaves out names, folders and
        secrets.

    References
        CPython's faulthandler dumps the stack at SIGSEGV, SIGFPE, SIGABRT, SIGBUS and SIGILL; Python 2.7 has none, so
        there the lines of a second run are followed. ld.so(8): LD_DEBUG=files.
    """

    title = "ideep4py fails, and the cause is not known"
    requires = ("IDP310", "IDP313")
    ok = (
        Example("all went well"),
        Example("not tried", {"imports": None, "first_op": None, "mode": "quick"}),
    )
    bad = (
        Example("an import is killed", {"imports": {"ideep4py": killed("SIGSEGV")}, "first_op": None}),
        Example("the first operation", {"first_op": killed("SIGFPE")}),
        Example("an import hangs", {"imports": {"ideep4py": {"ok": False, "timed_out": True}}, "first_op": None}),
        Example("another exception", {"imports": {"ideep4py": failed("OddError", "nobody knows")}, "first_op": None}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the import, or the operation that comes after it."""
        if package(facts, "ideep4py") is None:
            return
        imported = tried(facts, "ideep4py")
        death = unexplained("import ideep4py", "an import that succeeds", imported, IMPORT_IDEEP4PY) or unexplained(
            "the first operation", "a relu that gives its result", facts.first_op, FIRST_OPERATION
        )
        if death is not None:
            yield self.report(facts, death)
