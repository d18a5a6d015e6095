"""IDP317: a CuPy whose version Chainer 7.8.0 cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, FixSafety, Severity
from ideepdoctor.model.plan import Step
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.compat import is_older
from ideepdoctor.rules.cupy import cupys
from ideepdoctor.rules.installed import cure_command, outcome, package, python_command, stack_fix, stack_steps

_READS_VERSION = "7.8.0"
"""The one release that reads CuPy's version by NumPy's rules."""
_READS_TEN = "1.21"
"""The first NumPy whose rules know more than one digit before the first point (measured: 1.20.3 and 1.21.0)."""
_DEAD: dict[str, Any] = {
    "ok": False,
    "error_type": "ValueError",
    "error_text": "Not a valid numpy version string",
}
_QUICK = {"imports": None, "first_op": None, "chainer": None, "mode": "quick"}


class IDP317(Rule):
    """CuPy 10 and later end the import of Chainer 7.8.0.

    What it checks
        The versions of Chainer, NumPy and of each CuPy, unless Chainer was imported all the same (it does not
        ask a CuPy that cannot be imported itself, as on a machine without CUDA).

    Why it matters
        Chainer 7.8.0 reads the version of CuPy as if it were one of NumPy: ``ValueError: Not a valid numpy version
        string`` with NumPy 1.20 and older, and nothing of yours runs. No other release of Chainer does:
        7.7.0 and older do not read it, 7.8.1 does so in another way and only warns
        (CHAINER_WARN_VERSION_MISMATCH=0 silences it).

    How to fix
        Chainer 7.8.1: ``ideepdoctor fix`` installs it, by hash. Or uninstall CuPy where there is no GPU.

    References
        chainer #8621 and PR 8616.
    """

    title = "This CuPy ends the import of Chainer"
    severity = Severity.ERROR
    requires = ("IDP101", "IDP204", "IDP401")
    fix = FixSafety.SAFE
    ok = (
        Example("no CuPy", {"packages": {"chainer": "7.8.0"}}),
        Example("7.8.1", {"packages": {"cupy-cuda11x": "12.0.0"}}),
        Example("an older CuPy", {"packages": {"chainer": "7.8.0", "cupy": "9.6.0"}}),
        Example("a NumPy that reads it", {"packages": {"chainer": "7.8.0", "cupy": "10.6.0"}, **_QUICK}),
        Example("it was imported", {"packages": {"chainer": "7.8.0", "cupy": "10.6.0"}}),
    )
    bad = (
        Example(
            "10 with 7.8.0",
            {"packages": {"chainer": "7.8.0", "cupy": "10.0.0"}, "imports": {"chainer": _DEAD}, "chainer": None},
        ),
        Example(
            "not tried",
            {"packages": {"chainer": "7.8.0", "cupy-cuda114": "10.6.0", "numpy": "1.20.3"}, **_QUICK},
        ),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the versions, and look how the import ended."""
        chainer, result = package(facts, "chainer"), outcome(facts, "chainer")
        if chainer is None or chainer.version != _READS_VERSION or facts.planned_ideep4py is not None:
            return
        numpy = package(facts, "numpy")
        if result is None and (numpy is None or not is_older(numpy.version, _READS_TEN)):
            return
        if result is not None and _DEAD["error_text"] not in f"{result.error_text or ''}{result.stderr_tail}":
            return
        newer = [one for one in cupys(facts) if not is_older(one.version, "10")]
        if newer:
            safety = stack_fix(facts)
            yield self.finding(
                found=f"Chainer {chainer.version} with {newer[0].name} {newer[0].version}",
                needed="Chainer 7.8.1, or CuPy 9 or older, or none",
                consequence="import chainer ends with ValueError: Not a valid numpy version string",
                next_step=cure_command(facts, safety),
                evidence=(
                    Evidence(
                        f"{newer[0].name} {newer[0].version} is installed",
                        newer[0].location,
                        python_command(facts, "-c 'import chainer'"),
                    ),
                ),
                # A CuPy that cannot be imported here is not asked for its version.
                severity=Severity.WARNING if result is None else None,
                fix=safety,
            )

    def treat(self, finding: Finding, facts: Facts) -> tuple[Step, ...]:
        """Install the Chainer of the nearest stack."""
        return stack_steps(facts, ["chainer"])
