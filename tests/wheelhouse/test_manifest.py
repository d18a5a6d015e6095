"""The manifest survives its file, and says what is missing or altered."""

from __future__ import annotations

import json

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.plan import PackageSource, Requirement
from ideepdoctor.treatment.installers import tool_folder, virtualenv_pins
from ideepdoctor.wheelhouse.manifest import Entry, Manifest, digests_in, lacking, problems, read
from ideepdoctor.wheelhouse.offline import refuse_incomplete, refuse_without_virtualenv
from ideepdoctor.wheelhouse.wanted import FileSet
from tests.mirror import pin_of, tiny_wheel

ZEROS = "0" * 64


@pytest.fixture
def filled(tmp_path):
    """A wheelhouse with one wheel, and its manifest."""
    path = tiny_wheel(tmp_path)
    pin = pin_of(path)
    held = FileSet("a set", "a-set", (pin,), every=True, missing=("ideep4py",))
    manifest = Manifest({path.name: Entry(pin.sha256[0], path.stat().st_size)}, (held,), "2026", "0.1")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest.as_data()))
    return tmp_path, path, manifest


def test_it_is_read_as_it_was_written(filled):
    folder, path, manifest = filled
    assert read(str(folder)) == manifest
    assert manifest.as_data()["files"][path.name]["for"] == ["a set"]
    assert read(str(folder / "nowhere")) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": "other", "schema_version": "1"}', "null", "\x00"])
def test_what_is_no_manifest_is_one_error(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(CouldNotCheck, match="no manifest of a wheelhouse"):
        read(str(tmp_path))


def test_what_is_missing_altered_or_still_to_be_built(filled):
    folder, path, manifest = filled
    open_ = "ideep4py (a set) must be built"
    assert problems(manifest, digests_in(str(folder))) == [open_]
    tiny_wheel(folder, "ideep4py", "2.0.0.post3+doctor.v3", "cp311-cp311-linux_x86_64")
    assert problems(manifest, digests_in(str(folder))) == []
    path.write_bytes(b"x")
    assert problems(manifest, digests_in(str(folder))) == [f"{path.name} is altered"]
    path.unlink()
    assert problems(manifest, digests_in(str(folder))) == [f"{path.name} is missing"]
    more = FileSet("more", "more", (Requirement("two", "2", (ZEROS,)),), every=True)
    unfinished = Manifest(manifest.files, (*manifest.sets, more))
    assert "two 2 (more) was never fetched" in problems(unfinished, digests_in(str(folder)))


def test_only_what_an_installation_needs_is_looked_at(filled):
    folder, path, _manifest = filled
    pin = pin_of(path)
    other = Requirement("tiny", "1.0", (ZEROS,))
    assert lacking([str(folder)], [pin]) == []
    assert lacking([str(folder)], [other]) == [f"tiny 1.0 is missing ({path.name} is another file)"]
    assert lacking([str(folder)], [Requirement("tin", "1", (ZEROS,))]) == ["tin 1 is missing"]
    path.write_bytes(b"x")
    assert lacking([str(folder)], [pin]) == [f"{path.name} is altered"]
    path.unlink()
    assert lacking([str(folder)], [pin]) == [f"{path.name} is missing"]


def test_a_folder_without_a_manifest_will_do(tmp_path):
    pin = pin_of(tiny_wheel(tmp_path, "dashed_name", "1.0.post3"))
    asked = Requirement("dashed-name", pin.version, pin.sha256)
    assert lacking([str(tmp_path)], [asked]) == []


def test_an_installation_without_network_is_refused_with_the_command_that_helps(tmp_path):
    wanted = [Requirement("tiny", "1.0", (ZEROS,))]
    source = PackageSource((str(tmp_path),), no_index=True)
    with pytest.raises(CouldNotCheck) as caught:
        refuse_incomplete(source, wanted)
    assert "tiny 1.0 is missing" in caught.value.message
    assert f"ideepdoctor wheelhouse {tmp_path}" in caught.value.hint
    refuse_incomplete(PackageSource((str(tmp_path),)), wanted)
    refuse_incomplete(PackageSource(no_index=True), wanted)
    with pytest.raises(CouldNotCheck, match="cannot be read"):
        refuse_incomplete(PackageSource((f"{tmp_path}/gone",), no_index=True), wanted)


def test_the_tool_for_python_2_7_is_wanted_unless_the_cache_has_it(tmp_path):
    (tmp_path / "wh").mkdir()
    source = PackageSource((str(tmp_path / "wh"),), no_index=True)
    with pytest.raises(CouldNotCheck) as caught:
        refuse_without_virtualenv(source, str(tmp_path / "cache"))
    assert "virtualenv 20.21.1 is missing" in caught.value.message
    assert caught.value.hint.startswith(f"where there is internet: ideepdoctor wheelhouse {tmp_path}/wh --python 2.7")
    made = tool_folder(str(tmp_path / "cache"), "virtualenv", virtualenv_pins())
    made.mkdir(parents=True)
    with pytest.raises(CouldNotCheck):
        refuse_without_virtualenv(source, str(tmp_path / "cache"))
    (made / "complete").write_bytes(b"")
    refuse_without_virtualenv(source, str(tmp_path / "cache"))
