"""IDP619: pooling with pad and stride above one."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP619(HazardRule):
    """Pooling of a convolution's output is wrong where pad and stride are both two or more, and may end the process.

    What it checks
        F.average_pooling_2d with kernel 5, stride 2 and pad 2 of a convolution's output, forward and backward.

    Why it matters
        The kernel of MKL-DNN's blocked layout begins in the wrong place of each row: outputs and gradients of max and
        average pooling are off by 35 to 75 %, at any number of threads. A max pooling whose last window lies wholly
        beyond the edge (size 9, kernel 2, stride 3, cover_all) writes outside of its arrays.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: ``h + 0`` as
        the input, which is a NumPy array; ``cover_all=False``.

    References
        Measured with ideep4py 2.0.0.post3 on AVX-512 and on emulated AVX2; with 1.0.4 for plain arrays, too.
    """

    title = "Pooling with pad and stride above one is wrong here"
    hazards = ("H17",)
    needed = "pooling that agrees with NumPy"
    consequence = "a pooling with pad and stride of two or more gives other numbers, silently"
    next_step = "write h + 0 for its input: ideepdoctor explain IDP619"
    reproduction = """
import chainer, numpy as np
def pooled(mode):
    random, F = np.random.RandomState(0), chainer.functions
    x, w = random.randn(2, 16, 11, 11).astype('f'), random.randn(16, 16, 3, 3).astype('f')
    with chainer.using_config('use_ideep', mode):
        return np.array(F.average_pooling_2d(F.convolution_2d(x, w), 5, 2, 2).array)
right, ideep = pooled('never'), pooled('auto')
print('off by', abs(ideep - right).max() / abs(right).max())
"""
    ok = (
        Example("right", smoke(check("average_pooling", "right", "H17", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("average_pooling", "wrong", "H17", 0.5))),
        Example(
            "twice",
            unguarded(check("average_pooling", "wrong", "H17", 0.5), check("average_pooling 2", "wrong", "H17", 0.5)),
        ),
    )
