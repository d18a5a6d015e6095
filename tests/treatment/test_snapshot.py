"""Copies of folders: exact, compared, and put back over whatever happened since."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ideepdoctor.errors import NeedsAttention
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.snapshot import (
    Change,
    changes,
    is_being_restored,
    manifest,
    quick_manifest,
    restore,
    take,
    tree_size,
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Links (good, dangling, to a folder), modes, empty folders, names that are hard to write."""
    top = tmp_path / "tree"
    (top / "package" / "empty").mkdir(parents=True)
    (top / "package" / "module.py").write_text("x = 1\n")
    (top / "package" / "read-only").write_bytes(b"\x00\xff")
    (top / "package" / "read-only").chmod(0o444)
    (top / "package" / "program").write_text("#!/bin/sh\n")
    (top / "package" / "program").chmod(0o755)
    (top / "package" / "old").write_text("")
    os.utime(top / "package" / "old", ns=(1, 1_234_567_891_234_567_891))
    (top / "good").symlink_to("package/module.py")
    (top / "dangling").symlink_to("/nowhere/at/all")
    (top / "folder").symlink_to("package")
    (top / "name with space\n").write_text("x")
    Path(os.fsdecode(os.fsencode(str(top)) + b"/\xff\xfe")).write_text("no UTF-8")
    (top / "private").mkdir(mode=0o700)
    return top


def put_back(copy: Path, tree: Path, before: dict) -> None:
    restore(RealSystem(), str(copy), str(tree), before, lambda _text: None)


def change_one(tree: Path) -> None:
    (tree / "package" / "module.py").write_text("x = 2\n")


def add(tree: Path) -> None:
    (tree / "package" / "added.py").write_text("")
    (tree / "__pycache__").mkdir()


def remove_all(tree: Path) -> None:
    RealSystem().remove_tree(str(tree))


def turn_to_a_file(tree: Path) -> None:
    remove_all(tree)
    tree.write_text("a file")


def turn_to_a_link(tree: Path) -> None:
    tree.rename(tree.with_name("moved"))
    tree.symlink_to("moved")


def change_mode(tree: Path) -> None:
    (tree / "package" / "program").chmod(0o644)


def change_time(tree: Path) -> None:
    os.utime(tree / "package" / "old", ns=(1, 1))


def change_link(tree: Path) -> None:
    (tree / "good").unlink()
    (tree / "good").symlink_to("package/program")


def leftovers(tree: Path) -> None:
    (tree.parent / "tree.ideepdoctor-new").mkdir()
    (tree.parent / "tree.ideepdoctor-old").mkdir()


@pytest.mark.parametrize(
    "happened",
    [
        change_one,
        add,
        remove_all,
        turn_to_a_file,
        turn_to_a_link,
        change_mode,
        change_time,
        change_link,
        leftovers,
    ],
)
def test_round_trip(tree, tmp_path, happened):
    copy = tmp_path / "copy"
    before = take(RealSystem(), str(tree), str(copy))
    assert manifest(str(copy)) == before == manifest(str(tree))
    happened(tree)
    put_back(copy, tree, before)
    assert manifest(str(tree)) == before
    assert not tree.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} <= {"tree", "copy", "moved"}
    put_back(copy, tree, before)
    assert manifest(str(tree)) == before


def test_a_folder_that_did_not_exist_is_removed_again(tmp_path):
    new, copy = tmp_path / "new", tmp_path / "copy"
    before = take(RealSystem(), str(new), str(copy))
    assert before == {}
    assert not copy.exists()
    new.mkdir()
    (new / "x").write_text("x")
    put_back(copy, new, before)
    assert list(tmp_path.iterdir()) == []


def test_what_changes_while_it_is_copied_is_no_copy(tree, tmp_path):
    class Meddling(RealSystem):
        def copy_tree(self, source: str, destination: str) -> None:
            change_one(Path(source))
            super().copy_tree(source, destination)

    with pytest.raises(OSError, match="changed while it was copied"):
        take(Meddling(), str(tree), str(tmp_path / "copy"))


def test_a_copy_that_was_damaged_is_told(tree, tmp_path):
    copy = tmp_path / "copy"
    before = take(RealSystem(), str(tree), str(copy))
    (copy / "package" / "module.py").write_text("y = 1\n")
    change_one(tree)
    with pytest.raises(NeedsAttention, match="not what it was") as caught:
        put_back(copy, tree, before)
    assert str(copy) in caught.value.hint


def test_a_copy_that_is_gone_leaves_the_folder_as_it_is(tree, tmp_path):
    before = take(RealSystem(), str(tree), str(tmp_path / "copy"))
    RealSystem().remove_tree(str(tmp_path / "copy"))
    change_one(tree)
    now = manifest(str(tree))
    with pytest.raises(OSError, match="No such file"):
        put_back(tmp_path / "copy", tree, before)
    assert manifest(str(tree)) == now


def test_changes_are_named_and_bytecode_does_not_count(tree):
    before = quick_manifest(str(tree))
    change_one(tree)
    add(tree)
    (tree / "__pycache__" / "x.cpython-37.pyc").write_bytes(b"x")
    (tree / "package" / "old.pyc").write_bytes(b"x")
    (tree / "dangling").unlink()
    now = quick_manifest(str(tree))
    assert changes(before, now) == (
        Change("dangling", "missing"),
        Change("package/added.py", "added"),
        Change("package/module.py", "changed"),
    )
    assert changes(manifest(str(tree)), now) == (), "a quick manifest can be held against a full one"
    kinds = {**now, "good": {"kind": "folder", "mode": 0o755}}
    assert changes(now, kinds) == (Change("good", "changed"),)


def test_half_restored_is_no_change_of_anybody(tree, tmp_path):
    before = quick_manifest(str(tree))
    assert is_being_restored(str(tree), before, before)
    change_one(tree)
    assert not is_being_restored(str(tree), quick_manifest(str(tree)), before)
    assert not is_being_restored(str(tmp_path / "gone"), {}, before)
    tree.rename(tmp_path / "tree.ideepdoctor-old")
    assert is_being_restored(str(tree), {}, before)


def test_sizes(tree, tmp_path):
    assert tree_size(str(tree / "package")) == len("x = 1\n") + 2 + len("#!/bin/sh\n")
    assert tree_size(str(tmp_path / "nothing")) == 0
