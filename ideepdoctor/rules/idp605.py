"""IDP605: concat or split_axis across channel blocks ends the process."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, unguarded


class IDP605(HazardRule):
    """``F.concat`` of a blocked and a plain array ends the process; so does ``F.split_axis`` inside a block.

    What it checks
        concat of convolution outputs with channel counts such as 16 and 8, and a convolution's 16 channels split into
        8 and 8, each in a child of its own.

    Why it matters
        SIGABRT, ``mkldnn::error``: Python cannot catch it. It needs a first input whose channels fill the blocks (a
        multiple of 16 with AVX-512, of 8 with AVX2) and a later one whose channels do not. DenseNet and Inception
        variants do that. The other way round is fine.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: NumPy
        for that concat alone: ``with chainer.using_config('use_ideep', 'never'):``; or another order.

    References
        Measured with ideep4py 1.0.4 and 2.0.0.post3. The same text comes from a foreign MKL-DNN (IDP313).
    """

    title = "concat or split_axis across channel blocks ends the process here"
    hazards = ("H7", "H8")
    needed = "a result"
    consequence = "a program with such a concat or split dies with SIGABRT"
    next_step = "keep that function on NumPy: ideepdoctor explain IDP605"
    reproduction = """
import chainer, numpy as np
x = np.zeros((2, 16, 8, 8), 'f')
parts = [chainer.functions.convolution_2d(x, np.zeros((n, 16, 3, 3), 'f')) for n in (16, 4)]
print(chainer.functions.concat(parts).shape)
"""
    ok = (Example("right", unguarded(check("concat (16,8)", "right", "H7", 1e-6))), Example("no smoke test was run"))
    bad = (
        Example("SIGABRT", unguarded(check("concat (16,8)", "crashed", "H7", None))),
        Example(
            "twice",
            unguarded(check("concat (16,8)", "crashed", "H7", None), check("concat (16,8) 2", "crashed", "H7", None)),
        ),
    )
