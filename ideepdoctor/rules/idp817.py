"""IDP817: a library that is there and not found."""

from __future__ import annotations

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned


class IDP817(BuildRule):
    """Libraries beside the extension are found by its RPATH; with RUNPATH those that they need are not.

    What it checks
        In a log, an ``ImportError`` that names libiomp5.so, libmklml_intel.so or libmkldnn.so.

    Why it matters
        The build ends well, and the import fails: the extension says ``$ORIGIN/lib``, which linkers of today write as
        RUNPATH, and that counts for the extension's own needs alone, not for what libmkldnn.so needs.

    How to fix
        ``export LDFLAGS=-Wl,--disable-new-dtags`` before setup.py is started. Of what is installed already:
        ``patchelf --force-rpath --set-rpath '$ORIGIN/lib'`` for the extension. ``ideepdoctor build`` does the first,
        and looks at the result.

    References
        ld.so(8): DT_RPATH and DT_RUNPATH.
    """

    title = "Libraries beside the extension are not found"
    severity = Severity.ERROR
    ok = (Example("a build of ours cures it", planned()), Example("nothing in the log", {"build": {}}))
    bad = (
        Example("OpenMP", logged("IDP817", "ImportError: libiomp5.so: cannot open shared object file")),
        Example("MKL", logged("IDP817", "ImportError: libmklml_intel.so: cannot open shared object file")),
    )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """RPATH."""
        return Cure(
            "an RPATH, not a RUNPATH",
            "the linker wrote RUNPATH, which does not count for what the libraries beside the extension need",
            "export LDFLAGS=-Wl,--disable-new-dtags, remove python/build, build the extension again",
            "links with RPATH and looks at the result",
        )
