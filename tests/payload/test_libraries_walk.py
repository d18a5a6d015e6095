"""The libraries payload, really run: what it finds, who brought it, what a loader could meet, what a child saw."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target, run_payload
from tests.conftest import legacy_python
from tests.payload.elf import joined_file, make_library, payload_module

libraries = payload_module()
ENGINE = "int mkldnn_memory_set_data_handle(void) { return 0; }"
BIG = "const char rest[1100000] = {1};"
EXECUTABLE = os.path.realpath(sys.executable)


def answer(python: str | Path, environ: Mapping[str, str] | None = None, **request: Any) -> dict[str, Any]:
    """What the payload says of an interpreter, for a user who has set nothing but ``environ``."""
    asked = {"deep": False, "start": False, "timeout_seconds": 60, "cwd": "/", "home": None, "others": [], **request}
    env = {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8", **(environ or {})}
    return run_payload(RealSystem(), Target(str(python)), "libraries", asked, timeout_seconds=120, env=env)


class Environment:
    """A virtual environment with made-up packages."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        module = "venv" if "/2.7" not in python else "virtualenv"
        subprocess.run([python, "-m", module, "--without-pip", str(folder)], check=True)
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.packages = next(folder.glob("lib/python*/site-packages"))

    def distribution(self, name: str, version: str, *paths: str) -> None:
        """Give a distribution a RECORD that lists these paths."""
        info = self.packages / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: text\n")
        (info / "RECORD").write_text("".join(f"{path},sha256=x,1\n" for path in paths))


def found(told: Mapping[str, Any]) -> dict[str, tuple[list[str], str | None]]:
    """Places and owner by path."""
    return {one["path"]: (one["places"], one["owner"]) for one in told["found"]}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file that is named and looks like MKL-DNN."""
    return make_library(tmp_path_factory.mktemp("engine") / "libmkldnn.so.0", ENGINE, soname="libmkldnn.so.0")


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of another name that contains MKL-DNN."""
    return make_library(tmp_path_factory.mktemp("container") / "libtorch.so", ENGINE + BIG, soname="libtorch.so")


def test_a_plain_interpreter() -> None:
    told = answer(sys.executable)
    assert told["libraries"] == 1
    assert told["executable"] == EXECUTABLE
    assert (told["binding"], told["numpy"], told["started"], told["mkl_versions"]) == (None, [], None, {})
    assert told["objects"][EXECUTABLE]["problem"] is None
    assert told["walk"]["complete"] is True
    assert told["variables"] == {"LD_LIBRARY_PATH": None, "LD_PRELOAD": None, "LD_AUDIT": None}


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.12", "3.13"])
def test_every_interpreter_answers(version: str, tmp_path: Path, engine: Path) -> None:
    """In the plainest of locales and with names that it does not know."""
    python = legacy_python(version)
    folder = tmp_path / "\u00e9 \u00fc"
    (folder / "ideep4py").mkdir(parents=True)
    (folder / "ideep4py" / "__init__.py").write_text("")
    shutil.copy(engine, folder)
    more = tmp_path / "\u00e9"
    more.mkdir()
    hidden = more / "libdnnl.so"
    shutil.copy(engine, hidden)
    (folder / ".bashrc").write_text(f"export LD_PRELOAD={hidden}\n")
    (folder / ".zshrc").write_bytes(b"export LD_PRELOAD=/\xff.so\n")
    environ = {"LD_LIBRARY_PATH": str(folder), "LD_PRELOAD": str(hidden), "LC_ALL": "C", "PYTHONPATH": str(folder)}
    told = answer(
        python,
        environ,
        start=True,
        deep=True,
        roots=[str(folder)],
        cwd=str(folder),
        home=str(folder),
        others=[str(more)],
    )
    assert told["libraries"] == 1
    seen = {path: one[0] for path, one in found(told).items() if path.startswith(str(tmp_path))}
    assert seen == {
        str(folder / "libmkldnn.so.0"): ["site-packages", "LD_LIBRARY_PATH"],
        str(hidden): ["LD_PRELOAD", "process", "start-up file"],
    }
    assert {one["value"] for one in told["sources"]} >= {str(hidden), "/\ufffd.so"}
    assert told["objects"][str(folder / "libmkldnn.so.0")]["exports"] == ["mkldnn_memory_set_data_handle"]
    started = told["started"]
    assert started["ended"]["code"] == 0, started["stderr"]
    assert started["told"]["import"]["path"].startswith(str(folder / "ideep4py"))
    assert str(hidden) in started["at_start"]
    assert (started["visible"], started["bound"]) == ({"mkldnn_memory_set_data_handle": str(hidden)}, {})


def test_where_libraries_lie_and_whose_they_are(tmp_path: Path, engine: Path, container: Path) -> None:
    home = Environment(tmp_path / "env")
    for path in ("ideep4py/lib/libmkldnn.so.0", "mxnet/libmkldnn.so.0", "stray/deep/down/libmkldnn.so"):
        (home.packages / path).parent.mkdir(parents=True)
        shutil.copy(engine, home.packages / path)
    (home.packages / "ideep4py" / "__init__.py").write_text("")
    (home.packages / "torch" / "lib").mkdir(parents=True)
    shutil.copy(container, home.packages / "torch" / "lib")
    make_library(home.packages / "torch" / "lib" / "libsmall.so", ENGINE)
    make_library(home.packages / "torch" / "lib" / "libinnocent.so", BIG)
    shutil.copy(engine, home.folder / "lib" / "libmkl_rt.so")
    home.distribution("ideep4py", "2.0.0.post3", "ideep4py/__init__.py", "ideep4py/lib/libmkldnn.so.0")
    home.distribution("mxnet-mkl", "1.5.0", "mxnet/libmkldnn.so.0")
    home.distribution("torch", "1.4.0", '"torch/lib/libtorch.so"')
    home.distribution("mkl", "2019.0", "../../../lib/libmkl_rt.so")
    told = answer(home.python)
    seen = found(told)
    inside = {
        os.path.relpath(path, home.packages): one for path, one in seen.items() if path.startswith(str(home.folder))
    }
    assert inside == {
        "ideep4py/lib/libmkldnn.so.0": (["ideep4py"], "ideep4py 2.0.0.post3"),
        "mxnet/libmkldnn.so.0": (["site-packages"], "mxnet-mkl 1.5.0"),
        "stray/deep/down/libmkldnn.so": (["site-packages"], None),
        "torch/lib/libtorch.so": (["site-packages"], "torch 1.4.0"),
        "../../libmkl_rt.so": (["prefix"], "mkl 2019.0"),
    }
    assert set(seen) <= set(told["objects"])


def test_links_of_folders_are_not_followed(tmp_path: Path, engine: Path) -> None:
    home = Environment(tmp_path / "env")
    real = home.packages / "real"
    real.mkdir()
    shutil.copy(engine, real)
    (real / "again").symlink_to("..")
    (real / "self").symlink_to(real)
    (home.packages / "link").symlink_to(real)
    (real / "libmkldnn.so").symlink_to("libmkldnn.so.0")
    told = answer(home.python)
    mine = {path: told["objects"][path] for path in found(told) if path.startswith(str(home.folder))}
    assert list(mine) == [str(real / "libmkldnn.so"), str(real / "libmkldnn.so.0")]
    assert len({one["identity"] for one in mine.values()}) == 1
    assert {one["real_path"] for one in mine.values()} == {str(real / "libmkldnn.so.0")}


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    home = Environment(tmp_path / "env")
    (home.packages / "a").mkdir()
    (home.packages / "a" / "libmkldnn.so.0").symlink_to("nowhere")
    (home.packages / "a" / "libmklml_intel.so").symlink_to("libmklml_intel.so")
    (home.packages / "a" / "libiomp5.so").write_text("")
    os.mkfifo(home.packages / "a" / "libdnnl.so")
    (home.packages / "a" / "libgomp.so.1").mkdir()
    told = answer(home.python)
    problems = {Path(path).name: one["problem"] for path, one in told["objects"].items() if "/a/" in path}
    assert problems == {
        "libmkldnn.so.0": "broken link",
        "libmklml_intel.so": "link loop",
        "libiomp5.so": "empty",
        "libdnnl.so": "not a regular file",
    }


def test_names_of_interest() -> None:
    wanted = """libmkldnn.so libmkldnn.so.0.14.0 libmkldnn.so.0.bak libdnnl.so.2 libonednn.so libmklml_intel.so
        libmkl_rt.so.1 libmkl_avx512.so libiomp5.so libomp.so libomp-a1b2.so.5 libgomp.so.1 libgomp-a34b3233.so.1.0.0
        libopenblas.so.0 libopenblasp-r0-2d23e62b.3.17.so libscipy_openblas64_-56d6093b.so"""
    others = """mkldnn.so libompd.so libomptarget.so libgomp-plugin-nvptx.so.1 libmkldnn.a libm.so.6 libmkv.so
        libc.so.6 xlibmkldnn.so libmkldnn.py"""
    assert [name for name in wanted.split() if not libraries.INTERESTING.match(name)] == []
    assert [name for name in others.split() if libraries.INTERESTING.match(name)] == []


def test_conda_environments(tmp_path: Path, engine: Path) -> None:
    root = tmp_path / "miniconda"
    names = {root: "mkl", root / "envs" / "one": "openblas", root / "envs" / "two": "gomp"}
    for prefix, name in names.items():
        (prefix / "lib").mkdir(parents=True)
        (prefix / "conda-meta").mkdir()
        file = f"lib/lib{name}_rt.so" if name == "mkl" else f"lib/lib{name}.so.0"
        shutil.copy(engine, prefix / file)
        (prefix / "conda-meta" / f"{name}-2019.0-h1_0.json").write_text(json.dumps({"files": ["x", file]}))
        (prefix / "conda-meta" / "other-1.0-0.json").write_text(json.dumps({"files": ["lib/other.so"]}))
    told = found(answer(sys.executable, {"CONDA_PREFIX": str(root / "envs" / "one")}))
    mine = {path: one for path, one in told.items() if path.startswith(str(root))}
    assert mine == {
        str(root / "lib" / "libmkl_rt.so"): (["conda"], "conda mkl 2019.0"),
        str(root / "envs" / "one" / "lib" / "libopenblas.so.0"): (["conda"], "conda openblas 2019.0"),
        str(root / "envs" / "two" / "lib" / "libgomp.so.0"): (["conda"], "conda gomp 2019.0"),
    }


def test_other_environments(tmp_path: Path, engine: Path) -> None:
    other = Environment(tmp_path / "other")
    (other.packages / "mxnet").mkdir()
    shutil.copy(engine, other.packages / "mxnet")
    shutil.copy(engine, other.folder / "lib" / "libdnnl.so")
    other.distribution("mxnet-mkl", "1.6.0", "mxnet/libmkldnn.so.0")
    told = found(answer(sys.executable, others=[str(other.folder)]))
    assert told[str(other.packages / "mxnet" / "libmkldnn.so.0")] == (["other environment"], "mxnet-mkl 1.6.0")
    assert told[str(other.folder / "lib" / "libdnnl.so")] == (["other environment"], None)
    assert str(other.folder / "lib" / "libdnnl.so") not in found(answer(sys.executable))


def test_dpkg_owns_what_it_lists(tmp_path: Path) -> None:
    (tmp_path / "libgomp1:amd64.list").write_text("/.\n/usr/lib/x/libgomp.so.1\n/usr/lib/x/libgomp.so.1.0.0\n")
    (tmp_path / "mkl.list").write_text("/.\n/lib/x/libmkl_rt.so\n/lib/x/libmkl_rt.so.old\n")
    (tmp_path / "mkl.md5sums").write_text("\n/lib/x/libmkl_core.so\n")
    asked = {
        "/lib/x/libgomp.so.1": ("/lib/x/libgomp.so.1", "/usr/lib/x/libgomp.so.1.0.0"),
        "/usr/lib/x/libmkl_rt.so": ("/usr/lib/x/libmkl_rt.so",) * 2,
        "/usr/lib/x/libmkl_core.so": ("/usr/lib/x/libmkl_core.so",) * 2,
        "/usr/lib/x/libmkl_rt": ("/usr/lib/x/libmkl_rt",) * 2,
    }
    assert libraries.of_dpkg(asked, str(tmp_path)) == {
        "/lib/x/libgomp.so.1": "dpkg libgomp1",
        "/usr/lib/x/libmkl_rt.so": "dpkg mkl",
    }


def test_a_distribution_of_the_old_kind(tmp_path: Path) -> None:
    """What setup.py installs through pip has no RECORD; what easy_install installs has not even that."""
    info = tmp_path / "ideep4py-1.0.3-py2.7.egg-info"
    info.mkdir()
    (info / "PKG-INFO").write_text("Name: ideep4py\nVersion: 1.0.3\n")
    (info / "installed-files.txt").write_text("../ideep4py/lib/libmkldnn.so.0\nPKG-INFO\n")
    owners = libraries.Owners()
    assert owners.read_records(str(tmp_path)) == []
    assert owners.distribution(str(tmp_path / "ideep4py/lib/libmkldnn.so.0")) == "ideep4py 1.0.3"
    assert owners.distribution(str(tmp_path / "ideep4py/lib/libmkldnn.so.1")) is None
    egg = "/x/site-packages/ideep4py-1.0.3-py2.7-linux-x86_64.egg/ideep4py/lib/libmkldnn.so.0"
    assert owners.distribution(egg) == "ideep4py 1.0.3"


# --- what a loader could meet ------------------------------------------------------------------------------------


def test_the_objects_are_all_that_a_search_can_visit(tmp_path: Path) -> None:
    """RPATH of one object leads to a folder in which another finds its own; every candidate is there, used or not."""
    home = Environment(tmp_path / "env")
    package = home.packages / "ideep4py"
    inner = make_library(package / "lib" / "libinner.so.0", soname="libinner.so.0")
    rpath = "-Wl,-rpath,$ORIGIN/../more"
    own = make_library(package / "lib" / "libmkldnn.so.0", ENGINE, rpath, needs=[inner], soname="libmkldnn.so.0")
    shutil.copy(own, package / "lib" / "libmkldnn.so")
    make_library(package / "more" / "libinner.so.0")
    make_library(package / "more" / "libunrelated.so")
    dashed = ("-Wl,-rpath,${ORIGIN}/lib:/nonexistent", "-Wl,--disable-new-dtags")
    binding = make_library(package / ("_ideep4py" + libraries.extension_suffixes()[0]), "", *dashed, needs=[own])
    (package / "__init__.py").write_text("")
    elsewhere = tmp_path / "elsewhere"
    far = make_library(elsewhere / "libfar.so", soname="libfar.so")
    make_library(elsewhere / "libinner.so.0", needs=[far])
    make_library(elsewhere / "glibc-hwcaps" / "x86-64-v2" / "libinner.so.0")
    make_library(elsewhere / "libunrelated.so")
    told = answer(home.python, {"LD_LIBRARY_PATH": f"{elsewhere}:"})
    assert told["binding"] == str(binding)
    mine = {one[len(str(tmp_path)) + 1 :] for one in told["objects"] if one.startswith(str(tmp_path))}
    site = os.path.relpath(package, tmp_path)
    expected = {
        os.path.relpath(binding, tmp_path),
        f"{site}/lib/libmkldnn.so",  # nobody needs this name, but it is of interest
        f"{site}/lib/libmkldnn.so.0",
        f"{site}/lib/libinner.so.0",
        f"{site}/lib/../more/libinner.so.0",
        "elsewhere/libinner.so.0",
        "elsewhere/libfar.so",
    }
    if "glibc-hwcaps/x86-64-v2" in told["hwcaps"]:
        expected.add("elsewhere/glibc-hwcaps/x86-64-v2/libinner.so.0")
    assert mine == expected


def test_what_is_preloaded_is_taken_in(tmp_path: Path, engine: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("libmkldnn.so.0", "libhack.so"):
        shutil.copy(engine, plain / name)
    told = answer(
        sys.executable,
        {"LD_PRELOAD": f"{plain}/libhack.so:libmkldnn.so.0 /nonexistent.so", "LD_LIBRARY_PATH": str(plain)},
    )
    assert told["variables"]["LD_PRELOAD"].startswith(str(plain))
    mine = {path: one for path, one in found(told).items() if path.startswith(str(plain))}
    assert mine == {
        f"{plain}/libhack.so": (["LD_PRELOAD"], None),
        f"{plain}/libmkldnn.so.0": (["LD_LIBRARY_PATH", "LD_PRELOAD"], None),
    }
    assert "/nonexistent.so" not in told["objects"]


def test_the_tokens_of_the_loader_in_a_variable(tmp_path: Path, engine: Path) -> None:
    token = answer(sys.executable)["tokens"]["LIB"]
    (tmp_path / token).mkdir(parents=True)
    shutil.copy(engine, tmp_path / token)
    told = answer(sys.executable, {"LD_LIBRARY_PATH": f"{tmp_path}/$LIB", "LD_PRELOAD": "libmkldnn.so.0"})
    path = str(tmp_path / token / "libmkldnn.so.0")
    assert found(told)[path] == (["LD_LIBRARY_PATH", "LD_PRELOAD"], None)


def test_numpy_and_what_it_needs(tmp_path: Path) -> None:
    home = Environment(tmp_path / "env")
    suffix = libraries.extension_suffixes()[0]
    core, linalg, libs = (home.packages / one for one in ("numpy/core", "numpy/linalg", "numpy.libs"))
    blas = make_library(libs / "libopenblasp-r0-ab.3.7.so", soname="libopenblasp-r0-ab.3.7.so")
    rpath = "-Wl,-rpath,$ORIGIN/../../numpy.libs"
    make_library(core / f"_multiarray_umath{suffix}", "", rpath, needs=[blas])
    make_library(core / f"_multiarray_tests{suffix}", "", rpath, needs=[blas])
    make_library(linalg / f"_umath_linalg{suffix}")
    (home.packages / "numpy" / "__init__.py").write_text("")
    told = answer(home.python)
    assert told["numpy"] == [str(core / f"_multiarray_umath{suffix}")]
    assert f"{core}/../../numpy.libs/libopenblasp-r0-ab.3.7.so" in told["objects"]


def debug_of_loader(tmp_path: Path) -> str:
    """What this machine's loader says of its searches for a library that is nowhere."""
    loader = libraries.read_elf(EXECUTABLE)["interpreter"]
    variables = {"LD_DEBUG": "libs", "LD_PRELOAD": libraries.NOTHING, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([loader, "--list", EXECUTABLE], env=variables, capture_output=True, text=True)
    return done.stderr


def test_the_subfolders_are_those_of_this_loader(tmp_path: Path) -> None:
    """Compared with what the loader tries in another folder, name by name."""
    tried = re.findall(rf"trying file={re.escape(str(tmp_path))}/(.*)/?{libraries.NOTHING}", debug_of_loader(tmp_path))
    order = list(dict.fromkeys(one.rstrip("/") for one in tried))
    assert order[-1] == ""
    told = answer(sys.executable)
    assert told["hwcaps"] == order[:-1]
    assert told["tokens"]["LIB"] in ("lib", "lib64", "lib/x86_64-linux-gnu")


def test_the_default_folders_are_those_of_this_loader() -> None:
    loader = libraries.read_elf(EXECUTABLE)["interpreter"]
    done = subprocess.run([loader, "--help"], capture_output=True, text=True)
    listed = re.findall(r"(?m)^\s+(\S+) \(system search path\)", done.stdout)
    if not listed:
        pytest.skip("this loader does not list its folders")
    assert answer(sys.executable)["default_folders"] == listed


OLD_LOADER = """
  12: find library=libideepdoctor-nothing.so [0]; searching
  12:  search path=/wrong/tls:/wrong\t\t(LD_LIBRARY_PATH)
  12: find library=libc.so.6 [0]; searching
  13: find library=libideepdoctor-nothing.so [0]; searching
  13:  search path=/exe/tls:/exe\t\t(RPATH from file /usr/bin/python)
  13:  search path=/proc/tls/haswell/x86_64:/proc/tls/haswell:/proc/tls:/proc/haswell:/proc:/proc/LIB=lib64/tls:\
/proc/LIB=lib64:/proc/PLATFORM=haswell/tls:/proc/PLATFORM=haswell\t\t(LD_LIBRARY_PATH)
  13:  search cache=/etc/ld.so.cache
  13:  search path=/lib64/tls/haswell/x86_64:/lib64/tls:/lib64:/usr/lib64/tls:/usr/lib64\t\t(system search path)
  13: find library=libc.so.6 [0]; searching
  13:  search path=/proc\t\t(LD_LIBRARY_PATH)
"""


def test_an_older_loader_under_an_emulator() -> None:
    """The last search for the library that is nowhere counts: an emulator may have searched for it before."""
    assert libraries.loader_folders(OLD_LOADER) == (
        ["/lib64", "/usr/lib64"],
        ["tls/haswell/x86_64", "tls/haswell", "tls", "haswell"],
        {"LIB": "lib64", "PLATFORM": "haswell"},
    )


def test_a_loader_that_says_nothing() -> None:
    default, first, tokens = libraries.loader_folders("musl libc (x86_64)\n")
    assert default and all(Path(one).is_dir() for one in default)
    assert (first, tokens) == ([], {})


# --- the loader's cache ------------------------------------------------------------------------------------------


def ldconfig() -> str:
    tool = shutil.which("ldconfig", path="/usr/sbin:/sbin:/usr/bin")
    if tool is None:
        pytest.skip("no ldconfig")
    return tool


def listed_by_ldconfig(*options: str) -> list[list[str]]:
    """Name and path of the x86-64 entries, by ldconfig itself."""
    done = subprocess.run([ldconfig(), "-p", *options], capture_output=True, text=True, check=True)
    return [list(one) for one in re.findall(r"(?m)^\t(\S+) \(libc6,x86-64[^)]*\) => (.*)$", done.stdout)]


def test_the_cache_of_this_machine() -> None:
    expected = listed_by_ldconfig()
    assert len(expected) > 10
    assert libraries.loader_cache(Path("/etc/ld.so.cache").read_bytes()) == expected


@pytest.mark.parametrize("form", ["new", "compat", "old"])
def test_a_cache_with_subfolders(tmp_path: Path, form: str) -> None:
    for folder in ("lib", "lib/glibc-hwcaps/x86-64-v3", "lib/glibc-hwcaps/x86-64-v2"):
        make_library(tmp_path / folder / "libmkldnn.so.0", "int a(void) { return 1; }", "-lc", soname="libmkldnn.so.0")
    try:  # a library that no 64-bit program can use
        make_library(tmp_path / "lib" / "libiomp5.so", "", "-m32", soname="libiomp5.so")
    except AssertionError:
        print("the compiler makes no 32-bit libraries")
    (tmp_path / "conf").write_text(f"{tmp_path}/lib\n")
    cache = tmp_path / "cache"
    argv = [ldconfig(), "-X", "-C", str(cache), "-f", str(tmp_path / "conf"), "-c", form]
    subprocess.run(argv, check=True, capture_output=True)
    told = libraries.loader_cache(cache.read_bytes())
    if form == "old":
        assert told == []  # no loader of x86-64 has read that form alone for twenty years
        return
    assert told == listed_by_ldconfig("-C", str(cache))
    # The cache has them by the alphabet; which of them is taken is the loader's choice.
    inner = ("glibc-hwcaps/x86-64-v2/", "glibc-hwcaps/x86-64-v3/", "")
    mine = [path for _, path in told if path.startswith(str(tmp_path))]
    assert mine == [f"{tmp_path}/lib/{one}libmkldnn.so.0" for one in inner]


def test_a_damaged_cache() -> None:
    data = Path("/etc/ld.so.cache").read_bytes()
    for length in (0, 5, 11, 14, 20, 47, 48, 60, 100, 5000):
        assert len(libraries.loader_cache(data[:length])) <= length // 24
    start = data.find(b"glibc-ld.so.cache1.1")
    wild = bytearray(data)
    wild[start + 20 : start + 24] = b"\xff\xff\xff\xff"  # the number of entries
    libraries.loader_cache(bytes(wild))
    wild[start + 48 + 4 : start + 48 + 12] = b"\xff" * 8  # where the texts of the first one are
    told = libraries.loader_cache(bytes(wild))
    assert told[:5] == libraries.loader_cache(data)[1:6]
    assert libraries.loader_cache(b"glibc-ld.so.cache1.1" + b"\xff" * 200) == []
    old = b"ld.so-1.7.0\0" + struct.pack("<I", 0xFFFFFFFF)
    assert libraries.loader_cache(old) == []


# --- lines that set variables ------------------------------------------------------------------------------------

SHELL_LINES = {
    "export LD_PRELOAD=/a/libx.so": [("LD_PRELOAD", "/a/libx.so")],
    "LD_LIBRARY_PATH=/opt/intel/lib:$LD_LIBRARY_PATH": [("LD_LIBRARY_PATH", "/opt/intel/lib:$LD_LIBRARY_PATH")],
    '  export LD_PRELOAD="/a b/x.so /c.so"  # why': [("LD_PRELOAD", "/a b/x.so /c.so")],
    "export LD_PRELOAD='/a.so'": [("LD_PRELOAD", "/a.so")],
    'export A=1 LD_PRELOAD=/a.so LD_LIBRARY_PATH="/b":/c B=2': [("LD_PRELOAD", "/a.so"), ("LD_LIBRARY_PATH", "/b:/c")],
    "LD_PRELOAD=/a.so; export LD_PRELOAD": [("LD_PRELOAD", "/a.so")],
    "[ -d /a ] && export LD_LIBRARY_PATH=/a || true": [("LD_LIBRARY_PATH", "/a")],
    "if true; then declare -x LD_PRELOAD=/a.so; fi": [("LD_PRELOAD", "/a.so")],
    "# export LD_PRELOAD=/a.so": [],
    "   #export LD_PRELOAD=/a.so": [],
    "export MY_LD_PRELOAD=/a.so": [],
    "export LD_PRELOADED=/a.so": [],
    "LD_PRELOAD=/a.so python script.py": [],
    "alias p='LD_PRELOAD=/a.so python'": [],
    "unset LD_PRELOAD": [],
    "export LD_PRELOAD=": [],
    'export LD_PRELOAD=""': [],
    'echo "$LD_PRELOAD"': [],
}
CSH_LINES = {
    "setenv LD_PRELOAD /a.so": [("LD_PRELOAD", "/a.so")],
    'if (1) setenv LD_LIBRARY_PATH "/a:${LD_LIBRARY_PATH}"': [("LD_LIBRARY_PATH", "/a:${LD_LIBRARY_PATH}")],
    "# setenv LD_PRELOAD /a.so": [],
    "unsetenv LD_PRELOAD": [],
}
FISH_LINES = {
    "set -gx LD_PRELOAD /a.so": [("LD_PRELOAD", "/a.so")],
    "set --global --export LD_LIBRARY_PATH /a $LD_LIBRARY_PATH; true": [("LD_LIBRARY_PATH", "/a $LD_LIBRARY_PATH")],
    "set -e LD_PRELOAD": [],
    "#set -gx LD_PRELOAD /a.so": [],
}


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [(".bashrc", *one) for one in SHELL_LINES.items()]
    + [("/etc/environment", *one) for one in SHELL_LINES.items() if "=" in one[0]][:3]
    + [(".cshrc", *one) for one in CSH_LINES.items()]
    + [("activate.csh", *one) for one in CSH_LINES.items()]
    + [("config.fish", *one) for one in FISH_LINES.items()],
)
def test_lines_that_set_a_variable(tmp_path: Path, name: str, line: str, expected: list[tuple[str, str]]) -> None:
    path = tmp_path / name.lstrip("/")
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"true\n{line}\nfalse\n")
    told = libraries.variable_sources([(str(path), "rc")])
    assert [(one["name"], one["value"]) for one in told] == expected
    for one in told:
        assert (one["path"], one["line_number"], one["line"], one["kind"]) == (str(path), 2, line, "rc")


def test_the_files_that_shells_read(tmp_path: Path) -> None:
    home = Environment(tmp_path / "env")
    user = tmp_path / "home"
    (user / ".config" / "fish").mkdir(parents=True)
    (user / ".bashrc").write_text("export LD_PRELOAD=/rc.so\n")
    (user / ".config" / "fish" / "config.fish").write_text("set -gx LD_PRELOAD /fish.so\n")
    hooks = home.folder / "etc" / "conda" / "activate.d"
    hooks.mkdir(parents=True)
    (hooks / "mkl.sh").write_bytes(b"export LD_PRELOAD=/hook-\xff.so\n")
    with (home.folder / "bin" / "activate").open("a") as stream:
        stream.write("export LD_LIBRARY_PATH=/activate\n")
    os.mkfifo(user / ".zshrc")
    (user / ".profile").mkdir()
    told = answer(home.python, home=str(user))["sources"]
    mine = [(one["kind"], one["value"], Path(one["path"]).name) for one in told if one["kind"] != "system"]
    assert mine == [
        ("activation", "/activate", "activate"),
        ("activation", "/hook-�.so", "mkl.sh"),
        ("rc", "/rc.so", ".bashrc"),
        ("rc", "/fish.so", "config.fish"),
    ]


# --- the whole disk ----------------------------------------------------------------------------------------------


def test_deep(tmp_path: Path, engine: Path, container: Path) -> None:
    for name in ("one", "two/site-packages/mxnet", "unlisted"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(engine, tmp_path / name)
    info = tmp_path / "two" / "site-packages" / "mxnet_mkl-1.5.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: mxnet-mkl\nVersion: 1.5.0\n")
    (info / "RECORD").write_text("mxnet/libmkldnn.so.0,,\n")
    shutil.copy(container, tmp_path / "one" / "any.so.1")
    shutil.copy(container, tmp_path / "one" / "any.txt")
    (tmp_path / "one" / "loop").symlink_to(tmp_path)
    roots = [str(tmp_path / "one"), str(tmp_path / "two")]
    told = answer(sys.executable, deep=True, roots=roots)
    mine = {path: one for path, one in found(told).items() if path.startswith(str(tmp_path))}
    assert mine == {
        str(tmp_path / "one" / "libmkldnn.so.0"): (["disk"], None),
        str(tmp_path / "one" / "any.so.1"): (["disk"], None),
        str(tmp_path / "two" / "site-packages" / "mxnet" / "libmkldnn.so.0"): (["disk"], "mxnet-mkl 1.5.0"),
    }
    assert told["walk"]["complete"] is True
    less = answer(sys.executable)
    assert told["walk"]["entries"] == less["walk"]["entries"] + 10


def test_a_walk_that_takes_too_long_is_cut_short(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number % 10}" / f"{number}").mkdir(parents=True)
    state = libraries.Collection()
    state.walk(str(tmp_path), "disk", 0.0)
    assert (state.complete, state.entries) == (False, 0)
    state.walk(str(tmp_path), "disk", float("inf"), most=100)
    assert state.complete is False
    assert 100 < state.entries < 200


def test_a_folder_is_visited_once(tmp_path: Path) -> None:
    """A folder that lies in another entry of sys.path, or that a second name leads to."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").touch()
    (tmp_path / "link").symlink_to("inner")
    state = libraries.Collection()
    for root in (tmp_path, tmp_path / "inner", tmp_path / "link"):
        state.walk(str(root), "site-packages", float("inf"))
    assert state.entries == 3


def test_a_walk_of_bounded_depth(tmp_path: Path, engine: Path) -> None:
    for name in (".", "a", "a/b", "a/b/c"):
        (tmp_path / name).mkdir(exist_ok=True)
        shutil.copy(engine, tmp_path / name)
    for depth in (0, 1, 2, 3):
        state = libraries.Collection()
        state.walk(f"{tmp_path}/", "/opt/intel", float("inf"), depth=depth)
        assert len(state.places) == depth + 1


def test_a_folder_that_may_not_be_read_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    real = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(libraries, "SCANDIR", scandir)
    state = libraries.Collection()
    state.walk(str(tmp_path), "disk", float("inf"), shut=frozenset())
    assert (state.unreadable, state.complete, state.entries) == (1, True, 1)


def test_folders_are_found_without_scandir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As 2.7 has it: by the count of links of a folder where the file system keeps it, else by asking everything."""
    for name in ("a.d", "b", "c.so"):
        (tmp_path / name).mkdir()
    for name in ("x.so", "y", "z.so.1"):
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to("b")
    expected = libraries.split_folder(str(tmp_path))
    monkeypatch.setattr(libraries, "SCANDIR", None)
    told = libraries.split_folder(str(tmp_path))
    assert (told[0], sorted(told[1]), sorted(told[2])) == (expected[0], sorted(expected[1]), sorted(expected[2]))
    assert sorted(told[1]) == [str(tmp_path / name) for name in ("a.d", "b", "c.so")]


MOUNTS = """
22 27 0:21 / /proc rw - proc proc rw
24 27 0:6 / /dev rw - devtmpfs devtmpfs rw
25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw
27 1 254:0 / / rw - ext4 /dev/vda rw
30 27 254:0 /srv/data /mnt/again rw - ext4 /dev/vda rw
31 27 8:1 /inner {folder}/bound rw - ext4 /dev/sda1 rw
32 27 8:2 / {folder}/with\\040space rw - xfs /dev/sdb rw
33 27 0:40 / {folder}/nfs rw - nfs4 server:/x rw
34 27 0:41 / {folder}/sshfs rw - fuse.sshfs x rw
35 27 8:3 / {folder}/hidden rw - ext4 /dev/sdc rw
36 27 0:42 / {folder}/hidden rw shared:1 - cifs //server/x rw
37 27 0:43 / {folder}/ntfs rw - fuseblk /dev/sdd rw
38 27 0:44 / {folder}/merged rw - overlay overlay rw
39 27 8:4 /etc/hosts {folder}/hosts rw - ext4 /dev/sde rw
"""


def test_local_disks(tmp_path: Path) -> None:
    for name in ("bound", "with space", "nfs", "sshfs", "hidden", "ntfs", "merged"):
        (tmp_path / name).mkdir()
    (tmp_path / "hosts").write_text("")
    points, every = libraries.local_disks(MOUNTS.format(folder=tmp_path))
    assert points == ["/", f"{tmp_path}/ntfs", f"{tmp_path}/with space", f"{tmp_path}/bound"]
    assert f"{tmp_path}/nfs" in every


def test_a_root_of_another_machine_is_walked_all_the_same() -> None:
    points, _ = libraries.local_disks("1 0 0:1 / / rw - 9p none rw\n2 1 0:2 / /mnt rw - 9p none rw\n")
    assert points == ["/"]


def test_memory_stays_flat(tmp_path: Path) -> None:
    """Ten thousand files more are not remembered."""
    script = tmp_path / "measure.py"
    script.write_text(
        textwrap.dedent(f"""
            import importlib.util, sys, tracemalloc
            spec = importlib.util.spec_from_file_location("payload", {str(joined_file(tmp_path))!r})
            payload = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(payload)
            [one.finish(payload.Collection()) for one in payload.disk_scouts(["/nonexistent"], 0)]
            tracemalloc.start()
            state = payload.Collection()
            [one.finish(state) for one in payload.disk_scouts([sys.argv[1]], float("inf"))]
            print(state.entries, tracemalloc.get_traced_memory()[1])
        """)
    )
    peaks = []
    for count in (50, 500):
        root = tmp_path / f"root{count}"
        for number in range(count):
            (root / f"{number // 100}" / f"{number}").mkdir(parents=True)
            for other in range(20):
                (root / f"{number // 100}" / f"{number}" / f"module{other}.cpython-37m-x86_64-linux-gnu.so").touch()
        done = subprocess.run([sys.executable, str(script), str(root)], capture_output=True, text=True, check=True)
        entries, peak = map(int, done.stdout.split())
        assert entries > count * 20
        peaks.append(peak)
    assert peaks[1] < peaks[0] + 100_000, peaks


# --- the children ------------------------------------------------------------------------------------------------

BINDING = """
import ctypes, os
inner = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "libmkldnn.so.0"))
__version__ = "2.0.0.post3"
array = lambda given: given
class relu:
    Forward = staticmethod(lambda given: inner.run() or (given + abs(given)) / 2)
"""
NUMPY = """
class Array(list):
    reshape = lambda self, *shape: self
    astype = lambda self, kind: self
    __eq__ = lambda self, other: Array([list(self) == list(other)])
    __add__ = lambda self, other: Array([a + b for a, b in zip(self, other)])
    __abs__ = lambda self: Array([abs(a) for a in self])
    __truediv__ = lambda self, number: Array([a / number for a in self])
    all = lambda self: self[0]
linspace = lambda low, high, count: Array([low + (high - low) * n / (count - 1) for n in range(count)])
array = Array
maximum = lambda one, two: Array([max(a, two) for a in one])
"""


def made_up(folder: Path, run: str, omp: bool = True) -> tuple[Environment, Path]:
    """An environment whose ideep4py loads a libmkldnn that runs this code, and the OpenMP that it needs."""
    home = Environment(folder)
    package = home.packages / "ideep4py"
    source = "int omp_get_max_threads(void) { return 1; } int GOMP_parallel(void) { return 1; }"
    needed = [make_library(package / "libiomp5.so", source, soname="libiomp5.so")] if omp else []
    source = ENGINE + f"int run(void) {{ {run}; return 0; }}"
    make_library(package / "libmkldnn.so.0", source, "-Wl,-rpath,$ORIGIN", needs=needed, soname="libmkldnn.so.0")
    (package / "__init__.py").write_text(BINDING)
    (home.packages / "numpy").mkdir()
    (home.packages / "numpy" / "__init__.py").write_text(NUMPY)
    return home, package


def test_a_child_that_works(tmp_path: Path) -> None:
    home, package = made_up(tmp_path / "env", "")
    started = answer(home.python, start=True)["started"]
    assert started["told"]["import"]["ok"] is True
    assert started["told"]["import"]["version"] == "2.0.0.post3"
    assert started["told"]["first_op"]["ok"] is True, started
    assert started["ended"]["code"] == 0
    assert started["visible"] == {}
    omp = str(package / "libiomp5.so")
    assert started["bound"] == {"omp_get_max_threads": omp, "GOMP_parallel": omp}
    assert not any("ideep4py" in path for path in started["at_start"])
    assert {str(package / "libmkldnn.so.0"), omp} <= set(started["after"])


def test_a_child_that_dies_has_told_before(tmp_path: Path) -> None:
    home, package = made_up(tmp_path / "env", "__builtin_trap()")
    started = answer(home.python, start=True)["started"]
    assert started["told"]["import"]["ok"] is True
    assert "first_op" not in started["told"]
    assert started["ended"]["code"] == -4
    assert started["bound"]["omp_get_max_threads"] == str(package / "libiomp5.so")
    assert str(package / "libmkldnn.so.0") in started["after"]


def test_what_is_preloaded_is_seen_by_the_child(tmp_path: Path) -> None:
    """The preloaded library's symbols come first for every later one; the payload itself is started without it."""
    home, _ = made_up(tmp_path / "env", "", omp=False)
    source = ENGINE + "int omp_get_max_threads(void) { return 2; }"
    stranger = make_library(tmp_path / "libstranger.so", source, soname="libstranger.so")
    link = tmp_path / "link.so"
    link.symlink_to(stranger)
    started = answer(home.python, {"LD_PRELOAD": str(link)}, start=True)["started"]
    assert str(stranger) in started["at_start"]
    assert started["visible"] == {"mkldnn_memory_set_data_handle": str(stranger)}
    assert started["bound"] == {"omp_get_max_threads": str(stranger)}


def test_a_preloaded_library_that_kills_every_python(tmp_path: Path) -> None:
    home, _ = made_up(tmp_path / "env", "")
    source = "extern int missing(void); int call(void) { return missing(); }"
    bad = make_library(tmp_path / "libbad.so", source, "-Wl,-z,now", "-Wl,--unresolved-symbols=ignore-all")
    told = answer(home.python, {"LD_PRELOAD": str(bad)}, start=True)
    assert told["started"]["ended"]["code"] == 127
    assert "undefined symbol: missing" in told["started"]["stderr"][0]
    assert (told["started"]["at_start"], told["started"]["told"]) == ([], {})
    assert told["objects"][str(bad)]["problem"] is None


def test_a_child_that_hangs_or_prints_without_end(tmp_path: Path) -> None:
    home, package = made_up(tmp_path / "env", "")
    (package / "__init__.py").write_text("while True: print('x' * 1000000)\n")
    begun = time.monotonic()
    started = answer(home.python, start=True, timeout_seconds=3)["started"]
    assert time.monotonic() - begun < 15
    assert started["ended"]["timed_out"] is True
    assert "import" not in started["told"]


def test_the_users_folders_count_for_the_child(tmp_path: Path) -> None:
    """The payload runs without PYTHONPATH, the user's Python does not."""
    home, package = made_up(tmp_path / "env", "")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    package.rename(moved / "ideep4py")
    suffix = libraries.extension_suffixes()[0]
    make_library(moved / "ideep4py" / f"_ideep4py{suffix}")
    told = answer(home.python, {"PYTHONPATH": str(moved)}, start=True)
    assert told["binding"] == str(moved / "ideep4py" / f"_ideep4py{suffix}")
    assert told["started"]["told"]["import"]["path"] == str(moved / "ideep4py" / "__init__.py")
    assert found(told)[str(moved / "ideep4py" / "libmkldnn.so.0")] == (["ideep4py", "process"], None)


def test_children_get_the_words_of_an_emulator(tmp_path: Path) -> None:
    package = tmp_path / "ideep4py"
    make_library(package / f"_ideep4py{libraries.extension_suffixes()[0]}")
    (package / "__init__.py").write_text("")
    asked = {"deep": False, "start": True, "timeout_seconds": 60, "cwd": "/", "home": None, "others": []}
    env = {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    target = Target(sys.executable, emulator=("env", f"PYTHONPATH={tmp_path}"))
    told = run_payload(RealSystem(), target, "libraries", asked, timeout_seconds=120, env=env)
    assert told["binding"] is not None and Path(told["binding"]).parent == package
    assert told["started"]["told"]["import"]["path"] == str(package / "__init__.py")
    assert told["hwcaps"] == answer(sys.executable)["hwcaps"]


def test_the_current_folder_hides_the_installed_package(tmp_path: Path) -> None:
    package = tmp_path / "ideep4py"
    binding = make_library(package / f"_ideep4py{libraries.extension_suffixes()[0]}")
    (package / "__init__.py").write_text("")
    told = answer(sys.executable, cwd=str(tmp_path))
    assert told["binding"] == str(binding)
    assert answer(sys.executable)["binding"] is None


def test_mkl_is_asked_in_a_child_of_its_own(tmp_path: Path) -> None:
    home = Environment(tmp_path / "env")
    says = """
        int MKL_Get_Version_String(char *out, int size)
        { const char *text = "Intel(R) Math Kernel Library Version 2018.0.3"; while ((*out++ = *text++)); return size; }
    """
    folder = home.packages / "strange" / "lib"
    neighbour = make_library(folder / "libiomp5.so", soname="libiomp5.so")
    make_library(folder / "libmklml_intel.so", says, needs=[neighbour])
    make_library(home.packages / "ideep4py" / "lib" / "libmklml_intel.so", says)  # known by its size: not loaded
    (home.packages / "ideep4py" / "__init__.py").write_text("")
    make_library(home.packages / "other" / "libmkl_rt.so", "void MKL_Get_Version_String(void) { __builtin_trap(); }")
    make_library(home.packages / "other" / "libmkl_core.so", says)
    told = answer(home.python, start=True)["mkl_versions"]
    assert told == {str(folder / "libmklml_intel.so"): "Intel(R) Math Kernel Library Version 2018.0.3"}
    assert answer(home.python)["mkl_versions"] == {}


@pytest.mark.parametrize("processors", [1, 3])
def test_several_processes_find_what_one_finds(tmp_path: Path, processors: int, monkeypatch: pytest.MonkeyPatch):
    expected = set()
    for number in range(300):
        folder = tmp_path / str(number % 7) / str(number)
        folder.mkdir(parents=True)
        if number % 10 == 0:
            (folder / "libmkldnn.so.0").write_bytes(b"")
            expected.add(str(folder / "libmkldnn.so.0"))
    shut = tmp_path / "3" / "10"
    expected -= {path for path in expected if path.startswith(f"{shut}/")}
    payload = payload_module()
    monkeypatch.setattr(payload, "processors", lambda: processors)
    state = payload.Collection()
    payload.Scouts(str(tmp_path), time.time() + 60, {str(shut)}).finish(state)
    assert set(state.places) == expected
    assert state.complete
    assert state.entries == 7 + 300 + 30 - 1


def test_a_process_that_dies_leaves_the_walk_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(300):
        (tmp_path / str(number)).mkdir()
    payload = payload_module()
    monkeypatch.setattr(payload, "processors", lambda: 2)
    monkeypatch.setattr(payload.Scout, "walk", lambda self, *rest, **options: os._exit(1))
    state = payload.Collection()
    payload.Scouts(str(tmp_path), time.time() + 60, set()).finish(state)
    assert not state.complete


def test_where_no_process_can_be_started_one_walks_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(300):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "299" / "libmkldnn.so").write_bytes(b"")
    payload = payload_module()

    def refuse() -> int:
        raise OSError(11, "no more processes")

    monkeypatch.setattr(payload, "processors", lambda: 2)
    monkeypatch.setattr(payload.os, "fork", refuse)
    state = payload.Collection()
    payload.Scouts(str(tmp_path), time.time() + 60, set()).finish(state)
    assert set(state.places) == {str(tmp_path / "299" / "libmkldnn.so")}
