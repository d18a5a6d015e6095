"""What is known about upstream's releases as source: which commit, how it is built, whom it serves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from packaging.version import InvalidVersion, Version

from ideepdoctor.errors import UsageError
from ideepdoctor.model.build import Layout, SourceTree

SOURCE_URL = "https://github.com/intel/ideep.git"
"""Upstream's public repository."""

_DIGITS = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class SourceRelease:
    """One release of ideep4py as source.

    Attributes:
        version: of ideep4py, the key in ``RELEASES``.
        ref: tag or commit to fetch.
        commit: known digits of the commit's hash (7 or more); empty: none are recorded.
        layout: how it is built.
        mkldnn_commit: known digits of MKL-DNN's commit; empty: none are recorded, ideep's own commit pins it.
        mkldnn_tag: tag of that commit, for a source that comes without MKL-DNN and without git; empty: not known.
        chainer_first: oldest Chainer that is right with it; empty: none is.
        chainer_last: newest such Chainer.
        mklml: name of the folder that its build looks for under MKL-DNN's ``external``.
        wheel: release on the package index whose wheel has the MKL library of that time.
        mkl_include: release of mkl-include with the headers to it.
        intel_only: dies at import on processors that are not Intel's.
        cxxflags: what its compiler needs beside the flags of every build.
        wrong: why it is not to be built; empty: nothing is known against it.
    """

    version: str
    ref: str
    commit: str
    layout: Layout
    mkldnn_commit: str
    mkldnn_tag: str
    chainer_first: str
    chainer_last: str
    mklml: str
    wheel: str
    mkl_include: str
    intel_only: bool = False
    cxxflags: tuple[str, ...] = ()
    wrong: str = ""


_MKLML = "mklml_lnx_2018.0.3.20180406"

RELEASES: Mapping[str, SourceRelease] = MappingProxyType(
    {
        release.version: release
        for release in (
            SourceRelease(
                version="1.0.3",
                ref="v1.0.3",
                commit="",
                layout=Layout.PREPARE,
                mkldnn_commit="ae00102be506ed0fe2099c6557df2aa88ad57ec1",
                mkldnn_tag="",
                chainer_first="4.0.0b4",
                chainer_last="4.5.0",
                mklml="mklml_lnx_2018.0.1.20171227",
                wheel="1.0.3",
                mkl_include="2018.0.3",
                intel_only=True,
                cxxflags=("-faligned-new",),
            ),
            SourceRelease(
                version="1.0.4",
                ref="v1.0.4",
                commit="",
                layout=Layout.CMAKE,
                mkldnn_commit="",
                mkldnn_tag="",
                chainer_first="4.0.0b4",
                chainer_last="5.0.0b2",
                mklml=_MKLML,
                wheel="1.0.4",
                mkl_include="2018.0.3",
            ),
            SourceRelease(
                version="2.0.0",
                ref="v2.0.0",
                commit="",
                layout=Layout.CMAKE,
                mkldnn_commit="",
                mkldnn_tag="",
                chainer_first="",
                chainer_last="",
                mklml=_MKLML,
                wheel="2.0.0.post3",
                mkl_include="2018.0.3",
                wrong="it has no __version__, so Chainer 5 and later say `Unsupported iDeep version (1)`",
            ),
            SourceRelease(
                version="2.0.0.post3",
                ref="8800808",
                commit="8800808",
                layout=Layout.CMAKE,
                mkldnn_commit="c0095ec",
                mkldnn_tag="v0.14",
                chainer_first="5.0.0rc1",
                chainer_last="7.8.1",
                mklml=_MKLML,
                wheel="2.0.0.post3",
                mkl_include="2018.0.3",
            ),
        )
    }
)
"""Every release that is known, oldest first; the key is ideep4py's version."""


def release_for(chainer: str | None) -> SourceRelease:
    """The release to build for a Chainer; the one for the newest Chainer where ``chainer`` is None.

    Of two that fit, the one that runs on every processor wins.

    Raises:
        UsageError: ``chainer`` is no version, or no release is right with it.
    """
    usable = [release for release in RELEASES.values() if release.chainer_first]
    if chainer is None:
        return max(usable, key=lambda release: Version(release.chainer_last))
    try:
        wanted = Version(chainer)
    except InvalidVersion as error:
        raise UsageError(f"{chainer} is no release of Chainer", hint="such as --chainer 7.8.1") from error
    fitting = [release for release in usable if _serves(release, wanted)]
    if fitting:
        return min(fitting, key=lambda release: (release.intel_only, -list(RELEASES).index(release.version)))
    ranges = "; ".join(f"{one.version} serves {one.chainer_first} to {one.chainer_last}" for one in usable)
    raise UsageError(f"no ideep4py is right with Chainer {chainer}", hint=ranges)


def release_of(commit_or_ref: str) -> SourceRelease | None:
    """The release that a tag, a version or a commit (7 digits or more) names; None: none that is known."""
    name = commit_or_ref.strip().removeprefix("refs/tags/")
    lower = name.lower()
    for release in RELEASES.values():
        if name in (release.ref, release.version, f"v{release.version}"):
            return release
        if release.commit and _DIGITS.fullmatch(lower) and _agree(lower, release.commit):
            return release
    return None


def recipe_of(tree: SourceTree) -> SourceRelease:
    """How to build a source: its own release's recipe, else that of the release which is most like it."""
    if tree.release is not None:
        return RELEASES[tree.release]
    alike = [one for one in RELEASES.values() if one.layout is tree.layout and one.chainer_first]
    same = [one for one in alike if one.version.split(".")[0] == tree.version.split(".")[0]]
    return (same or alike)[-1]


def is_commit(ref: str) -> bool:
    """Whether a ref is given as the hash of a commit, whole or shortened to 7 digits or more."""
    return _DIGITS.fullmatch(ref.lower()) is not None


def _serves(release: SourceRelease, chainer: Version) -> bool:
    last = Version(release.chainer_last)
    of_the_last = chainer.is_postrelease and not last.is_prerelease and chainer.base_version == last.base_version
    return Version(release.chainer_first) <= chainer and (chainer <= last or of_the_last)


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
