"""IDP603: products of convolution outputs are wrong."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, unguarded


class IDP603(HazardRule):
    """``h * h2``, ``h * h`` and ``h / h2`` are wrong where h is the output of a convolution.

    What it checks
        Elementwise products and quotients of arrays in MKL-DNN's blocked layout, against NumPy.

    Why it matters
        The kernel reads the blocked memory as if it were plain: results are off by 100 % and no message is printed.
        Attention, gates and squeeze-and-excitation multiply like that. Sums, differences, scalars, ``h ** 2`` and
        F.maximum are right.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand:
        ``F.square(h)`` for ``h * h``; ``(h + 0) * (h2 + 0)`` for a product, likewise for a quotient: the sum is a plain
        array, and forward and backward pass are right. ``use_ideep='never'`` around the product does not help, because
        the arrays themselves multiply.

    References
        Measured with ideep4py 2.0.0.post3 and Chainer 5.0.0 to 7.8.1; right with 1.0.4.
    """

    title = "Products of convolution outputs are wrong here"
    hazards = ("H2",)
    needed = "products that agree with NumPy"
    consequence = "h * h2 and h / h2 of convolution outputs give other numbers, silently"
    next_step = "write F.square(h) for h * h, and (h + 0) * (h2 + 0) for h * h2: ideepdoctor explain IDP603"
    reproduction = """
import chainer, numpy as np
def product(mode):
    random = np.random.RandomState(0)
    x, w = random.randn(2, 16, 8, 8).astype('f'), random.randn(16, 16, 3, 3).astype('f')
    with chainer.using_config('use_ideep', mode):
        h = chainer.functions.convolution_2d(x, w)
        h2 = chainer.functions.convolution_2d(x, w[::-1].copy())
        return np.array((h * h2).array)
right, ideep = product('never'), product('auto')
print('off by', abs(ideep - right).max() / abs(right).max())
"""
    ok = (Example("right", unguarded(check("mul h*h2", "right", "H2", 1e-6))), Example("no smoke test was run"))
    bad = (
        Example("100 %", unguarded(check("mul h*h2", "wrong", "H2", 1.0))),
        Example(
            "quotient too", unguarded(check("mul h*h2", "wrong", "H2", 1.2), check("mul h*h2 2", "wrong", "H2", 1.0))
        ),
    )
