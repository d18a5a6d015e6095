"""The pinned toolchain: what is in it, what identifies it, and what it says where it cannot be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ideepdoctor.builder import toolchain
from ideepdoctor.builder.cache import Store
from ideepdoctor.builder.environment import Real, variables
from ideepdoctor.builder.pins import MINORS, program_pins, python_pins, version_of
from ideepdoctor.builder.toolchain import Compilers, Place, find_compilers, identity, make_tools
from ideepdoctor.errors import CouldNotCheck, NotPossibleHere
from ideepdoctor.model.build import BuildRequest, Layout, SourceTree
from ideepdoctor.model.plan import Install
from ideepdoctor.system import RealSystem
from tests.doubles import FakeSystem, completed

PATH = os.environ.get("PATH", os.defpath)
TREE = SourceTree("/tree", "c" * 40, "/tree/mkl-dnn", "d" * 40, Layout.CMAKE, "2.0.0.post3", "2.0.0.post3")


@pytest.mark.parametrize("abi", sorted(MINORS))
def test_every_interpreter_has_its_pins(abi: str) -> None:
    pins = python_pins(abi)
    assert [item.name for item in pins] == ["numpy", "setuptools", "wheel"]
    for item in (*pins, *program_pins()):
        assert len(item.sha256) == 1 and len(item.sha256[0]) == 64
        assert set(item.sha256[0]) <= set("0123456789abcdef")
    # 74 and later have no `install --root --single-version-externally-managed` that upstream's way needs.
    assert int(version_of(pins, "setuptools").split(".")[0]) < 74


def test_the_programs_are_the_ones_that_upstream_builds_with() -> None:
    assert [item.line().split()[0] for item in program_pins()] == ["cmake==3.18.4.post1", "swig==3.0.12"]


@pytest.mark.parametrize("abi", ["cp314", "cp313t", "cp34m", "pypy310_pp73", ""])
def test_an_interpreter_without_pins_is_refused(abi: str) -> None:
    with pytest.raises(NotPossibleHere, match="cannot be built") as raised:
        python_pins(abi)
    assert "2.7, 3.5, 3.6" in raised.value.hint and "3.13" in raised.value.hint


def test_the_compilers_of_this_machine() -> None:
    found = find_compilers(RealSystem(), PATH)
    assert all(Path(path).is_absolute() for path in (found.real.cc, found.real.cxx, found.real.make))
    assert found.version


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    for name in ("cc", "make"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(CouldNotCheck, match=r"no c\+\+ on PATH"):
        find_compilers(FakeSystem(), str(tmp_path))


def test_a_compiler_that_does_not_answer(tmp_path: Path) -> None:
    for name in ("gcc", "g++", "gmake"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    system = FakeSystem().on(str(tmp_path / "g++"), completed(returncode=1, stderr="libmpfr.so.6: not found"))
    with pytest.raises(CouldNotCheck, match=r"libmpfr.so.6"):
        find_compilers(system, str(tmp_path))


def _identity(**changes: object) -> str:
    given = {"march": "native", "jobs": 2, "compiler_flags": "-w", "bin_folder": "/b", **changes}
    compiler = str(given.pop("compiler", "g++ 12"))
    abi = str(given.pop("abi", "cp311"))
    values = variables(site_folder="/s", swig_library="/w", home="/h", temporary="/t", path="/usr/bin", **given)  # type: ignore[arg-type]
    return identity(abi, python_pins(abi), Compilers(Real("/cc", "/c++", "/make"), compiler), values)


def test_the_identity_is_what_decides_the_code_and_nothing_else() -> None:
    same = _identity()
    assert _identity(jobs=64) == same and _identity(bin_folder="/elsewhere") == same
    others = [
        _identity(march="haswell"),
        _identity(compiler_flags="-w -faligned-new"),
        _identity(compiler="g++ 13"),
        _identity(abi="cp38"),
    ]
    assert len({same, *others}) == 5


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Install]:
    """Installers that write what the pinned packages bring, and remember."""
    steps: list[Install] = []

    def create(_system: object, path: str, *_: object) -> None:
        (Path(path) / "bin").mkdir(parents=True)
        (Path(path) / "bin" / "python").write_text("")

    def install(_system: object, step: Install, *_: object) -> None:
        steps.append(step)
        if any(item.name == "cmake" for item in step.requirements):
            site = Path(step.python).parents[1] / "lib" / "python3.11" / "site-packages"
            for name in ("cmake/data/bin/cmake", "swig/data/bin/swig"):
                (site / name).parent.mkdir(parents=True)
                (site / name).write_text("#!/bin/sh\necho $0\n")
                (site / name).chmod(0o755)
            (site / "swig/data/share/swig/3.0.12").mkdir(parents=True)

    monkeypatch.setattr(toolchain, "create_environment", create)
    monkeypatch.setattr(toolchain, "install", install)
    return steps


def _make(tmp_path: Path, python: Path, abi: str, *, fresh: bool = False) -> toolchain.Tools:
    system = RealSystem()
    request = BuildRequest(str(python), "/out", march="x86-64-v3", jobs=3, fresh=fresh)
    store = Store(system, str(tmp_path / "cache" / "build"), lambda _text: None)
    place = Place(str(tmp_path / "work"), str(tmp_path / "cache"), PATH)
    return make_tools(system, request, abi, TREE, store, place, lambda _text: None)


def test_the_toolchain_is_made_once_and_its_own_programs_come_first(tmp_path: Path, installed: list[Install]) -> None:
    python = tmp_path / "python3.11"
    python.write_text("an interpreter")
    tools = _make(tmp_path, python, "cp311")
    assert [step.tool for step in installed] == ["uv", "uv"]
    assert tools.numpy == version_of(python_pins("cp311"), "numpy")
    assert tools.environ["PATH"].split(":")[0] == tools.bin_folder
    assert "-D_PyObject_GC_UNTRACK" in tools.environ["CFLAGS"]
    assert {"cc", "c++", "gcc", "g++", "make", "cmake", "cmake3", "swig", "curl", "git"} <= {
        path.name for path in Path(tools.bin_folder).iterdir() if os.access(path, os.X_OK)
    }
    said = RealSystem().run([f"{tools.bin_folder}/cmake"], timeout_seconds=10).text()
    assert said.strip().endswith("cmake/data/bin/cmake")
    # Again: nothing is installed, and no file is written that make would take for a change.
    times = {path: path.stat().st_mtime_ns for path in Path(tools.bin_folder).iterdir()}
    assert _make(tmp_path, python, "cp311") == tools
    assert len(installed) == 2
    assert times == {path: path.stat().st_mtime_ns for path in Path(tools.bin_folder).iterdir()}
    # Another interpreter of the same ABI has its own; --fresh makes all anew.
    python.write_text("another interpreter")
    _make(tmp_path, python, "cp311")
    assert len(installed) == 3
    _make(tmp_path, python, "cp311", fresh=True)
    assert len(installed) == 5


@pytest.mark.parametrize(("abi", "tool"), [("cp27mu", "pip"), ("cp35m", "pip"), ("cp36m", "uv")])
def test_old_pythons_have_the_old_installer(tmp_path: Path, installed: list[Install], abi: str, tool: str) -> None:
    python = tmp_path / "python"
    python.write_text("")
    assert "UNTRACK" not in _make(tmp_path, python, abi).environ["CFLAGS"]
    assert installed[1].tool == tool
