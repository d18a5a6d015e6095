"""IDP506: a threading layer of MKL that mkl-service refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example, Rule
from ideepdoctor.rules.installed import outcome, package, python_command, variable

_GOMP = "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0"


def _case(layer: str, *, service: bool = True, gomp: bool = True, **variables: str) -> dict[str, Any]:
    return {
        "packages": {"mkl-service": "2.4.0"} if service else {},
        "variables": {"effective": {"MKL_THREADING_LAYER": layer, **variables}},
        "native": {"started": {"at_start": [_GOMP] if gomp else []}},
    }


class IDP506(Rule):
    """MKL_THREADING_LAYER=INTEL, while GNU's OpenMP is there before anything is imported.

    What it checks
        The variable, where mkl-service (which NumPys with MKL bring) is installed, and whether libgomp is mapped as
        Python starts: by LD_PRELOAD, or because the interpreter needs it. ideep4py's own libgomp (on Python 3.7) is
        private to it and no fault; nor is a variable that is not set.

    Why it matters
        ``import mkl``, and with some NumPys ``import numpy``, ends the process with exit code 1 and "Error: mkl-service
        + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1 library".

    How to fix
        ``export MKL_THREADING_LAYER=GNU``, or keep libgomp out of LD_PRELOAD.

    References
        pytorch #37377; pytorch/ort #102; KennthShang/PhaGCN #5. Measured with mkl-service 2.4.0 and MKL 2022.1: exit
        code 1 with INTEL and libgomp in LD_PRELOAD, NumPy imported before or not. No fault: ideep4py imported before;
        GNU; nothing set; MKL_SERVICE_FORCE_INTEL=1, which prints the words and goes on.
    """

    title = "MKL_THREADING_LAYER=INTEL meets GNU's OpenMP"
    severity = Severity.WARNING
    requires = ("IDP101", "IDP102")
    ok = (
        Example("not set"),
        Example("no mkl-service", _case("INTEL", service=False)),
        Example("GNU", _case("GNU")),
        Example("ideep4py's own libgomp alone", _case("INTEL", gomp=False)),
        Example("forced", _case("INTEL", MKL_SERVICE_FORCE_INTEL="1")),
    )
    bad = (
        Example("libgomp in LD_PRELOAD", _case("INTEL")),
        Example("in other letters", _case("intel")),
    )

    def check(self, facts: Facts) -> Iterator[Finding]:
        """Look at the variable, the package and what is mapped at the start."""
        layer = variable(facts, "MKL_THREADING_LAYER")
        if layer is None or layer.upper() != "INTEL" or package(facts, "mkl-service") is None:
            return
        started = None if facts.native is None else facts.native.started
        gomp = [
            path for path in (started.at_start if started else ()) if path.rpartition("/")[2].startswith("libgomp.")
        ]
        if not gomp or variable(facts, "MKL_SERVICE_FORCE_INTEL") is not None:
            return
        numpy = outcome(facts, "numpy")
        dead = numpy is not None and not numpy.ok
        yield self.finding(
            found=f"MKL_THREADING_LAYER={layer}, and {gomp[0]} is mapped as Python starts",
            needed="GNU, where libgomp is there first",
            consequence="the import of NumPy ends the process"
            if dead
            else "import mkl ends the process with exit code 1",
            next_step="export MKL_THREADING_LAYER=GNU",
            evidence=(Evidence("mkl-service refuses it", gomp[0], python_command(facts, "-c 'import mkl'")),),
            severity=Severity.ERROR if dead else Severity.WARNING,
        )
