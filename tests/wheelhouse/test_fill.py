"""Filling a folder: what is there stays, what is damaged comes anew, what is not ours is left alone."""

from __future__ import annotations

import errno
import json
import zipfile
from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, CouldNotCheck, UsageError
from ideepdoctor.model.plan import PackageSource
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.wheelhouse import doctor, fill
from ideepdoctor.wheelhouse.wanted import FileSet
from tests.mirror import pin_of, tiny_wheel


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index in place of the real one; what was asked of it."""
    store = tmp_path / "index"
    store.mkdir()
    files = [tiny_wheel(store, name) for name in ("tiny", "other")]
    asked: list[list[str]] = []

    def fetch(_system, _cache, folder, wanted, _source, _tell, _done):
        asked.append([ask.requirement.name for ask in wanted])
        held = {pin_of(path).sha256[0]: path for path in files}
        found = {}
        for ask in wanted:
            for digest in ask.requirement.sha256:
                if digest in held:
                    Path(folder, held[digest].name).write_bytes(held[digest].read_bytes())
                    found[digest] = held[digest].name
        return found

    monkeypatch.setattr(fill, "fetch", fetch)
    return files, asked


def filled(folder: Path, *sets: FileSet, with_doctor: bool = False) -> fill.Filled:
    around = fill.Surroundings(RealSystem(), "/cache", Quiet(), PackageSource())
    return fill.fill(around, str(folder), sets, with_doctor=with_doctor)


def a_set(*paths: Path, slug: str = "a-set") -> FileSet:
    return FileSet(slug, slug, tuple(pin_of(path) for path in paths), every=True)


def test_a_second_run_asks_nobody_and_changes_nothing(tmp_path, index):
    files, asked = index
    first = filled(tmp_path / "wh", a_set(*files))
    assert first.fetched == ("other-1.0-py3-none-any.whl", "tiny-1.0-py3-none-any.whl")
    before = {path.name: path.read_bytes() for path in (tmp_path / "wh").iterdir()}
    again = filled(tmp_path / "wh", a_set(*files))
    assert (again.fetched, asked) == ((), [["other", "tiny"]])
    assert {path.name: path.read_bytes() for path in (tmp_path / "wh").iterdir()} == before
    assert sorted(before) == sorted(["manifest.json", "requirements-a-set.txt", *first.fetched])


def test_sets_of_earlier_runs_stay_and_are_completed(tmp_path, index):
    files, asked = index
    filled(tmp_path / "wh", a_set(files[0], slug="one"))
    (tmp_path / "wh" / files[0].name).unlink()
    after = filled(tmp_path / "wh", a_set(files[1], slug="two"))
    assert [held.slug for held in after.manifest.sets] == ["one", "two"]
    assert asked == [["tiny"], ["other", "tiny"]]


def test_a_damaged_file_comes_anew_and_a_foreign_one_stays(tmp_path, index):
    files, _asked = index
    filled(tmp_path / "wh", a_set(*files))
    (tmp_path / "wh" / files[0].name).write_bytes(b"damaged")
    (tmp_path / "wh" / "notes.txt").write_text("mine")
    after = filled(tmp_path / "wh", a_set(*files))
    assert (after.fetched, after.anew, after.foreign) == ((files[0].name,), (files[0].name,), ("notes.txt",))
    assert (tmp_path / "wh" / files[0].name).read_bytes() == files[0].read_bytes()
    assert (tmp_path / "wh" / "notes.txt").read_text() == "mine"


def test_what_build_put_there_is_known(tmp_path, index):
    files, _asked = index
    (tmp_path / "wh").mkdir()
    tiny_wheel(tmp_path / "wh", "ideep4py", "2.0.0.post3+doctor.v3", "cp311-cp311-linux_x86_64")
    after = filled(tmp_path / "wh", a_set(*files))
    assert after.built == ("ideep4py-2.0.0.post3+doctor.v3-cp311-cp311-linux_x86_64.whl",)
    assert after.foreign == ()
    assert after.built[0] in after.manifest.files


def test_an_interrupted_run_is_taken_up(tmp_path, index, monkeypatch):
    files, asked = index
    whole = fill.fetch

    def broken(system, cache, folder, wanted, source, tell, done):
        whole(system, cache, folder, wanted[:1], source, tell, done)
        raise CouldNotCheck("the network is gone")

    monkeypatch.setattr(fill, "fetch", broken)
    with pytest.raises(CouldNotCheck):
        filled(tmp_path / "wh", a_set(*files))
    monkeypatch.setattr(fill, "fetch", whole)
    assert len(filled(tmp_path / "wh", a_set(*files)).fetched) == 1
    assert asked == [["other"], ["tiny"]]


def test_a_folder_that_nothing_came_into_is_not_left_behind(tmp_path, index, monkeypatch):
    def broken(*_words):
        raise CouldNotCheck("no network")

    monkeypatch.setattr(fill, "fetch", broken)
    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "deep" / "wh", tmp_path / "there"):
        with pytest.raises(CouldNotCheck):
            filled(folder, a_set(*index[0]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "there"]


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EACCES, UsageError), (errno.EROFS, ApplyFailed), (errno.ENOSPC, ApplyFailed), (errno.ENOTDIR, UsageError)],
)
def test_a_folder_that_takes_nothing_is_one_error(tmp_path, index, monkeypatch, number, kind):
    def refuse(_self, _path):
        raise OSError(number, "no")

    monkeypatch.setattr(RealSystem, "make_folder", refuse)
    with pytest.raises(kind):
        filled(tmp_path / "wh", a_set(*index[0]))


def test_a_file_in_the_place_of_the_folder(tmp_path, index):
    (tmp_path / "wh").write_text("")
    with pytest.raises(UsageError, match="is no folder"):
        filled(tmp_path / "wh", a_set(*index[0]))


def test_the_doctors_own_wheel_is_whole_and_the_same_every_time(tmp_path):
    name, data = doctor.own_wheel()
    assert (name, data) == doctor.own_wheel()
    path = tmp_path / name
    path.write_bytes(data)
    with zipfile.ZipFile(path) as archive:
        held = set(archive.namelist())
        [record] = [part for part in held if part.endswith("/RECORD")]
        listed = {line.split(",")[0] for line in archive.read(record).decode().splitlines()}
    assert held == listed
    assert {"ideepdoctor/cli.py", "ideepdoctor/payload/probe.py", "ideepdoctor/wheelhouse/pip.txt"} <= held
    assert any(part.endswith("/entry_points.txt") for part in held)
    assert not any(part.endswith(".pyc") for part in held)


def test_what_the_doctor_runs_with_is_all_of_it():
    found = doctor.releases()
    assert {"typer", "rich", "uv", "pydantic", "pydantic-core", "markdown-it-py"} <= found.keys()
    assert "ideepdoctor" not in found
    assert "pytest" not in found


def test_the_doctor_is_a_set_and_is_fetched_once(tmp_path, index, monkeypatch):
    files, _asked = index
    runs: list[list[str]] = []

    def download(_around, folder, pins):
        runs.append(list(pins))
        return [tiny_wheel(Path(folder), *pin.split("==")).name for pin in pins]

    monkeypatch.setattr(fill, "_download", download)
    monkeypatch.setattr(doctor, "releases", lambda: {"rich": "13.7", "typer": "0.29"})
    after = filled(tmp_path / "wh", a_set(*files), with_doctor=True)
    [held] = [held for held in after.manifest.sets if held.slug.startswith("doctor-")]
    assert [item.name for item in held.requirements] == ["ideepdoctor", "rich", "typer"]
    assert (tmp_path / "wh" / held.requirements_name).read_text().count("--hash=sha256:") == 3
    again = filled(tmp_path / "wh", a_set(*files), with_doctor=True)
    assert (again.fetched, runs) == ((), [["rich==13.7", "typer==0.29"]])
    manifest = json.loads((tmp_path / "wh" / "manifest.json").read_text())
    assert manifest["files"]["rich-13.7-py3-none-any.whl"]["for"] == [held.name]
