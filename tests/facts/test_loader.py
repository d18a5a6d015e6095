"""The model of the dynamic loader: against the real one of this machine, and rule by rule on data."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from ideepdoctor.facts.loader import World, disagreements, needed_by, predict, search_style, winner
from ideepdoctor.model.native import ElfFile, Loaded
from tests.facts.real_loader import (
    Disk,
    Sandbox,
    compiled,
    default_folders,
    differences,
    hwcaps,
    patched,
    program,
    run,
    shared_object,
)

NAMES = ("liba.so", "libb.so", "libd.so")
FOLDERS = ("/w", "/x", "/y", "/y/z")
LISTED = (
    "$ORIGIN",
    "${ORIGIN}/../y",
    "/x",
    "/y/",
    "/y//z",
    "x",
    "../y",
    "",
    "$ORIGINAL",
    "/$LIB",
    "/y/$PLATFORM",
    "/no",
)
"""Items of path lists."""
GOOD = ("x86-64",)
KINDS = ("32-bit", "ARM", "big-endian", "empty", "text", "folder", "broken", "loop", "secret", "link")


@dataclass(frozen=True)
class Made:
    """A file of a random tree: a library with these tags, or something else of its name."""

    kind: str = "x86-64"
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    runpath: str | None = None
    nodeflib: bool = False

    def put(self, box: Sandbox, path: str) -> None:
        content = shared_object(
            soname=self.soname, needed=self.needed, rpath=self.rpath, runpath=self.runpath, nodeflib=self.nodeflib
        )
        match self.kind:
            case "folder":
                box.folder(path)
            case "broken":
                box.link(path, "nothing")
            case "loop":
                box.link(path, path)
            case "link":
                box.link(path, f"/x/{path.rpartition('/')[2]}")
            case "empty" | "text":
                box.put(path, b"" if self.kind == "empty" else b"INPUT ( libc.so.6 )\n" + content)
            case "secret":
                box.put(path, content, mode=0)
            case _:
                changes = {"32-bit": {"bits": 32}, "ARM": {"machine": 183}, "big-endian": {"big_endian": True}}
                box.put(path, patched(content, **changes.get(self.kind, {})))


@dataclass(frozen=True)
class Scene:
    """All that a random test puts up."""

    files: dict[str, Made]
    program: tuple[str, ...]
    program_needs: tuple[str, ...]
    library_path: str | None
    preload: str | None
    preload_file: str | None
    cached: tuple[str, ...] | None
    opened: tuple[str, ...]


def joined(separator: str, items: tuple[str, ...], *, most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(items), max_size=most).map(separator.join)


def maybe(strategy: st.SearchStrategy[Any], share: int = 2) -> st.SearchStrategy[Any]:
    """None in one of ``share`` cases."""
    return st.integers(1, share).flatmap(lambda number: st.none() if number == 1 else strategy)


ASKED = st.sampled_from((*NAMES * 4, "$ORIGIN/../x/libb.so", "/y/libd.so", "libnone.so", "libsame.so"))
TAGS = joined(":", LISTED, most=3)
LIBRARY = st.builds(
    Made,
    soname=maybe(st.sampled_from((*NAMES, "libsame.so"))),
    needed=st.lists(ASKED, max_size=2).map(tuple),
    rpath=maybe(TAGS),
    runpath=maybe(TAGS) | st.none(),
    nodeflib=st.sampled_from((False, False, False, True)),
)
OTHER = st.builds(Made, kind=st.sampled_from(KINDS))
PLACES = st.sampled_from(
    [f"{folder}/{name}" for folder in FOLDERS for name in NAMES] * 3
    + [f"/x/{subfolder}/{name}" for subfolder in (hwcaps()[0], hwcaps()[-1]) for name in NAMES[:2]]
    + [f"{folder}/{name}" for folder in (default_folders()[0], "/usr/lib") for name in NAMES]
)
PROGRAM_TAGS = (
    (),
    ("-Wl,-rpath,$ORIGIN/../y:/x", "-Wl,--disable-new-dtags"),
    ("-Wl,-rpath,$ORIGIN/../y:/x", "-Wl,--enable-new-dtags"),
)
OPENED = st.sampled_from(
    [f"/x/{name}" for name in NAMES]
    + ["/y/liba.so", "liba.so", "libd.so", "./libb.so", "/y/../y/./z/libb.so", "$ORIGIN/../x/libb.so"]
)
SCENES = st.builds(
    Scene,
    files=st.dictionaries(
        PLACES, st.integers(0, 7).flatmap(lambda number: LIBRARY if number else OTHER), min_size=5, max_size=14
    ),
    program=st.sampled_from(PROGRAM_TAGS),
    program_needs=st.sampled_from(((), (), (), ("liba.so",), ("libb.so", "liba.so"))),
    library_path=maybe(st.builds("".join, st.tuples(TAGS, st.sampled_from(":;"), TAGS)) | TAGS),
    preload=maybe(joined(" ", (*NAMES, "/x/liba.so", "/y/libb.so", "", "/no/liba.so"), most=3), 4)
    | joined(":", (*NAMES, "$ORIGIN/../y/libd.so"), most=2),
    preload_file=maybe(st.sampled_from(("liba.so # /x/libb.so\n", "/x/libb.so\tlibd.so:liba.so\n"))) | st.none(),
    cached=maybe(st.lists(st.sampled_from(("/x", "/y", "/y/z")), max_size=2, unique=True).map(tuple)),
    opened=st.lists(OPENED, min_size=1, max_size=4).map(tuple),
)


def put_up(box: Sandbox, scene: Scene) -> World:
    for path, made in scene.files.items():
        made.put(box, path)
    if scene.preload_file is not None:
        box.put("/etc/ld.so.preload", scene.preload_file.encode())
    if scene.cached is not None:
        box.make_cache(*scene.cached)
    return box.world(library_path=scene.library_path, preload=scene.preload)


def first_choice(predicted: Sequence[Loaded]) -> Loaded | None:
    """The first library that was searched for and has others behind it."""
    return next((one for one in predicted if one.passed_over and one.path and one.step != "already loaded"), None)


@given(SCENES)
@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_tree_is_loaded_as_the_real_loader_does(scene: Scene) -> None:
    """Without the file that won, the first of those that were passed over wins."""
    with Sandbox(program(scene.program_needs, *scene.program)) as box:
        world = put_up(box, scene)
        assert differences(world, scene.opened, box.run(world, scene.opened)) == []
        chosen = first_choice(predict(world, scene.opened))
        if chosen is not None and chosen.path is not None:
            box.remove(chosen.path)
            world = box.world(library_path=scene.library_path, preload=scene.preload)
            assert differences(world, scene.opened, box.run(world, scene.opened)) == []
            now = next(one for one in predict(world, scene.opened) if (one.name, one.by) == (chosen.name, chosen.by))
            # A damaged preload is passed over and no more.
            taken, expected = now.path or now.passed_over[0], chosen.passed_over[0]
            assert world.files[taken].real_path == world.files[expected].real_path


def elf(path: str, *needed: str, **values: Any) -> ElfFile:
    """A good library for x86-64 that needs these names."""
    return ElfFile(
        **{
            "path": path,
            "real_path": path,
            "bits": 64,
            "little_endian": True,
            "machine": 62,
            "needed": needed,
            **values,
        }
    )


PYTHON = elf("/usr/bin/python")


def world(*files: ElfFile, **values: Any) -> World:
    """A world with these files and a program that needs nothing, unless they have another /usr/bin/python."""
    return World(
        **{
            "files": {file.path: file for file in (PYTHON, *files)},
            "executable": "/usr/bin/python",
            "library_path": None,
            "preload": None,
            **values,
        }
    )


def took(predicted: Sequence[Loaded]) -> list[str | None]:
    return [loaded.path for loaded in predicted]


def one(predicted: Sequence[Loaded], name: str) -> Loaded:
    """The only entry for a name."""
    (found,) = [loaded for loaded in predicted if loaded.name == name]
    return found


def found_by(asker: ElfFile, *folders: str, **values: Any) -> tuple[str | None, str, tuple[str, ...]]:
    """Path, step and what was passed over for libb.so, which the file needs and each of the folders has."""
    loaded = one(
        predict(world(asker, *(elf(f"{folder}/libb.so") for folder in folders), **values), [asker.path]), "libb.so"
    )
    return loaded.path, loaded.step, loaded.passed_over


EVERYWHERE = ("/default", "/cached", "/runpath", "/env", "/rpath")
EVERY_STEP: dict[str, Any] = {
    "library_path": "/env",
    "cache": (("libb.so", "/cached/libb.so"),),
    "default_folders": ("/default",),
}


def test_steps_of_a_file_with_rpath_in_order() -> None:
    asker = elf("/a/liba.so", "libb.so", rpath="/rpath")
    steps = ("DT_RPATH of /a/liba.so", "LD_LIBRARY_PATH", "ld.so cache", "default folder")
    folders = ["/rpath", "/env", "/cached", "/default"]
    for place, step in enumerate(steps):
        there = folders[place:]
        path, *others = (f"{folder}/libb.so" for folder in there)
        assert found_by(asker, *reversed(there), "/runpath", **EVERY_STEP) == (path, step, tuple(others))
    assert found_by(asker, "/runpath", **EVERY_STEP) == (None, "not found", ())


def test_steps_of_a_file_with_runpath_in_order() -> None:
    """Its own DT_RPATH does not count then."""
    asker = elf("/a/liba.so", "libb.so", rpath="/rpath", runpath="/runpath")
    steps = ("LD_LIBRARY_PATH", "DT_RUNPATH of /a/liba.so", "ld.so cache", "default folder")
    folders = ["/env", "/runpath", "/cached", "/default"]
    for place, step in enumerate(steps):
        there = folders[place:]
        path, *others = (f"{folder}/libb.so" for folder in there)
        assert found_by(asker, *reversed(there), "/rpath", **EVERY_STEP) == (path, step, tuple(others))


CHAIN = ("/p", "/a", "/b", "/env")


@pytest.mark.parametrize(
    ("a", "b", "python", "expected"),
    [
        ({"rpath": "/a"}, {"rpath": "/b"}, {"rpath": "/p"}, ["/b", "/a", "/p", "/env"]),
        ({"rpath": "/a"}, {}, {"rpath": "/p"}, ["/a", "/p", "/env"]),
        ({"rpath": "/a", "runpath": "/no"}, {"rpath": "/b"}, {"rpath": "/p"}, ["/b", "/p", "/env"]),
        ({"rpath": "/a"}, {"rpath": "/b"}, {"rpath": "/p", "runpath": "/no"}, ["/b", "/a", "/env"]),
        ({"rpath": "/a"}, {"runpath": "/b"}, {"rpath": "/p"}, ["/env", "/b"]),
        ({"rpath": "/a"}, {"runpath": ""}, {"rpath": "/p"}, ["/env"]),
        ({"rpath": ""}, {"rpath": ""}, {"rpath": "/p"}, ["/p", "/env"]),
        ({"runpath": "/a"}, {}, {"runpath": "/p"}, ["/env"]),
    ],
)
@pytest.mark.parametrize("opened", ["/x/liba.so", None, "preloaded"])
def test_rpath_is_inherited_and_runpath_is_not(
    a: dict[str, str], b: dict[str, str], python: dict[str, str], expected: list[str], opened: str | None
) -> None:
    """Python needs, opens or preloads liba, liba needs libb, libb needs libd: whose tags count for libd."""
    program_needs = () if opened else ("/x/liba.so",)
    place = world(
        elf("/usr/bin/python", *program_needs, **python),
        elf("/x/liba.so", "/x/libb.so", **a),
        elf("/x/libb.so", "libd.so", **b),
        *(elf(f"{folder}/libd.so") for folder in CHAIN),
        library_path="/env",
        preload="/x/liba.so" if opened == "preloaded" else None,
    )
    found = one(predict(place, ["/x/liba.so"] if opened else []), "libd.so")
    assert [found.path, *found.passed_over] == [f"{folder}/libd.so" for folder in expected]


def test_what_the_program_opens_has_no_loader() -> None:
    """The tags of what was opened before do not count, the program's DT_RPATH does, its DT_RUNPATH does not."""
    files = [
        elf("/x/liba.so", rpath="/a", runpath=None),
        elf("/x/libb.so", "libd.so"),
        elf("/a/libd.so"),
        elf("/p/libd.so"),
    ]
    for tags, expected in (({"rpath": "/p"}, "/p/libd.so"), ({"runpath": "/p"}, None)):
        place = world(elf("/usr/bin/python", **tags), *files)
        assert one(predict(place, ["/x/liba.so", "/x/libb.so"]), "libd.so").path == expected


@pytest.mark.parametrize(
    ("tag", "step"), [("rpath", "DT_RPATH of /usr/bin/python"), ("runpath", "DT_RUNPATH of /usr/bin/python")]
)
def test_a_bare_name_is_searched_as_the_program_would(tag: str, step: str) -> None:
    place = world(elf("/usr/bin/python", **{tag: "/p"}), elf("/p/libd.so"))
    assert predict(place, ["libd.so"]) == (Loaded("libd.so", "/p/libd.so", "/usr/bin/python", step),)


@pytest.mark.parametrize(
    ("text", "cwd", "path"),
    [
        ("/no:/env", None, "/env/libb.so"),
        ("/no;/env", None, "/env/libb.so"),
        ("/no /env", None, None),
        ("", "/here", None),
        (":", "/here", "/here/libb.so"),
        ("/no:", "/here", "/here/libb.so"),
        (":", None, None),
        ("sub/", "/here", "/here/sub/libb.so"),
        ("/env//./", None, "/env/libb.so"),
        ("$ORIGIN/../env", None, "/usr/env/libb.so"),
    ],
)
def test_items_of_ld_library_path(text: str, cwd: str | None, path: str | None) -> None:
    """$ORIGIN is the program's, not the asker's; an empty item is the current folder, an empty text nothing."""
    folders = ("/env", "/here", "/here/sub", "/usr/env", "/a/env", "/no /env")
    assert found_by(elf("/a/liba.so", "libb.so"), *folders[:5], library_path=text, cwd=cwd)[0] == path


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/no:/env", "/env/libb.so"),
        ("/no;/env", None),
        ("", None),
        ("/no::/env", "/here/libb.so"),
        ("$ORIGIN", "/a/libb.so"),
        ("${ORIGIN}lib", "/alib/libb.so"),
        ("$ORIGINlib", None),
        ("$ORIGIN_1", None),
        ("/$LIB:/env", "/lib/x86_64-linux-gnu/libb.so"),
        ("/env/$PLATFORM", "/env/haswell/libb.so"),
        ("$ORIGIN/../lib", "/lib/libb.so"),
    ],
)
def test_items_of_rpath_and_runpath(tag: str, text: str, path: str | None) -> None:
    folders = ("/env", "/here", "/a", "/alib", "/lib/x86_64-linux-gnu", "/env/haswell", "/lib")
    assert found_by(elf("/a/liba.so", "libb.so", **{tag: text}), *folders, cwd="/here")[0] == path


def test_origin_is_that_of_the_file_whose_tag_it_is_and_that_of_a_program_its_real_one() -> None:
    link = elf("/usr/bin/python", rpath="$ORIGIN/lib", real_path="/opt/bin/python")
    place = world(link, elf("/x/liba.so", "libb.so"), elf("/x/lib/libb.so"), elf("/opt/bin/lib/libb.so"))
    assert one(predict(place, ["/x/liba.so"]), "libb.so").path == "/opt/bin/lib/libb.so"
    asker = elf("/x/liba.so", "libb.so", rpath="$ORIGIN/lib", real_path="/real/liba.so")
    place = world(asker, elf("/x/lib/libb.so"), elf("/real/lib/libb.so"))
    assert one(predict(place, ["/x/liba.so"]), "libb.so").path == "/x/lib/libb.so"


def test_origin_of_a_file_in_the_root_folder() -> None:
    assert found_by(elf("/liba.so", "libb.so", rpath="$ORIGIN"), "")[0] == "/libb.so"


def test_a_path_with_dots_is_looked_up_as_it_is_first() -> None:
    """Behind a link, ``..`` leads elsewhere than the text says."""
    asker = elf("/a/link/liba.so", "libb.so", rpath="$ORIGIN/../lib")
    assert found_by(asker, "/a/lib")[0] == "/a/lib/libb.so"
    assert found_by(asker, "/a/lib", "/a/link/../lib")[0] == "/a/link/../lib/libb.so"


def test_a_need_with_a_slash_is_a_path_and_is_not_searched() -> None:
    asker = elf("/a/liba.so", "$ORIGIN/libb.so", "sub/libd.so")
    place = world(asker, elf("/a/libb.so"), elf("/env/sub/libd.so"), library_path="/env", cwd="/here")
    assert predict(place, ["/a/liba.so"])[1:] == (
        Loaded("$ORIGIN/libb.so", "/a/libb.so", "/a/liba.so", "named by path"),
        Loaded("sub/libd.so", None, "/a/liba.so", "not found", "not found"),
    )
    place = world(asker, elf("/a/libb.so"), elf("/here/sub/libd.so"), cwd="/here")
    assert predict(place, ["/a/liba.so"])[2].path == "/here/sub/libd.so"


def test_subfolders_for_this_cpu_come_first_in_every_folder() -> None:
    asker = elf("/a/liba.so", "libb.so", rpath="/r:/s")
    folders = ("/r", "/r/v2", "/r/v3", "/s/v3", "/env/v2", "/default/v2")
    path, _, others = found_by(asker, *folders, hwcaps=("v3", "v2"), library_path="/env", default_folders=("/default",))
    expected = ["/r/v3", "/r/v2", "/r", "/s/v3", "/env/v2", "/default/v2"]
    assert [path, *others] == [f"{folder}/libb.so" for folder in expected]
    assert found_by(asker, "/r/v4", "/s", hwcaps=("v3", "v2"))[0] == "/s/libb.so"


CACHED_V2 = ("libb.so", "/c/glibc-hwcaps/x86-64-v2/libb.so")
CACHED_V4 = ("libb.so", "/c/glibc-hwcaps/x86-64-v4/libb.so")


@pytest.mark.parametrize(
    ("cache", "path"),
    [
        ((("libb.so", "/c/libb.so"), ("libb.so", "/d/libb.so")), "/c/libb.so"),
        ((("libb.so", "/d/libb.so"), ("libb.so", "/c/libb.so")), "/d/libb.so"),
        ((("libb.so.1", "/c/libb.so"), ("libb.so", "/d/libb.so")), "/d/libb.so"),
        ((("libb.so", "/gone/libb.so"), ("libb.so", "/c/libb.so")), "/default/libb.so"),
        ((("libb.so", "/arm/libb.so"), ("libb.so", "/c/libb.so")), "/default/libb.so"),
        ((("libb.so", "/c/libb.so"), CACHED_V2, CACHED_V4), CACHED_V2[1]),
        ((CACHED_V4, ("libb.so", "/c/libb.so")), "/c/libb.so"),
        ((CACHED_V4,), "/default/libb.so"),
    ],
)
def test_the_cache_gives_one_entry(cache: tuple[tuple[str, str], ...], path: str) -> None:
    """The best one for this CPU, else the first; where its file is gone, the next entry is not tried."""
    files = [elf(f"{folder}/libb.so") for folder in ("/c", "/d", "/default")]
    files += [elf(CACHED_V2[1]), elf(CACHED_V4[1]), elf("/arm/libb.so", machine=183)]
    hwcaps = ("glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2")
    place = world(elf("/a/liba.so", "libb.so"), *files, cache=cache, default_folders=("/default",), hwcaps=hwcaps)
    assert predict(place, ["/a/liba.so"])[1].path == path


def test_the_best_subfolder_of_the_cache_wins() -> None:
    cache = (CACHED_V2, CACHED_V4)
    files = [elf("/a/liba.so", "libb.so"), elf(CACHED_V2[1]), elf(CACHED_V4[1])]
    hwcaps = ("glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v2")
    assert predict(world(*files, cache=cache, hwcaps=hwcaps), ["/a/liba.so"])[1].path == CACHED_V4[1]


@pytest.mark.parametrize(
    ("cached", "path"),
    [("/other", "/other/libb.so"), ("/lib/deep", None), ("/lib", None), ("/library", "/library/libb.so")],
)
def test_without_default_folders_the_cache_counts_outside_of_them_only(cached: str, path: str | None) -> None:
    """They are the asker's, not the opener's."""
    values: dict[str, Any] = {"cache": (("libb.so", f"{cached}/libb.so"),), "default_folders": ("/usr/lib", "/lib")}
    place = found_by(elf("/a/liba.so", "libb.so", no_default_folders=True), "/lib", cached, **values)
    assert place[0] == path
    assert found_by(elf("/a/liba.so", "libb.so"), "/lib", cached, **values)[0] == f"{cached}/libb.so"
