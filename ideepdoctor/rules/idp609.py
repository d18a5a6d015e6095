"""IDP609: LRN of a convolution's output computes wrong gradients."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.proof import check, describe, evidence, failing, smoke


class IDP609(Rule):
    """The gradient of local response normalization is wrong where its input is the output of a convolution.

    What it checks
        F.local_response_normalization of a blocked array, forward and backward, against NumPy in float64.

    Why it matters
        AlexNet and GoogLeNet are built like that (convolution, ReLU, LRN): every layer below the LRN learns from wrong
        gradients, off by more than 100 %, at any number of threads and without a message. The forward pass is right.

    How to fix
        NumPy for that function alone: ``with chainer.using_config('use_ideep', 'never'):`` around its call; or give it
        a plain array: ``F.local_response_normalization(h + 0)``.

    References
        Measured with 2.0.0.post3 and Chainer 7.8.1, and with 1.0.3 and 4.0.0b4; right with 1.0.4 and 4.5.0.
    """

    title = "LRN of a convolution's output computes wrong gradients here"
    severity = Severity.WARNING
    requires = ("IDP303", "IDP304", "IDP601")
    ok = (
        Example("right", smoke(check("local_response_normalization", "right", "H14", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("131 %", smoke(check("local_response_normalization", "wrong", "H14", 1.31))),
        Example(
            "two cases",
            smoke(
                check("local_response_normalization", "wrong", "H14", 1.7),
                check("local_response_normalization 2", "wrong", "H14", 1.31),
            ),
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Report the failing cases together."""
        checks = failing(facts, "H14")
        if checks:
            yield self.finding(
                found=describe(checks),
                needed="gradients that agree with NumPy",
                consequence="AlexNet, GoogLeNet and their like learn from wrong gradients below the LRN, silently",
                next_step="write F.local_response_normalization(h + 0), or keep it on NumPy (see explain)",
                evidence=evidence(checks),
            )
