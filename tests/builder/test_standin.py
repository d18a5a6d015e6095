"""The stand-in has upstream's shape, and builds by upstream's documented steps under the known cures, by hand."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.treatment.installers import uv_program
from tests.builder.standin import MKLML, StandIn, git, make_standin

SITE = "import platform\nif not hasattr(platform, 'dist'):\n    platform.dist = lambda *a, **k: ('', '', '')\n"
PROBE = (
    "import ideep4py, numpy; print(ideep4py.mdarray(5000).pages(), ideep4py.mkl_functions(), "
    "ideep4py.library_version(), getattr(ideep4py, '__version__', None), ideep4py.dimensions_of(numpy.zeros((1, 2))))"
)


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_standin(tmp_path_factory.mktemp("standin"))


def test_its_history_is_upstream_s(standin: StandIn):
    ideep, mkldnn = Path(standin.url), Path(standin.mkldnn_url)
    assert git(ideep, "tag").split() == ["v1.0.3", "v1.0.4", "v2.0.0"]
    assert git(ideep, "log", "--format=%H").split() == list(standin.commits.values())[::-1]
    pins = {name: git(ideep, "ls-tree", commit, "mkl-dnn").split()[2:3] for name, commit in standin.commits.items()}
    old, pinned, newest = standin.mkldnn_commits.values()
    assert pins == {"v1.0.3": [], "v1.0.4": [pinned], "v2.0.0": [pinned], "post3": [pinned], "master": [newest]}
    assert git(mkldnn, "log", "--format=%H").split() == [newest, pinned, old]
    assert old in git(ideep, "show", "v1.0.3:python/external/__init__.py")


def test_its_versions_are_declared_where_upstream_s_are(standin: StandIn):
    def declared(name: str) -> bool:
        return "__version__" in git(Path(standin.url), "show", f"{standin.commits[name]}:python/ideep4py/__init__.py")

    assert [declared(name) for name in standin.commits] == [False, False, False, True, True]


def test_the_same_folder_gives_the_same_hashes(tmp_path: Path):
    one = make_standin(tmp_path / "x")
    (tmp_path / "x").rename(tmp_path / "before")
    assert make_standin(tmp_path / "x").commits == one.commits


def run(argv: list[str], cwd: Path, **environ: str) -> str:
    done = subprocess.run(argv, cwd=cwd, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), [("post3", "0.14.0 2.0.0.post3"), ("v1.0.3", "0.12.0 None")])
@pytest.mark.parametrize(("python", "numpy"), [("3.7", "1.16.6"), ("3.11", "1.23.5")])
def test_it_builds_by_upstream_s_steps(
    tmp_path: Path, standin: StandIn, legacy: Callable[[str], str], python: str, numpy: str, name: str, version: str
):
    uv, env, tree = uv_program(), tmp_path / "env", standin.clone(name, tmp_path / "tree")
    run([uv, "venv", "-q", "--python", legacy(python), str(env)], tmp_path)
    pins = [f"numpy=={numpy}", "setuptools<60", "wheel", "cmake==3.18.4.post1", "swig==3.0.12"]
    run([uv, "pip", "install", "-q", "--python", str(env / "bin/python"), *pins], tmp_path)
    donor = tmp_path / "donor"
    run([uv, "venv", "-q", "--python", legacy("3.7"), str(donor)], tmp_path)
    mkl = ["--no-deps", "mkl-include==2018.0.3", "ideep4py==2.0.0.post3"]
    run([uv, "pip", "install", "-q", "--python", str(donor / "bin/python"), *mkl], tmp_path)
    mkldnn, mklml = tree / "mkl-dnn", MKLML["v0.14"]
    if name == "v1.0.3":
        mkldnn, mklml = tree / "python/external/mkldnn/source", MKLML["v0.12"]
        git(tree, "clone", "--quiet", standin.mkldnn_url, str(mkldnn))
        git(mkldnn, "reset", "--quiet", "--hard", standin.mkldnn_commits["v0.12"])
    external = mkldnn / "external" / mklml
    (external / "lib").mkdir(parents=True)
    shutil.copytree(donor / "include", external / "include")
    for library in ("libmklml_intel.so", "libiomp5.so"):  # without the MKL-DNN that lies beside them
        shutil.copy(donor / "lib/python3.7/site-packages/ideep4py/lib" / library, external / "lib")
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text(SITE)
    flags = "-w -D_PyObject_GC_UNTRACK=PyObject_GC_UnTrack"
    environ = {
        "PATH": f"{env}/bin:/usr/bin:/bin",
        "PYTHONPATH": str(tmp_path / "site"),
        "HOME": str(tmp_path),
        "CFLAGS": flags,
        "CXXFLAGS": flags,
        "LDFLAGS": "-Wl,--disable-new-dtags",
    }
    if (tree / "CMakeLists.txt").exists():
        (tree / "build").mkdir()
        options = ["-DWITH_TEST=OFF", "-DWITH_EXAMPLE=OFF", "-DARCH_OPT_FLAGS="]
        prefix = f"-DCMAKE_INSTALL_PREFIX={tree}/python/ideep4py"
        run(["cmake", *options, prefix, ".."], tree / "build", **environ)
        run(["make", "-j2", "install"], tree / "build", **environ)
    staging = tmp_path / "staging"
    for words in (
        ["build_ext"],
        ["build"],
        ["install", "--skip-build", "--root", str(staging), "--single-version-externally-managed", "--record", "list"],
    ):
        run(["python", "setup.py", *words], tree / "python", **environ)
    package = next(path.parent for path in staging.rglob("ideep4py/__init__.py"))
    said = run([str(env / "bin/python"), "-c", PROBE], tmp_path, PYTHONPATH=str(package.parent))
    assert said == f"2 6 {version} 2\n"
