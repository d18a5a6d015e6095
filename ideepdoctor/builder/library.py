"""MKL-DNN, built by upstream's own CMake files in the order and with the limits that upstream leaves out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from ideepdoctor.builder.programs import Programs
from ideepdoctor.errors import BuildFailed
from ideepdoctor.model.build import Layout, SourceTree, Tools

SETTINGS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DWITH_TEST=OFF",
    "-DWITH_EXAMPLE=OFF",
    "-DARCH_OPT_FLAGS=",
    "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF",
)
"""No tests, which need two more submodules; no -march, for the library's own code generator chooses while it runs; no
MKL of /usr/local (where pip of a container puts mkl-include), which upstream would take before the one provided."""
INSTALLED = ("include", "lib", "share")

_PYTHON_ROOT = re.compile(r"^\s*MKLDNN_ROOT\s*=\s*PYTHON_ROOT\s*$", re.MULTILINE)
_ROOT_PROGRAM = """
import sys
sys.path.insert(0, '.')
from external.mkldnn import prepare_mkldnn
sys.stdout.write('\\nROOT=' + prepare_mkldnn.MKLDNN_ROOT + '\\n')
"""


def prefix_of(tree: SourceTree) -> str:
    """Folder that the library and its headers are installed into, where setup.py looks for them."""
    package = f"{tree.folder}/python/ideep4py"
    if tree.layout is Layout.CMAKE and _PYTHON_ROOT.search(_setup_text(tree)):
        return f"{tree.folder}/python"
    return package


def build_folder(tree: SourceTree) -> str:
    """Where CMake works: setup.py of each layout looks there."""
    return f"{tree.folder}/build" if tree.layout is Layout.CMAKE else f"{tree.mkldnn_folder}/build"


def build_library(programs: Programs, tree: SourceTree, tools: Tools) -> None:
    """Configure, compile and, in layout CMAKE, install; what an interrupted run compiled is not compiled again.

    In layout PREPARE setup.py itself installs what it finds compiled.

    Raises:
        BuildFailed: CMake or a compiler failed, or they left no library.
    """
    if tree.layout is Layout.CMAKE:
        source, prefix = tree.folder, prefix_of(tree)
    else:
        source, prefix = tree.mkldnn_folder, _prepared_root(programs, tree, tools)
    build, cmake = build_folder(tree), f"{tools.bin_folder}/cmake"
    configure = [cmake, "-S", source, "-B", build, *SETTINGS, f"-DCMAKE_INSTALL_PREFIX={prefix}"]
    configure.append(f"-DCMAKE_MAKE_PROGRAM={tools.bin_folder}/make")
    programs.run(configure, cwd=tree.folder, what="cmake could not configure MKL-DNN")
    programs.run([cmake, "--build", build], cwd=tree.folder, what="MKL-DNN could not be compiled")
    if tree.layout is Layout.CMAKE:
        install = [cmake, "--build", build, "--target", "install"]
        programs.run(install, cwd=tree.folder, what="MKL-DNN could not be installed")
        require_library(prefix)


def require_library(prefix: str) -> None:
    """Raise BuildFailed where no libmkldnn is installed there."""
    if not any(path.is_file() for path in Path(prefix, "lib").glob("libmkldnn.so*")):
        raise BuildFailed(
            f"CMake ended well and left no lib/libmkldnn.so in {prefix}",
            hint="is this a source of ideep? look at the last lines of the log",
        )


def _prepared_root(programs: Programs, tree: SourceTree, tools: Tools) -> str:
    """Where the prepare step of 1.0.3 installs: it says so itself."""
    argv = [tools.python, "-c", _ROOT_PROGRAM]
    told = programs.run(argv, cwd=f"{tree.folder}/python", what="the prepare step of setup.py could not be asked")
    found = re.search(r"^ROOT=(.+)$", told, re.MULTILINE)
    if found is None:
        raise BuildFailed(f"{shlex.join(argv[:2])} did not say where MKL-DNN is installed")
    root = Path(found[1])
    return str(root if root.is_absolute() else (Path(tree.folder) / "python" / root))


def _setup_text(tree: SourceTree) -> str:
    return Path(f"{tree.folder}/python/setup.py").read_text("utf-8", "replace")
