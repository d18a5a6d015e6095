"""IDP702: iDeep is not faster than NumPy."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.causes import because, causes
from ideepdoctor.rules.proof import smoke


class IDP702(Rule):
    """The convolution of the smoke test is not faster with iDeep than with NumPy.

    What it checks
        The median ratio of interleaved repeats, with its quartiles, on a processor that is not emulated; and what is
        known to be in the way: a quota, an affinity, hyper-threads, sockets, MKL's slow path, other programs.

    Why it matters
        Two to five times is usual on two cores, more on many. Less than 1.2 hints at too many threads, a busy machine
        or a slow kernel.

    How to fix
        Look at the number of threads (``ideepdoctor env``) and at what else runs; repeat ``ideepdoctor smoke``.

    References
        Measured here: 2.0 to 2.3 times NumPy 1.19 to 1.21.

        Reports: chainer #5055 and #5082, apache/mxnet #17980.
    """

    title = "iDeep is not faster than NumPy here"
    severity = Severity.INFO
    requires = ("IDP601",)
    ok = (
        Example("three times", smoke()),
        Example("not measured", smoke(ratio=None)),
        Example("emulated", {**smoke(ratio=0.9), "cpu": {"emulated": True}}),
    )
    bad = (Example("slower", smoke(ratio=0.8)), Example("the same", smoke(ratio=1.05)))

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the third quartile with 1.2: noise alone must not raise it."""
        timing = None if facts.smoke is None else facts.smoke.timing
        if timing is None or facts.cpu.emulated or timing.ratio_high >= 1.2:
            return
        why = causes(facts, facts.smoke.threads if facts.smoke is not None else None, mkl=False)
        yield self.finding(
            found=f"{timing.ratio:.2f} times NumPy ({timing.ratio_low:.2f} to {timing.ratio_high:.2f})",
            needed="more than 1.2 times",
            consequence="iDeep brings nothing for this convolution on this machine, at this moment"
            + (f"; cause: {because(why, '')}" if why else ""),
            evidence=tuple(Evidence(text, None, "ideepdoctor smoke") for text in why),
            next_step="look at the threads (ideepdoctor env) and at what else runs, then ideepdoctor smoke",
        )
