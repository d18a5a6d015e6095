"""IDP503: a data type that turns iDeep off."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.installed import package, variable


class IDP503(Rule):
    """CHAINER_DTYPE is a type that iDeep does not compute with.

    What it checks
        The variable as a program of this environment sees it, where Chainer is 5 or later: Chainer 4 does not read it.

    Why it matters
        iDeep computes with float32 alone. With float64, float16 or mixed16 every function silently uses NumPy.

    How to fix
        ``unset CHAINER_DTYPE``, or set it to float32.

    References
        Chainer #4572; measured.

        Reports: chainer #5059.
    """

    title = "CHAINER_DTYPE turns iDeep off"
    severity = Severity.WARNING
    requires = ("IDP201", "IDP301", "IDP302", "IDP303", "IDP304", "IDP308")
    ok = (
        Example("not set"),
        Example("float32", {"variables": {"effective": {"CHAINER_DTYPE": "float32"}}}),
        Example(
            "Chainer 4 does not read it",
            {
                "packages": {"chainer": "4.5.0", "ideep4py": "1.0.4"},
                "variables": {"effective": {"CHAINER_DTYPE": "float64"}},
            },
            "py36-healthy",
        ),
    )
    bad = (
        Example("float64", {"variables": {"effective": {"CHAINER_DTYPE": "float64"}}}),
        Example("mixed16", {"variables": {"effective": {"CHAINER_DTYPE": "mixed16"}}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look for the other types; a word that Chainer does not know ends its import (IDP311)."""
        chainer = package(facts, "chainer")
        if chainer is not None and is_older(chainer.version, "5.0.0b1"):
            return
        value = variable(facts, "CHAINER_DTYPE")
        if value in ("float16", "float64", "mixed16"):
            yield self.finding(
                found=f"CHAINER_DTYPE={value}",
                needed="float32, the only type that iDeep computes with",
                consequence="every function silently uses NumPy",
                next_step="unset CHAINER_DTYPE",
                evidence=(Evidence("the variable", None, "echo $CHAINER_DTYPE"),),
            )
