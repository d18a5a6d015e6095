"""IDP607: another function dies."""

from __future__ import annotations

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import UnexplainedRule
from ideepdoctor.rules.proof import check, smoke


class IDP607(UnexplainedRule):
    """A function ends the process, raises or hangs here, and no known hazard explains it.

    What it checks
        Every check of the smoke test that is about no known hazard.

    Why it matters
        A program that calls it dies or stands still.

    How to fix
        Use NumPy for that function (``with chainer.using_config('use_ideep', 'never'):``), and report it with the
        facts of this machine: ``ideepdoctor diagnose --save-facts FILE``.

    References
        Chainer #4572 (parameters that are neither 2-D nor 4-D).

        Reports: pytorch #24174 (code is too big); chainer PR 4284 (a stride that is not square).
    """

    title = "A function fails here"
    severity = Severity.ERROR
    states = ("crashed", "raised", "timeout")
    needed = "a result"
    consequence = "a program that calls it dies, raises or hangs"
    ok = (
        Example("right", smoke(check("relu", "right", None, 1e-7))),
        Example("a known hazard has its own rule", smoke(check("mul", "crashed", "H2", 1.0))),
        Example("not run", smoke(check("lstm", "not-run"))),
    )
    bad = (
        Example("crash", smoke(check("lrn", "crashed"))),
        Example("hang", smoke(check("lrn", "timeout"))),
        Example("raise", smoke(check("lrn", "raised"))),
    )
