"""IDP618: relu makes NaN of minus infinity."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP618(HazardRule):
    """``F.relu`` of minus infinity is NaN.

    What it checks
        F.relu of an array that holds minus infinity, which must become 0.

    Why it matters
        The kernel multiplies negative numbers by zero. Masks that set scores to minus infinity, and a training that has
        overflowed once, become NaN where NumPy goes on.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand:
        ``F.clip`` before it, or ``F.maximum(h, 0)``.

    References
        Measured with ideep4py 1.0.4 and 2.0.0.post3.
    """

    title = "relu makes NaN of minus infinity here"
    hazards = ("H16",)
    needed = "0 for minus infinity"
    consequence = "a network with infinite scores computes NaN"
    next_step = "write F.maximum(h, 0): ideepdoctor explain IDP618"
    reproduction = """
import chainer, numpy as np
x = np.zeros((1, 16, 4, 4), 'f')
x[0, 0, 1, 1] = -np.inf
y = chainer.functions.relu(x)
print('-inf in, out comes', y.array[0, 0, 1, 1])
"""
    ok = (
        Example("right", smoke(check("relu of infinity", "right", "H16", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("relu of infinity", "wrong", "H16", None))),
        Example(
            "twice",
            unguarded(
                check("relu of infinity", "wrong", "H16", None), check("relu of infinity 2", "wrong", "H16", None)
            ),
        ),
    )
