"""MKL-DNN and the extension: upstream's own commands, in the order in which they work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ideepdoctor.builder.extension import build_extension
from ideepdoctor.builder.library import build_library, prefix_of, require_library
from ideepdoctor.errors import BuildFailed
from ideepdoctor.model.build import Layout, SourceTree, Tools
from ideepdoctor.system import RealSystem

TOOLS = Tools("/env/bin/python", "/bin-of-tools", "1.23.2", "id", {"PATH": "/bin-of-tools"})


class Told:
    """Programs that only remember, and do what a test wants of them."""

    def __init__(self, system: RealSystem, does: dict[str, object] | None = None, says: str = "") -> None:
        self.system, self.commands, self.says = system, list[list[str]](), says
        self.does = does or {}

    def run(self, argv: Sequence[str], *, cwd: str, what: str, timeout_seconds: float = 1.0) -> str:
        self.commands.append([*argv, f"in {cwd}"])
        for word, action in self.does.items():
            if word in argv:
                action()  # type: ignore[operator]
        return self.says


def tree(folder: Path, layout: Layout = Layout.CMAKE, setup: str = "") -> SourceTree:
    (folder / "python" / "ideep4py").mkdir(parents=True)
    (folder / "python" / "setup.py").write_text(setup)
    inner = "mkl-dnn" if layout is Layout.CMAKE else "python/external/mkldnn/source"
    return SourceTree(str(folder), "c" * 40, f"{folder}/{inner}", "d" * 40, layout, "2.0.0.post3", None)


@pytest.mark.parametrize(
    ("setup", "where"),
    [
        ("libdir = here + '/ideep4py/lib'\n", "python/ideep4py"),
        ("PYTHON_ROOT = '.'\nMKLDNN_ROOT = PYTHON_ROOT\nx = 1\n", "python"),
        ("MKLDNN_ROOT = PYTHON_ROOT + '/ideep4py'\n", "python/ideep4py"),
    ],
)
def test_the_library_goes_where_setup_py_looks_for_it(tmp_path: Path, setup: str, where: str) -> None:
    assert prefix_of(tree(tmp_path, setup=setup)) == str(tmp_path / where)


def test_cmake_configures_compiles_and_installs(tmp_path: Path) -> None:
    source = tree(tmp_path)
    lib = tmp_path / "python" / "ideep4py" / "lib"

    def install() -> None:
        lib.mkdir()
        (lib / "libmkldnn.so.0").write_text("")

    told = Told(RealSystem(), {"install": install})
    build_library(told, source, TOOLS)  # type: ignore[arg-type]
    configure, compile_, installing = told.commands
    assert configure[:5] == ["/bin-of-tools/cmake", "-S", str(tmp_path), "-B", f"{tmp_path}/build"]
    assert {"-DWITH_TEST=OFF", "-DARCH_OPT_FLAGS=", f"-DCMAKE_INSTALL_PREFIX={lib.parent}"} <= set(configure)
    assert "-DCMAKE_MAKE_PROGRAM=/bin-of-tools/make" in configure
    assert compile_[1:3] == ["--build", f"{tmp_path}/build"] and "install" in installing


def test_an_install_that_leaves_no_library_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="left no lib"):
        build_library(Told(RealSystem()), tree(tmp_path), TOOLS)  # type: ignore[arg-type]
    with pytest.raises(BuildFailed):
        require_library(str(tmp_path))


def test_in_the_old_layout_its_own_prefix_is_asked_for_and_setup_py_installs(tmp_path: Path) -> None:
    source = tree(tmp_path, Layout.PREPARE)
    told = Told(RealSystem(), says="Intel mkl-dnn\nROOT=/there/external/mkldnn/..\n")
    build_library(told, source, TOOLS)  # type: ignore[arg-type]
    asked, configure, compile_ = told.commands
    assert asked[:2] == ["/env/bin/python", "-c"] and asked[-1] == f"in {tmp_path}/python"
    assert configure[2] == source.mkldnn_folder and configure[4] == f"{source.mkldnn_folder}/build"
    assert "-DCMAKE_INSTALL_PREFIX=/there/external/mkldnn/.." in configure
    assert compile_[1] == "--build"
    with pytest.raises(BuildFailed, match="did not say"):
        build_library(Told(RealSystem(), says="nothing"), source, TOOLS)  # type: ignore[arg-type]


def test_the_libraries_are_there_before_build_copies_them(tmp_path: Path) -> None:
    source = tree(tmp_path, setup="MKLDNN_ROOT = PYTHON_ROOT\n")
    prefix, staging = tmp_path / "python", tmp_path / "staging"
    (prefix / "lib").mkdir()
    (prefix / "lib" / "libmkldnn.so.0").write_text("MKL-DNN")
    (staging / "old").mkdir(parents=True)
    seen: list[bool] = []

    def install() -> None:
        assert not (staging / "old").exists()
        package = staging / "usr" / "ideep4py"
        package.mkdir(parents=True)
        (package / "_ideep4py.so").write_text("")

    told = Told(
        RealSystem(),
        {
            "build": lambda: seen.append((prefix / "ideep4py" / "lib" / "libmkldnn.so.0").is_file()),
            "install": install,
        },
    )
    build_extension(RealSystem(), told, source, TOOLS, str(prefix), str(staging))  # type: ignore[arg-type]
    assert [words[2] for words in told.commands] == ["build_ext", "build", "install"] and seen == [True]
    assert "--single-version-externally-managed" in told.commands[2] and "--skip-build" in told.commands[2]


def test_an_install_without_an_extension_is_no_success(tmp_path: Path) -> None:
    source = tree(tmp_path)
    with pytest.raises(BuildFailed, match="installed no extension"):
        build_extension(
            RealSystem(), Told(RealSystem()), source, TOOLS, f"{tmp_path}/python/ideep4py", f"{tmp_path}/s"  # type: ignore[arg-type]
        )  # fmt: skip
