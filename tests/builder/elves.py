"""Small libraries of the shape of ideep4py's, made with the machine's compiler; none of them computes anything."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from ideepdoctor.builder.inspect import API
from ideepdoctor.builder.wheel_file import NAMES

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on this machine")

STREAM = "int vslNewStream(void) { return 0; }\n"
OLD_TAGS = "-Wl,--disable-new-dtags"
PLAIN = ("-Wl,-rpath,$ORIGIN/lib", OLD_TAGS, "-Wl,-z,now")


def library(path: Path, source: str, *flags: str) -> Path:
    """Compile C into a shared library; a CalledProcessError where that fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["cc", "-shared", "-fPIC", "-nostartfiles", "-x", "c", "-", "-o", str(path), *flags]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    return path


def functions(names: Sequence[str]) -> str:
    return "".join(f"int {name}(void) {{ return 1; }}\n" for name in names)


def engine(folder: Path, names: Sequence[str] = API, *, needed: Sequence[str] = ("mklml_intel",)) -> Path:
    """libmkldnn under its three names, as CMake installs it: a file and two links. Needs libmklml_intel first."""
    linked = ["-L" + str(folder), "-Wl,--no-as-needed", *(f"-l{name}" for name in needed)]
    made = library(folder / "libmkldnn.so.0.14.0", functions(names), "-Wl,-soname,libmkldnn.so.0", *linked)
    for link, target in (("libmkldnn.so.0", made.name), ("libmkldnn.so", "libmkldnn.so.0")):
        (folder / link).unlink(missing_ok=True)
        (folder / link).symlink_to(target)
    return made


def extension(
    package: Path,
    name: str = "_ideep4py.cpython-37m-x86_64-linux-gnu.so",
    *,
    start: str = "PyInit__ideep4py",
    uses: Sequence[str] = ("mkldnn_primitive_create", "vslNewStream"),
    offers: Sequence[str] = NAMES,
    flags: Sequence[str] = PLAIN,
) -> Path:
    """The extension: it has the strings of SWIG's classes and asks for functions of the libraries in lib/."""
    calls = "".join(f"int {one}(void);\n" for one in uses)
    names = "".join(f'const char name{number}[] = "ideep4py.{one}";\n' for number, one in enumerate(offers))
    body = "".join(f"{one}();" for one in uses)
    source = f"{calls}{names}void *{start}(void) {{ {body} return 0; }}\n"
    linked = ["-L" + str(package / "lib"), "-Wl,--no-as-needed", "-lmkldnn", "-lmklml_intel"]
    return library(package / name, source, *linked, *flags, "-Wl,--unresolved-symbols=ignore-all")


def staging(folder: Path, version: str = "2.0.0.post3") -> Path:
    """What setup.py leaves in a staging folder: the package with its headers and rubbish; the package is returned."""
    package = folder / "usr" / "lib" / "python3.7" / "site-packages" / "ideep4py"
    libraries = package / "lib"
    library(libraries / "libiomp5.so", functions(["omp_get_max_threads"]), "-Wl,-soname,libiomp5.so")
    library(
        libraries / "libmklml_intel.so", STREAM, "-L" + str(libraries), "-Wl,--no-as-needed", "-liomp5", "-lc", "-lm"
    )
    engine(libraries)
    extension(package)
    (package / "__init__.py").write_text("from ideep4py import _version\n__version__ = _version.__version__\n", "utf-8")
    (package / "_version.py").write_text(f'__version__ = "{version}"\n', "utf-8")
    for rubbish in ("__pycache__/__init__.cpython-37.pyc", "include/ideep.hpp", "share/doc/LICENSE", "lib/libx.a"):
        (package / rubbish).parent.mkdir(parents=True, exist_ok=True)
        (package / rubbish).write_bytes(b"rubbish")
    (package / "cosim").mkdir()
    (package / "cosim" / "__init__.py").write_bytes(b"")
    (package.parent / "ideep4py-2.0.0-py3.7.egg-info").write_text("Requires-Dist: numpy==1.13\n", "utf-8")
    return package
