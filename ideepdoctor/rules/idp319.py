"""IDP319: a release of Chainer whose own side of iDeep has known faults."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.model.words import counted
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.chainer_faults import faults_of
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.installed import installed_pair, metadata_evidence, new_environment_command, package


class IDP319(Rule):
    """This release of Chainer has faults where it uses iDeep, which a later one has no more.

    What it checks
        The release of Chainer, with the installed ideep4py and this Python, against a table of faults; each border in
        it was found by running the case with the releases on both sides. Nothing is said where no later release is
        for this Python (2.7 ends with Chainer 6.7.0).

    Why it matters
        A warning where results are wrong without a word, memory grows without end or the process ends: weights that
        ``load_npz`` does not load, an optimizer that forgets. A note where the fault is an exception in a rare case,
        more memory or more time: whoever does not meet it need not do anything.

    How to fix
        A later Chainer: ``ideepdoctor upgrade`` turns this environment into the newest stack that is right here, and
        ``ideepdoctor undo`` takes that back.

    References
        chainer #4572, #5055, #5082, #5403, #5621, #5866, #6825; PR 4382, 4577, 5063, 5373, 5377, 5871, 6105, 6125,
        7548, 7661, 7685, 7689, 7836, 7931, 8175, 8216, 8266.
    """

    title = "This Chainer has known faults with iDeep"
    severity = Severity.WARNING
    requires = ("IDP301", "IDP302", "IDP303", "IDP304", "IDP308")
    ok = (
        Example("7.8.1"),
        Example("the last one for 2.7", host="py27-healthy"),
        Example("without ideep4py", {"packages": {"ideep4py": None, "chainer": "5.4.0"}}),
    )
    bad = (
        Example("amsgrad", {"packages": {"chainer": "6.1.0"}}),
        Example("load_npz", {"packages": {"chainer": "4.4.0", "ideep4py": "1.0.4"}}, "py36-healthy"),
        Example("memory of Python 2", {"packages": {"chainer": "5.2.0"}}, "py27-healthy"),
        Example("notes alone", {"packages": {"chainer": "5.4.0"}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look the release up; its faults are one finding."""
        chainer, ideep4py = installed_pair(facts) if package(facts, "chainer") else (None, None)
        if chainer is None or ideep4py is None or facts.planned_ideep4py is not None:
            return
        python2 = facts.python.version.startswith("2.")
        last = "6.7.0" if python2 else "7.8.1"
        known = faults_of(chainer, ideep4py, python2=python2)
        if not known or not is_older(chainer, last):
            return
        wrong = [fault for fault in known if fault.wrong]
        first, more = known[0], len(known) - 1
        others = f" (and {counted(more, 'other fault')})" if more else ""
        yield self.finding(
            found=f"Chainer {chainer} has a known fault: {first.what}{others}",
            needed=f"a later Chainer, the last for this Python is {last}",
            consequence="where your program meets it, results are wrong, memory runs out or the process ends"
            if wrong
            else "an exception in a rare case, more memory or more time; nothing where your program does not meet it",
            next_step=new_environment_command(facts)
            if facts.python.externally_managed is not None
            else f"ideepdoctor upgrade --python {facts.python.executable}",
            evidence=(
                *metadata_evidence(facts, "chainer"),
                *(Evidence(f"{fault.what}, reported in {fault.reference}") for fault in known),
            ),
            severity=None if wrong else Severity.INFO,
        )
