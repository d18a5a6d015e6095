"""IDP616: powers of iDeep's arrays raise."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP616(HazardRule):
    """``array ** 2`` of one of iDeep's arrays raises; other arithmetic of it with float64 ends the process.

    What it checks
        The power of a convolution's output as a raw array.

    Why it matters
        ``unsupported operand type(s) for ** or pow()`` in code that works on ``variable.array``: hooks, extensions,
        penalties. Variables (``h ** 2``) are right. Sums and products with a float64 array, or with one of another
        shape and equal size, end the process.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand:
        ``numpy.array(h.array)`` before the arithmetic.

    References
        Measured with ideep4py 2.0.0.post3; the arithmetic with float64 with 1.0.4, too.
    """

    title = "Powers of iDeep's arrays raise here"
    hazards = ("H11",)
    needed = "a power"
    consequence = "code that computes with variable.array raises, or the process ends"
    next_step = "take numpy.array(h.array) first: ideepdoctor explain IDP616"
    reproduction = """
import chainer, numpy as np
x = np.ones((2, 16, 8, 8), 'f')
h = chainer.functions.convolution_2d(x, np.ones((16, 16, 3, 3), 'f'))
print((h.array ** 2).max())
"""
    ok = (
        Example("right", smoke(check("power of an array", "right", "H11", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("power of an array", "raised", "H11", None))),
        Example(
            "twice",
            unguarded(
                check("power of an array", "raised", "H11", None), check("power of an array 2", "raised", "H11", None)
            ),
        ),
    )
