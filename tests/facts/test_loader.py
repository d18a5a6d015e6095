"""The model of the dynamic loader: against the real one of this machine, and rule by rule on data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ideepdoctor.facts.loader import World, disagreements, needed_by, predict, search_style, winner
from ideepdoctor.model.native import ElfFile, Loaded
from tests.facts.real_loader import (
    Sandbox,
    default_folders,
    differences,
    gcc_library,
    hwcaps,
    patched,
    program,
    run,
    shared_object,
    this_machine,
    user_of_version,
    versioned_library,
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
    """The first need that others could have met, if the file that met it was mapped for it or stopped the loader."""
    first = next((one for one in predicted if one.passed_over), None)
    return None if first is None or first.path is None or first.step == "already loaded" else first


@given(SCENES)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
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


LIBB = "/x/libb.so"
RUN = Made(needed=("libb.so",), runpath="/x:/y")
SPECIAL: dict[str, tuple[dict[str, Made], str | None, str | None]] = {
    "nothing special": ({LIBB: Made()}, LIBB, None),
    "no permission": ({LIBB: Made("secret"), "/y/libb.so": Made()}, "/y/libb.so", None),
    "broken link": ({LIBB: Made("broken"), "/y/libb.so": Made()}, "/y/libb.so", None),
    "32-bit": ({LIBB: Made("32-bit"), "/y/libb.so": Made()}, "/y/libb.so", None),
    "another machine": ({LIBB: Made("ARM"), "/y/libb.so": Made()}, "/y/libb.so", None),
    "32-bit and no other": ({LIBB: Made("32-bit")}, None, "not found"),
    "big-endian": ({LIBB: Made("big-endian"), "/y/libb.so": Made()}, LIBB, "not little-endian"),
    "empty": ({LIBB: Made("empty"), "/y/libb.so": Made()}, LIBB, "empty"),
    "text": ({LIBB: Made("text"), "/y/libb.so": Made()}, LIBB, "not ELF"),
    "folder": ({LIBB: Made("folder"), "/y/libb.so": Made()}, LIBB, "folder"),
    "loop": ({LIBB: Made("loop"), "/y/libb.so": Made()}, None, "not found"),
    "loop, default folder": (
        {LIBB: Made("loop"), "/y/libb.so": Made(), "/usr/lib/libb.so": Made()},
        "/usr/lib/libb.so",
        None,
    ),
    "loop in a subfolder": ({f"/x/{hwcaps()[0]}/libb.so": Made("loop"), "/y/libb.so": Made()}, "/y/libb.so", None),
    "first subfolder": ({f"/x/{hwcaps()[0]}/libb.so": Made(), LIBB: Made()}, f"/x/{hwcaps()[0]}/libb.so", None),
    "last subfolder": ({f"/x/{hwcaps()[-1]}/libb.so": Made(), LIBB: Made()}, f"/x/{hwcaps()[-1]}/libb.so", None),
}
"""Files, which libb.so the loader takes for /a/liba.so, and its problem."""


@pytest.mark.parametrize("name", SPECIAL)
def test_special_files_as_the_real_loader_meets_them(name: str) -> None:
    files, path, problem = SPECIAL[name]
    scene = Scene({"/a/liba.so": RUN, **files}, (), (), None, None, None, None, ("/a/liba.so",))
    with Sandbox(program()) as box:
        place = put_up(box, scene)
        assert differences(place, scene.opened, box.run(place, scene.opened)) == []
        found = one(predict(place, scene.opened), "libb.so")
        assert (found.path, found.problem) == (path, problem)


NEW, OLD = ("-Wl,--enable-new-dtags",), ("-Wl,--disable-new-dtags",)


@pytest.mark.parametrize("preload", [None, "/x/libv.so"])
@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize(
    ("there", "used", "problem"),
    [
        (("V1", "V2"), ("V2",), None),
        (("V1",), ("V2",), "version `V2' not found in /x/libv.so"),
        (("V1",), ("V1",), None),
        ((), ("V2",), None),
        (("V1",), ("V2", "weak"), None),
    ],
)
def test_symbol_versions_as_the_real_loader_checks_them(
    there: tuple[str, ...], used: tuple[str, ...], problem: str | None, start: bool, preload: str | None
) -> None:
    opened = [] if start else ["/x/liba.so", "/x/liba.so", "/x/libd.so"]
    with Sandbox(program(("liba.so",) if start else (), "-Wl,-rpath,/x")) as box:
        box.put("/x/libv.so", versioned_library(*there))
        box.put("/x/liba.so", user_of_version(*used, "-Wl,-rpath,/x"))
        box.put("/x/libd.so", shared_object())
        place = box.world(preload=preload)
        told = box.run(place, opened)
        assert differences(place, opened, told) == []
        assert told.started == (not start or problem is None)
        problems = [entry.problem for entry in predict(place, opened) if entry.problem]
        assert problems == ([problem] * (1 if start else 2) if problem else [])


@pytest.mark.parametrize("style", [OLD, NEW])
@pytest.mark.parametrize("library_path", [None, "{root}/env"])
@pytest.mark.parametrize("preload", [None, "{root}/other/renamed.so", "libnone.so"])
def test_libraries_by_gcc_on_this_machine(
    style: tuple[str, ...], library_path: str | None, preload: str | None, tmp_path: Path
) -> None:
    """What /proc/self/maps shows is what was predicted."""
    root = str(tmp_path.resolve())
    content = {
        "app/program": program((), "-Wl,-rpath,$ORIGIN/../far", *style),
        "app/liba.so": gcc_library(("libs.so.1", "libm.so.6"), "-Wl,-rpath,$ORIGIN/lib", *style),
        "app/lib/libs.so.1": gcc_library(("libb.so",), soname="libs.so.1"),
        "env/libs.so.1": gcc_library((), soname="libs.so.1"),
        "other/renamed.so": gcc_library((), soname="libs.so.1"),
        "app/lib/libb.so": gcc_library(),
        "other/libm.so.6": gcc_library(soname="libm.so.6"),
    }
    for path, text in content.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(text)
        (tmp_path / path).chmod(0o755)
    variables = {"LD_LIBRARY_PATH": library_path, "LD_PRELOAD": preload}
    env = {name: value.format(root=root) for name, value in variables.items() if value is not None}
    opened = [f"{root}/app/liba.so", f"{root}/env/libs.so.1"]
    told = run([f"{root}/app/program", *opened], env)
    place = this_machine(f"{root}/app/program", env)
    assert differences(place, opened, told) == []
    predicted = predict(place, opened)
    assert any(told.errors) == any(entry.problem for entry in predicted)
    if not any(told.errors):
        assert disagreements(predicted, told.mapped, place.files) == ()
        # A prediction for another environment is found out.
        elsewhere = this_machine(place.executable, {"LD_PRELOAD": f"{root}/other/libm.so.6"})
        libm = winner(predicted, "libm.so.6")
        assert libm is not None and libm.path is not None
        (text,) = disagreements([one(predict(elsewhere, opened), "libm.so.6")], told.mapped, place.files)
        real = place.files[libm.path].real_path
        assert text == f"libm.so.6: predicted {root}/other/libm.so.6, mapped {real}"


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
        ("/env/$PLATFORM", "/env/x86_64/libb.so"),
        ("$ORIGIN/../lib", "/lib/libb.so"),
    ],
)
def test_items_of_rpath_and_runpath(tag: str, text: str, path: str | None) -> None:
    folders = ("/env", "/here", "/a", "/alib", "/lib/x86_64-linux-gnu", "/env/x86_64", "/lib")
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


@pytest.mark.parametrize(
    ("loaded", "asked"),
    [
        (elf("/x/libb.so", soname="libs.so.1"), "libs.so.1"),
        (elf("/x/libb.so"), "/x/.//libb.so"),
        (elf("/x/libb.so", identity="1:2"), "/y/link.so"),
        (elf("/x/libb.so", real_path="/real.so"), "/y/link.so"),
    ],
)
def test_an_object_is_known_by_soname_path_and_file(loaded: ElfFile, asked: str) -> None:
    link = replace(loaded, path="/y/link.so")
    place = world(loaded, link, elf("/z/liba.so", asked), elf("/env/libs.so.1"), library_path="/env")
    found = one(predict(place, ["/x/libb.so", "/z/liba.so"]), asked)
    others = ("/env/libs.so.1",) if asked == "libs.so.1" else ()
    assert found == Loaded(asked, "/x/libb.so", "/z/liba.so", "already loaded", passed_over=others)


def test_an_object_is_not_known_by_its_file_name() -> None:
    """Neither by that of a file which was opened by path, nor by the name under which another file was asked for."""
    files = [elf("/x/libb.so", soname="libs.so.1"), elf("/z/liba.so", "libb.so"), elf("/env/libb.so")]
    assert predict(world(*files, library_path="/env"), ["/x/libb.so", "/z/liba.so"])[2].path == "/env/libb.so"
    files = [elf("/x/libb.so"), elf("/z/liba.so", "libb.so"), elf("/env/libb.so")]
    assert predict(world(*files, library_path="/env"), ["/x/libb.so", "/z/liba.so"])[2].path == "/env/libb.so"


def test_an_object_is_known_by_the_name_that_it_was_asked_by() -> None:
    """Even where its SONAME is another, and where a file was met a second time under that name."""
    files = [
        elf("/x/liba.so", "libb.so", rpath="/r"),
        elf("/x/libd.so", "libb.so", rpath="/s"),
        elf("/r/libb.so", soname="libs.so"),
        elf("/s/libb.so"),
    ]
    assert one(predict(world(*files), ["/x/liba.so", "/x/libd.so"]), "libb.so").path == "/r/libb.so"
    files[2] = elf("/r/libb.so", identity="1:2")
    files.append(elf("/x/first.so", identity="1:2"))
    entry = one(predict(world(*files), ["/x/first.so", "/x/liba.so", "/x/libd.so"]), "libb.so")
    assert entry == Loaded("libb.so", "/x/first.so", "/x/liba.so", "already loaded")


def test_a_program_is_known_by_its_soname() -> None:
    place = world(elf("/usr/bin/python", soname="libpython.so"), elf("/a/liba.so", "libpython.so"))
    assert one(predict(place, ["/a/liba.so"]), "libpython.so").path == "/usr/bin/python"


def test_a_program_whose_headers_are_unknown() -> None:
    place = replace(world(elf("/a/liba.so"), elf("/opt/lib/libb.so")), executable="/opt/bin/python")
    place = replace(place, library_path="$ORIGIN/../lib")
    assert predict(place, ["libb.so"]) == (Loaded("libb.so", "/opt/lib/libb.so", "/opt/bin/python", "LD_LIBRARY_PATH"),)


@pytest.mark.parametrize("soname", ["ld-linux-x86-64.so.2", "ld-musl.so"])
def test_the_interpreter_is_there_from_the_start(soname: str) -> None:
    """Where its headers are unknown it answers to its file name."""
    interpreter = "/lib64/ld-linux-x86-64.so.2"
    files = [elf("/usr/bin/python", interpreter=interpreter), elf("/a/liba.so", soname)]
    known = [] if soname in interpreter else [elf(interpreter, soname=soname)]
    entry = one(predict(world(*files, *known), ["/a/liba.so"]), soname)
    assert entry == Loaded(soname, interpreter, "/a/liba.so", "already loaded")


def test_names_that_got_the_same_file_before_are_told_once() -> None:
    files = [elf("/x/liba.so", "libb.so", "libb.so"), elf("/x/libd.so", "libb.so"), elf("/r/libb.so", soname="libb.so")]
    predicted = predict(world(*files, library_path="/r"), ["/x/liba.so", "/x/libd.so", "/x/libd.so"])
    assert took(predicted) == ["/x/liba.so", "/r/libb.so", "/x/libd.so"]


OTHER_MACHINES = [
    elf("/env/libb.so", bits=32, machine=3),
    elf("/env/libb.so", bits=32),
    elf("/env/libb.so", machine=183),
    elf("/env/libb.so", bits=32, problem="truncated"),
    elf("/env/libb.so", bits=32, little_endian=False),
]
NOT_OPENED = [ElfFile("/env/libb.so", "/x", problem=problem) for problem in ("broken link", "no permission")]
DAMAGED = [ElfFile("/env/libb.so", "/x", problem=problem) for problem in ("empty", "not ELF", "folder", "truncated")]


@pytest.mark.parametrize("file", [*OTHER_MACHINES, *NOT_OPENED])
def test_a_file_that_is_of_no_use_is_skipped(file: ElfFile) -> None:
    files = [elf("/a/liba.so", "libb.so"), file, elf("/more/libb.so")]
    found = predict(world(*files, library_path="/env:/more"), ["/a/liba.so", "/env/libb.so"])
    assert found[1] == Loaded("libb.so", "/more/libb.so", "/a/liba.so", "LD_LIBRARY_PATH")
    assert found[2] == Loaded("/env/libb.so", None, "/usr/bin/python", "not found", "not found")
    cached = world(*files, cache=(("libb.so", "/env/libb.so"),), default_folders=("/more",))
    assert predict(cached, ["/a/liba.so"])[1].step == "default folder"


@pytest.mark.parametrize(
    ("file", "problem"),
    [(file, file.problem) for file in DAMAGED]
    + [(elf("/env/libb.so", little_endian=False, machine=22), "not little-endian")]
    + [(elf("/env/libb.so", little_endian=False, problem="truncated"), "not little-endian")],
)
def test_a_damaged_file_stops_the_search(file: ElfFile, problem: str) -> None:
    place = world(elf("/a/liba.so", "libb.so", "libd.so"), file, elf("/more/libb.so"), library_path="/env:/more")
    again = Loaded("/env/libb.so", "/env/libb.so", "/usr/bin/python", "named by path", problem)
    assert predict(place, ["/a/liba.so", "/env/libb.so", "/env/libb.so"])[1:] == (
        Loaded("libb.so", "/env/libb.so", "/a/liba.so", "LD_LIBRARY_PATH", problem, ("/more/libb.so",)),
        again,
        again,
    )


def test_a_link_loop_ends_the_list_of_folders_and_not_the_search() -> None:
    """In a subfolder for some CPUs it does not even that."""
    loop = ElfFile("/env/libb.so", "/env/libb.so", problem="link loop")
    asker = elf("/a/liba.so", "libb.so", runpath="/run")
    place = world(asker, loop, elf("/more/libb.so"), elf("/run/libb.so"), library_path="/env:/more", hwcaps=("v3",))
    assert predict(place, ["/a/liba.so"])[1].path == "/run/libb.so"
    inner = replace(loop, path="/env/v3/libb.so")
    place = world(asker, inner, elf("/more/libb.so"), elf("/run/libb.so"), library_path="/env:/more", hwcaps=("v3",))
    assert predict(place, ["/a/liba.so"])[1].path == "/more/libb.so"


def test_needs_are_loaded_breadth_first() -> None:
    files = [
        elf("/a/liba.so", "/1", "/2"),
        elf("/1", "/3"),
        elf("/2", "/4", "/1"),
        elf("/3", "/5"),
        elf("/4"),
        elf("/5"),
    ]
    assert took(predict(world(*files), ["/a/liba.so"])) == ["/a/liba.so", "/1", "/2", "/3", "/4", "/5"]


def test_a_program_gets_its_preloads_then_its_needs_then_theirs() -> None:
    files = [elf("/usr/bin/python", "/1"), elf("/1", "/2"), elf("/2"), elf("/p", "/3"), elf("/q"), elf("/3")]
    place = world(*files, preload="/p", preload_file="/q\n")
    assert took(predict(place, [])) == ["/p", "/q", "/1", "/3", "/2"]


def test_a_failed_dlopen_takes_its_files_out_again() -> None:
    """What it loaded is loaded once more, with another loader, by the next one that needs it."""
    files = [
        elf("/x/liba.so", "libb.so", "libnone.so", "libd.so", rpath="/r"),
        elf("/x/libe.so", "libb.so", rpath="/s"),
        elf("/r/libb.so"),
        elf("/s/libb.so"),
    ]
    predicted = predict(world(*files), ["/x/liba.so", "/x/libe.so"])
    assert took(predicted) == ["/x/liba.so", "/r/libb.so", None, "/x/libe.so", "/s/libb.so"]
    assert predicted[2] == Loaded("libnone.so", None, "/x/liba.so", "not found", "not found")
    files[1] = replace(files[1], rpath="/r")
    predicted = predict(world(*files), ["/x/liba.so", "/x/libe.so"])
    assert predicted[4] == Loaded("libb.so", "/r/libb.so", "/x/libe.so", "DT_RPATH of /x/libe.so")


def test_what_was_there_before_a_failed_dlopen_stays() -> None:
    files = [
        elf("/x/libe.so", soname="libe.so"),
        elf("/x/liba.so", "libe.so", "libnone.so"),
        elf("/x/libd.so", "libe.so"),
    ]
    predicted = predict(world(*files), ["/x/libe.so", "/x/liba.so", "/x/libd.so"])
    assert [loaded.step for loaded in predicted if loaded.name == "libe.so"] == ["already loaded"]


def test_nothing_is_opened_by_a_program_that_does_not_start() -> None:
    place = world(elf("/usr/bin/python", "libnone.so", "libd.so"), elf("/x/liba.so"), elf("/x/libm.so"))
    expected = Loaded("libnone.so", None, "/usr/bin/python", "not found", "not found")
    assert predict(place, ["/x/liba.so"], mapped=["/x/libm.so"]) == (expected,)


def test_the_path_of_an_object_is_one_of_its_names() -> None:
    """Even where no file is there any more under that name."""
    files = {PYTHON.path: PYTHON, "/x/liba.so": elf("/x/liba.so", "/x/libb.so")}
    place = replace(world(), files=files)
    assert took(predict(place, ["/x/liba.so"], mapped=["/x/libb.so"])) == ["/x/libb.so", "/x/liba.so"]


@pytest.mark.parametrize(
    ("preload", "text", "expected"),
    [
        ("/p/a.so /p/b.so:/p/c.so", None, ["/p/a.so", "/p/b.so", "/p/c.so"]),
        (" : ", " \t:\n", []),
        ("/p/a.so\t/p/b.so", None, [None]),
        (None, "/p/a.so /p/b.so:\t/p/c.so\n/env/d.so", ["/p/a.so", "/p/b.so", "/p/c.so", "/env/d.so"]),
        (None, "#/p/a.so\n/p/b.so#/p/c.so\n", ["/p/b.so"]),
        ("/p/b.so", "/p/a.so", ["/p/b.so", "/p/a.so"]),
        ("d.so $ORIGIN/e.so", None, ["/env/d.so", "/usr/bin/e.so"]),
        ("f.so", None, ["/rpath/f.so"]),
        ("/p/a.so /p/a.so", None, ["/p/a.so"]),
    ],
)
def test_items_of_preloads(preload: str | None, text: str | None, expected: list[str | None]) -> None:
    paths = ("/p/a.so", "/p/b.so", "/p/c.so", "/env/d.so", "/usr/bin/e.so", "/rpath/f.so")
    files = [elf("/usr/bin/python", rpath="/rpath"), *(elf(path) for path in paths)]
    predicted = predict(world(*files, library_path="/env", preload=preload, preload_file=text), [])
    assert took(predicted) == expected
    assert {loaded.by for loaded in predicted} <= (
        {"LD_PRELOAD"} if text is None else {"LD_PRELOAD", "/etc/ld.so.preload"}
    )
    assert {loaded.step for loaded in predicted} <= {"LD_PRELOAD", "not found"}


def test_where_a_preload_is_named() -> None:
    predicted = predict(world(elf("/a"), elf("/b"), preload="/a", preload_file="/b"), [])
    assert [loaded.by for loaded in predicted] == ["LD_PRELOAD", "/etc/ld.so.preload"]


def test_a_preload_that_is_no_use_is_ignored() -> None:
    """What a search would have met after a damaged one is not taken either."""
    damaged = ElfFile("/env/libb.so", "/env/libb.so", problem="empty")
    files = [damaged, elf("/more/libb.so"), elf("/x/liba.so")]
    place = world(*files, preload="libnone.so libb.so", library_path="/env:/more")
    assert predict(place, ["/x/liba.so"]) == (
        Loaded("libnone.so", None, "LD_PRELOAD", "not found"),
        Loaded("libb.so", None, "LD_PRELOAD", "not found", passed_over=("/env/libb.so", "/more/libb.so")),
        Loaded("/x/liba.so", "/x/liba.so", "/usr/bin/python", "named by path"),
    )


def test_a_preload_whose_need_is_missing_stops_the_program() -> None:
    predicted = predict(world(elf("/p", "libnone.so"), elf("/x/liba.so"), preload="/p"), ["/x/liba.so"])
    assert took(predicted) == ["/p", None]


def test_a_preload_that_is_there_twice_under_two_names() -> None:
    predicted = predict(world(elf("/p", soname="p.so"), preload="/p p.so"), [])
    assert predicted[1:] == (Loaded("p.so", "/p", "LD_PRELOAD", "already loaded"),)


def test_mapped_files_are_there_before_their_needs() -> None:
    """They are known whatever the search would give, and a need that the world lacks was met somehow."""
    files = [
        elf("/m/liba.so", "libnone.so", "libb.so", "libd.so"),
        elf("/m/libb.so", soname="libb.so"),
        elf("/env/libb.so"),
        elf("/env/libd.so"),
        elf("/x/libe.so", "libb.so"),
    ]
    mapped = ["/m/liba.so", "/m/libb.so", "/m/unknown.so", "/m/.//libb.so"]
    predicted = predict(world(*files, library_path="/env"), ["/x/libe.so"], mapped=mapped)
    assert predicted == (
        Loaded("/m/liba.so", "/m/liba.so", "already loaded", "already loaded"),
        Loaded("/m/libb.so", "/m/libb.so", "already loaded", "already loaded"),
        Loaded("/m/unknown.so", "/m/unknown.so", "already loaded", "already loaded"),
        Loaded("libb.so", "/m/libb.so", "/m/liba.so", "already loaded", None, ("/env/libb.so",)),
        Loaded("libd.so", "/env/libd.so", "/m/liba.so", "LD_LIBRARY_PATH"),
        Loaded("/x/libe.so", "/x/libe.so", "/usr/bin/python", "named by path"),
    )


def test_mapped_files_have_no_loader() -> None:
    files = [elf("/m/liba.so", rpath="/r"), elf("/m/libb.so", "libd.so"), elf("/r/libd.so")]
    assert took(predict(world(*files), [], mapped=["/m/liba.so", "/m/libb.so"])) == ["/m/liba.so", "/m/libb.so"]


CXX = "libstdc++.so.6"


def versioned(*versions: str, folder: str = "/r") -> ElfFile:
    return elf(f"{folder}/{CXX}", versions_defined=versions)


def cxx_user(path: str, *versions: str, rpath: str = "/r") -> ElfFile:
    return elf(path, CXX, rpath=rpath, versions_needed={CXX: versions, "libother.so": ("V",)})


LACKS = "version `GLIBCXX_3.4.18' not found in /r/libstdc++.so.6"


def test_a_library_that_lacks_a_symbol_version_stops_the_loader() -> None:
    user = cxx_user("/x/liba.so", "GLIBCXX_3.4", "GLIBCXX_3.4.18", "GLIBCXX_3.4.19")
    place = world(versioned("GLIBCXX_3.4"), user, elf("/env/libd.so"), library_path="/env")
    problem = Loaded(CXX, "/r/libstdc++.so.6", "/x/liba.so", "DT_RPATH of /x/liba.so", LACKS)
    user_again = Loaded("/x/liba.so", "/x/liba.so", "/usr/bin/python", "named by path")
    assert predict(place, ["/x/liba.so", "/x/liba.so", "libd.so"])[1:] == (
        problem,
        user_again,
        problem,
        Loaded("libd.so", "/env/libd.so", "/usr/bin/python", "LD_LIBRARY_PATH"),
    )


@pytest.mark.parametrize("versions", [("GLIBCXX_3.4", "GLIBCXX_3.4.18"), ()])
def test_a_library_that_has_the_version_or_none_at_all_is_taken(versions: tuple[str, ...]) -> None:
    predicted = predict(world(versioned(*versions), cxx_user("/x/liba.so", "GLIBCXX_3.4.18")), ["/x/liba.so"])
    assert [loaded.problem for loaded in predicted] == [None, None]


def test_a_version_is_looked_for_in_what_was_loaded_first() -> None:
    """Its entry says who asked; the first user, who is content, keeps its own. The failed one is out again."""
    users = [cxx_user("/x/liba.so", "GLIBCXX_3.4"), cxx_user("/x/libb.so", "GLIBCXX_3.4.18", rpath="/s")]
    newer = versioned("GLIBCXX_3.4", "GLIBCXX_3.4.18", folder="/s")
    place = world(versioned("GLIBCXX_3.4"), newer, *users)
    predicted = predict(place, ["/x/liba.so", "/x/libb.so"])
    assert predicted[1].problem is None
    assert predicted[3:] == (Loaded(CXX, "/r/libstdc++.so.6", "/x/libb.so", "already loaded", LACKS),)
    assert took(predict(place, ["/x/libb.so"])) == ["/x/libb.so", "/s/libstdc++.so.6"]


def test_versions_are_checked_when_all_needs_are_there() -> None:
    """A need that is missing comes first, and a program with a lacking version does not start."""
    user = cxx_user("/usr/bin/python", "GLIBCXX_3.4.18")
    place = world(replace(user, needed=(CXX, "libnone.so")), versioned("GLIBCXX_3.4"), elf("/x/liba.so"))
    assert [loaded.problem for loaded in predict(place, ["/x/liba.so"])] == [None, "not found"]
    place = world(user, versioned("GLIBCXX_3.4"), elf("/x/liba.so"))
    assert [loaded.problem for loaded in predict(place, ["/x/liba.so"])] == [LACKS]


LIB = "/env/ideep4py/lib"
MKLDNN, MKLML, IOMP = "libmkldnn.so.0", "libmklml_intel.so", "libiomp5.so"
STRANGER = elf(f"/other/{MKLDNN}", MKLML, IOMP, soname=MKLDNN)
CONDA = elf("/usr/bin/python", rpath="$ORIGIN/../lib")
BINDING = "/env/ideep4py/_ideep4py.so"


def wheel(*, tag: str = "rpath", lib: bool = True, tag_of_lib: str | None = None) -> list[ElfFile]:
    """ideep4py as installed: the binding finds its own lib/, whose files have no tags as a rule."""
    tags = {tag_of_lib: "$ORIGIN"} if tag_of_lib else {}
    own = [elf(f"{LIB}/{name}", MKLML, IOMP, soname=MKLDNN, **tags) for name in (MKLDNN, "libmkldnn.so")]
    own += [elf(f"{LIB}/{MKLML}", IOMP, **tags), elf(f"{LIB}/{IOMP}", soname=IOMP, **tags)]
    return [elf(BINDING, MKLDNN, MKLML, **{tag: "$ORIGIN/lib"}), *(own if lib else [])]


@dataclass(frozen=True)
class Row:
    """A measured situation: what is there, which libmkldnn.so.0 the binding gets by which step, what stops it."""

    files: list[ElfFile]
    mkldnn: str | None
    step: str
    stopped_by: str | None = None
    library_path: str | None = None
    preload: str | None = None
    mapped: tuple[str, ...] = ()
    iomp: str | None = f"{LIB}/{IOMP}"


OWN, OTHER_ONE = f"{LIB}/{MKLDNN}", f"/other/{MKLDNN}"
BY_RPATH, BY_RUNPATH = f"DT_RPATH of {BINDING}", f"DT_RUNPATH of {BINDING}"
OWN_AT_PREFIX = elf(f"/usr/lib/{MKLDNN}", MKLML, IOMP, soname=MKLDNN)
PREFIX_IOMP = elf(f"/usr/lib/{IOMP}", soname=IOMP)
UNVERSIONED = elf("/other/libmkldnn.so", soname="libdnnl.so.2")
MISNAMED = elf("/other/libmkldnn.so", soname=MKLDNN)
ROWS = {
    "1": Row(wheel(), OWN, BY_RPATH),
    "2": Row([*wheel(), STRANGER], OWN, BY_RPATH, library_path="/other"),
    "3": Row([CONDA, *wheel(), OWN_AT_PREFIX], OWN, BY_RPATH),
    "4": Row([*wheel(), UNVERSIONED], OWN, BY_RPATH, library_path="/other"),
    "5": Row([*wheel(), replace(STRANGER, needed=())], OTHER_ONE, "already loaded", preload=OTHER_ONE),
    "6": Row([*wheel(), STRANGER], None, "", MKLML, preload=OTHER_ONE, iomp=None),
    "6, the older libmklml beside it": Row(
        [*wheel(), replace(STRANGER, needed=(MKLML,), rpath=LIB)], OTHER_ONE, "already loaded", preload=OTHER_ONE
    ),
    "7": Row([*wheel(), STRANGER], OTHER_ONE, "already loaded", mapped=(OTHER_ONE,)),
    "8": Row([*wheel(), MISNAMED], MISNAMED.path, "already loaded", mapped=(MISNAMED.path,)),
    "9": Row([*wheel(), STRANGER], OTHER_ONE, "already loaded", mapped=(OTHER_ONE,)),
    "10": Row([*wheel(), UNVERSIONED], OWN, BY_RPATH, mapped=(UNVERSIONED.path,)),
    "15": Row(wheel(tag="runpath"), OWN, BY_RUNPATH, IOMP, iomp=None),
    "16": Row(wheel(tag="runpath"), OWN, "LD_LIBRARY_PATH", library_path=LIB),
    "17": Row(
        [*wheel(tag="runpath"), STRANGER, elf(f"/other/{IOMP}", soname=IOMP)],
        OTHER_ONE,
        "LD_LIBRARY_PATH",
        library_path="/other",
        iomp=f"/other/{IOMP}",
    ),
    "18": Row(
        [CONDA, *wheel(tag="runpath"), OWN_AT_PREFIX, PREFIX_IOMP], OWN, BY_RUNPATH, iomp="/usr/bin/../lib/libiomp5.so"
    ),
    "19": Row(
        [*wheel(tag="runpath", tag_of_lib="runpath"), STRANGER],
        OTHER_ONE,
        "LD_LIBRARY_PATH",
        IOMP,
        library_path="/other",
        iomp=None,
    ),
    "20": Row(
        [*wheel(tag="runpath", tag_of_lib="runpath"), replace(STRANGER, needed=())],
        OTHER_ONE,
        "LD_LIBRARY_PATH",
        library_path="/other",
    ),
    "21": Row(wheel(lib=False), None, "not found", MKLDNN, iomp=None),
    "22": Row(
        [CONDA, *wheel(lib=False), replace(OWN_AT_PREFIX, needed=()), elf(f"/usr/lib/{MKLML}", IOMP), PREFIX_IOMP],
        OWN_AT_PREFIX.path,
        f"DT_RPATH of {CONDA.path}",
        iomp=PREFIX_IOMP.path,
    ),
    "23": Row([*wheel(lib=False), MISNAMED], None, "not found", MKLDNN, library_path="/other", iomp=None),
    "24, libiomp5": Row(
        [*wheel(), elf(f"/other/{IOMP}", soname=IOMP)], OWN, BY_RPATH, mapped=(f"/other/{IOMP}",), iomp=f"/other/{IOMP}"
    ),
    "24, libmklml": Row([*wheel(), elf(f"/other/{MKLML}")], OWN, BY_RPATH, mapped=(f"/other/{MKLML}",)),
}


def row_world(row: Row) -> World:
    return world(*row.files, library_path=row.library_path, preload=row.preload)


@pytest.mark.parametrize("number", ROWS)
def test_measured_situations(number: str) -> None:
    row = ROWS[number]
    place = row_world(row)
    predicted = predict(place, [BINDING], mapped=row.mapped)
    by_name = {loaded.name: loaded for loaded in predicted}
    asked = by_name.get(MKLDNN)
    assert (asked.path if asked else None, asked.step if asked else "") == (row.mkldnn, row.step)
    assert [loaded.name for loaded in predicted if loaded.problem] == ([row.stopped_by] if row.stopped_by else [])
    iomp = by_name[IOMP].path if IOMP in by_name else None
    assert iomp == (place.file(row.iomp).path if row.iomp else None)  # type: ignore[union-attr]
    # The same word from another side: the step that brought the file into the process.
    first = winner(predicted, MKLDNN, place.files)
    assert (first.path if first else None) == (OTHER_ONE if number == "6" else row.mkldnn)


def test_libmklml_without_a_soname_can_be_there_twice() -> None:
    predicted = predict(row_world(ROWS["24, libmklml"]), [BINDING], mapped=[f"/other/{MKLML}"])
    assert took(predicted).count(f"/other/{MKLML}") == took(predicted).count(f"{LIB}/{MKLML}") == 1


def test_own_library_is_passed_over_for_a_mapped_stranger() -> None:
    row = ROWS["7"]
    assert one(predict(row_world(row), [BINDING], mapped=row.mapped), MKLDNN).passed_over == (OWN,)


def test_winner_of_a_name() -> None:
    """The first with a word to say, by name or SONAME; SONAMEs need the headers."""
    files = {"/p/first.so": elf("/p/first.so", soname="libb.so")}
    ignored = Loaded("libb.so", None, "LD_PRELOAD", "not found")
    by_path = Loaded("/p/first.so", "/p/first.so", "LD_PRELOAD", "LD_PRELOAD")
    asked = Loaded("libb.so", "/p/first.so", "/a", "already loaded")
    missing = Loaded("libb.so", None, "/a", "not found", "not found")
    assert winner([ignored, by_path, asked], "libb.so", files) == by_path
    assert winner([ignored, by_path, asked], "libb.so") == asked
    assert winner([ignored, missing, asked], "libb.so", files) == missing
    assert winner([ignored], "libb.so", files) is None
    assert winner([by_path, asked], "first.so", files) is None


def test_needed_by() -> None:
    files = {"/b": elf("/b", "x.so", "y.so"), "/a": elf("/a", "x.so"), "/c": elf("/c", "y.so", soname="x.so")}
    assert needed_by(files, "x.so") == ("/b", "/a")


@pytest.mark.parametrize(
    ("rpath", "runpath", "style"),
    [
        ("/a", None, "RPATH"),
        ("/a", "/b", "RUNPATH"),
        (None, "/b", "RUNPATH"),
        ("/a", "", "RUNPATH"),
        (None, None, "none"),
        ("", None, "none"),
    ],
)
def test_search_style(rpath: str | None, runpath: str | None, style: str) -> None:
    assert search_style(elf("/a", rpath=rpath, runpath=runpath)) == style


def test_disagreements() -> None:
    files = {
        path: elf(path, real_path=real_path, soname=soname)
        for path, real_path, soname in (
            ("/own/libb.so.0", "/own/libb.so.0.14", "libb.so.0"),
            ("/other/b.so", "/other/b.so", "libb.so.0"),
            ("/third/libb.so.0", "/third/real.so", None),
            ("/usr/lib/libc.so.6", "/usr/lib/libc.so.6", "libc.so.6"),
        )
    }
    own = Loaded("libb.so.0", "/own/libb.so.0", "/a", "LD_LIBRARY_PATH")
    text = "libb.so.0: predicted /own/libb.so.0, mapped "
    assert disagreements([own], ["/own/libb.so.0.14", "/other/b.so"], files) == ()
    assert disagreements([own], ["/other/b.so", "/usr/lib/libc.so.6"], files) == (f"{text}/other/b.so",)
    assert disagreements([own], ["/third/real.so"], files) == (f"{text}/third/real.so",)
    assert disagreements([own], ["/new/libb.so.0"], files) == (f"{text}/new/libb.so.0",)
    assert disagreements([own], ["/third/real.so", "/other/b.so"], files) == (f"{text}/other/b.so, /third/real.so",)
    assert disagreements([own], ["/own/libb.so.0"], files) == (f"{text}/own/libb.so.0",)
    assert disagreements([replace(own, name="/own/libb.so.0")], [], files) == (f"/own/{text}none",)
    assert disagreements([replace(own, name="/own/libb.so.0")], ["/other/b.so"], files) == (f"/own/{text}/other/b.so",)
    assert disagreements([replace(own, path="/new/libb.so.0")], ["/new/libb.so.0"], files) == ()


def test_a_predicted_problem_disagrees_with_imports_that_succeeded() -> None:
    files = {"/own/libb.so.0": elf("/own/libb.so.0")}
    missing = Loaded("libb.so.0", None, "/a", "not found", "not found")
    lacking = Loaded("libb.so.0", "/own/libb.so.0", "/a", "LD_LIBRARY_PATH", "version `V' not found in /own/libb.so.0")
    ignored = Loaded("libb.so.0", None, "LD_PRELOAD", "not found")
    assert disagreements([missing], [], files) == ("libb.so.0: predicted not found, mapped none",)
    assert disagreements([missing], ["/own/libb.so.0"], files) == (
        "libb.so.0: predicted not found, mapped /own/libb.so.0",
    )
    assert disagreements([lacking], ["/own/libb.so.0"], files) == (
        "libb.so.0: predicted version `V' not found in /own/libb.so.0, mapped /own/libb.so.0",
    )
    assert disagreements([ignored], ["/own/libb.so.0"], files) == ()


TELL_EXTENSIONS = """
import sys, ctypes, socket, sqlite3, ssl, zlib
files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
print("\\n".join(sorted(file for file in files if file.endswith(".so"))))
print("--")
for line in open("/proc/self/maps"):
    if ".so" in line and line.split()[-1].startswith("/"):
        print(line.split()[-1])
"""


@pytest.mark.parametrize("version", [None, "3.7", "2.7"])
def test_extension_modules_of_a_real_python(version: str | None, legacy: Callable[[str], str]) -> None:
    """All that is mapped, and nothing else, is what was predicted; so it is where that is known beforehand."""
    python = os.path.realpath(legacy(version) if version else sys.executable)
    words = [python, "-c", TELL_EXTENSIONS]
    told = subprocess.run(words, env={}, capture_output=True, text=True, check=True).stdout.splitlines()
    opened, mapped = told[: told.index("--")], {os.path.realpath(path) for path in told[told.index("--") + 1 :]}
    place = this_machine(python, {})
    predicted = predict(place, opened)
    assert [entry for entry in predicted if entry.problem] == []
    assert {place.files[entry.path].real_path for entry in predicted if entry.path} == mapped
    assert disagreements(predicted, sorted(mapped), place.files) == ()
    again = predict(place, opened, mapped=sorted(mapped))
    assert {place.files[entry.path].real_path for entry in again if entry.path} == mapped
