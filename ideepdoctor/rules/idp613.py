"""IDP613: max pooling loses NaN."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP613(HazardRule):
    """Max pooling makes a number of NaN.

    What it checks
        F.max_pooling_2d of an array that holds NaN.

    Why it matters
        A training that has diverged looks healthy one layer later, and checks for NaN after the pooling see nothing.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: look for NaN
        before the pooling.

    References
        Measured with ideep4py 1.0.4 and 2.0.0.post3.
    """

    title = "Max pooling loses NaN here"
    hazards = ("H5",)
    needed = "NaN for a window that holds NaN"
    consequence = "a diverged training looks healthy behind a max pooling"
    next_step = "look for NaN before the pooling: ideepdoctor explain IDP613"
    reproduction = """
import chainer, numpy as np
x = np.zeros((1, 16, 4, 4), 'f')
x[0, 0, 1, 1] = np.nan
y = chainer.functions.max_pooling_2d(x, 2)
print('NaN in, out comes', y.array[0, 0, 0, 0])
"""
    ok = (
        Example("right", smoke(check("max_pooling_2d of NaN", "right", "H5", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("max_pooling_2d of NaN", "wrong", "H5", None))),
        Example(
            "twice",
            unguarded(
                check("max_pooling_2d of NaN", "wrong", "H5", None),
                check("max_pooling_2d of NaN 2", "wrong", "H5", None),
            ),
        ),
    )
