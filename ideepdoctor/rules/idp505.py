"""IDP505: a binding that leaves one thread."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import variable


class IDP505(Rule):
    """OMP_PROC_BIND or OMP_PLACES leaves iDeep a single thread on Python 3.7.

    What it checks
        The two variables, where the cp37m wheel of ideep4py is installed.

    Why it matters
        That wheel's MKL-DNN loads libgomp beside libiomp5. With a binding libgomp pins the main thread as it loads;
        libiomp5 then counts one CPU and everything runs on one thread.

    How to fix
        ``unset OMP_PROC_BIND OMP_PLACES``; or Python 3.6, whose wheel loads libiomp5 alone.

    References
        Measured: OMP_PROC_BIND=true or close, OMP_PLACES=cores; the cp36 wheel keeps its threads.
    """

    title = "A thread binding leaves iDeep one thread"
    severity = Severity.WARNING
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP304", "IDP308")
    ok = (
        Example("not set"),
        Example("false", {"variables": {"effective": {"OMP_PROC_BIND": "false"}}}),
        Example("on 3.6", {"variables": {"effective": {"OMP_PROC_BIND": "true"}}}, "py36-healthy"),
    )
    bad = (
        Example("OMP_PROC_BIND=true", {"variables": {"effective": {"OMP_PROC_BIND": "true"}}}),
        Example("OMP_PLACES=cores", {"variables": {"effective": {"OMP_PLACES": "cores"}}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for a binding."""
        if facts.python.abi != "cp37m":
            return
        bind, places = variable(facts, "OMP_PROC_BIND"), variable(facts, "OMP_PLACES")
        off = bind is not None and bind.strip().lower() == "false"
        seen = [f"{name}={value}" for name, value in (("OMP_PROC_BIND", bind), ("OMP_PLACES", places)) if value]
        if seen and not off:
            yield self.finding(
                found=" ".join(seen),
                needed="neither of them, with this wheel",
                consequence="libgomp pins the main thread, and iDeep runs on one thread",
                next_step="unset OMP_PROC_BIND OMP_PLACES",
                evidence=(Evidence("the variables", None, "env | grep OMP_"),),
            )
