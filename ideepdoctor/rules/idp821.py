"""IDP821: an MKL of the person's own that is not complete."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Evidence, Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, planned

_LACKS = ["include/mkl_vsl.h", "lib/libmklml_intel.so"]


class IDP821(BuildRule):
    """``--mkl FOLDER`` is a folder of MKLML's shape: include with MKL's headers, lib with two libraries.

    What it checks
        That include/mkl_cblas.h, mkl_vsl.h and mkl_vml_functions.h, lib/libmklml_intel.so and lib/libiomp5.so are in
        it.

    Why it matters
        MKL-DNN's files would compile for minutes before the first missing one is asked for. A full MKL is no such
        folder: it has libmkl_rt.so in the place of libmklml_intel.so.

    How to fix
        Give the folder of an unpacked mklml_lnx archive, or leave ``--mkl`` out: MKL then comes from the package index
        by hash. ``--mkl none`` builds without.

    References
        intel/mkl-dnn, releases: mklml_lnx archives.
    """

    title = "The folder of --mkl lacks files"
    severity = Severity.ERROR
    ok = (
        Example("from the index", planned()),
        Example("complete", planned(request={"mkl": "/opt/mklml"})),
    )
    bad = (
        Example("two are missing", planned(request={"mkl": "/opt/mkl"}, mkl_missing=_LACKS)),
        Example("no folder at all", planned(request={"mkl": "/nowhere"}, mkl_missing=["include/mkl_cblas.h"])),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """Files that are not there."""
        if build.mkl_missing and build.request is not None:
            yield self.finding(
                found=f"{build.request.mkl} lacks {', '.join(build.mkl_missing)}",
                needed="include with MKL's headers, lib/libmklml_intel.so and lib/libiomp5.so",
                consequence="MKL-DNN or the extension would not compile, or not link",
                next_step="leave --mkl out, or --mkl none",
                evidence=tuple(Evidence("missing", f"{build.request.mkl}/{name}") for name in build.mkl_missing),
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """No line of a log has this code."""
        raise AssertionError(line)
