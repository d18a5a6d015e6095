"""MKL-DNN's source where ideep's build looks for it: the very commit that ideep pins, and nothing else of git's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ideepdoctor.builder import archive
from ideepdoctor.builder.folder import Seen, entries_of, watched
from ideepdoctor.builder.git import Fetched, Repository, Tell
from ideepdoctor.builder.git_errors import WrongCommit
from ideepdoctor.builder.layout import NoSource, prepare_pin
from ideepdoctor.builder.recipe import SourceRelease
from ideepdoctor.builder.urls import is_address, is_remote, resolved, shown
from ideepdoctor.errors import UsageError
from ideepdoctor.model.build import Layout
from ideepdoctor.system import System

IN_CMAKE, IN_PREPARE = "mkl-dnn", "python/external/mkldnn/source"
_NOT_COPIED = frozenset({"build", "external"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """MKL-DNN for one source.

    Attributes:
        tree: folder of ideep's source, ours to write in.
        layout: of it.
        source: what ideep was taken from, for messages.
        base: where that came from: an address or a folder, to which the address in .gitmodules may be relative.
        pinned: commit of the submodule (40 digits); empty: the source has no git to tell it.
        release: the known release that the source is; None: none.
        named: it was asked for as that release, so that it is an error if MKL-DNN is not the recorded one.
        given: ``--mkldnn-source``: an address, a repository, a folder or an archive; None: what the source names.
        beside: a clone of MKL-DNN in the folder that the source was copied from; empty: there is none.
    """

    tree: str
    layout: Layout
    source: str
    base: str
    pinned: str = ""
    release: SourceRelease | None = None
    named: bool = False
    given: str | None = None
    beside: str = ""


def provide_mkldnn(system: System, environ: Mapping[str, str], wanted: Wanted, tell: Tell) -> tuple[str, str]:
    """Put MKL-DNN's source into the tree, unless it is there.

    Args:
        system: runs git, writes.
        environ: the user's variables.
        wanted: what is known about it.
        tell: told each step.

    Returns:
        Its folder and its commit, as ``SourceTree`` has them.

    Raises:
        NoSource: the source does not say which commit it wants, or from where.
        UsageError: an address that cannot be one.
        WrongCommit: the commit is not the one that is recorded for the release.
        CannotFetch, NoSuchRef: as ``Fetched.checkout``.
        BadArchive: of ``--mkldnn-source``.
    """
    if wanted.layout is Layout.PREPARE:
        return _for_prepare(system, environ, wanted, tell)
    folder = f"{wanted.tree}/{IN_CMAKE}"
    if wanted.given is None and _is_mkldnn(folder):
        return folder, ""
    system.remove_tree(folder)
    if wanted.given is not None and not is_repository(wanted.given):
        return folder, _taken(system, wanted.given, folder)
    ref = wanted.pinned or _recorded(wanted)
    url = wanted.given or _address(system, environ, wanted)
    commit = _fetched(system, environ, folder, url, ref, tell)
    if not wanted.pinned:
        _verify(wanted, commit, shown(url))
    if not _is_mkldnn(folder):
        raise NoSource(f"{shown(url)} is not MKL-DNN: it has no CMakeLists.txt and include/mkldnn.h at {commit[:12]}")
    return folder, commit


def _for_prepare(system: System, environ: Mapping[str, str], wanted: Wanted, tell: Tell) -> tuple[str, str]:
    """The prepare step takes a clone that stands at its commit for its own work, and asks git about it."""
    folder, pin = f"{wanted.tree}/{IN_PREPARE}", prepare_pin(wanted.tree)
    if wanted.given is not None and not is_repository(wanted.given):
        raise UsageError(
            f"{shown(wanted.given)} is no git repository, and this release's build asks git for MKL-DNN's commit",
            hint="--mkldnn-source with a clone of MKL-DNN",
        )
    beside = wanted.beside
    if Path(folder, ".git").is_dir():  # an archive has brought a clone
        beside = f"{wanted.tree}.clone"
        system.rename(folder, beside)
    url = wanted.given or beside or resolved(pin.url, wanted.base)
    if not url:
        raise NoSource(f"{wanted.tree} does not say where MKL-DNN comes from", hint="--mkldnn-source ADDRESS")
    if url == pin.url:
        _require_public(url, wanted)
    if wanted.named:
        _verify(wanted, pin.commit, "its prepare step")
    system.remove_tree(folder)
    return folder, _fetched(system, environ, folder, url, pin.commit, tell)


def _fetched(system: System, environ: Mapping[str, str], folder: str, url: str, ref: str, tell: Tell) -> str:
    repository = Fetched.begin(system, environ, folder, url, tell)
    commit = repository.checkout(ref)
    repository.forget_remote()
    return commit


def _recorded(wanted: Wanted) -> str:
    """The ref of a known release's MKL-DNN, for a source without git."""
    release = wanted.release
    if release is not None and len(release.mkldnn_commit) == 40:
        return release.mkldnn_commit
    if release is not None and release.mkldnn_tag:
        return release.mkldnn_tag
    raise NoSource(
        f"{shown(wanted.source)} has no MKL-DNN in mkl-dnn/ and no git that says which commit of it belongs there",
        hint="clone ideep with git, or put MKL-DNN's source into mkl-dnn/, or --mkldnn-source with a folder or archive",
    )


def _address(system: System, environ: Mapping[str, str], wanted: Wanted) -> str:
    """The submodule's address by .gitmodules."""
    tree = Repository(system, environ, wanted.tree)
    reading = ("config", "--no-includes", "--file", ".gitmodules")
    paths = tree.answer(*reading, "--get-regexp", r"^submodule\..*\.path$") or ""
    ending = f".path {IN_CMAKE}"
    name = next((line.removesuffix(ending) for line in paths.splitlines() if line.endswith(ending)), None)
    url = (tree.answer(*reading, "--get", f"{name}.url") if name else None) or ""
    if not url:
        raise NoSource(
            f"{shown(wanted.source)} names no submodule {IN_CMAKE} in .gitmodules", hint="--mkldnn-source ADDRESS"
        )
    url = resolved(url, wanted.base)
    _require_public(url, wanted)
    return url


def _require_public(url: str, wanted: Wanted) -> None:
    """A source from elsewhere does not make us read this machine's own repositories."""
    if is_remote(wanted.base) and not is_remote(url):
        raise NoSource(
            f"the source at {shown(wanted.source)} wants MKL-DNN from {url} on this machine",
            hint=f"if that is meant: --mkldnn-source {url}",
        )


def _verify(wanted: Wanted, commit: str, where: str) -> None:
    known = "" if wanted.release is None else wanted.release.mkldnn_commit
    if known and not commit.startswith(known):
        version = wanted.release.version if wanted.release else ""
        raise WrongCommit(
            f"MKL-DNN of ideep4py {version} is commit {known[:12]}, and {where} gives {commit[:12]}",
            hint="a tag was moved, or this is another project: look at it; to build a source of your own all the same, "
            "give ideep's whole commit hash to --ref",
        )


def _is_mkldnn(folder: str) -> bool:
    return Path(folder, "CMakeLists.txt").is_file() and Path(folder, "include/mkldnn.h").is_file()


def is_repository(source: str) -> bool:
    """Whether git can fetch from it: an address, a clone, a bare repository or a bundle."""
    return is_address(source) or Path(source, ".git").exists() or is_bare(source) or is_bundle(source)


def is_bare(folder: str) -> bool:
    """Whether a folder is a repository without files of its own."""
    return Path(folder, "objects").is_dir() and Path(folder, "refs").is_dir() and Path(folder, "HEAD").is_file()


def is_bundle(file: str) -> bool:
    """Whether a file is a repository packed by ``git bundle``."""
    try:
        with Path(file).open("rb") as stream:
            return re.match(rb"# v\d git bundle\n", stream.read(20)) is not None
    except OSError:
        return False


def _taken(system: System, given: str, folder: str) -> str:
    """MKL-DNN from a folder or an archive; a digest of it."""
    if Path(given).is_dir():
        seen = Seen()
        system.make_folder(folder)
        system.write_tree(folder, watched(entries_of(given, products=_NOT_COPIED), seen))
        name = f"folder:{seen.digest}"
    else:
        top = archive.unpack(system, given, f"{folder}.unpacked")
        system.rename(top, folder)
        system.remove_tree(f"{folder}.unpacked")
        name = f"sha256:{archive.digest(given)}"
    if not _is_mkldnn(folder):
        raise NoSource(f"{given} is not MKL-DNN's source: it has no CMakeLists.txt and include/mkldnn.h")
    return name
