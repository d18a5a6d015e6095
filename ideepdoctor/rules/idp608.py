"""IDP608: to_intel64 raises with BatchNormalization."""

from __future__ import annotations

from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke


class IDP608(HazardRule):
    """``to_intel64()`` raises on a model with BatchNormalization.

    What it checks
        ``to_intel64()`` on a chain with a BatchNormalization link.

    Why it matters
        Chainer 4.0.0b4 fails with ``has no attribute 'ideep4'``. Without ``to_intel64()`` functions use iDeep all the
        same, and optimizers do not.

    How to fix
        Chainer 4.0.0 or later; or leave ``to_intel64()`` out.

    References
        Fixed in Chainer 4.0.0. Measured with the talk's pins under an emulated Intel CPU.
    """

    title = "to_intel64() raises on a model with BatchNormalization"
    severity = Severity.WARNING
    fix = FixSafety.MANUAL
    hazards = ("to_intel64-bn",)
    needed = "a model whose weights are laid out for iDeep"
    consequence = "model.to_intel64() raises AttributeError"
    next_step = "use Chainer 4.0.0 or later: ideepdoctor setup --stack chainer4.5.0-ideep4py1.0.4"
    reproduction = """
import chainer
model = chainer.Chain(bn=chainer.links.BatchNormalization(16))
model.to_intel64()
print('to_intel64() works')
"""
    ok = (
        Example("right", smoke(check("to_intel64", "right", "to_intel64-bn", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("raised", smoke(check("to_intel64", "raised", "to_intel64-bn", None))),
        Example(
            "twice",
            smoke(
                check("to_intel64", "raised", "to_intel64-bn", None),
                check("to_intel64 2", "raised", "to_intel64-bn", None),
            ),
        ),
    )
