"""IDP605: concat of unequal channel blocks ends the process."""

from __future__ import annotations

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke


class IDP605(HazardRule):
    """``F.concat`` of a blocked and a plain array ends the process.

    What it checks
        concat of convolution outputs with channel counts such as 16 and 8, in a child of its own.

    Why it matters
        SIGABRT, ``mkldnn::error``: Python cannot catch it. It needs a first input whose channels fill the blocks (a
        multiple of 16 with AVX-512, of 8 with AVX2) and a later one whose channels do not. DenseNet and Inception
        variants do that. The other way round is fine.

    How to fix
        NumPy for that concat alone: ``with chainer.using_config('use_ideep', 'never'):``; or another order.

    References
        Measured with ideep4py 1.0.4 and 2.0.0.post3. The same text comes from a foreign MKL-DNN (IDP313).
    """

    title = "concat of unequal channel blocks ends the process here"
    severity = Severity.WARNING
    hazard = "H7"
    needed = "a result"
    consequence = "a program with such a concat dies with SIGABRT"
    next_step = "keep that concat on NumPy: ideepdoctor explain IDP605"
    ok = (Example("right", smoke(check("concat (16,8)", "right", "H7", 1e-6))), Example("no smoke test was run"))
    bad = (
        Example("SIGABRT", smoke(check("concat (16,8)", "crashed", "H7", None))),
        Example(
            "twice",
            smoke(check("concat (16,8)", "crashed", "H7", None), check("concat (16,8) 2", "crashed", "H7", None)),
        ),
    )
