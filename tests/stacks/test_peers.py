"""The peers of bench as data: whole, pinned, and what the code asks for."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.resources import files

import pytest

from ideepdoctor.proof.peers import KINDS
from ideepdoctor.stacks.catalog import Lock
from ideepdoctor.stacks.peer_catalog import all_peers, peer_from_toml
from tests.stacks.lock_peers import WANTED, head, table

LOCKS = [pytest.param(lock, id=f"{peer.name}-{lock.python}") for peer in all_peers().values() for lock in peer.locks]
VERSION = re.compile(r"\d+\.\d+")


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_is_pinned_by_hash(lock: Lock) -> None:
    for item in lock.requirements:
        assert VERSION.match(item.version)
        assert item.sha256 and all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in item.sha256)
    assert lock.download_bytes > 10_000_000
    assert lock.tried == (lock.installed_bytes > lock.download_bytes)


@pytest.mark.parametrize("lock", [param for param in LOCKS if param.values[0].tried])
def test_what_was_run_is_said(lock: Lock) -> None:
    assert "a step of alexnet" in lock.proved
    assert f"CPython {lock.python}" in lock.proved


def test_every_peer_that_is_made_has_a_file_and_all_files_are_used() -> None:
    # One is a stack of the product, one is made of what was built here.
    others = {"ideep-1.0.4", "source"}
    assert {kind.environment for kind in KINDS.values()} - others == set(all_peers())
    assert {wanted.name for wanted in WANTED} == set(all_peers())


def test_labels_name_the_pinned_versions() -> None:
    for peer in all_peers().values():
        for lock in peer.locks:
            label = peer.label_of(lock)
            assert "{" not in label
            assert VERSION.search(label)
    mkl = all_peers()["mkl"]
    assert mkl.label_of(mkl.locks[0]) == "Chainer 7.8.1 + NumPy 1.21.4 with MKL 2024.2.2"


def test_the_doctors_own_python_can_hold_pytorch_and_opencv() -> None:
    abi = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    for name in ("torch", "opencv"):
        assert all_peers()[name].lock_for(abi) is not None
        assert all_peers()[name].lock_for("cp37m") is None


def test_stand_ins_take_the_place_of_cuda_and_of_nothing_that_is_installed() -> None:
    found = all_peers()["torch"].stand_ins
    assert found is not None
    assert {"libcublas.so.13", "libcudnn.so.9", "libnccl.so.2"} <= set(found.names)
    # The one library of CUDA that does something as PyTorch is imported comes from the index.
    assert "libcudart.so.13" not in found.names
    names = {item.name for item in all_peers()["torch"].locks[0].requirements}
    assert {name for name in names if name.startswith("nvidia")} == {"nvidia-cuda-runtime"}


def test_what_the_script_writes_is_what_the_product_reads() -> None:
    for wanted in WANTED:
        peer = all_peers()[wanted.name]
        text = head(wanted)
        for lock in peer.locks:
            text += table(lock.python, lock.requirements, lock.download_bytes, lock.installed_bytes, lock.proved)
            pins = {item.name: item.version for item in lock.requirements}
            assert pins == dict(wanted.pins[lock.python])
        assert peer_from_toml(tomllib.loads(text)) == peer
        assert (files("ideepdoctor") / "stacks" / "peers" / f"{wanted.name}.toml").read_text("utf-8") == text
