"""IDP612: AdaGrad and MSVAG update wrongly."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP612(HazardRule):
    """AdaGrad and MSVAG update the weights of convolutions wrongly after ``to_intel64()``.

    What it checks
        Steps of the optimizer on a convolution link after to_intel64(), against NumPy.

    Why it matters
        The optimizer multiplies the gradient with itself, and that product is wrong in MKL-DNN's blocked layout
        (IDP603). Adam is concerned too with Chainer 5. The training runs, and goes elsewhere. SGD, MomentumSGD,
        NesterovAG, CorrectedMomentumSGD, RMSprop, RMSpropGraves, AdaDelta and SMORMS3 are right.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: another
        optimizer; or leave ``to_intel64()`` out and train with ``use_ideep='never'``.

    References
        Measured with ideep4py 2.0.0.post3 and Chainer 5.0.0 to 7.8.1.
    """

    title = "An optimizer updates weights wrongly here"
    hazards = ("H4",)
    needed = "weights that agree with NumPy"
    consequence = "training with AdaGrad or MSVAG after to_intel64() goes wrong, silently"
    next_step = "use another optimizer, or leave to_intel64() out: ideepdoctor explain IDP612"
    reproduction = """
import chainer, numpy as np
def trained(mode):
    random = np.random.RandomState(0)
    link = chainer.links.Convolution2D(16, 16, 3, initialW=random.randn(16, 16, 3, 3))
    optimizer, x = chainer.optimizers.AdaGrad(0.1).setup(link), random.randn(2, 16, 8, 8).astype('f')
    with chainer.using_config('use_ideep', mode):
        link.to_intel64()
        optimizer.update(lambda: chainer.functions.sum(link(x) ** 2))
    return np.array(link.W.array)
print('off by', abs(trained('auto') - trained('never')).max())
"""
    ok = (
        Example("right", smoke(check("AdaGrad", "right", "H4", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("AdaGrad", "wrong", "H4", 3.0))),
        Example("twice", unguarded(check("AdaGrad", "wrong", "H4", 3.0), check("AdaGrad 2", "wrong", "H4", 3.0))),
    )
