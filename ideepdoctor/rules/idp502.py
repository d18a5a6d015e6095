"""IDP502: a wrong word in the variable."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import package, variable


class IDP502(Rule):
    """CHAINER_USE_IDEEP is none of ``always``, ``auto``, ``never``.

    What it checks
        The variable as a program of this environment sees it.

    Why it matters
        The import works; the first function raises ``ValueError: invalid use_ideep configuration: '1'``.

    How to fix
        ``export CHAINER_USE_IDEEP=auto``.

    References
        Measured with 1, true, yes, on, and with nothing at all (``CHAINER_USE_IDEEP=``).
    """

    title = "CHAINER_USE_IDEEP has a value that Chainer does not know"
    severity = Severity.ERROR
    requires = ("IDP308",)
    ok = (Example("auto"), Example("never", {"variables": {"effective": {"CHAINER_USE_IDEEP": "never"}}}))
    bad = (
        Example(
            "1",
            {
                "variables": {
                    "inherited": {"CHAINER_USE_IDEEP": "1"},
                    "effective": {"CHAINER_USE_IDEEP": "1"},
                    "set_by_doctor": [],
                }
            },
        ),
        Example(
            "set to nothing",
            {
                "variables": {
                    "inherited": {"CHAINER_USE_IDEEP": ""},
                    "effective": {"CHAINER_USE_IDEEP": ""},
                    "set_by_doctor": [],
                }
            },
        ),
        Example("Auto", {"variables": {"effective": {"CHAINER_USE_IDEEP": "Auto"}, "set_by_doctor": []}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare with the three words; a variable that is not set at all is IDP501's."""
        value = variable(facts, "CHAINER_USE_IDEEP")
        if value is not None and value not in ("always", "auto", "never") and package(facts, "chainer") is not None:
            yield self.finding(
                found=f"CHAINER_USE_IDEEP={value}" if value else "CHAINER_USE_IDEEP is set to nothing",
                needed="always, auto or never",
                consequence="the first function raises ValueError: invalid use_ideep configuration",
                next_step="export CHAINER_USE_IDEEP=auto",
                evidence=(Evidence("the variable", None, "echo $CHAINER_USE_IDEEP"),),
            )
