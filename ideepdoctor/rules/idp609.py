"""IDP609: LRN between two layouts computes wrong gradients."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, unguarded


class IDP609(HazardRule):
    """The gradient of local response normalization is wrong where only one side of it is in iDeep's own layout.

    What it checks
        F.local_response_normalization before and after a convolution, forward and backward, against NumPy in float64.

    Why it matters
        The kernel is wrong when input and incoming gradient lie in different layouts: a convolution's output with a
        plain gradient (LRN before a Linear layer, or as the last layer), or a plain array whose gradient comes from a
        convolution (LRN at the input). Every layer below learns from wrong gradients, at any number of threads and
        without a message. The forward pass is right, and so is convolution, LRN, pooling, convolution, as in AlexNet
        and GoogLeNet, where both sides have the same layout.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: make
        both sides plain, and let NumPy compute: ``y = F.local_response_normalization(h + 0)`` within
        ``chainer.using_config('use_ideep', 'never')``, then ``y * 1.0`` outside of it. (Without ``never`` it is right,
        too, and 20 to 40 times slower; without ``* 1.0`` it is wrong where a convolution follows.)

    References
        Measured with 2.0.0.post3 and Chainer 5.4.0 to 7.8.1, and less so with 1.0.3 and 4.0.0b4; right with 1.0.4.
    """

    title = "LRN between two layouts computes wrong gradients here"
    hazards = ("H14",)
    needed = "gradients that agree with NumPy"
    consequence = "an LRN at the input or before a Linear layer gives wrong gradients below it, silently"
    next_step = "keep both sides of that LRN on NumPy: ideepdoctor explain IDP609"
    reproduction = """
import chainer, numpy as np
def gradient(mode, dtype):
    random, F = np.random.RandomState(0), chainer.functions
    x, w = chainer.Variable(random.randn(2, 16, 8, 8).astype(dtype)), random.randn(16, 16, 3, 3).astype(dtype)
    with chainer.using_config('use_ideep', mode):
        F.sum(F.square(F.convolution_2d(F.local_response_normalization(x), w))).backward()
    return np.array(x.grad)
right, ideep = gradient('never', 'd'), gradient('auto', 'f')
print('off by', abs(ideep - right).max() / abs(right).max())
"""
    ok = (
        Example("right", unguarded(check("local_response_normalization", "right", "H14", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("131 %", unguarded(check("local_response_normalization", "wrong", "H14", 1.31))),
        Example(
            "two cases",
            unguarded(
                check("local_response_normalization", "wrong", "H14", 1.7),
                check("local_response_normalization 2", "wrong", "H14", 1.31),
            ),
        ),
    )
