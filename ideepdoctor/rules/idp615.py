"""IDP615: models cannot be pickled after to_intel64()."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, smoke, unguarded


class IDP615(HazardRule):
    """A model cannot be pickled after ``to_intel64()``.

    What it checks
        pickle of a convolution link after to_intel64(), loaded again.

    Why it matters
        ``TypeError: can't pickle ideep4py.mdarray objects``; on Python 2.7 with protocol 2 it is worse: the pickle is
        written without the weights, and loading it ends in SIGSEGV. ``multiprocessing`` pickles, too. deepcopy,
        Link.copy and save_npz work.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand:
        ``model.to_cpu()`` before the pickle, or chainer.serializers.save_npz.

    References
        Measured with ideep4py 1.0.4 and 2.0.0.post3.

        Reports: chainer PR 5373, 5374 and 5095; chainer #7309 (spawn).
    """

    title = "Models cannot be pickled after to_intel64() here"
    hazards = ("H10",)
    needed = "a pickle that holds the weights"
    consequence = "pickle raises, and on Python 2.7 may write a file that kills who loads it"
    next_step = "call model.to_cpu() before: ideepdoctor explain IDP615"
    reproduction = """
import pickle, chainer, numpy as np
link = chainer.links.Convolution2D(16, 16, 3)
right = np.array(link.W.array)
link.to_intel64()
copy = pickle.loads(pickle.dumps(link, protocol=2))
print('off by', abs(np.array(copy.W.array) - right).max())
"""
    ok = (
        Example("right", smoke(check("pickle after to_intel64", "right", "H10", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("without the guard", unguarded(check("pickle after to_intel64", "raised", "H10", None))),
        Example(
            "twice",
            unguarded(
                check("pickle after to_intel64", "raised", "H10", None),
                check("pickle after to_intel64 2", "raised", "H10", None),
            ),
        ),
    )
