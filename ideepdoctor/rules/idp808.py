"""IDP808: something must be fetched and cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned

_MKLML = (
    "put MKL's headers (mkl-include==2018.0.3 of the package index) and libmklml_intel.so and libiomp5.so of an "
    "ideep4py wheel into mkl-dnn/external/mklml_lnx_2018.0.3.20180406/include and lib"
)
SLOW = "did not answer within"
"""In BuildFacts.network: of a server that may only be slow."""
_MKL_WORDS = ("mklml", "mkl_", "gzip", "curl")


class IDP808(BuildRule):
    """A build fetches its source by git, its tools from the package index, and MKLML from a place of upstream's.

    What it checks
        That the repository and the package index answer, where an earlier build did not keep what they give; in a log,
        the words of curl, git and others where they did not, and what follows from a missing MKL.

    Why it matters
        The step that downloads MKLML ignores errors: it says "Downloaded and unpacked" in any case, leaves a folder
        that is never filled again, and the build ends minutes later with ``No Intel mklml pkg.`` or without the headers
        of MKL.

    How to fix
        By hand: remove the folder ``external``, then provide it: headers of mkl-include==2018.0.3, libmklml_intel.so
        and libiomp5.so of the ideep4py wheel of the same release, both from the package index. ``ideepdoctor build``
        does that, by hash, or builds without MKL (``--mkl none``). Without a network: the source as an archive or
        folder (``--source``), the rest from a mirror (``--index-url``) or from what ``ideepdoctor wheelhouse DIR``
        fetched elsewhere (``--wheelhouse DIR``).

    References
        intel/mkl-dnn, scripts/prepare_mkl.sh.

        Reports: oneDNN #159, PaddlePaddle #3758 and #5508, neon #414 and #428.
    """

    title = "What a build fetches cannot be fetched"
    severity = Severity.ERROR
    ok = (
        Example("everything answers", planned()),
        Example("nothing is needed", planned(network=None)),
    )
    bad = (
        Example("no network", planned(network="the package index cannot be reached: dns error")),
        Example("a slow server", planned(network="https://example.org/ideep.git did not answer within 4 s")),
        Example("in a log", logged("IDP808", "curl: (6) Could not resolve host: example.org")),
        Example("at the very end", logged("IDP808", "Intel mkl-dnn build error... No Intel mklml pkg.")),
        Example("git", logged("IDP808", "fatal: unable to access 'https://example.org/': Could not resolve host")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """What was tried does not answer; a warning where it may only be slow."""
        if build.network:
            slow = all(SLOW in part for part in build.network.split("; "))
            yield self.finding(
                found=build.network,
                needed="the source's repository and the package index, once",
                consequence="the build may wait for it, and fail" if slow else "the build cannot begin",
                next_step="set the proxy (https_proxy), or bring the files: --source ARCHIVE --wheelhouse DIR",
                severity=Severity.WARNING if slow else None,
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """MKLML, or the source."""
        if any(word in line for word in _MKL_WORDS):
            return Cure(
                "MKLML: headers and two libraries",
                "MKLML was not downloaded, and the script that does it ignores that",
                f"remove mkl-dnn/external, then {_MKLML}",
                "takes both from the package index, or builds without MKL (--mkl none)",
                own="build without MKL: ideepdoctor build --mkl none",
            )
        return Cure(
            "the network, or the files",
            "the server could not be reached",
            "set the proxy (https_proxy), or fetch the source elsewhere and bring it",
            "takes folders and archives (--source)",
            own="set the proxy (https_proxy), or --source ARCHIVE",
        )
