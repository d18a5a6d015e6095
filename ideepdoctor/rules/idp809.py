"""IDP809: a full MKL is in the way."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP809(BuildRule):
    """The source takes MKL from $MKLROOT before it looks at MKLML, and then wants files that only MKLML has.

    What it checks
        MKLROOT, which ``ideepdoctor build`` leaves out of its build; in a log, that a file of MKLML was not found in
        another MKL, and the function that MKL lost in later years.

    Why it matters
        ``source setvars.sh`` of oneAPI sets MKLROOT in every shell. MKL-DNN then compiles against it, and installing
        ends with ``file INSTALL cannot find .../libmklml_intel.so``; MKL 2024 lacks ``cblas_sgemm_alloc``.

    How to fix
        ``unset MKLROOT``, remove the folder ``build`` (CMake remembers what it found), and start again.

    References
        Measured: mkl==2018.0.3 works through libmkl_rt, 2024.2.2 does not.

        Reports: intel/ideep #21, apache/mxnet #14670.
    """

    title = "A full MKL is taken in place of MKLML"
    severity = Severity.ERROR
    ok = (Example("MKLROOT is not set", planned()), Example("it was not looked at", {"build": {}}))
    bad = (
        Example("a folder is not found", logged("IDP809", "file INSTALL cannot find")),
        Example("a later MKL", logged("IDP809", "gemm.cpp:7:67: error: 'cblas_sgemm_alloc' was not declared")),
        Example("MKLROOT is set", planned(mklroot="/opt/intel/oneapi/mkl/latest")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """Harmless to a build of ours, which does not hand it on."""
        if build.mklroot:
            yield self.finding(
                found=f"MKLROOT={build.mklroot}",
                needed="nothing: this build leaves it out",
                consequence="a build by hand would take that MKL and fail",
                next_step="unset MKLROOT before a build by hand",
                severity=Severity.INFO,
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """Its files, or its functions."""
        if "cblas_sgemm_alloc" in line:
            cause = "an MKL of later years is taken, which has no cblas_sgemm_alloc"
        else:
            cause = "a full MKL is taken, which has no libmklml_intel.so"
        return Cure(
            "MKLML (2018), and no MKLROOT",
            cause,
            "unset MKLROOT, remove the folder build, start again",
            "leaves MKLROOT out",
            own="look at --mkl: a folder that has MKLML's files, or --mkl wheel",
        )
