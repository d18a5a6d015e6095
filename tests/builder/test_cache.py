"""Finished pieces of builds: whole or absent, never half."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.builder.cache import Store, key_of, listing
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.system import RealSystem


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, told: list[str]) -> Store:
    return Store(RealSystem(), str(tmp_path / "build"), told.append)


class Maker:
    """Makes a small piece and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, folder: str) -> Mapping[str, Any]:
        self.times += 1
        top = Path(folder)
        assert list(top.iterdir()) == []
        (top / "lib").mkdir()
        (top / "lib" / "a.so.0").write_text("code")
        (top / "lib" / "a.so").symlink_to("a.so.0")
        return {"answer": 42}


def test_a_piece_is_made_once(store: Store) -> None:
    make = Maker()
    first = store.provide("library", "k", make)
    second = store.provide("library", "k", make)
    assert (first.kept, second.kept, make.times) == (False, True, 1)
    assert second.note == {"answer": 42} and second.folder == first.folder
    assert Path(second.folder, "lib", "a.so").read_text() == "code"
    assert store.find("library", "k") == second
    assert store.find("library", "other") is None and store.find("wheel", "k") is None


def test_fresh_makes_it_anew(store: Store) -> None:
    make = Maker()
    store.provide("library", "k", make)
    assert not store.provide("library", "k", make, fresh=True).kept
    assert make.times == 2


def _flip(piece: Path) -> None:
    (piece / "lib" / "a.so.0").write_text("c0de")


def _lose(piece: Path) -> None:
    (piece / "lib" / "a.so.0").unlink()


def _add(piece: Path) -> None:
    (piece / "lib" / "stray.so").write_text("")


def _turn(piece: Path) -> None:
    (piece / "lib" / "a.so").unlink()
    (piece / "lib" / "a.so").symlink_to("b.so")


def _tear(piece: Path) -> None:
    piece.with_suffix(".json").write_text('{"files": {')


def _other(piece: Path) -> None:
    piece.with_suffix(".json").write_text('["files"]')


@pytest.mark.parametrize("damage", [_flip, _lose, _add, _turn, _tear, _other])
def test_a_damaged_piece_is_made_anew(store: Store, told: list[str], damage: Any) -> None:
    make = Maker()
    piece = Path(store.provide("library", "k", make).folder)
    damage(piece)
    assert store.provide("library", "k", make).kept is False
    assert make.times == 2
    assert "damaged" in told[0]
    assert store.provide("library", "k", make).kept is True


def test_what_is_not_finished_does_not_count(store: Store) -> None:
    def half(folder: str) -> Mapping[str, Any]:
        Path(folder, "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.provide("tools", "k", half)
    assert not Path(store.root, "tools", "k").exists()
    # One that was killed with -9 could not tidy up.
    Path(store.root, "tools", "k").mkdir(parents=True)
    Path(store.root, "tools", "k", "half").write_text("")
    assert store.find("tools", "k") is None
    assert store.provide("tools", "k", Maker()).kept is False


def test_bytecode_is_no_damage(store: Store) -> None:
    piece = Path(store.provide("python", "k", Maker()).folder)
    (piece / "__pycache__").mkdir()
    (piece / "__pycache__" / "x.pyc").write_text("")
    assert store.find("python", "k") is not None


def test_two_that_want_the_same_piece_make_it_once(store: Store, told: list[str]) -> None:
    make, begun = Maker(), threading.Event()

    def slow(folder: str) -> Mapping[str, Any]:
        begun.set()
        time.sleep(0.4)
        return make(folder)

    pieces = []
    one = threading.Thread(target=lambda: pieces.append(store.provide("library", "k", slow)))
    one.start()
    begun.wait()
    pieces.append(Store(RealSystem(), store.root, told.append).provide("library", "k", make))
    one.join()
    assert make.times == 1 and sorted(piece.kept for piece in pieces) == [False, True]
    assert told == ["waiting for another build that makes the same library"]


def test_a_cache_that_cannot_be_written_is_one_clear_error(tmp_path: Path, told: list[str]) -> None:
    (tmp_path / "build").write_text("a file")
    with pytest.raises(CouldNotCheck, match="cannot write") as raised:
        Store(RealSystem(), str(tmp_path / "build"), told.append).find("tools", "k")
    assert "IDEEPDOCTOR_CACHE_DIR" in raised.value.hint


def test_everything_that_goes_in_is_in_the_key() -> None:
    keys = {key_of(a=1), key_of(a=2), key_of(a="1"), key_of(b=1), key_of(a=1, b=None)}
    assert len(keys) == 5
    assert key_of(a=1, b=2) == key_of(b=2, a=1)


def test_the_list_names_files_and_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "linked").symlink_to("folder")
    found = listing(str(tmp_path))
    assert sorted(found) == ["folder/file", "linked"] and found["linked"] == "-> folder"
    assert json.loads(json.dumps(found)) == found
