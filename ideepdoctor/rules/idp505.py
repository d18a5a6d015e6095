"""IDP505: a binding that leaves one thread."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import variable

_ONE_CORE = re.compile(r"(cores|threads)\b|\{\s*\d+\s*\}", re.IGNORECASE)
"""Values of OMP_PLACES whose first place, which the main thread gets, is one core or CPU."""


class IDP505(Rule):
    """OMP_PROC_BIND, OMP_PLACES or GOMP_CPU_AFFINITY leaves iDeep a single thread on Python 3.7.

    What it checks
        The three variables, where the cp37m wheel of ideep4py is installed and more than one CPU may be used. Places of
        several cores (``sockets``, ``{0,1}``) leave their threads, and so does a binding to them.

    Why it matters
        That wheel's MKL-DNN loads libgomp beside libiomp5. With a binding libgomp pins the main thread as it loads;
        libiomp5 then counts one CPU and everything runs on one thread.

    How to fix
        ``unset OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY``; or Python 3.6, whose wheel loads libiomp5 alone.

    References
        Measured on 2 CPUs. One thread: OMP_PROC_BIND=true, close, spread or master; OMP_PLACES=cores, threads or {0};
        GOMP_CPU_AFFINITY alone, where its first CPU may be used (0-1, "0 5", not "5 0"). All threads:
        OMP_PROC_BIND=false, whatever the others; OMP_PLACES=sockets or {0,1}, with a binding too. The cp36 wheel keeps
        its threads.

        Reports: apache/mxnet #14087, onnxruntime #897 and #2512 (places and sockets).
    """

    title = "A thread binding leaves iDeep one thread"
    severity = Severity.WARNING
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP304", "IDP308")
    ok = (
        Example("not set"),
        Example("false", {"variables": {"effective": {"OMP_PROC_BIND": "false"}}}),
        Example("places of several cores", {"variables": {"effective": {"OMP_PLACES": "sockets"}}}),
        Example(
            "one CPU, as a batch system gives",
            {"variables": {"effective": {"OMP_PROC_BIND": "true"}}, "limits": {"affinity_cpus": [3]}},
        ),
        Example("on 3.6", {"variables": {"effective": {"OMP_PROC_BIND": "true"}}}, "py36-healthy"),
    )
    bad = (
        Example("OMP_PROC_BIND=true", {"variables": {"effective": {"OMP_PROC_BIND": "true"}}}),
        Example("OMP_PLACES=cores", {"variables": {"effective": {"OMP_PLACES": "cores"}}}),
        Example("GOMP_CPU_AFFINITY=0-1", {"variables": {"effective": {"GOMP_CPU_AFFINITY": "0-1"}}}),
        Example("places of one CPU each", {"variables": {"effective": {"OMP_PLACES": "{0},{1}"}}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for a binding."""
        cpus = facts.limits.affinity_cpus
        if facts.python.abi != "cp37m" or (cpus is not None and len(cpus) < 2):
            return
        bind, places = variable(facts, "OMP_PROC_BIND"), variable(facts, "OMP_PLACES")
        off = bind is not None and bind.strip().lower() == "false"
        # Where places are named they decide what a binding leaves; without them a binding means single cores.
        narrow = _ONE_CORE.match(places.strip()) is not None if places else bool(bind)
        listed = variable(facts, "GOMP_CPU_AFFINITY")
        if not places and not bind and listed:
            # libgomp binds the main thread to the first of these CPUs; one that is not open to it is passed over whole.
            first = re.match(r"\s*(\d+)", listed)
            narrow = first is not None and cpus is not None and int(first[1]) in cpus
        given = (("OMP_PROC_BIND", bind), ("OMP_PLACES", places), ("GOMP_CPU_AFFINITY", listed))
        seen = [f"{name}={value}" for name, value in given if value]
        if narrow and not off:
            yield self.finding(
                found=" ".join(seen),
                needed="none of these variables, with this wheel",
                consequence="libgomp pins the main thread, and iDeep runs on one thread",
                next_step="unset OMP_PROC_BIND OMP_PLACES GOMP_CPU_AFFINITY",
                evidence=(Evidence("the variables", None, "env | grep OMP_"),),
            )
