"""``install ideep4py==...+doctor...``: from a folder alone, and only where the build can be right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ideepdoctor.commands.install import wanted_version
from ideepdoctor.commands.install_built import built_plan
from ideepdoctor.errors import CouldNotCheck, NotPossibleHere, UsageError
from ideepdoctor.model.plan import Install, PackageSource
from tests.mirror import pin_of, tiny_wheel
from tests.rules.hosts import facts_on

VERSION = "2.0.0.post3+doctor.v3"
INFO = {"march": "x86-64-v3", "cpu_flags": ["avx2"], "mkl": "wheel", "numpy": "1.16.6"}


def built(folder: Path, version: str = VERSION, abi: str = "cp37m", numpy: str = ">=1.16.6", **info: object) -> Path:
    name, python = f"ideep4py-{version}", f"cp{abi[2:].rstrip('mu')}"
    metadata = f"Metadata-Version: 2.1\nName: ideep4py\nVersion: {version}\nRequires-Dist: numpy{numpy}\n"
    parts = {"ideepdoctor-build.json": json.dumps({**INFO, **info}), "METADATA": metadata}
    path = tiny_wheel(folder, "ideep4py", version, f"{python}-{abi}-linux_x86_64", **parts)
    assert path.name.startswith(name)
    return path


def plan_for(folder: Path, version: str = VERSION, host: str = "py37-healthy", *overlays):
    return built_plan(facts_on(host, *overlays), version, PackageSource((str(folder),)))


def test_a_build_can_be_asked_for():
    assert wanted_version(f"ideep4py=={VERSION}") == VERSION
    for version in ("2.0.0.post3+mine", "9.9"):
        with pytest.raises(UsageError):
            wanted_version(f"ideep4py=={version}")


def test_it_is_installed_by_the_hash_of_its_file(tmp_path):
    path = built(tmp_path)
    step = plan_for(tmp_path).steps[0]
    assert isinstance(step, Install)
    assert step.requirements == (pin_of(path),)
    assert (step.tool, bool(step.snapshot)) == ("uv", True)


def test_there_already(tmp_path):
    built(tmp_path)
    assert plan_for(tmp_path, VERSION, "py37-healthy", {"packages": {"ideep4py": VERSION}}).steps == ()


def test_without_a_folder_no_index_has_it():
    with pytest.raises(UsageError) as caught:
        built_plan(facts_on("py37-healthy"), VERSION, PackageSource())
    assert "--wheelhouse" in caught.value.hint


@pytest.mark.parametrize("damage", ["other abi", "other version", "none", "bad zip", "no build.json", "altered"])
def test_what_the_folder_does_not_hold(tmp_path, damage):
    if damage == "other abi":
        built(tmp_path, abi="cp36m")
    elif damage == "other version":
        built(tmp_path, "2.0.0.post3+doctor.v4")
    elif damage == "bad zip":
        built(tmp_path).write_bytes(b"x")
    elif damage == "no build.json":
        tiny_wheel(tmp_path, "ideep4py", VERSION, "cp37-cp37m-linux_x86_64")
    elif damage == "altered":
        path = built(tmp_path)
        data = {"schema": "ideepdoctor-wheelhouse", "schema_version": "1", "made": "", "version": "", "sets": []}
        data["files"] = {path.name: {"sha256": "0" * 64, "size": 1}}
        (tmp_path / "manifest.json").write_text(json.dumps(data))
    with pytest.raises(CouldNotCheck) as caught:
        plan_for(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("info", "overlay", "told"),
    [
        ({"cpu_flags": ["avx2", "no_such_flag"]}, {}, "no_such_flag"),
        ({}, {"packages": {"chainer": "4.5.0"}}, "wrong gradients"),
        ({}, {"packages": {"numpy": "1.16.0"}}, "asks for numpy>=9"),
    ],
)
def test_where_it_cannot_be_right(tmp_path, info, overlay, told):
    built(tmp_path, numpy=">=9" if "numpy" in told else ">=1.16.0", **info)
    with pytest.raises(NotPossibleHere) as caught:
        plan_for(tmp_path, VERSION, "py37-healthy", overlay)
    assert told in caught.value.message


def test_a_build_of_1_0_3_dies_on_other_processors_too(tmp_path):
    built(tmp_path, "1.0.3+doctor.v3")
    overlay = {"packages": {"chainer": "4.5.0"}, "cpu": {"vendor": "AuthenticAMD"}}
    with pytest.raises(NotPossibleHere, match="dies at import on a CPU of AuthenticAMD"):
        plan_for(tmp_path, "1.0.3+doctor.v3", "py37-healthy", overlay)


def test_numpy_comes_along_where_the_one_that_is_there_is_too_old(tmp_path):
    built(tmp_path, numpy=">=1.20")
    step = plan_for(tmp_path, VERSION, "py37-healthy", {"packages": {"numpy": "1.16.0"}}).steps[0]
    assert isinstance(step, Install)
    assert [item.name for item in step.requirements] == ["ideep4py", "numpy"]
