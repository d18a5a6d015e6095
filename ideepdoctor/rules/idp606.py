"""IDP606: another function computes wrong numbers."""

from __future__ import annotations

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import UnexplainedRule
from ideepdoctor.rules.proof import check, smoke


class IDP606(UnexplainedRule):
    """A function computes wrong numbers here, and no known hazard explains it.

    What it checks
        Every check of the smoke test that is about no known hazard.

    Why it matters
        Nothing computed with this function can be trusted on this machine.

    How to fix
        Use NumPy for that function (``with chainer.using_config('use_ideep', 'never'):``), and report it with the
        facts of this machine: ``ideepdoctor diagnose --save-facts FILE``.

    References
        oneDNN #488: wrong convolutions of this MKL-DNN on some machines.

        Reports: oneDNN #1354 and #5080, intel/caffe #10, pytorch #66111.
    """

    title = "A function computes wrong numbers here"
    severity = Severity.ERROR
    states = ("wrong",)
    needed = "numbers that agree with NumPy in float64"
    consequence = "results of this function are wrong on this machine"
    ok = (
        Example("right", smoke(check("relu", "right", None, 1e-7))),
        Example("a known hazard has its own rule", smoke(check("mul", "wrong", "H2", 1.0))),
        Example("not run", smoke(check("lstm", "not-run"))),
    )
    bad = (
        Example("relu", smoke(check("relu", "wrong", None, 0.5))),
        Example("garbage", smoke(check("bn", "wrong", "H6", 1e30))),
    )
