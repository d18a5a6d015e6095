"""IDP304: a pair that computes wrong numbers."""

from __future__ import annotations

from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.compat import Pair
from ideepdoctor.rules.pairs import PairRule


class IDP304(PairRule):
    """Chainer 4 and the first betas of 5 take ideep4py 2 and compute wrong gradients with it.

    What it checks
        The versions of Chainer and ideep4py against what was measured for every pair of releases.

    Why it matters
        The backward pass of BatchNormalization returns memory that nobody wrote: values up to 1e38, infinities, NaN.
        ``is_ideep_available()`` is True, and nothing is printed.

    How to fix
        The ideep4py that is right for the installed Chainer: 1.0.4 for 4.0.0 to 5.0.0b2, 2.0.0.post3 from 5.0.0rc1 to
        7.8.1.

    References
        Measured with Chainer 4.0.0b4 to 5.0.0b4 and ideep4py 2.0.0b1.post1 and 2.0.0.post3.
    """

    title = "Chainer computes wrong gradients with this ideep4py"
    severity = Severity.ERROR
    requires = ("IDP110", "IDP111", "IDP301", "IDP302", "IDP303", "IDP308")
    fix = FixSafety.SAFE
    verdict = Pair.WRONG
    consequence = "gradients of BatchNormalization are garbage (up to 1e38, NaN): any training is lost"
    ok = (
        Example("7.8.1 with 2.0.0.post3"),
        Example("4.5.0 with 1.0.4", {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}}, "py36-healthy"),
        Example("a build of your own", {"packages": {"ideep4py": "2.0.0.post3+local"}}),
    )
    bad = (
        Example("4.5.0 with 2.0.0.post3", {"packages": {"chainer": "4.5.0"}}, "py36-healthy"),
        Example("5.0.0b4 with 2.0.0.post3", {"packages": {"chainer": "5.0.0b4"}}, "py36-healthy"),
    )
