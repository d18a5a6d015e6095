"""What ``bench`` compares Chainer with iDeep to, as environments that can be made: pinned by hash, one file each.

One TOML file per peer lies in ``peers/`` beside this module. They are written by ``tests/stacks/lock_peers.py``, which
asks the index, installs and proves what it writes; nothing in them is typed by hand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ideepdoctor.stacks.catalog import Lock, lock_from_toml


@dataclass(frozen=True, slots=True)
class StandIns:
    """Empty shared libraries in place of ones that a package names, but never calls here.

    PyTorch on the registry is built for GPUs: its libraries name CUDA's, 3.5 GB that nothing calls without a GPU. The
    loader is content with any file of that name as long as functions are bound when they are called first.
    """

    folder: str
    """In site-packages, where the loader looks for them."""
    model: str
    """A small library in that folder that they are copies of."""
    unneeded: tuple[str, ...]
    """What that library names itself, and a copy must not."""
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer: what it is called, and its locks."""

    name: str
    """As ``--peer`` takes it."""
    label: str
    """For the reader; ``{package}`` stands for a pinned version."""
    locks: tuple[Lock, ...]
    """Newest Python first."""
    stand_ins: StandIns | None = None

    def lock_for(self, abi: str) -> Lock | None:
        """The lock that covers an ABI tag, or None."""
        return next((lock for lock in self.locks if abi in lock.abis), None)

    def label_of(self, lock: Lock) -> str:
        """The label with the versions of a lock."""
        return self.label.format_map({item.name: item.version for item in lock.requirements})


@lru_cache(maxsize=1)
def all_peers() -> Mapping[str, Peer]:
    """Every peer that an environment can be made for, by its name."""
    folder = files("ideepdoctor") / "stacks" / "peers"
    texts = (item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".toml"))
    peers = (peer_from_toml(tomllib.loads(text)) for text in texts)
    return {peer.name: peer for peer in sorted(peers, key=lambda peer: peer.name)}


def peer_from_toml(data: Mapping[str, Any]) -> Peer:
    """Build a peer from the parsed text of its file. Raises KeyError where a key is missing."""
    found = data.get("stand_ins")
    return Peer(
        name=data["name"],
        label=data["label"],
        locks=tuple(lock_from_toml(data["name"], item) for item in data["lock"]),
        stand_ins=None
        if found is None
        else StandIns(found["folder"], found["model"], tuple(found["unneeded"]), tuple(found["names"])),
    )
