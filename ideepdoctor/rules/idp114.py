"""IDP114: the system refuses code that a process writes."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.deaths import killed

_DEATH = killed("SIGABRT", "terminate called after throwing an instance of 'Xbyak::Error'\n  what():  can't protect")


class IDP114(Rule):
    """MKL-DNN writes machine code into memory and runs it; here the system forbids that.

    What it checks
        A child on x86-64 does what the code generator of MKL-DNN 0.14 does: 256 KiB of the heap are written, made
        executable (``mprotect`` with read, write and execute), and called.

    Why it matters
        ``import ideep4py`` works and ``is_ideep_available()`` is True. The first operation, a relu or a convolution,
        ends the process with SIGABRT: ``Xbyak::Error``, ``can't protect``.

    How to fix
        Let this process have such memory. A service of systemd: ``MemoryDenyWriteExecute=no``. SELinux:
        ``setsebool -P selinuxuser_execheap on``. PaX: ``paxctl-ng -m`` for the interpreter. A hardened sandbox or a
        seccomp profile: another one. Until then ``export CHAINER_USE_IDEEP=never`` keeps Chainer on NumPy.

    References
        Measured with prctl(PR_SET_MDWE) of Linux 6.3 and later on Python 2.7, 3.6 and 3.7. mprotect(2),
        systemd.exec(5).
    """

    title = "The system refuses code that is written into memory"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (
        Example("it runs"),
        Example("not tried", {"limits": {"executable_memory": None}}),
        Example("another machine", {"limits": {"executable_memory": None}, "first_op": None, "mode": "quick"}),
    )
    bad = (
        Example("refused", {"limits": {"executable_memory": False}, "first_op": _DEATH}),
        Example(
            "refused, quick",
            {"limits": {"executable_memory": False}, "imports": None, "first_op": None, "mode": "quick"},
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at what became of the attempt; an operation of ideep4py that computed knows better."""
        computed = facts.first_op is not None and facts.first_op.ok
        if facts.limits.executable_memory is False and not computed:
            yield self.finding(
                found="memory that is written cannot be made executable in this process",
                needed="what MKL-DNN's code generator does: mprotect with read, write and execute",
                consequence="ideep4py is imported, and its first operation ends the process (Xbyak::Error, SIGABRT)",
                next_step="export CHAINER_USE_IDEEP=never, until systemd, SELinux or the sandbox allows such memory",
                evidence=(
                    Evidence("code that a child wrote was refused", "/proc/self/status", "ideepdoctor cpu"),
                    Evidence("what may refuse it", None, "grep -i seccomp /proc/self/status; getenforce"),
                ),
            )
