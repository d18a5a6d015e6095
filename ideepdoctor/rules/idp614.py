"""IDP614: the backward pass of fixed_batch_normalization raises."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP614(HazardRule):
    """The backward pass of ``F.fixed_batch_normalization`` raises where its gradient comes from iDeep.

    What it checks
        A convolution, fixed_batch_normalization and relu, forward and backward.

    Why it matters
        ``TypeError: in method 'mdarray_sum', argument 3 of type 'int'``. Fine-tuning with frozen BatchNormalization
        (ResNet in ``train=False``) stops at the first step. Other sums of iDeep's arrays are worse: over negative axes,
        or over all with ``keepdims``, they end the process or are wrong, in most combinations that were tried.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: multiply
        the output by 1.0, ``h = F.fixed_batch_normalization(...) * 1.0``, so that a plain gradient arrives.

    References
        Measured with ideep4py 2.0.0.post3.
    """

    title = "fixed_batch_normalization cannot go backward here"
    hazards = ("H9",)
    needed = "a gradient"
    consequence = "fine-tuning with frozen BatchNormalization raises TypeError"
    next_step = "multiply its output by 1.0: ideepdoctor explain IDP614"
    reproduction = """
import chainer, numpy as np
x, c = np.zeros((2, 16, 8, 8), 'f'), np.ones(16, 'f')
gamma = chainer.Variable(c)
h = chainer.functions.convolution_2d(x, np.zeros((16, 16, 3, 3), 'f'))
h = chainer.functions.relu(chainer.functions.fixed_batch_normalization(h, gamma, c, c, c))
chainer.functions.sum(h).backward()
print(gamma.grad.shape)
"""
    ok = (
        Example("right", smoke(check("fixed_batch_normalization", "right", "H9", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("fixed_batch_normalization", "raised", "H9", None))),
        Example(
            "twice",
            unguarded(
                check("fixed_batch_normalization", "raised", "H9", None),
                check("fixed_batch_normalization 2", "raised", "H9", None),
            ),
        ),
    )
