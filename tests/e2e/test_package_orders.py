"""Other packages beside ideep4py, imported before and after it, one operation in both: what really happens, and what
the doctor says about it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ideepdoctor.treatment.snapshot import manifest
from tests.e2e.environments import Answer, copy_environment, doctor, pip_install, uv
from tests.e2e.loader_rows import NULL_HANDLE, PROGRAM, plain, truth

pytestmark = pytest.mark.e2e

WORKS = "works"
ABORTS = "ideep4py: SIGABRT"


@dataclass(frozen=True)
class Package:
    """A package that an environment with ideep4py may hold too."""

    requirement: str
    sha256: str
    module: str
    operation: str
    """Statements that run one operation and check its numbers."""
    before: str = WORKS
    """How it ends where the package is imported first."""
    after: str = WORKS
    code: str | None = None
    """Of the doctor's error; None: no finding about native libraries."""
    pins: tuple[str, ...] = ()
    """What it needs besides."""
    python: str = "3.7"
    slow: bool = False
    replaces: tuple[str, ...] = ()
    """Distributions whose files it brings itself."""
    old_pip: bool = False
    """Newer installers refuse the wheel: two .dist-info folders."""


REQUESTS = ("requests==2.31.0", "urllib3==1.26.18", "idna==3.4", "certifi==2023.7.22", "charset-normalizer==3.3.2")

MXNET = """
x, w = mxnet.nd.ones((2, 8, 6, 6)), mxnet.nd.ones((8, 8, 3, 3))
y = mxnet.nd.Convolution(data=x, weight=w, no_bias=True, kernel=(3, 3), num_filter=8)
assert (y.asnumpy() == 72).all()
"""
PADDLE = """
main = paddle.fluid.Program()
with paddle.fluid.program_guard(main):
    given = paddle.fluid.data("given", [2, 8, 6, 6])
    block = main.global_block()
    made = block.create_var(name="made", dtype="float32", shape=[2, 8, 6, 6])
    block.append_op(type="relu", inputs={"X": given}, outputs={"Out": made}, attrs={"use_mkldnn": True})
x = numpy.linspace(-1, 1, 576).astype("float32").reshape(2, 8, 6, 6)
[y] = paddle.fluid.Executor(paddle.fluid.CPUPlace()).run(main, feed={"given": x}, fetch_list=["made"])
assert (y == numpy.maximum(x, 0)).all()
"""
TORCH = """
y = torch.nn.functional.conv2d(torch.ones(2, 8, 6, 6), torch.ones(8, 8, 3, 3))
assert bool((y == 72).all())
"""
NUMPY = """
import mkl_fft
x = numpy.arange(40000, dtype="float32").reshape(200, 200) / 40000
assert abs(x.dot(x) - numpy.einsum("ij,jk", x, x)).max() < 1e-3
"""
SKLEARN = """
x = numpy.concatenate([numpy.zeros((2000, 3)), numpy.ones((2000, 3))])
centers = sklearn.cluster.KMeans(2, random_state=0).fit(x).cluster_centers_
assert sorted(centers[:, 0].round(6).tolist()) == [0, 1]
"""
FAISS = """
index, x = faiss.IndexFlatL2(8), numpy.eye(8, dtype="float32")
index.add(x)
assert index.search(x, 1)[1][:, 0].tolist() == list(range(8))
"""
TENSORFLOW = """
y = tensorflow.nn.conv2d(tensorflow.ones((2, 6, 6, 8)), tensorflow.ones((3, 3, 8, 8)), [1, 1, 1, 1], "VALID")
with tensorflow.Session() as session:
    assert (session.run(y) == 72).all()
"""
RELU = """
given = numpy.linspace(-1, 1, 64).astype("float32").reshape(8, 8)
assert (numpy.array(ideep4py.relu.Forward(ideep4py.array(given))) == numpy.maximum(given, 0)).all()
"""

PACKAGES = (
    Package(
        "mxnet-mkl==1.5.0",
        "0ce9bf4a35312a6ef2f8276370969dea2317423487a170a90cd742cb5d9f5f4c",
        "mxnet",
        MXNET,
        before=ABORTS,
        after="mxnet: Unknown MKLDNN format for 4 dimensions",
        code="IDP404",
        pins=("graphviz==0.8.4", *REQUESTS),
    ),
    Package(
        "mxnet-mkl==1.6.0",
        "f7926f02dd7bee3c4500484764a83de67625f2f42bb3520eb5111b221739bda5",
        "mxnet",
        MXNET,
        pins=("graphviz==0.8.4", *REQUESTS),
    ),
    Package(
        "paddlepaddle==1.8.5",
        "39d7a076f7f4d646813f97bc499ae78e7498b0e9ca777eb5b29a3e8fecb61ca7",
        "paddle.fluid",
        PADDLE,
        pins=(
            *("astor==0.8.1", "decorator==5.1.1", "funcsigs==1.0.2", "gast==0.3.3", "importlib-metadata==6.7.0"),
            *("nltk==3.8.1", "objgraph==3.6.2", "opencv-python==4.2.0.32", "pillow==9.5.0", "prettytable==3.7.0"),
            *("pyyaml==6.0.1", "regex==2024.4.16", "scipy==1.7.3", "wcwidth==0.2.14", "zipp==3.15.0", *REQUESTS),
        ),
        slow=True,
    ),
    Package(
        "scikit-learn==1.0.2",
        "16455ace947d8d9e5391435c2977178d0ff03a261571e67f627c8fee0f9d431a",
        "sklearn.cluster",
        SKLEARN,
        pins=("scipy==1.7.3", "joblib==1.3.2", "threadpoolctl==3.1.0"),
    ),
    Package(
        "faiss-cpu==1.7.2",
        "9ced552b3c6fa2c12437aa8d050489e729bb27277608345846e43ebf37d0a147",
        "faiss",
        FAISS,
    ),
    Package(
        "intel-numpy==1.15.1",
        "0d1acf3582238dbd67f0cf9200775ee4dd3d64f394d2d6ead71031d3fa6aa6f2",
        "numpy",
        NUMPY,
        pins=(
            *("icc-rt==2020.0.133", "intel-openmp==2020.0.133", "mkl==2019.0", "mkl-fft==1.0.6"),
            *("mkl-random==1.0.1.1", "tbb==2021.5.1", "tbb4py==2021.5.1"),
        ),
        python="3.6",
        replaces=("numpy",),
        slow=True,
    ),
    Package(
        "torch==1.4.0",
        "8fff03bf7b474c16e4b50da65ea14200cc64553b67b9b2307f9dc7e8c69b9d28",
        "torch",
        TORCH,
        before=ABORTS,
        code="IDP404",
        slow=True,
    ),
    Package(
        "torch==1.7.1",
        "5d76c255a41484c1d41a9ff570b9c9f36cb85df9428aa15a58ae16ac7cfc2ea6",
        "torch",
        TORCH,
        slow=True,
    ),
    Package(
        "intel-tensorflow==1.13.1",
        "6d88b635d6d8b0599ee578983e7b1afa8eb24123607ab5bb197fda50c3d4ee75",
        "tensorflow",
        TENSORFLOW,
        pins=(
            *("absl-py==0.15.0", "astor==0.8.1", "gast==0.2.2", "keras-applications==1.0.8"),
            *("keras-preprocessing==1.1.2", "termcolor==1.1.0"),
        ),
        python="3.6",
        slow=True,
        old_pip=True,
    ),
)


def _parameters() -> Iterator[object]:
    for package in PACKAGES:
        marks = [pytest.mark.slow] if package.slow else []
        yield pytest.param(package, id=package.requirement.replace("==", "-"), marks=marks)


each_package = pytest.mark.parametrize("package", list(_parameters()))


def furnish(environment: Path, package: Package, scratch: Path) -> None:
    """Install a package beside ideep4py, that package by hash; files are links into uv's cache: change none."""
    if package.replaces:
        uv("pip", "uninstall", "--python", str(environment / "bin" / "python"), *package.replaces)
    listed = scratch / "requirement.txt"
    listed.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n")
    by_hash = ["--no-deps", "--require-hashes", "-r", str(listed)]
    if package.old_pip:
        pip_install(environment, "pip==19.0.3", options=["--target", str(scratch / "pip")])
        argv = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", *by_hash]
        env = {**os.environ, "PYTHONPATH": str(scratch / "pip")}
        subprocess.run(argv, check=True, env=env, capture_output=True, timeout=900)
    else:
        linked(environment, *by_hash)
    if package.pins:
        linked(environment, "--no-deps", *package.pins)


def linked(environment: Path, *words: str) -> None:
    """Install with uv's own way of saving space: the heavy wheels here are up to 1.5 GB unpacked."""
    from uv import find_uv_bin

    argv = [find_uv_bin(), "pip", "install", "--python", str(environment / "bin" / "python"), "--quiet", *words]
    subprocess.run(argv, check=True, timeout=900)


@pytest.fixture(scope="module")
def furnished(
    made: Callable[..., tuple[Path, Answer]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Package], Path]]:
    """The environment that holds a package, made once; removed at the end, since all of them take gigabytes."""
    known: dict[Package, Path] = {}
    folder = tmp_path_factory.mktemp("packages")

    def environment(package: Package) -> Path:
        if package not in known:
            source, answer = made(package.python)
            assert answer.code == 0, answer.stderr + answer.stdout
            place = folder / package.requirement
            place.mkdir()
            known[package] = copy_environment(source, place / "env")
            furnish(known[package], package, place)
        return known[package]

    yield environment
    shutil.rmtree(folder)


def outcome(environment: Path, package: Package, *, package_first: bool) -> str:
    """Import both in this order, run an operation in both in the same order; how a plain program ends."""
    name = package.module.partition(".")[0]
    parts = [(f"import {package.module}", name, package.operation), ("import ideep4py", "ideep4py", RELU)]
    if not package_first:
        parts.reverse()
    lines = [*(line for line, _, _ in parts), "import numpy"]
    for _, part, operation in parts:
        lines += [f"print({part!r}, flush=True)", operation]
    lines.append("print('done', flush=True)")
    argv = [str(environment / "bin" / "python"), "-B", "-c", "\n".join(lines)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=300)
    last = ended.stdout.split()[-1:]
    if ended.returncode == 0 and last == ["done"]:
        return WORKS
    how = signal.Signals(-ended.returncode).name if ended.returncode < 0 else ended.stderr
    return f"{last[0] if last else 'import'}: {how}"


@each_package
def test_truth_of_package(furnished: Callable[[Package], Path], package: Package) -> None:
    environment = furnished(package)
    before = outcome(environment, package, package_first=True)
    after = outcome(environment, package, package_first=False)
    assert matches(before, package.before), before
    assert matches(after, package.after), after


def matches(seen: str, expected: str) -> bool:
    """Whether the same part ended in the same way; an error's text may hold more than what is expected."""
    part, _, how = expected.partition(": ")
    return seen == expected or (bool(how) and seen.startswith(f"{part}: ") and how in seen)


@each_package
def test_what_the_doctor_says_of_package(furnished: Callable[[Package], Path], package: Package) -> None:
    answer = doctor("diagnose", "--python", str(furnished(package)), "--format", "json")
    native = [code for code in answer.codes() if code.startswith("IDP4")]
    assert native == ([package.code] if package.code else []), answer.stdout


DEEPBIND = """
import os, sys
flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_LAZY | os.RTLD_DEEPBIND)
import ideep4py
sys.setdlopenflags(flags)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "ends"),
    [("import torch", "SIGABRT"), ("import ideep4py, torch", WORKS), (f"import torch{DEEPBIND}", WORKS)],
    ids=["torch first", "ideep4py first", "RTLD_DEEPBIND"],
)
def test_truth_of_row_14(furnished: Callable[[Package], Path], tmp_path: Path, first: str, ends: str) -> None:
    """MKL-DNN inside libtorch.so is global: ideep4py's own file is mapped, and its symbols are torch's."""
    [package] = [one for one in PACKAGES if one.requirement == "torch==1.4.0"]
    environment = furnished(package)
    seen = truth(plain(environment / "bin" / "python", f"{first}\n{PROGRAM}"), {}, tmp_path)
    assert seen.ends == ends, seen
    assert (NULL_HANDLE in seen.stderr) == (ends == "SIGABRT")
    assert Path(str(seen.used)).is_relative_to(environment.resolve() / "lib/python3.7/site-packages/ideep4py/lib")
    assert Path(str(seen.visible)).name == "libtorch.so"


@pytest.mark.slow
def test_fix_of_row_14(furnished: Callable[[Package], Path], tmp_path: Path) -> None:
    """The file that fix leaves makes ``import torch`` first work; undo gives every byte back."""
    [package] = [one for one in PACKAGES if one.requirement == "torch==1.4.0"]
    environment = furnished(package)
    before = manifest(str(environment))
    mended = doctor("fix", "--python", str(environment), "--yes", "--format", "json")
    try:
        assert (mended.code, mended.document["applied"], mended.codes("error")) == (0, True, []), mended.stdout
        assert outcome(environment, package, package_first=True) == WORKS
        assert outcome(environment, package, package_first=False) == WORKS
    finally:
        undone = doctor("undo", mended.document["journal"], "--format", "json")
    assert undone.code == 0, undone.stdout
    assert manifest(str(environment)) == before
