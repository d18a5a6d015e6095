"""The extension, by upstream's own setup.py: compiled first, then built, then installed into a staging folder."""

from __future__ import annotations

from pathlib import Path

from ideepdoctor.builder.programs import Programs
from ideepdoctor.errors import BuildFailed
from ideepdoctor.model.build import Layout, SourceTree, Tools
from ideepdoctor.system import System

_DONE = """# Made by ideepdoctor: MKL-DNN is installed already, from an earlier build of the same source.
cmake_minimum_required(VERSION 2.8.12)
project(done NONE)
install(CODE "message(STATUS \\"MKL-DNN is installed already\\")")
"""


def stand_for_library(system: System, programs: Programs, tree: SourceTree, tools: Tools) -> None:
    """Give setup.py, which asks CMake to build and install MKL-DNN, a project that has nothing left to do."""
    source, build = f"{tree.folder}/.ideepdoctor-done", f"{tree.folder}/build"
    system.make_folder(source)
    system.write_file(f"{source}/CMakeLists.txt", _DONE.encode("ascii"))
    argv = [f"{tools.bin_folder}/cmake", "-S", source, "-B", build]
    programs.run(argv, cwd=tree.folder, what="cmake could not be started")


def build_extension(
    system: System, programs: Programs, tree: SourceTree, tools: Tools, prefix: str, staging: str
) -> None:
    """Compile and install.

    Args:
        system: copies libraries.
        programs: starts setup.py.
        tree: with MKL-DNN built.
        tools: what setup.py runs with.
        prefix: where MKL-DNN is installed.
        staging: folder to install into; emptied before.

    Raises:
        BuildFailed: setup.py failed, or left no extension.
    """
    python = f"{tree.folder}/python"

    def setup(*words: str) -> None:
        argv = [tools.python, "setup.py", *words]
        programs.run(argv, cwd=python, what=f"setup.py {words[0]} failed")

    # build_py, which copies the libraries into the package, comes before build_ext in ``build``: so build_ext first.
    setup("build_ext")
    if tree.layout is Layout.CMAKE:
        _into_package(system, prefix, f"{python}/ideep4py")
    setup("build")
    system.remove_tree(staging)
    system.make_folder(staging)
    record = f"{staging}/record.txt"
    setup("install", "--skip-build", "--root", staging, "--single-version-externally-managed", "--record", record)
    if not any(Path(staging).rglob("ideep4py/_ideep4py*.so")):
        raise BuildFailed("setup.py ended well and installed no extension", hint="look at the last lines of the log")


def _into_package(system: System, prefix: str, package: str) -> None:
    """Some commits install beside the package and leave the libraries there."""
    if prefix == package or not Path(prefix, "lib").is_dir():
        return
    system.make_folder(f"{package}/lib")
    for path in sorted(Path(prefix, "lib").glob("*.so*")):
        target = f"{package}/lib/{path.name}"
        system.remove_file(target)
        system.copy_file(str(path), target)
