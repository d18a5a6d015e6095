"""Who is suspected, how the stages of a child become one outcome, and a check from end to end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.facts.answer import Answer
from ideepdoctor.facts.pairs import Suspect, check_pairs, read_pairs, suspicious
from ideepdoctor.model.facts import Package
from ideepdoctor.model.native import ElfFile, LibraryFile
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target

SITE = "/env/lib/python3.7/site-packages"
STAGES = ("import first", "import second", "ideep4py op", "other op")
ERROR = {"ok": False, "error_type": "RuntimeError", "error_text": "no such thing"}


def library(path: str, owner: str | None, kind: str = "mkldnn", *, own: bool = False) -> LibraryFile:
    """A library of interest."""
    return LibraryFile(ElfFile(path, path), kind, kind, own=own, owner=owner)


def package(name: str, version: str = "1.0", location: str = SITE) -> Package:
    """An installed distribution."""
    return Package(name, version, location)


# Who is suspected


@pytest.mark.parametrize(
    ("owner", "path", "modules"),
    [
        ("mxnet-mkl 1.5.0", "mxnet/libmkldnn.so.0", ("mxnet",)),
        ("mxnet_cu101mkl 1.5.0", "mxnet/libmkldnn.so.0", ("mxnet",)),
        ("paddlepaddle 1.8.5", "paddle/libs/libmkldnn.so.0", ("paddle",)),
        ("intel-tensorflow 1.13.1", "_solib_k8/_U@mkl/libmklml_intel.so", ("tensorflow",)),
        ("tensorflow 1.15.0", "tensorflow_core/libtensorflow_framework.so.1", ("tensorflow",)),
        ("faiss-cpu 1.7.2", "faiss_cpu.libs/libgomp.so", ("faiss",)),
        ("scikit-learn 1.0.2", "scikit_learn.libs/libgomp.so", ("sklearn",)),
        ("ngraph-core 0.26.0", "../../libmkldnn.so", ("ngraph",)),
        ("mkl 2019.0", "../../libmkl_rt.so", ("numpy",)),
        ("intel-numpy 1.15.1", "numpy/core/_multiarray.so", ("numpy",)),
        ("opencv-python-headless 4.5", "cv2/cv2.so", ("cv2",)),
        ("torch 1.4.0", "torch/lib/libtorch.so", ("torch",)),
        ("Some.Thing 2", "thing/lib/libdnnl.so.2", ("thing", "some_thing")),
        ("some-thing 2", "../../libdnnl.so.2", ("some_thing",)),
        ("some-thing 2", "_native.cpython-37m-x86_64-linux-gnu.so", ("some_thing",)),
        ("some-thing 2", "native.cpython-37m-x86_64-linux-gnu.so", ("native", "some_thing")),
    ],
)
def test_what_is_imported_of_a_distribution(owner: str, path: str, modules: tuple[str, ...]) -> None:
    name, version = owner.lower().replace("_", "-").replace(".thing", "-thing").split(" ")
    files = [library(f"{SITE}/{path}", owner)]
    assert suspicious(files, [package(name, version)]) == (Suspect(owner, modules),)


@pytest.mark.parametrize(
    "owner",
    [
        None,
        "dpkg libdnnl2",
        "torch 1.3.0",
        "jax 1.0",
        "ideep4py 2.0.0.post3",
        "onednn-cpu-gomp 2021.4.0",
        "conda mkl-dnn 0.19",
    ],
)
def test_who_is_not_suspected(owner: str | None) -> None:
    installed = [package("torch", "1.4.0"), package("ideep4py", "2.0.0.post3"), package("onednn-cpu-gomp", "2021.4.0")]
    assert suspicious([library("/env/lib/libdnnl.so", owner)], installed) == ()


def test_the_own_library_is_not_suspected() -> None:
    files = [library(f"{SITE}/ideep4py/lib/libmkldnn.so.0", "torch 1.0", own=True)]
    assert suspicious(files, [package("torch")]) == ()


def test_deep_takes_every_library() -> None:
    files = [
        library(f"{SITE}/torch/lib/libtorch.so", "torch 1.0", "contained"),
        library(f"{SITE}/torch/lib/libgomp.so", "torch 1.0", "gomp"),
        library(f"{SITE}/scikit_learn.libs/libgomp.so", "scikit-learn 1.0", "gomp"),
        library("/env/lib/libiomp5.so", "intel-openmp 1.0", "iomp"),
    ]
    installed = [package("torch"), package("scikit-learn"), package("intel-openmp")]
    assert suspicious(files, installed) == (Suspect("torch 1.0", ("torch",)),)
    assert suspicious(files, installed, deep=True) == (
        Suspect("torch 1.0", ("torch",)),
        Suspect("scikit-learn 1.0", ("sklearn",)),
    )


def test_conda_packages_by_their_table_or_their_folder() -> None:
    installed = [package("numpy"), package("own-thing", location=f"{SITE}/own.egg")]
    files = [
        library(f"{SITE}/torch/lib/libtorch.so", "conda pytorch 1.4.0", "contained"),
        library(f"{SITE}/caffe/_caffe.so", "conda intel-caffe 1.1", "contained"),
        library(f"{SITE}/own.egg/inner/libdnnl.so", "conda outer 1", "mkldnn"),
        library("/env/lib/libdnnl.so.2", "conda libfoo 1", "mkldnn"),
    ]
    assert suspicious(files, installed) == (
        Suspect("pytorch 1.4.0", ("torch",)),
        Suspect("intel-caffe 1.1", ("caffe",)),
        Suspect("outer 1", ("inner",)),
    )


# What became of them


def child(
    *oks: bool | dict[str, Any] | None, code: int | None = 0, stderr: list[str] | None = None, **ended: Any
) -> dict[str, Any]:
    """The payload's record of a child that told these stages."""
    told = {}
    for stage, ok in zip(STAGES, oks, strict=False):
        told[stage] = {"seconds": 0.1, "warnings": [], **(ok if isinstance(ok, dict) else {"ok": ok})}
    return {
        "told": told,
        "stderr": stderr if stderr is not None else [""] * (len(oks) + 1),
        "ended": {"code": code, "timed_out": False, "problem": None, "seconds": 2.0, **ended},
    }


FINE = child(True, True, True, True)
ALONE = child(True, True, None, True)
OURS = child(True, True, True, None)
ABORTED = child(True, True, code=-6, stderr=["a", "b", "terminate called\n"])


def answer(before: Any, after: Any = FINE, alone: Any = ALONE, ours: Any = OURS) -> Answer:
    """The payload's answer on torch 1.4.0."""
    check = {"package": "torch 1.4.0", "module": "torch", "before": before, "after": after, "alone": alone}
    return Answer({"pairs": 1, "checks": [check], "ideep4py": ours})


def test_all_is_well() -> None:
    loaded = {"ok": True, "version": "1.4.0", "path": "/site/torch/__init__.py", "warnings": ["UserWarning: old"]}
    ours = {"ok": True, "version": "2.0.0", "path": "/site/ideep4py/__init__.py", "warnings": ["UserWarning: new"]}
    before = child(loaded, ours, True, True, stderr=["one ", "two ", "", "", "end"])
    [pair] = read_pairs(answer(before, child(ours, loaded, True, True), None, None), False)
    assert (pair.package, pair.module, pair.culprit) == ("torch 1.4.0", "torch", None)
    for outcome in (pair.before, pair.after):
        assert (outcome.ok, outcome.seconds, outcome.error_text, outcome.signal) == (True, 2.0, None, None)
        assert (outcome.version, outcome.path) == ("1.4.0", "/site/torch/__init__.py")
        assert set(outcome.warnings) == {"UserWarning: old", "UserWarning: new"}
    assert pair.before.stderr_tail == "one two end"


def test_a_death_names_the_stage_and_the_side() -> None:
    [pair] = read_pairs(answer(ABORTED), False)
    assert (pair.before.ok, pair.before.signal, pair.before.exit_code) == (False, "SIGABRT", None)
    assert pair.before.error_text == "ideep4py's operation"
    assert pair.before.stderr_tail == "terminate called\n"
    assert pair.culprit == "ideep4py"
    assert pair.after.ok


@pytest.mark.parametrize(
    ("before", "after", "text", "culprit"),
    [
        (child(code=-11), FINE, "import of torch", "torch"),
        (child(True, code=-11), FINE, "import of ideep4py", "ideep4py"),
        (child(True, True, True, code=-11), FINE, "torch's operation", "torch"),
        (child(True, True, True, True, code=-11), FINE, "end of Python", None),
        (child(True, ERROR, None, True), FINE, "import of ideep4py: no such thing", "ideep4py"),
        (child(ERROR, True, True, None), FINE, "import of torch: no such thing", "torch"),
        (child(True, True, ERROR, ERROR), FINE, "ideep4py's operation: no such thing", "ideep4py"),
        (FINE, child(code=-11), "import of ideep4py", "ideep4py"),
        (FINE, child(True, code=-11), "import of torch", "torch"),
        (FINE, child(True, True, True, ERROR), "torch's operation: no such thing", "torch"),
        (child(True, True, True, code=-11), ABORTED, "torch's operation", "torch"),
    ],
)
def test_each_stage_in_words(before: Any, after: Any, text: str, culprit: str | None) -> None:
    [pair] = read_pairs(answer(before, after), False)
    failed = pair.after if pair.before.ok else pair.before
    assert not failed.ok
    assert failed.error_text == text
    assert pair.culprit == culprit
    assert failed.signal == (None if text.endswith("thing") else "SIGSEGV")
    assert failed.error_type == ("RuntimeError" if text.endswith("thing") else None)


def test_a_hang_is_no_signal() -> None:
    [pair] = read_pairs(answer(child(True, True, code=-9, timed_out=True)), False)
    assert (pair.before.ok, pair.before.timed_out, pair.before.signal) == (False, True, None)
    assert pair.before.error_text == "ideep4py's operation"


def test_the_exit_code_of_an_emulator() -> None:
    emulated = answer(child(True, True, code=134))
    assert [pair.before.signal for pair in read_pairs(emulated, True)] == ["SIGABRT"]
    assert [pair.before.exit_code for pair in read_pairs(emulated, False)] == [134]


@pytest.mark.parametrize(
    ("before", "after", "alone", "ours"),
    [
        (child(ERROR, True, True, None), child(True, ERROR, True, None), child(ERROR, True, None, None), OURS),
        (child(code=-11), child(True, code=-11), child(code=-11), OURS),
        (child(True, True, True, ERROR), child(True, True, True, ERROR), child(True, True, None, code=1), OURS),
        (child(True, True, True, True, code=-6), FINE, child(True, True, None, True, code=-6), OURS),
        (child(True, True, True, True, code=-6), FINE, ALONE, child(True, True, True, None, code=-6)),
        (ABORTED, child(True, True, code=-6), ALONE, child(True, True, code=-6)),
        (child(True, ERROR, None, True), child(ERROR, True, None, True), ALONE, child(ERROR, True, None, None)),
        (None, FINE, None, None),
        (ABORTED, None, ALONE, OURS),
        (None, None, None, None),
    ],
)
def test_what_is_broken_by_itself_or_was_not_tried_is_no_pair(before: Any, after: Any, alone: Any, ours: Any) -> None:
    assert read_pairs(answer(before, after, alone, ours), False) == ()


def test_what_the_package_cannot_do_alone_does_not_hide_a_death() -> None:
    useless = child(True, True, True, ERROR)
    [pair] = read_pairs(answer(ABORTED, useless, child(True, True, None, ERROR)), False)
    assert (pair.before.signal, pair.culprit) == ("SIGABRT", "ideep4py")
    assert pair.after.ok
    assert pair.after.warnings == ("without the other, too: torch's operation: no such thing",)


def test_what_was_not_tried_in_a_child_is_not_told() -> None:
    before, after = child(ERROR, True, code=-6), child(True, ERROR, True, None)
    [pair] = read_pairs(answer(before, after, child(ERROR, True, None, None)), False)
    assert pair.before.signal == "SIGABRT" and pair.after.ok
    assert pair.after.warnings == ("without the other, too: import of torch: no such thing",)


def test_without_the_controls_every_failure_counts() -> None:
    [pair] = read_pairs(answer(child(ERROR, True, True, None), FINE, None, None), False)
    assert pair.before.error_text == "import of torch: no such thing"


# From end to end

MODULES = {
    "numpy": """
def array(given, dtype=None): return Array(given)
def maximum(given, least): return Array([[max(one, least) for one in row] for row in given])
class Array(list):
    def tolist(self): return list(self)
""",
    "ideep4py": """
import os, sys
import numpy
stranger = "torch" in sys.modules
def array(given): return given
class relu:
    def Forward(given):
        return os.abort() if stranger else numpy.maximum(given, 0)
""",
    "torch": "__version__ = '1.4.0'",
    "broken": "import no_such_module",
    "hangs": "import sys, time\nif 'ideep4py' in sys.modules: time.sleep(60)",
}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The variables of a user whose Python finds these modules."""
    for name, source in MODULES.items():
        (tmp_path / f"{name}.py").write_text(source)
    return {"PATH": os.defpath, "PYTHONPATH": str(tmp_path)}


def test_checked_in_a_real_python(environ: dict[str, str]) -> None:
    wanted = [Suspect("broken 1", ("broken",)), Suspect("torch 1.4.0", ("torch_folder", "torch"))]
    [pair] = check_pairs(RealSystem(), Target(sys.executable), environ, wanted, cwd="/", child_seconds=30)
    assert (pair.package, pair.module, pair.culprit) == ("torch 1.4.0", "torch", "ideep4py")
    assert (pair.before.signal, pair.before.error_text, pair.before.version) == (
        "SIGABRT",
        "ideep4py's operation",
        "1.4.0",
    )
    assert pair.after.ok


def test_bounded_in_a_real_python(environ: dict[str, str]) -> None:
    wanted = [Suspect(f"hangs {number}", ("hangs",)) for number in range(8)]
    pairs = check_pairs(
        RealSystem(), Target(sys.executable), environ, wanted, cwd="/", child_seconds=2.5, total_seconds=7.0
    )
    assert 1 <= len(pairs) < 8, "for the last there was no time"
    assert pairs[0].before.ok
    assert (pairs[0].after.timed_out, pairs[0].after.error_text) == (True, "import of hangs")


def test_nothing_wanted_starts_nothing() -> None:
    assert check_pairs(RealSystem(), Target("/no/such/python"), {}, []) == ()
