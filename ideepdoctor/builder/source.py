"""Upstream's source, from git, a folder or an archive: fetched, verified, complete, and all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ideepdoctor.builder import archive
from ideepdoctor.builder.folder import Seen, entries_of, watched
from ideepdoctor.builder.git import Fetched, Repository, Tell, check_ref
from ideepdoctor.builder.git_errors import NoSuchRef, WrongCommit
from ideepdoctor.builder.layout import NoSource, layout_of, version_of
from ideepdoctor.builder.mkldnn import IN_CMAKE, IN_PREPARE, Wanted, is_bare, is_bundle, provide_mkldnn
from ideepdoctor.builder.recipe import SOURCE_URL, SourceRelease, is_commit, release_for, release_of
from ideepdoctor.builder.urls import check_url, is_address, shown
from ideepdoctor.errors import CouldNotCheck, UsageError
from ideepdoctor.model.build import BuildRequest, Layout, SourceTree
from ideepdoctor.system import System

_ARCHIVE_NAMES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zip")


class Kind(StrEnum):
    """What a source is."""

    GIT = "git"
    FOLDER = "folder"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class _Taken:
    """Ideep's own files, in place, MKL-DNN not looked at.

    Attributes:
        commit: as ``SourceTree.commit``.
        pinned: commit of the submodule mkl-dnn; empty: there is no git that tells it.
        mkldnn_commit: of an mkl-dnn that came along with git; empty: it did not.
        beside: see ``mkldnn.Wanted``.
        release: the known release that it was asked for as or is known to be.
    """

    commit: str
    pinned: str = ""
    mkldnn_commit: str = ""
    beside: str = ""
    release: SourceRelease | None = None


def kind_of(source: str, ref: str | None) -> Kind:
    """What a source is; a folder with git from which a ref is wanted counts as git, and so does a git bundle.

    Raises:
        UsageError: nothing is there, it is the address of an archive, or a ref is wanted where there is no git.
    """
    if is_address(source) or source.startswith("-"):
        check_url(source)
        if source.lower().endswith(_ARCHIVE_NAMES):
            raise UsageError(f"{shown(source)} is the address of an archive", hint="download it, then --source FILE")
        return Kind.GIT
    path = Path(source)
    if is_bare(source):
        return Kind.GIT
    if path.is_dir():
        if ref is None:
            return Kind.FOLDER
        if (path / ".git").exists():
            return Kind.GIT
        if release_of(ref) is not None:
            return Kind.FOLDER
        raise UsageError(f"{source} has no git, so --ref {ref} cannot be taken out of it", hint="leave --ref out")
    if path.is_file():
        return Kind.GIT if is_bundle(source) else Kind.ARCHIVE
    raise UsageError(f"there is no folder or archive {shown(source)}", hint="--source takes a git address, too")


def fetch(
    system: System, request: BuildRequest, folder: str, tell: Tell, *, environ: Mapping[str, str] | None = None
) -> SourceTree:
    """Get the source that was asked for, with the MKL-DNN that it pins, and verify it.

    Git: ``ref`` or the commit for ``chainer``. A folder is copied as it is (without build products), an archive is
    unpacked; a ref says which release they are. Of a release whose hashes are recorded both commits must agree with
    them; a commit given as a hash must have that hash. The user's own folder is never changed.

    Args:
        system: runs git, writes.
        request: what was asked.
        folder: where the source goes; does not exist yet, and exists afterwards only where this returns.
        tell: told each step.
        environ: the user's variables; None: this process's.

    Raises:
        UsageError: no such source, no such ref, no ideep in it, or a bad archive (all by their own classes).
        WrongCommit: a commit that is not the recorded one.
        CouldNotCheck: no usable git, the remote is away, or a file cannot be read.
        OSError: ``folder`` cannot be written.
    """
    environ = os.environ if environ is None else environ
    source = request.source or SOURCE_URL
    kind = kind_of(source, request.ref)
    if kind is not Kind.GIT or not is_address(source):
        source = os.path.abspath(source)  # noqa: PTH100 (links stay as they are)
    partial = f"{folder}.partial"
    system.remove_tree(partial)
    try:
        system.make_folder(partial)
        tree = _complete(system, environ, request, kind, source, f"{partial}/tree", tell)
        system.rename(tree.folder, folder)
    except NoSource as error:
        hint = "" if f"{partial}/tree" in error.hint else error.hint
        raise NoSource(error.message.replace(f"{partial}/tree", shown(source)), hint=hint) from error
    finally:
        system.remove_tree(partial)
    inner = os.path.relpath(tree.mkldnn_folder, tree.folder)
    return replace(tree, folder=folder, mkldnn_folder=f"{folder}/{inner}")


def _complete(
    system: System, environ: Mapping[str, str], request: BuildRequest, kind: Kind, source: str, tree: str, tell: Tell
) -> SourceTree:
    if kind is Kind.GIT:
        taken = _from_git(system, environ, request, source, tree, tell)
    elif kind is Kind.FOLDER:
        taken = _from_folder(system, environ, source, tree, tell)
    else:
        taken = _from_archive(system, source, tree, tell)
    layout, version = layout_of(tree), version_of(tree)
    release = taken.release or _claimed(request, taken, version)
    named = taken.release is not None or (request.ref is not None and not is_commit(taken.commit))
    vendored = Path(tree, IN_CMAKE, "CMakeLists.txt").is_file()
    if kind is Kind.GIT and layout is Layout.CMAKE and not taken.pinned and not vendored:
        raise NoSource(f"{shown(source)} at {taken.commit[:12]} has no submodule {IN_CMAKE}")
    base = source if is_address(source) else _origin(system, environ, source)
    given = request.mkldnn_source
    if given is not None and not is_address(given):
        given = os.path.abspath(given)  # noqa: PTH100
    wanted = Wanted(tree, layout, source, base, taken.pinned, release, named, given, taken.beside)
    mkldnn_folder, fetched = provide_mkldnn(system, environ, wanted, tell)
    mkldnn_commit = fetched or taken.mkldnn_commit
    known = release is None or not is_commit(mkldnn_commit) or mkldnn_commit.startswith(release.mkldnn_commit)
    return SourceTree(
        folder=tree,
        commit=taken.commit,
        mkldnn_folder=mkldnn_folder,
        mkldnn_commit=mkldnn_commit,
        layout=layout,
        version=version,
        release=release.version if release is not None and known else None,
    )


def _from_git(
    system: System, environ: Mapping[str, str], request: BuildRequest, source: str, tree: str, tell: Tell
) -> _Taken:
    ref = check_ref(request.ref or release_for(request.chainer).ref)
    repository = Fetched.begin(system, environ, tree, source, tell)
    try:
        commit = repository.checkout(ref)
    except NoSuchRef as error:
        if request.ref is None:
            error.hint = f"--ref says which tag or commit of it is meant; {error.hint}"
        raise
    # Whoever gives a whole hash has said exactly what is wanted, and gets the release only if it is that.
    release = release_of(commit) or (None if is_commit(ref) else release_of(ref))
    if named := release_of(ref):
        _verify(named, commit, shown(source))
    pinned = repository.repository.link(IN_CMAKE) or ""
    if release is not None and pinned and not pinned.startswith(release.mkldnn_commit):
        raise WrongCommit(
            f"ideep4py {release.version} has MKL-DNN at {release.mkldnn_commit[:12]}, and {ref} at {shown(source)} "
            f"({commit[:12]}) has it at {pinned[:12]}",
            hint=_own_hint(commit),
        )
    system.remove_tree(f"{tree}/.git")
    return _Taken(commit, pinned, release=release)


def _verify(release: SourceRelease, commit: str, where: str) -> None:
    if not commit.startswith(release.commit):
        raise WrongCommit(
            f"ideep4py {release.version} is commit {release.commit}, and {release.ref} at {where} is {commit[:12]}",
            hint=_own_hint(commit),
        )


def _own_hint(commit: str) -> str:
    return f"the tag was moved, or this is another project: look at it; to build it all the same: --ref {commit}"


def _from_folder(system: System, environ: Mapping[str, str], source: str, tree: str, tell: Tell) -> _Taken:
    layout_of(source)
    tell(f"copying {source}")
    seen = Seen()
    try:
        system.make_folder(tree)
        system.write_tree(tree, watched(entries_of(source), seen))
    except PermissionError as error:
        raise CouldNotCheck(f"cannot read {error.filename or source}: {error.strerror}") from error
    taken = _Taken(f"folder:{seen.digest}", beside=_own_clone(f"{source}/{IN_PREPARE}"))
    repository = Repository(system, environ, source)
    if not _own_clone(source) or (head := repository.answer("rev-parse", "HEAD")) is None:
        return taken
    pinned, mkldnn = repository.link(IN_CMAKE) or "", Repository(system, environ, f"{source}/{IN_CMAKE}")
    mkldnn_commit, clean = "", _is_clean(repository, seen.names)
    if _own_clone(mkldnn.folder):
        mkldnn_commit = mkldnn.answer("rev-parse", "HEAD") or ""
        if mkldnn_commit != pinned:
            tell(f"MKL-DNN in {source} stands at {mkldnn_commit[:12]}, not where ideep pins it ({pinned[:12]})")
        inner = [name.removeprefix(f"{IN_CMAKE}/") for name in seen.names if name.startswith(f"{IN_CMAKE}/")]
        if not _is_clean(mkldnn, inner):
            mkldnn_commit = ""
    with_mkldnn = Path(mkldnn.folder, "CMakeLists.txt").is_file()
    if not clean or (with_mkldnn and pinned and not mkldnn_commit):
        tell(f"{source} has changes that are not committed")
        return replace(taken, pinned=pinned, mkldnn_commit=mkldnn_commit)
    tags = (repository.answer("tag", "--points-at", "HEAD") or "").split()
    known = [found for name in (head, *tags) if (found := release_of(name)) is not None]
    right = next((one for one in known if head.startswith(one.commit)), None)
    return replace(taken, commit=head, pinned=pinned, mkldnn_commit=mkldnn_commit, release=right)


def _origin(system: System, environ: Mapping[str, str], source: str) -> str:
    """What addresses in a local source are relative to: where it was cloned from, else itself."""
    if not (_own_clone(source) or is_bare(source)):
        return source
    return Repository(system, environ, source).answer("config", "--get", "remote.origin.url") or source


def _own_clone(folder: str) -> str:
    """The folder itself where it is a repository of its own, not one within another's; else empty."""
    return folder if Path(folder, ".git").exists() else ""


def _is_clean(repository: Repository, copied: Sequence[str]) -> bool:
    """Whether the files that were copied out of a working tree are those of its commit."""
    if repository.answer("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all") != "":
        return False
    others = (repository.answer("ls-files", "--others", "--directory") or "").splitlines()
    folders = tuple(name for name in others if name.endswith("/"))
    return not any(name in others or name.startswith(folders) for name in copied)


def _from_archive(system: System, source: str, tree: str, tell: Tell) -> _Taken:
    tell(f"unpacking {source}")
    system.rename(archive.unpack(system, source, f"{tree}.unpacked"), tree)
    for name in (".git", f"{IN_CMAKE}/.git"):  # as of a folder; what they say of these files is not looked at
        system.remove_tree(f"{tree}/{name}")
    return _Taken(f"sha256:{archive.digest(source)}")


def _claimed(request: BuildRequest, taken: _Taken, version: str) -> SourceRelease | None:
    """The release that a source without a recorded hash says it is, by ``--ref`` or by its version.

    Raises:
        UsageError: ``--ref`` and the source's own version disagree.
    """
    like = release_of(version)
    if is_commit(taken.commit):
        return None if like is None or like.commit else like
    named = release_of(request.ref) if request.ref else None
    if named is not None and named.version != version:
        raise UsageError(f"{request.source} is ideep4py {version}, not {named.version}", hint="leave --ref out")
    return like
