"""The surroundings of a build: nothing of the person's reaches it, and what stands before the real programs works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ideepdoctor.builder import environment
from ideepdoctor.model.build import Layout

ECHO = '#!/bin/sh\nfor word; do printf "[%s]" "$word"; done\n'


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """The wrappers, before programs that print what they were given; the folder's name is a shell's nightmare."""
    real = tmp_path / 'it\'s $HOME; a "folder"'
    paths = {name: str(program(real, name, ECHO)) for name in ("cc", "cxx", "make", "git")}
    texts = environment.wrappers(environment.Real(paths["cc"], paths["cxx"], paths["make"], paths["git"]))
    for name, text in texts.items():
        program(tmp_path / "bin", name, text)
    return tmp_path / "bin"


def words(tool: Path, *arguments: str, **environ: str) -> str:
    done = subprocess.run(
        [str(tool), *arguments], env={"PATH": "/usr/bin:/bin", **environ}, capture_output=True, text=True
    )
    return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"


@pytest.mark.parametrize("name", environment.COMPILERS)
def test_a_compiler_gets_the_asked_march_and_no_warnings(tools: Path, name: str) -> None:
    given = ("-O2", "-march=native", '-DTEXT="a b"', "-mtune=native", "-Werror", "it's.cc", "")
    said = words(tools / name, *given, IDEEPDOCTOR_BUILD_MARCH="x86-64-v3")
    assert said == '[-O2][-march=x86-64-v3][-DTEXT="a b"][-Werror][it\'s.cc][][-w]'


def test_native_stays_native_and_another_march_stays_too(tools: Path) -> None:
    assert words(tools / "c++", "-march=native", "-mtune=native") == "[-march=native][-mtune=native][-w]"
    said = words(tools / "c++", "-march=skylake", "-mtune=generic", IDEEPDOCTOR_BUILD_MARCH="x86-64-v3")
    assert said == "[-march=skylake][-mtune=generic][-w]"


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (("-j",), ""),
        (("-j", "32", "install"), "[install]"),
        (("-j32", "all", "VERBOSE=1"), "[all][VERBOSE=1]"),
        (("--jobs=7", "-C", "a b"), "[-C][a b]"),
        (("--jobs", "7", "x"), "[x]"),
        (("-j", "install"), "[install]"),
        (("-k", "install"), "[-k][install]"),
    ],
)
def test_make_starts_as_many_jobs_as_are_allowed(tools: Path, given: tuple[str, ...], passed: str) -> None:
    assert words(tools / "make", *given, IDEEPDOCTOR_BUILD_JOBS="3") == f"[-j3]{passed}"
    # Called by a make, it leaves the number to that one.
    assert words(tools / "make", *given, IDEEPDOCTOR_BUILD_JOBS="3", MAKELEVEL="1") == passed


def test_nothing_is_downloaded_by_a_build(tools: Path) -> None:
    for tool, given in (("curl", "-L"), ("wget", "x"), ("git", "clone"), ("git", "fetch"), ("git", "submodule")):
        assert words(tools / tool, given, "somewhere").startswith("6: ")
    assert words(tools / "git", "log", "-1") == "[log][-1]"


def test_the_variables_hold_nothing_of_the_person() -> None:
    made = environment.variables(
        bin_folder="/b",
        site_folder="/s",
        swig_library="/w",
        home="/h",
        temporary="/t",
        path="/usr/bin:relative::/b:/bin:.:/usr/bin",
        compiler_flags="-w",
        march="haswell",
        jobs=2,
    )
    assert made["PATH"] == "/b:/usr/bin:/bin"
    assert (made["CC"], made["CXX"], made["HOME"]) == ("/b/cc", "/b/c++", "/h")
    assert made["LDSHARED"] == "/b/cc -pthread -shared"
    assert made["LDFLAGS"] == "-Wl,--disable-new-dtags"
    assert not {"MKLROOT", "LD_LIBRARY_PATH", "LD_PRELOAD", "CPATH", "MAKEFLAGS", "PYTHONHOME"} & set(made)


def test_flags_by_python_and_layout() -> None:
    assert environment.flags((3, 7), Layout.CMAKE) == "-w"
    assert environment.flags((2, 7), Layout.CMAKE) == "-w"
    assert environment.flags((3, 8), Layout.CMAKE) == "-w -D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack"
    assert environment.flags((3, 13), Layout.CMAKE, ("-g",)).endswith(" -g")
    assert environment.flags((3, 6), Layout.PREPARE, ("-faligned-new",)) == "-w -faligned-new"


def test_platform_dist_is_there_on_a_later_python(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(environment.SITECUSTOMIZE)
    asked = "from platform import dist; import platform; print(dist()[0] == '', platform.linux_distribution())"
    done = subprocess.run(
        [sys.executable, "-c", asked], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True ('', '', '')"
    bare = subprocess.run([sys.executable, "-S", "-c", "from platform import dist"], capture_output=True, text=True)
    assert "cannot import name 'dist'" in bare.stderr
