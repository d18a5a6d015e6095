"""The source of a build in its work folder: fetched or from the cache, and the same one that an interrupted run had."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ideepdoctor.builder.cache import Store, Tell, key_of
from ideepdoctor.builder.recipe import RELEASES, SOURCE_URL, is_commit, release_for, release_of
from ideepdoctor.builder.source import fetch
from ideepdoctor.model.build import BuildRequest, Layout, SourceTree
from ideepdoctor.system import System

_TAG = re.compile(r"v?\d+(\.\d+)+\S*")


def is_local(request: BuildRequest) -> bool:
    """Whether the source is a folder or an archive of this machine."""
    return request.source is not None and os.path.lexists(request.source)


def ref_of(request: BuildRequest) -> str | None:
    """The ref that is fetched; None: what a folder or an archive holds. Raises UsageError for an unknown Chainer."""
    if request.ref is not None or is_local(request):
        return request.ref
    return release_for(request.chainer).ref


def source_key(request: BuildRequest) -> str | None:
    """The name of the source among the kept pieces; None where what it stands for may change (a branch, a folder)."""
    ref = ref_of(request)
    if is_local(request) or ref is None:
        return None
    if not (is_commit(ref) or _TAG.fullmatch(ref)):
        return None
    release = release_of(ref)
    pins = None if release is None else asdict(RELEASES[release.version])
    return key_of(source=request.source or SOURCE_URL, ref=ref, mkldnn=request.mkldnn_source, release=pins)


def provide_tree(system: System, request: BuildRequest, work: str, store: Store, tell: Tell) -> SourceTree:
    """The source as ``WORK/tree``, with what an interrupted build of the very same source has made of it.

    Args:
        system: fetches, copies, removes.
        request: what was asked.
        work: folder of this build.
        store: keeps what a tag or commit stands for.
        tell: told each step.

    Raises:
        as ``builder.source.fetch``.
    """
    key = source_key(request)
    if key is None:
        fetched = f"{work}/fetched"
        system.remove_tree(fetched)
        tree = fetch(system, request, fetched, tell)
    else:
        piece = store.provide(
            "source",
            key,
            lambda folder: as_note(fetch(system, request, f"{folder}/files", tell), folder),
            fresh=request.fresh,
        )
        if piece.kept:
            tell("the source is kept from an earlier run")
        tree = from_note(piece.note, piece.folder)
    return _placed(system, tree, work, tell, move=key is None)


def _placed(system: System, tree: SourceTree, work: str, tell: Tell, *, move: bool) -> SourceTree:
    there, note = f"{work}/tree", f"{work}/tree.json"
    placed = _moved(tree, there)
    wanted = as_note(placed, work)
    try:
        same = json.loads(Path(note).read_bytes()) == wanted
    except (OSError, ValueError):
        same = False
    if same:
        tell("going on with what an interrupted run has compiled")
        if move:
            system.remove_tree(tree.folder)
        return placed
    system.remove_file(note)
    system.remove_tree(there)
    if move:
        system.rename(tree.folder, there)
    else:
        system.copy_tree(tree.folder, there)
    system.write_file(note, json.dumps(wanted, sort_keys=True).encode("utf-8"))
    return placed


def as_note(tree: SourceTree, folder: str) -> dict[str, Any]:
    """A tree as JSON-ready data, its folders relative to ``folder``."""
    data = asdict(tree)
    for name in ("folder", "mkldnn_folder"):
        data[name] = os.path.relpath(data[name], folder)
    return data


def from_note(note: Mapping[str, Any], folder: str) -> SourceTree:
    """A tree from ``as_note``."""
    data = dict(note)
    for name in ("folder", "mkldnn_folder"):
        data[name] = os.path.normpath(f"{folder}/{data[name]}")
    return SourceTree(**{**data, "layout": Layout(data["layout"])})


def _moved(tree: SourceTree, there: str) -> SourceTree:
    inner = os.path.relpath(tree.mkldnn_folder, tree.folder)
    return replace(tree, folder=there, mkldnn_folder=os.path.normpath(f"{there}/{inner}"))
