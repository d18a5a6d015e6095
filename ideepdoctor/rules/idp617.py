"""IDP617: functions of Chainer that know NumPy's arrays alone."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP617(HazardRule):
    """``F.im2col``, ``F.as_strided`` and ``F.slstm`` raise where their input comes from iDeep.

    What it checks
        im2col of a convolution's output.

    Why it matters
        These functions look for NumPy's arrays, and take anything else for an array of a GPU: ``CUDA environment is not
        correctly set up``, ``'object' object has no attribute 'empty'``, on a machine that was never to have a GPU.
        With Chainer 5 F.huber_loss and the hook GradientHardClipping raise, too.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: ``h + 0`` as
        the input, which is a NumPy array.

    References
        Measured with ideep4py 2.0.0.post3 and Chainer 5.4.0 to 7.8.1.
    """

    title = "A function takes iDeep's array for one of a GPU here"
    hazards = ("H15",)
    needed = "a result"
    consequence = "im2col, as_strided and slstm behind a convolution raise and speak of CUDA"
    next_step = "write h + 0 for its input: ideepdoctor explain IDP617"
    reproduction = """
import chainer, numpy as np
x, w = np.ones((2, 16, 8, 8), 'f'), np.ones((16, 16, 3, 3), 'f')
h = chainer.functions.convolution_2d(x, w)
print(chainer.functions.im2col(h, 3).shape)
"""
    ok = (
        Example("right", smoke(check("im2col", "right", "H15", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("im2col", "raised", "H15", None))),
        Example("twice", unguarded(check("im2col", "raised", "H15", None), check("im2col 2", "raised", "H15", None))),
    )
