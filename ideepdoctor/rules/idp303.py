"""IDP303: a pair that Chainer does not use."""

from __future__ import annotations

from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.compat import Pair
from ideepdoctor.rules.pairs import PairRule


class IDP303(PairRule):
    """Chainer does not recognise this ideep4py and silently goes on without it.

    What it checks
        The versions of Chainer and ideep4py against what was measured for every pair of releases.

    Why it matters
        ``chainer.backends.intel64.is_ideep_available()`` is False (``Unsupported iDeep version (1)``), and nothing is
        printed: the program runs on NumPy.

    How to fix
        The ideep4py that is right for the installed Chainer: 1.0.4 for 4.0.0 to 5.0.0b2, 2.0.0.post3 from 5.0.0rc1 to
        7.8.1.

    References
        Chainer PR 4934, 5231 and 5600; Chainer's tips page says that 1.0.x and 2.0.x exclude each other.

        Reports: chainer #5995 and PR 5029, 4939.
    """

    title = "Chainer does not use this ideep4py"
    severity = Severity.ERROR
    requires = ("IDP110", "IDP111", "IDP301", "IDP302", "IDP308", "IDP315")
    fix = FixSafety.SAFE
    verdict = Pair.UNUSED
    consequence = "Chainer silently computes with NumPy"
    ok = (
        Example("7.8.1 with 2.0.0.post3"),
        Example("4.5.0 with 1.0.4", {"packages": {"ideep4py": "1.0.4", "chainer": "4.5.0"}}, "py36-healthy"),
        Example("a build of your own", {"packages": {"ideep4py": "2.0.0.post3+local"}}),
    )
    bad = (
        Example("7.8.1 with 1.0.4", {"packages": {"ideep4py": "1.0.4"}}, "py36-healthy"),
        Example("before the iDeep backend", {"packages": {"chainer": "3.5.0"}}, "py36-healthy"),
    )
