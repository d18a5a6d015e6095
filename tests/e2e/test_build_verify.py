"""The wheel of a build: ideep4py 2.0.0.post3 as setup.py would have left it, packed, proved, and broken by name."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from ideepdoctor.builder.inspect import check
from ideepdoctor.builder.verify import VerifyFailed, verify
from ideepdoctor.builder.wheel import with_proof
from ideepdoctor.commands.session import Session
from ideepdoctor.errors import BuildFailed
from ideepdoctor.model.build import BuiltWheel
from ideepdoctor.stacks.catalog import lock_for_build
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.elfpaths import symbols_of
from ideepdoctor.treatment.installers import patchelf_program
from ideepdoctor.treatment.progress import Quiet
from tests.builder.elves import functions, library, needs_compiler
from tests.builder.packed import packed
from tests.conftest import legacy_python
from tests.e2e.environments import Answer, site_packages

pytestmark = [pytest.mark.e2e, needs_compiler]

EXTENSION = "_ideep4py.cpython-37m-x86_64-linux-gnu.so"
Made = Callable[..., tuple[Path, Answer]]


@pytest.fixture(scope="module")
def whole(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A staging folder with the package of the index, as it is."""
    env, answer = made("3.7")
    assert answer.code == 0, answer.stderr + answer.stdout
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(site_packages(env) / "ideep4py", folder / "ideep4py")
    return folder


@pytest.fixture(scope="module")
def small(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a library of a few functions in place of MKL's 150 MB, so that packing takes no time."""
    folder = tmp_path_factory.mktemp("small")
    without = shutil.ignore_patterns("libmklml_intel.so", "__pycache__")
    shutil.copytree(whole / "ideep4py", folder / "ideep4py", ignore=without)
    package = folder / "ideep4py"
    wanted: set[str] = set()
    for path in (package / EXTENSION, package / "lib" / "libmkldnn.so.0"):
        wanted |= {name for name in symbols_of(path.read_bytes()).unversioned if name.startswith(("v", "cblas_"))}
    lib = package / "lib"
    flags = ("-L" + str(lib), "-Wl,--no-as-needed", "-l:libiomp5.so")
    library(lib / "libmklml_intel.so", functions(sorted(wanted)), *flags)
    return folder


@pytest.fixture
def own(small: Path, tmp_path: Path) -> Path:
    """The small package in a staging folder of the test's own."""
    shutil.copytree(small, tmp_path / "staging")
    return tmp_path / "staging" / "ideep4py"


def patchelf(*words: str) -> None:
    subprocess.run([patchelf_program(), *words], check=True)


def test_the_release_of_the_index_has_no_fault_when_packed(small: Path, tmp_path: Path):
    wheel = packed(small, tmp_path)
    assert check(wheel.path) == check(wheel.path, chainer="7.8.1") == ()
    with zipfile.ZipFile(wheel.path) as packed_files:
        kept = sorted(name for name in packed_files.namelist() if "/lib/" in name)
    names = ("libiomp5.so", "libmkldnn.so.0", "libmklml_intel.so")
    assert kept == [f"ideep4py/lib/{name}" for name in names]


def test_broken_wheels_are_named(own: Path, tmp_path: Path):
    """Each of the ways in which a build goes wrong and installs all the same."""
    engine, extension = own / "lib" / "libmkldnn.so.0", own / EXTENSION
    kept = engine.read_bytes(), extension.read_bytes()
    for alias in ("libmkldnn.so", "libmkldnn.so.0.14.0"):
        (own / "lib" / alias).unlink()
    library(engine, functions(["nothing"]), "-Wl,-soname,libmkldnn.so.0")
    assert "computes nothing: libmkldnn.so.0 exports none of MKL-DNN's functions" in found(own, tmp_path)
    engine.write_bytes(kept[0])

    (own / "lib" / "libiomp5.so").rename(tmp_path / "libiomp5.so")
    assert "libmkldnn.so.0 needs libiomp5.so, which is neither in lib/" in found(own, tmp_path)
    (tmp_path / "libiomp5.so").rename(own / "lib" / "libiomp5.so")

    patchelf("--set-rpath", "$ORIGIN/lib", str(extension))  # without --force-rpath: RUNPATH
    with pytest.raises(BuildFailed, match=r"has a RUNPATH \(\$ORIGIN/lib\)"):
        packed(own.parent, tmp_path)
    extension.write_bytes(kept[1])

    patchelf("--force-rpath", "--set-rpath", "$ORIGIN", str(engine))  # harmless: beside it is where they are
    assert found(own, tmp_path) == ""
    patchelf("--set-rpath", "/opt/mkl/lib", str(engine))
    assert "libmkldnn.so.0 has a RUNPATH (/opt/mkl/lib)" in found(own, tmp_path)
    engine.write_bytes(kept[0])

    extension.rename(own / EXTENSION.replace("37m", "36m"))
    assert f"is not for cp37m: it must be called {EXTENSION}" in found(own, tmp_path)


def found(package: Path, folder: Path) -> str:
    return "; ".join(check(packed(package.parent, folder).path))


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A run whose cache is the test's own; nothing is left in it."""
    monkeypatch.setenv("IDEEPDOCTOR_CACHE_DIR", str(tmp_path / "cache"))
    yield Session(RealSystem(), dict(os.environ), str(tmp_path), Quiet(), lambda _report: True)
    build = tmp_path / "cache" / "build"
    assert not build.exists() or list(build.iterdir()) == []


def proved(session: Session, wheel: BuiltWheel, told: list[str]) -> tuple[str, ...]:
    _, lock = lock_for_build("cp37m", "7.8.1")
    return verify(session, wheel, lock, legacy_python("3.7"), told.append)


@pytest.mark.slow
def test_a_right_wheel_is_proved(whole: Path, tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch):
    for name, value in (("CHAINER_USE_IDEEP", "never"), ("IDEEPDOCTOR_GUARD", "off")):  # of the person, not the wheel's
        monkeypatch.setenv(name, value)
    told: list[str] = []
    wheel = packed(whole, tmp_path)
    checked, smoke, guard, certified = proved(session, wheel, told)
    assert checked == "check: nothing is wrong with the file"
    assert smoke.startswith("smoke: used (jit:") and "38 of 38 checks right" in smoke
    assert guard.startswith("guard: on, ")
    right, tries = certified.removeprefix("certify: ").split(" tries")[0].split(" of ")
    assert right == tries and int(tries) >= 88 and "23 families" in certified
    assert any("ideep4py 2.0.0.post3+doctor.v3" in line for line in told)
    done = with_proof(RealSystem(), wheel, (checked, smoke))
    with zipfile.ZipFile(done.path) as files:
        info = "ideep4py-2.0.0.post3+doctor.v3.dist-info/ideepdoctor-build.json"
        assert json.loads(files.read(info))["verified"] is True
    assert check(done.path) == ()


@pytest.mark.slow
def test_an_engine_that_only_looks_like_one_is_refused(own: Path, tmp_path: Path, session: Session):
    """Every function of MKL-DNN is there and none does anything: only running it shows that."""
    engine = own / "lib" / "libmkldnn.so.0"
    names = sorted(name for name in symbols_of(engine.read_bytes()).defined if name.startswith("mkldnn_"))
    for alias in ("libmkldnn.so", "libmkldnn.so.0.14.0"):
        (own / "lib" / alias).unlink()
    library(engine, functions(names), "-Wl,-soname,libmkldnn.so.0")
    wheel = packed(own.parent, tmp_path)
    assert check(wheel.path) == ()
    with pytest.raises(VerifyFailed, match=r"^smoke: computes nothing: (none of \d+ checks is right|NumPy did)"):
        proved(session, wheel, [])


@pytest.mark.slow
def test_a_module_that_breaks_the_import_is_refused(small: Path, tmp_path: Path, session: Session):
    wheel = packed(small, tmp_path)
    with zipfile.ZipFile(wheel.path) as files:
        contents = {name: files.read(name) for name in files.namelist() if not name.endswith("/RECORD")}
    from ideepdoctor.builder.wheel_metadata import archive

    contents["ideep4py/__init__.py"] += b"\nimport a_module_that_is_not_there\n"
    data = archive({name: (lambda data=data: data) for name, data in contents.items()}, wheel.version)
    Path(wheel.path).write_bytes(data)
    with pytest.raises(VerifyFailed, match=r"^smoke: .*a_module_that_is_not_there"):
        proved(session, replace(wheel, sha256=sha256(data).hexdigest()), [])


_PROGRAM = """
import os, sys
from ideepdoctor.builder.verify import verify
from ideepdoctor.commands.session import Session
from ideepdoctor.model.build import BuiltWheel
from ideepdoctor.stacks.catalog import lock_for_build
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.progress import Quiet
session = Session(RealSystem(), os.environ, os.getcwd(), Quiet(), lambda _report: True)
wheel = BuiltWheel(*sys.argv[2:6], "", (), "1.16.6", "wheel", "", "")
try:
    verify(session, wheel, lock_for_build("cp37m", "7.8.1")[1], sys.argv[1], lambda line: print(line, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["install by hash", "smoke test"])
def test_ctrl_c_leaves_nothing_behind(small: Path, tmp_path: Path, session: Session, moment: str):
    wheel = packed(small, tmp_path)
    words = [legacy_python("3.7"), wheel.path, wheel.name, wheel.version, wheel.sha256]
    program = [sys.executable, "-c", textwrap.dedent(_PROGRAM), *words]
    running = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=dict(session.environ))
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith(moment):
            time.sleep(0.3)
            running.send_signal(signal.SIGINT)
            break
    running.stdout.read()
    assert running.wait(60) == 130
    assert list((tmp_path / "cache" / "build").iterdir()) == []
