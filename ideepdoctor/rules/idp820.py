"""IDP820: a built wheel that does not fit this processor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.build import BuildInfo
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule, Unknown
from ideepdoctor.rules.compat import lacking


def _built(**more: Any) -> dict[str, Any]:
    info = {
        "march": "x86-64-v3",
        "cpu_flags": ["avx", "avx2", "fma"],
        "mkl": "wheel",
        "commit": "8800808",
        "mkldnn_commit": "c0095ec",
        "numpy": "1.16.6",
        "verified": True,
    }
    return {"built": {**info, **more}}


class IDP820(Rule):
    """An ideep4py that ``ideepdoctor build`` made says which processors it was compiled for.

    What it checks
        The instruction sets that the installed wheel was compiled for, written into its dist-info, against those that
        this processor has and the system saves.

    Why it matters
        ``-march=native`` makes a wheel for the machine that built it. On an older one, or in a virtual machine that
        hides AVX-512, it ends the process with SIGILL at the first function that needs more, and not before.

    How to fix
        Build for the weakest machine that it shall run on: ``ideepdoctor build --march x86-64-v3`` (AVX2).

    References
        x86-64 psABI, micro-architecture levels.
    """

    title = "The installed ideep4py was built for another processor"
    severity = Severity.ERROR
    requires = ("IDP101",)
    ok = (
        Example("a wheel of the index"),
        Example("built for v3", _built()),
        Example("built here", _built(march="native", cpu_flags=["avx2", "avx512f", "avx512vl"])),
    )
    bad = (
        Example("an instruction set of a later processor", _built(march="native", cpu_flags=["avx2", "avx512_fp16"])),
        Example("one that this processor never had", _built(march="native", cpu_flags=["avx512pf", "avx512er"])),
    )

    def concerns(self, facts: Facts) -> bool:
        """Whether the installed ideep4py is one that was built, and no other is being built."""
        return facts.built is not None and facts.build is None

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Compare the flags."""
        if facts.built is None or facts.planned_ideep4py is not None:
            return
        missing = lacking(facts.cpu, facts.built.cpu_flags)
        if missing is None:
            raise Unknown("the processor's flags are not known")
        if missing:
            yield self.finding(
                found=f"built with -march={facts.built.march}; this processor lacks {', '.join(missing)}",
                needed="a build for this processor",
                consequence="SIGILL at the first function that uses what is missing",
                next_step="ideepdoctor build --march x86-64-v3, and install that wheel",
                evidence=tuple(_evidence(facts.built)),
            )


def _evidence(built: BuildInfo) -> Iterator[Evidence]:
    yield Evidence(f"it needs {', '.join(built.cpu_flags)}", None, "ideepdoctor cpu")
