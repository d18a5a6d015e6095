"""IDP318: several CuPy distributions."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.cupy import cupys
from ideepdoctor.rules.installed import package, python_command


class IDP318(Rule):
    """Two distributions of CuPy are installed: their files lie in one folder.

    What it checks
        The names of the installed distributions: ``cupy``, ``cupy-cudaNNN``, ``cupy-rocm-N-N``.

    Why it matters
        Each of them installs the folder ``cupy`` and pip does not see that. What is imported is a mixture, and
        uninstalling one takes files of the other away. Chainer says so at its import (``Multiple installations of
        CuPy package has been detected``) and goes on. iDeep is not concerned, only what runs on the GPU.

    How to fix
        Uninstall all of them, then install the one for your CUDA; none where there is no GPU.

    References
        Chainer's own check at its import; CuPy's page on installation says that only one may be there.
    """

    title = "CuPy is installed more than once"
    severity = Severity.WARNING
    requires = ("IDP101", "IDP317")
    ok = (
        Example("none"),
        Example("one", {"packages": {"cupy-cuda102": "9.6.0"}}),
        Example("one beside its helpers", {"packages": {"cupy-cuda102": "9.6.0", "cupy-backends": "1.0"}}),
    )
    bad = (
        Example("two CUDAs", {"packages": {"cupy-cuda102": "9.6.0", "cupy-cuda113": "9.6.0"}}),
        Example("a wheel and a build", {"packages": {"cupy": "9.6.0", "cupy-rocm-4-0": "9.6.0"}}),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Count them."""
        found = cupys(facts)
        if len(found) < 2 or package(facts, "chainer") is None or facts.planned_ideep4py is not None:
            return
        names = " ".join(dict.fromkeys(one.name for one in found))
        yield self.finding(
            found=", ".join(f"{one.name} {one.version}" for one in found),
            needed="one CuPy, or none where there is no GPU",
            consequence="the folder cupy holds a mixture of their files: what runs on the GPU fails or is wrong",
            next_step=python_command(facts, f"-m pip uninstall -y {names}"),
            evidence=tuple(
                Evidence(f"{one.name} {one.version}", one.location, python_command(facts, f"-m pip show {one.name}"))
                for one in found
            ),
        )
