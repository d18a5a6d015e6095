"""The peer source: which wheel is taken, what is said where there is none, and what its environment is made of."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import NotPossibleHere, UsageError
from ideepdoctor.model.bench import Engine
from ideepdoctor.model.facts import Interpreter
from ideepdoctor.model.plan import Install
from ideepdoctor.proof.bench_bars import short
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.bench_run import label_of
from ideepdoctor.proof.peers import KINDS, find_peer, recipe_for
from ideepdoctor.proof.source_peer import CHECK, built_wheels, source_recipe, wheel_folders
from ideepdoctor.system import RealSystem
from ideepdoctor.targets import choose
from ideepdoctor.targets.target import Target
from tests.doubles import FakeSystem


def wheel(
    folder: Path,
    version: str = "2.0.0.post3+doctor.v3",
    abi: str = "cp37m",
    *,
    time: int = 1000,
    info: bytes | None = None,
    **fields: Any,
) -> Path:
    """A file that says of itself what the wheel of a build does."""
    python = abi.rstrip("mu")
    path = folder / f"ideep4py-{version}-{python}-{abi}-linux_x86_64.whl"
    folder.mkdir(parents=True, exist_ok=True)
    text = (
        json.dumps({"march": "x86-64-v3", "mkl": "wheel", "cpu_flags": [], **fields}).encode() if info is None else info
    )
    with zipfile.ZipFile(path, "w") as whole:
        whole.writestr(f"ideep4py-{version}.dist-info/ideepdoctor-build.json", text)
    os.utime(path, (time, time))
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def interpreters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Versions of which there is an interpreter."""
    there = ["3.7", "3.6", "3.11"]

    def base(_system: Any, _environ: Any, asked: str, abis: list[str]) -> Interpreter:
        if asked not in there:
            raise NotPossibleHere(f"no interpreter {asked}\nsecond line")
        path = f"/usr/bin/python{asked}"
        return Interpreter(path, path, f"{asked}.1", "CPython", abis[0], 64, None, "PATH")

    monkeypatch.setattr(choose, "base_for_new_environment", base)
    return there


# ------------------------------------------------------------------------------------------------------- the wheels


def test_where_wheels_may_be(tmp_path: Path, environ: dict[str, str]) -> None:
    pieces = tmp_path / "cache" / "build" / "wheel"
    for name in ("aaa", "bbb"):
        (pieces / name).mkdir(parents=True)
    (pieces / "aaa.json").write_text("{}")  # bbb is being made
    named = {**environ, "IDEEPDOCTOR_WHEELHOUSE": "/some/where"}
    assert wheel_folders(named, "/here") == ("/some/where", "/here/wheelhouse", str(pieces / "aaa"))
    assert wheel_folders(environ, "/here")[0] == "/here/wheelhouse"


def test_only_whole_wheels_of_builds_count(tmp_path: Path) -> None:
    good = wheel(tmp_path)
    with zipfile.ZipFile(tmp_path / "ideep4py-2.0.0.post3-cp36-cp36m-manylinux1_x86_64.whl", "w") as whole:
        whole.writestr("ideep4py/__init__.py", b"")  # the index's
    wheel(tmp_path, "1.0+doctor.v3", info=b"{")
    wheel(tmp_path, "1.1+doctor.v3", info=b"[]")
    (tmp_path / "ideep4py-1.2+doctor.v3-cp37-cp37m-linux_x86_64.whl").write_bytes(b"PK")
    (tmp_path / "ideep4py-nothing.whl").write_bytes(b"")
    assert [item.path for item in built_wheels([str(tmp_path), "/does/not/exist"])] == [str(good)]


def test_the_newest_of_those_that_say_the_same(tmp_path: Path) -> None:
    old = wheel(tmp_path / "a", time=1000)
    new = wheel(tmp_path / "b", time=2000)
    other = wheel(tmp_path / "c", mkl="none", time=1500)
    assert [item.path for item in built_wheels([str(tmp_path / name) for name in "abc"])] == [str(new), str(other)]
    assert old.is_file()


# -------------------------------------------------------------------------------------------------- the environment


def test_what_it_is_made_of(tmp_path: Path, environ: dict[str, str], interpreters: list[str]) -> None:
    path = wheel(tmp_path / "wheelhouse")
    found = recipe_for(FakeSystem(), environ, "source", "3.7", str(tmp_path))
    assert found.label == "Chainer 7.8.1 + iDeep 2.0.0.post3 (built here, v3)"
    assert (found.base, found.lock.python, found.lock.built) == ("/usr/bin/python3.7", "3.7", ())
    item = found.lock.requirement("ideep4py")
    assert item is not None and item.version == "2.0.0.post3+doctor.v3"
    assert item.sha256 == (hashlib.sha256(path.read_bytes()).hexdigest(),)
    [_, install] = found.plan("/cache").steps
    assert isinstance(install, Install) and install.source.find_links == (str(tmp_path / "wheelhouse"),)
    assert not install.source.no_index


def test_another_wheel_is_another_environment(tmp_path: Path, environ: dict[str, str], interpreters: list[str]) -> None:
    folders = set()
    for mkl in ("wheel", "none"):
        wheel(tmp_path / "wheelhouse", mkl=mkl)
        folders.add(source_recipe(FakeSystem(), environ, str(tmp_path), "3.7").folder("/cache"))
    assert len(folders) == 2


@pytest.mark.parametrize(("minor", "base"), [("3.6", "3.6"), ("3.7", "3.7"), ("2.7", "3.7"), (None, "3.7")])
def test_the_targets_python_comes_first_then_the_newest(
    tmp_path: Path, environ: dict[str, str], interpreters: list[str], minor: str | None, base: str
) -> None:
    wheel(tmp_path / "wheelhouse", abi="cp36m", time=1000)
    wheel(tmp_path / "wheelhouse", abi="cp37m", time=2000)
    assert source_recipe(FakeSystem(), environ, str(tmp_path), minor).base == f"/usr/bin/python{base}"


def test_a_wheel_whose_python_is_gone_is_passed_over(
    tmp_path: Path, environ: dict[str, str], interpreters: list[str]
) -> None:
    wheel(tmp_path / "wheelhouse", abi="cp36m", time=1000)
    wheel(tmp_path / "wheelhouse", abi="cp37m", time=2000)
    interpreters.remove("3.7")
    assert source_recipe(FakeSystem(), environ, str(tmp_path), None).base == "/usr/bin/python3.6"
    interpreters.remove("3.6")
    with pytest.raises(UsageError, match=r"no environment can be made for ideep4py-.*: no interpreter 3\.7$"):
        source_recipe(FakeSystem(), environ, str(tmp_path), None)


def test_a_release_that_no_chainer_is_locked_for(
    tmp_path: Path, environ: dict[str, str], interpreters: list[str]
) -> None:
    wheel(tmp_path / "wheelhouse", "2.0.0+doctor.v3")
    with pytest.raises(UsageError, match=r"Chainer is not locked for Python 3\.7 with ideep4py 2\.0\.0"):
        source_recipe(FakeSystem(), environ, str(tmp_path), "3.7")


def test_an_older_release_gets_its_own_chainer(
    tmp_path: Path, environ: dict[str, str], interpreters: list[str]
) -> None:
    wheel(tmp_path / "wheelhouse", "1.0.4+doctor.v4.znver4", abi="cp36m", mkl="none")
    found = source_recipe(FakeSystem(), environ, str(tmp_path), "3.6")
    assert found.label == "Chainer 4.5.0 + iDeep 1.0.4 (built here, v4.znver4, without MKL)"


def test_nothing_was_built(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="that was built here, and there is none") as caught:
        source_recipe(FakeSystem(), environ, str(tmp_path), "3.7")
    assert "ideepdoctor build" in caught.value.hint and "--peer source=PYTHON" in caught.value.hint
    assert str(tmp_path / "wheelhouse") in caught.value.context["looked in"]


# ------------------------------------------------------------------------------------------------------- its name


def fake_environment(folder: Path, dist: str, told: dict[str, str] | None) -> None:
    """Modules that are all that the check looks at."""
    (folder / "chainer" / "backends").mkdir(parents=True)
    (folder / "chainer" / "__init__.py").write_text("__version__ = '7.8.1'\n")
    (folder / "chainer" / "backends" / "__init__.py").write_text("")
    (folder / "chainer" / "backends" / "intel64.py").write_text("def check_ideep_available(): pass\n")
    (folder / "ideep4py").mkdir()
    (folder / "ideep4py" / "__init__.py").write_text("__version__ = '2.0.0.post3'\n")
    (folder / dist).mkdir()
    if told is not None:
        (folder / dist / "ideepdoctor-build.json").write_text(json.dumps(told))


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", CHECK]
    return subprocess.run(argv, cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("dist", "told", "label"),
    [
        ("ideep4py-2.0.0.post3+doctor.v3.dist-info", {"march": "x86-64-v3", "mkl": "wheel"}, "v3"),
        ("ideep4py-2.0.0.post3+doctor.v4.znver4.dist-info", {"march": "v4.znver4", "mkl": "folder"}, "v4.znver4"),
        ("ideep4py-2.0.0.post3.dist-info", {"march": "x86-64-v3", "mkl": "wheel"}, "v3"),
        ("ideep4py-2.0.0.post3+doctor.v3.dist-info", {"march": "x86-64-v3", "mkl": "none"}, "v3, without MKL"),
    ],
)
def test_the_check_prints_the_label(tmp_path: Path, dist: str, told: dict[str, str], label: str) -> None:
    fake_environment(tmp_path, dist, told)
    done = checked(tmp_path)
    assert done.stdout.strip() == f"Chainer 7.8.1 + iDeep 2.0.0.post3 (built here, {label})", done.stderr


def test_an_ideep4py_of_the_index_is_not_the_peer(tmp_path: Path) -> None:
    fake_environment(tmp_path, "ideep4py-2.0.0.post3.dist-info", None)
    done = checked(tmp_path)
    assert done.returncode == 1 and "its ideep4py was not built by ideepdoctor" in done.stderr


def test_the_check_fits_between_double_quotes() -> None:
    assert '"' not in CHECK and "\n" not in CHECK and KINDS["source"].check == CHECK


def test_an_interpreter_without_it_is_refused() -> None:
    with pytest.raises(UsageError, match="does not run what --peer source needs"):
        find_peer(RealSystem(), os.environ, "source", sys.executable)


def test_the_label_is_kept_when_versions_are_known() -> None:
    spec = EngineSpec("source", "Chainer 7.8.1 + iDeep 2.0.0.post3 (built here, v3)", "ideep", Target("python"))
    versions = {"chainer": "7.8.1", "ideep4py": "2.0.0.post3", "numpy": "1.23.5"}
    assert label_of(spec, versions) == spec.label
    assert short(Engine("source", spec.label, "ideep")) == "iDeep built here"
