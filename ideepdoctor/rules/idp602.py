"""IDP602: BatchNormalization computes wrong gradients."""

from __future__ import annotations

from ideepdoctor.rules.base import Example
from ideepdoctor.rules.hazard import HazardRule
from ideepdoctor.rules.proof import check, unguarded


class IDP602(HazardRule):
    """The backward pass of BatchNormalization is wrong for some shapes and thread counts.

    What it checks
        Gradients of gamma, beta and x against NumPy in float64, in shapes that are known to show it.

    Why it matters
        A training runs and learns worse, or not at all. Which shapes are wrong depends on the number of threads and on
        the size of the cache; none was wrong with one thread. Of 202 shapes: 5 at 2 threads, 30 at 3, 11 at 4, 14 at 8.
        The forward pass is right.

    How to fix
        ``ideepdoctor fix`` leaves the guard in the environment, which corrects it inside Chainer. By hand: one
        thread (``OMP_NUM_THREADS=1``), right in all shapes that were tried; or NumPy for that function alone:
        ``with chainer.using_config('use_ideep', 'never'):`` around the call of the link; its backward pass then uses
        NumPy too, wherever ``backward()`` is called.

    References
        Measured with ideep4py 2.0.0.post3 on Python 2.7, 3.6 and 3.7, on AMD and on emulated Intel.
    """

    title = "BatchNormalization computes wrong gradients here"
    hazards = ("H1",)
    needed = "gradients that agree with NumPy"
    consequence = "training with BatchNormalization learns from wrong gradients, silently"
    next_step = "train with OMP_NUM_THREADS=1, or keep this function on NumPy: ideepdoctor explain IDP602"
    reproduction = """
import chainer, numpy as np
def gradient(mode, dtype, shape=(8, 16, 56, 56)):
    x, gy = np.random.RandomState(0).randn(2, *shape).astype(dtype)
    gamma, beta = chainer.Variable(np.ones(16, dtype)), chainer.Variable(np.zeros(16, dtype))
    with chainer.using_config('use_ideep', mode):
        y = chainer.functions.batch_normalization(x, gamma, beta)
        chainer.functions.sum(y * gy).backward()
    return gamma.grad
right, ideep = gradient('never', 'd'), gradient('auto', 'f')
print('off by', abs(ideep - right).max() / abs(right).max())
"""
    ok = (
        Example("right", unguarded(check("batch_normalization backward", "right", "H1", 1e-6))),
        Example("no smoke test was run"),
    )
    bad = (
        Example("46 %", unguarded(check("batch_normalization backward", "wrong", "H1", 0.46))),
        Example(
            "two shapes",
            unguarded(
                check("batch_normalization backward", "wrong", "H1", 1.7),
                check("batch_normalization backward 2", "wrong", "H1", 0.46),
            ),
        ),
    )
