"""IDP819: a ref that cannot be right."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from ideepdoctor.builder.recipe import RELEASES, SourceRelease, release_for
from ideepdoctor.errors import UsageError
from ideepdoctor.model.build import BuildFacts
from ideepdoctor.model.facts import Facts
from ideepdoctor.model.findings import Finding, Severity
from ideepdoctor.rules.base import Example
from ideepdoctor.rules.building import BuildRule, Cure, logged, planned

_BRANCHES = ("master", "main", "HEAD")
_TALK = {"ref": "v1.0.3", "release": "1.0.3", "cpu_vendor": "AuthenticAMD"}
_NEWEST = {"ref": "8800808", "release": "2.0.0.post3"}
_KNOWN = "v1.0.3 (Chainer 4, Intel alone), v1.0.4 (Chainer 4), 8800808 (Chainer 5 to 7.8.1)"


class IDP819(BuildRule):
    """Few of upstream's tags and commits are an ideep4py that Chainer takes and that is right.

    What it checks
        The ref that was asked for, against the Chainer that it shall serve and this machine's processor; in a log, the
        ways in which a wrong one shows itself at the first import.

    Why it matters
        v1.0.3, which the talk pins, ends every process on a processor that is not Intel's (``Xbyak::Error``). v2.0.0
        has no ``__version__``: it builds, and Chainer 5 and later say ``Unsupported iDeep version (1)`` and go on
        without it. master is a library for other frameworks. 2.x with Chainer 4 gives wrong gradients of
        BatchNormalization.

    How to fix
        Leave ``--ref`` out: ``ideepdoctor build`` takes what fits (``--chainer VERSION`` for another Chainer than
        7.8.1). v1.0.4 is the one for Chainer 4 on every processor.

    References
        intel/ideep, its tags; measured with each of them.

        Reports: intel/ideep #36 and #43, pytorch #9024 and #34409, intel-extension-for-pytorch #312.
    """

    title = "This release of the source cannot be right here"
    severity = Severity.ERROR
    ok = (
        Example("the default", planned()),
        Example("1.0.4 for Chainer 4", planned(ref="v1.0.4", release="1.0.4", request={"chainer": "4.5.0"})),
        Example(
            "1.0.3 on Intel",
            planned(**{**_TALK, "cpu_vendor": "GenuineIntel"}, request={"ref": "v1.0.3"}),
        ),
        Example("a fork's own branch of a release", planned(ref="v1.0.4", release="1.0.4", request={"source": "/src"})),
        Example("a folder", planned(ref=None, release=None, request={"source": "/src"})),
    )
    bad = (
        Example("1.0.3 on AMD", planned(**_TALK, request={"ref": "v1.0.3"})),
        Example(
            "1.0.3 on AMD, for another machine",
            planned(**_TALK, request={"ref": "v1.0.3", "verify": False}),
        ),
        Example("a fork's master", planned(ref="master", release=None, request={"ref": "master", "source": "/src"})),
        Example("v2.0.0", planned(ref="v2.0.0", release="2.0.0", request={"ref": "v2.0.0"})),
        Example("master", planned(ref="master", release=None, request={"ref": "master"})),
        Example("a tag of your own", planned(ref="v9.9", release=None, request={"ref": "v9.9"})),
        Example("no such tag", planned(ref="v9.9", release=None, ref_found=False, request={"ref": "v9.9"})),
        Example("for another Chainer", planned(**_NEWEST, request={"chainer": "4.5.0"})),
        Example("no release at all for it", planned(**_NEWEST, request={"chainer": "3.0.0"})),
        Example("Xbyak in a log", logged("IDP819", "terminate called after throwing an instance of 'Xbyak::Error'")),
        Example("refused by Chainer", logged("IDP819", "Unsupported iDeep version (1)")),
        Example("a tag that is not there", logged("IDP819", "error: pathspec 'v9.9' did not match any file(s)")),
    )

    def before(self, build: BuildFacts, facts: Facts) -> Iterator[Finding]:
        """What is known of the ref, else that nothing is."""
        asked = None if build.request is None else build.request.ref
        if build.ref is None:
            return
        if build.ref_found is False:
            yield self._refused(
                f"the repository has no tag and no branch {build.ref}", _KNOWN, "there is nothing to fetch"
            )
        elif build.release is not None:
            yield from self._of_release(RELEASES[build.release], build)
        elif build.ref in _BRANCHES and build.request is not None and build.request.source is None:
            cause = "it is of later years: a library for other frameworks, not ideep4py as Chainer knows it"
            yield self._refused(f"the branch {build.ref}", _KNOWN, cause)
        elif asked is not None:
            cause = "whether it builds, and is right, is not known; the wheel is proved before it is handed out"
            yield self._refused(f"{build.ref}: no release that is known", _KNOWN, cause, Severity.WARNING)

    def _of_release(self, release: SourceRelease, build: BuildFacts) -> Iterator[Finding]:
        if release.wrong:
            yield self._refused(f"{build.ref} (ideep4py {release.version})", _KNOWN, release.wrong)
            return
        if release.intel_only and build.cpu_vendor not in (None, "GenuineIntel"):
            elsewhere = build.request is not None and not build.request.verify
            yield self._refused(
                f"{build.ref} (ideep4py {release.version}) on a processor of {build.cpu_vendor}",
                "v1.0.4, which is for the same Chainer",
                "its MKL-DNN ends the process at import on processors that are not Intel's (Xbyak::Error)",
                Severity.WARNING if elsewhere else None,
            )
        chainer = None if build.request is None else build.request.chainer
        if chainer is not None and not _serves(release, chainer):
            yield self._refused(
                f"{build.ref} (ideep4py {release.version}) for Chainer {chainer}",
                f"{_fitting(chainer)}; this one serves Chainer {release.chainer_first} to {release.chainer_last}",
                "Chainer would not take it, or would compute wrong gradients with it",
            )

    def _refused(self, found: str, needed: str, why: str, severity: Severity | None = None) -> Finding:
        step = "leave --ref out: the release that fits is taken (--chainer VERSION)"
        return self.finding(found=found, needed=needed, consequence=why, next_step=step, severity=severity)

    def cure(self, line: str, build: BuildFacts, facts: Facts) -> Cure:
        """By the way that it showed itself."""
        takes = "takes the commit that fits the Chainer"
        if "Xbyak" in line:
            return Cure(
                "v1.0.4, or 2.0.0.post3 with Chainer 5 and later",
                "MKL-DNN 0.12 of release 1.0.3 ends the process on processors that are not Intel's",
                "git checkout v1.0.4 (Chainer 4)",
                takes,
            )
        if "nsupported iDeep" in line or "__version__" in line:
            return Cure(
                "commit 8800808 (2.0.0.post3) for Chainer 5 to 7.8.1",
                "v1.0.4 and before are for Chainer 4, and v2.0.0 has no __version__: Chainer takes neither",
                "git checkout 8800808",
                takes,
            )
        return Cure(_KNOWN, "the repository has no such tag or commit", "git checkout 8800808 (Chainer 5 to 7)", takes)


def _serves(release: SourceRelease, chainer: str) -> bool:
    try:
        wanted = Version(chainer)
    except InvalidVersion:
        return True  # said elsewhere
    return Version(release.chainer_first) <= wanted <= Version(release.chainer_last)


def _fitting(chainer: str) -> str:
    try:
        return f"--ref {release_for(chainer).ref}"
    except UsageError:
        return "another Chainer"
