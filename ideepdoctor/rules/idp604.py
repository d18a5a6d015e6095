"""IDP604: weights loaded after to_intel64 are wrong."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, unguarded


class IDP604(HazardRule):
    """Weights that are loaded into a model after ``to_intel64()`` arrive in the wrong order.

    What it checks
        ``to_intel64()``, then load_npz, against the saved weights.

    Why it matters
        ``load_npz``, ``load_hdf5`` and the resume of a Trainer copy plain memory into the blocked weights of
        convolutions. The model computes something else, and no message is printed.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: load
        first, then ``to_intel64()``. To resume a Trainer: make the model and the Trainer, load the snapshot, and
        call ``to_intel64()`` after that.

    References
        Measured with ideep4py 2.0.0.post3 and every Chainer, and with 1.0.4 and Chainer 4.0.0.
    """

    title = "Weights loaded after to_intel64() are wrong here"
    hazards = ("H3",)
    needed = "the weights that were saved"
    consequence = "a model loaded after to_intel64() computes something else, silently"
    next_step = "load the weights first, then call to_intel64()"
    reproduction = """
import chainer, numpy as np
saved, loaded = chainer.links.Convolution2D(16, 16, 3), chainer.links.Convolution2D(16, 16, 3)
chainer.serializers.save_npz('/tmp/weights.npz', saved)
loaded.to_intel64()
chainer.serializers.load_npz('/tmp/weights.npz', loaded)
right, ideep = saved.W.array, np.array(loaded.W.array)
print('off by', abs(ideep - right).max() / abs(right).max())
"""
    ok = (
        Example("right", unguarded(check("load_npz after to_intel64", "right", "H3", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("100 %", unguarded(check("load_npz after to_intel64", "wrong", "H3", 1.0))),
        Example(
            "two layers",
            unguarded(
                check("load_npz after to_intel64", "wrong", "H3", 1.4),
                check("load_npz after to_intel64 2", "wrong", "H3", 1.0),
            ),
        ),
    )
