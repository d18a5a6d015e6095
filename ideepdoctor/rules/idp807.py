"""IDP807: MKL-DNN's source is missing."""

from __future__ import annotations

from collections.abc import Iterator

from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned
from ideepdoctor.rules.idp808 import SLOW

_HAND = "git submodule update --init mkl-dnn, and cmake -DWITH_TEST=OFF (the tests want two more submodules)"


class IDP807(BuildRule):
    """MKL-DNN is a submodule; a clone, and the archive of a tag, come without it.

    What it checks
        For a folder, that MKL-DNN's CMakeLists.txt is in it, or can be fetched; in a log, CMake's word that a folder
        has none.

    Why it matters
        It is the first thing that the documented commands run into. The submodules of the tests, whose absence reads
        the same, are not needed.

    How to fix
        ``git submodule update --init mkl-dnn`` and ``cmake -DWITH_TEST=OFF``. ``ideepdoctor build`` fetches MKL-DNN at
        the commit that the source pins, and leaves the tests out.

    References
        Documentation of git: git-submodule.

        Reports: intel/ideep #20.
    """

    title = "MKL-DNN's source is missing"
    severity = Severity.ERROR
    ok = (
        Example("it will be fetched", planned()),
        Example("a folder that has it", planned(mkldnn_present=True, git=None)),
        Example(
            "a folder that lacks it, and a slow server",
            planned(mkldnn_present=False, request={"source": "/src"}, network="x did not answer within 4 s"),
        ),
        Example("a folder that lacks it, and a network", planned(mkldnn_present=False, request={"source": "/src"})),
    )
    bad = (
        Example(
            "a folder that lacks it, and no network",
            planned(mkldnn_present=False, request={"source": "/src"}, network="the server cannot be reached"),
            also=("IDP808",),
        ),
        Example("in a log", logged("IDP807", "does not contain a CMakeLists.txt file.")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """It is not there and cannot be fetched."""
        if build.mkldnn_present is False and build.network and SLOW not in build.network and build.request is not None:
            yield self.finding(
                found=f"{build.request.source} has no MKL-DNN in it",
                needed="MKL-DNN's source at the pinned commit",
                consequence="it must be fetched, and the network cannot be reached",
                next_step="git submodule update --init mkl-dnn where there is a network, or --mkldnn-source FOLDER",
            )

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """The same in a log."""
        return Cure(
            "the submodule mkl-dnn",
            "the submodule is not there: git clone does not fetch it",
            _HAND,
            "fetches MKL-DNN at its pinned commit and leaves the tests out",
            own="fetch the source anew: ideepdoctor build --fresh",
        )
