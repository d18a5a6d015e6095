"""builder/wheel.py, wheel_metadata.py and auditwheel.py: from a staging folder to a wheel."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename

from ideepdoctor.builder.inspect import check
from ideepdoctor.builder.levels import flags_through
from ideepdoctor.builder.wheel import with_proof
from ideepdoctor.builder.wheel_metadata import Tag, built_version, metadata_text, tag_of
from ideepdoctor.errors import BuildFailed
from ideepdoctor.model.build import BuildInfo, March
from ideepdoctor.system import RealSystem
from tests.builder.elves import OLD_TAGS, extension, functions, library, needs_compiler, staging
from tests.builder.packed import COMMIT, LINUX, MKLDNN_COMMIT, packed

INFO = "ideep4py-2.0.0.post3+doctor.v3.dist-info"


def names(path: str) -> list[str]:
    with zipfile.ZipFile(path) as whole:
        return whole.namelist()


def read(path: str, name: str) -> bytes:
    with zipfile.ZipFile(path) as whole:
        return whole.read(name)


@pytest.mark.parametrize(
    ("abi", "tag", "minor", "extension"),
    [
        ("cp37m", "cp37-cp37m-linux_x86_64", "3.7", "_ideep4py.cpython-37m-x86_64-linux-gnu.so"),
        ("cp27mu", "cp27-cp27mu-linux_x86_64", "2.7", "_ideep4py.so"),
        ("cp38", "cp38-cp38-linux_x86_64", "3.8", "_ideep4py.cpython-38-x86_64-linux-gnu.so"),
        ("cp311", "cp311-cp311-linux_x86_64", "3.11", "_ideep4py.cpython-311-x86_64-linux-gnu.so"),
        ("cp313t", "cp313-cp313t-linux_x86_64", "3.13", "_ideep4py.cpython-313t-x86_64-linux-gnu.so"),
    ],
)
def test_a_tag_is_that_of_the_abi(abi: str, tag: str, minor: str, extension: str):
    found = tag_of(abi)
    assert (str(found), found.minor, found.extension) == (tag, minor, extension)


def test_no_tag_for_another_implementation():
    with pytest.raises(ValueError, match="no ABI of CPython"):
        tag_of("pp310")


@pytest.mark.parametrize(
    ("version", "label", "built"),
    [
        ("2.0.0.post3", "v3", "2.0.0.post3+doctor.v3"),
        ("1.0.4", "v4.znver4", "1.0.4+doctor.v4.znver4"),
        ("2.0.0+mine", "haswell", "2.0.0+mine.doctor.haswell"),
    ],
)
def test_the_version_says_what_it_was_compiled_for(version: str, label: str, built: str):
    assert built_version(version, label) == built
    assert built_version(version, label, "none") == f"{built}.nomkl"


@pytest.mark.parametrize(("numpy", "needs"), [("1.16.6", "numpy<2,>=1.16.6"), ("2.5.5", "numpy>=2.5.5")])
def test_the_metadata_is_what_is_true_of_the_build(numpy: str, needs: str):
    info = BuildInfo("x86-64-v3", (), "wheel", COMMIT, MKLDNN_COMMIT, numpy, False)
    text = metadata_text("2.0.0.post3+doctor.v3", tag_of("cp311"), info, ("LICENSE",))
    fields = Parser().parsestr(text)
    assert (fields["Name"], fields["Version"]) == ("ideep4py", "2.0.0.post3+doctor.v3")
    assert SpecifierSet(fields["Requires-Python"]) == SpecifierSet(">=3.11,<3.12")
    assert [Requirement(one) for one in fields.get_all("Requires-Dist")] == [Requirement(needs)]
    assert "build by ideepdoctor" in fields["Summary"] and COMMIT[:12] in fields["Summary"]
    assert fields["License-File"] == "LICENSE"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("staging")
    staging(folder)
    return folder


@pytest.fixture
def own_stage(stage: Path, tmp_path: Path) -> Path:
    """The package in a staging folder of the test's own."""
    shutil.copytree(stage, tmp_path / "staging", symlinks=True)
    [found] = (tmp_path / "staging").rglob("ideep4py")
    return found


@needs_compiler
def test_a_wheel_holds_what_chainer_needs_and_nothing_else(stage: Path, tmp_path: Path):
    told: list[str] = []
    wheel = packed(stage, tmp_path, told=told)
    assert wheel.name == "ideep4py-2.0.0.post3+doctor.v3-cp37-cp37m-linux_x86_64.whl"
    assert names(wheel.path) == [
        "ideep4py/__init__.py",
        "ideep4py/_ideep4py.cpython-37m-x86_64-linux-gnu.so",
        "ideep4py/_version.py",
        "ideep4py/cosim/__init__.py",
        "ideep4py/lib/libiomp5.so",
        "ideep4py/lib/libmkldnn.so.0",
        "ideep4py/lib/libmklml_intel.so",
        f"{INFO}/METADATA",
        f"{INFO}/WHEEL",
        f"{INFO}/ideepdoctor-build.json",
        f"{INFO}/RECORD",
    ]
    assert check(wheel.path) == ()
    assert (wheel.tag, wheel.version) == ("cp37-cp37m-linux_x86_64", "2.0.0.post3+doctor.v3")
    assert wheel.sha256 == hashlib.sha256(Path(wheel.path).read_bytes()).hexdigest()
    assert parse_wheel_filename(wheel.name)[0] == "ideep4py"
    assert told[-1] == "the tag is linux_x86_64: it uses the system's libgomp.so.1, as no manylinux wheel may"
    assert (wheel.cpu_flags, wheel.numpy, wheel.mkl, wheel.proof) == (flags_through(3), "1.16.6", "wheel", ())


@needs_compiler
def test_the_wheel_says_how_it_was_built(stage: Path, tmp_path: Path):
    wheel = packed(stage, tmp_path)
    told = json.loads(read(wheel.path, f"{INFO}/ideepdoctor-build.json"))
    extra = told.pop("extra")
    assert told == {
        "commit": COMMIT,
        "cpu_flags": list(flags_through(3)),
        "march": "x86-64-v3",
        "mkl": "wheel",
        "mkldnn_commit": MKLDNN_COMMIT,
        "numpy": "1.16.6",
        "verified": False,
    }
    assert (extra["tools"], extra["mkl_identity"]) == ("tools-digest", "mkl-digest")
    native = packed(stage, tmp_path / "native", march=March("native", "v4.znver4", flags_through(4)))
    assert native.version == "2.0.0.post3+doctor.v4.znver4"
    assert b'"march": "v4.znver4"' in read(
        native.path, "ideep4py-2.0.0.post3+doctor.v4.znver4.dist-info/ideepdoctor-build.json"
    )


@needs_compiler
def test_the_same_input_gives_the_same_bytes(own_stage: Path, tmp_path: Path):
    first = Path(packed(own_stage.parent, tmp_path / "one").path).read_bytes()
    for path in own_stage.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (1e9, 1e9))
            path.chmod(0o700)
    assert Path(packed(own_stage.parent, tmp_path / "two").path).read_bytes() == first
    (own_stage / "_version.py").write_text('__version__ = "2.0.0.post4"\n', "utf-8")
    assert Path(packed(own_stage.parent, tmp_path / "three").path).read_bytes() != first


@needs_compiler
def test_modes_are_those_of_programs_and_texts(stage: Path, tmp_path: Path):
    with zipfile.ZipFile(packed(stage, tmp_path).path) as whole:
        modes = {entry.filename: stat.S_IMODE(entry.external_attr >> 16) for entry in whole.infolist()}
    assert {name for name, mode in modes.items() if mode == 0o755} == {name for name in modes if ".so" in name}
    assert {mode for name, mode in modes.items() if ".so" not in name} == {0o644}


@needs_compiler
def test_copies_of_a_library_are_kept_once_under_the_name_that_is_asked_for(own_stage: Path, tmp_path: Path):
    """setup.py copies what links point to: three files of the same bytes."""
    for link in ("libmkldnn.so", "libmkldnn.so.0"):
        path = own_stage / "lib" / link
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    wheel = packed(own_stage.parent, tmp_path)
    assert [name for name in names(wheel.path) if "mkldnn" in name] == ["ideep4py/lib/libmkldnn.so.0"]
    (own_stage / "lib" / "libmkldnn.so.0").unlink()
    (own_stage / "lib" / "libmkldnn.so").unlink()
    again = packed(own_stage.parent, tmp_path / "again")
    assert Path(again.path).read_bytes() == Path(wheel.path).read_bytes()


@needs_compiler
def test_a_name_that_something_asks_for_is_kept(own_stage: Path, tmp_path: Path):
    folder = own_stage / "lib"
    library(folder / "libplain.so.1", functions(["plain"]), "-Wl,-soname,libplain.so.1")
    (folder / "libplain.so").write_bytes((folder / "libplain.so.1").read_bytes())
    assert "ideep4py/lib/libplain.so" not in names(packed(own_stage.parent, tmp_path / "one").path)
    library(folder / "libasks.so", "int asks(void) { return 2; }\n", "-Wl,-soname,libasks.so")
    patched = (folder / "libasks.so", "libplain.so")
    needs(*patched)
    kept = names(packed(own_stage.parent, tmp_path / "two").path)
    assert {"ideep4py/lib/libplain.so", "ideep4py/lib/libplain.so.1"} <= set(kept)


def needs(path: Path, name: str) -> None:
    """Add a NEEDED to a library."""
    from ideepdoctor.treatment.installers import patchelf_program

    done = RealSystem().run([patchelf_program(), "--add-needed", name, str(path)], timeout_seconds=30)
    assert done.ok, done.error_text()


@needs_compiler
def test_another_library_under_the_same_name_is_not_dropped(own_stage: Path, tmp_path: Path):
    other = own_stage / "lib" / "libmkldnn.so"
    other.unlink()
    library(other, functions(["another"]), "-Wl,-soname,libmkldnn.so.0")
    kept = [name for name in names(packed(own_stage.parent, tmp_path).path) if "mkldnn" in name]
    assert kept == ["ideep4py/lib/libmkldnn.so", "ideep4py/lib/libmkldnn.so.0"]


@needs_compiler
def test_licences_of_what_is_in_it_come_along(stage: Path, tmp_path: Path):
    tree = tmp_path / "tree"
    (tree / "mkl-dnn").mkdir(parents=True)
    (tree / "LICENSE").write_text("of ideep\n", "utf-8")
    (tree / "mkl-dnn" / "LICENSE").write_text("of MKL-DNN\n", "utf-8")
    wheel = packed(stage, tmp_path, tree=tree)
    assert read(wheel.path, f"{INFO}/LICENSE") == b"of ideep\n"
    assert read(wheel.path, f"{INFO}/LICENSE.mkl-dnn") == b"of MKL-DNN\n"
    fields = Parser().parsestr(read(wheel.path, f"{INFO}/METADATA").decode())
    assert fields.get_all("License-File") == ["LICENSE", "LICENSE.mkl-dnn"]
    assert check(wheel.path) == ()


@needs_compiler
def test_auditwheel_may_raise_the_tag(stage: Path, tmp_path: Path):
    found = {"overall_tag": "manylinux_2_34_x86_64", "external_libs": {}}
    wheel = packed(stage, tmp_path, found=found)
    assert wheel.tag == "cp37-cp37m-manylinux_2_34_x86_64"
    assert [path.name for path in (tmp_path / "wheels").iterdir()] == [wheel.name]
    assert b"Tag: cp37-cp37m-manylinux_2_34_x86_64\n" in read(wheel.path, f"{INFO}/WHEEL")
    assert check(wheel.path) == ()


@needs_compiler
@pytest.mark.parametrize("found", [None, {"error": "no platform wheel"}])
def test_without_auditwheel_the_tag_is_linux_and_that_is_said(stage: Path, tmp_path: Path, found: object):
    told: list[str] = []
    wheel = packed(stage, tmp_path, found=found, told=told)  # type: ignore[arg-type]
    assert wheel.tag == "cp37-cp37m-linux_x86_64"
    assert "auditwheel" in told[-1] and "linux_x86_64" in told[-1]


@needs_compiler
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("-Wl,-rpath,$ORIGIN/lib", "-Wl,--enable-new-dtags"), "RUNPATH"),
        ((OLD_TAGS,), "no RPATH"),
        (("-Wl,-rpath,/build/lib", OLD_TAGS), "no RPATH"),
    ],
)
def test_an_extension_that_would_not_find_its_libraries_is_not_packed(
    own_stage: Path, tmp_path: Path, flags: tuple[str, ...], said: str
):
    extension(own_stage, flags=flags)
    with pytest.raises(BuildFailed, match=said):
        packed(own_stage.parent, tmp_path)
    assert not (tmp_path / "wheels").exists()


@needs_compiler
def test_a_staging_folder_that_is_not_whole_is_refused(own_stage: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BuildFailed, match="was not installed"):
        packed(tmp_path / "empty", tmp_path)
    shutil.copytree(own_stage, tmp_path / "staging" / "opt" / "ideep4py", symlinks=True)
    with pytest.raises(BuildFailed, match="holds ideep4py 2 times"):
        packed(tmp_path / "staging", tmp_path)
    for path in (tmp_path / "staging").rglob("_ideep4py*.so"):
        path.unlink()
    with pytest.raises(BuildFailed, match="its extension _ideep4py is missing"):
        packed(tmp_path / "staging", tmp_path)


@needs_compiler
def test_what_is_no_library_is_refused(own_stage: Path, tmp_path: Path):
    (own_stage / "lib" / "libiomp5.so").write_text("INPUT(-lgomp)\n", "utf-8")
    with pytest.raises(BuildFailed, match=r"libiomp5\.so is no shared library: it is not ELF"):
        packed(own_stage.parent, tmp_path)


@needs_compiler
@pytest.mark.parametrize(("abi", "version", "said"), [("pp310", "2.0.0", "no ABI"), ("cp37m", "head", "'head'")])
def test_what_cannot_be_named_is_refused(stage: Path, tmp_path: Path, abi: str, version: str, said: str):
    with pytest.raises(BuildFailed, match=said):
        packed(stage, tmp_path, abi=abi, version=version)


@needs_compiler
def test_a_wheel_that_was_proved_says_so_and_is_the_same_otherwise(stage: Path, tmp_path: Path):
    wheel = packed(stage, tmp_path)
    before = {name: read(wheel.path, name) for name in names(wheel.path)}
    proved = with_proof(RealSystem(), wheel, ("smoke: used",))
    after = {name: read(proved.path, name) for name in names(proved.path)}
    assert list(after) == list(before) and check(proved.path) == ()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {f"{INFO}/ideepdoctor-build.json", f"{INFO}/RECORD"}
    assert json.loads(after[f"{INFO}/ideepdoctor-build.json"])["verified"] is True
    assert proved.proof == ("smoke: used",) and proved.path == wheel.path
    assert proved.sha256 == hashlib.sha256(Path(proved.path).read_bytes()).hexdigest() != wheel.sha256
    assert with_proof(RealSystem(), proved, proved.proof) == proved
    with zipfile.ZipFile(wheel.path, "w") as whole:
        whole.writestr(f"{INFO}/ideepdoctor-build.json", "{}")
    with pytest.raises(ValueError, match="does not say whether it is verified"):
        with_proof(RealSystem(), wheel, ())


@needs_compiler
def test_no_trace_of_the_tool_is_left(stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    packed(stage, tmp_path)
    packed(stage, tmp_path, found=LINUX)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_platform_of_several_parts_is_one_tag():
    assert str(Tag("cp37", "cp37m", "manylinux1_x86_64")) == "cp37-cp37m-manylinux1_x86_64"
