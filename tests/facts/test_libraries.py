"""What a library is, from its headers; and the payload's answer as facts."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.facts.libraries import identify, kind_of, read_native
from ideepdoctor.model.native import ElfFile

FOLDER = "/env/lib/python3.7/site-packages/ideep4py"
BINDING = f"{FOLDER}/_ideep4py.so"
MKLDNN = ("mkldnn_memory_set_data_handle",)


def file(path: str, **fields: Any) -> ElfFile:
    return ElfFile(path, fields.pop("real_path", path), **fields)


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (file("/x/libmkldnn.so.0", soname="libmkldnn.so.0", exports=MKLDNN), "mkldnn"),
        (file("/x/libmkldnn.so.0", soname="libdnnl.so.2", exports=("dnnl_version",)), "mkldnn"),
        (file("/x/anything.so", soname="libmkldnn.so.0", exports=MKLDNN), "mkldnn"),
        (file("/x/libtorch.so", soname="libtorch.so", exports=MKLDNN), "contained"),
        (file("/x/libtorch.so", soname="libtorch.so"), None),
        (file("/x/libtorch.so", exports=("dnnl_memory_set_data_handle",)), "contained"),
        (file("/x/libmkldnn.so.0", problem="empty"), "mkldnn"),
        (file("/x/libmklml_intel.so"), "mklml"),
        (file("/x/libmkl_rt.so", soname="libmkl_rt.so"), "mkl"),
        (file("/x/libiomp5.so", soname="libiomp5.so"), "iomp"),
        (file("/x/libomp.so.5", soname="libomp.so.5"), "omp"),
        (file("/x/libomp-1a2b.so.5"), "omp"),
        (file("/x/libompl.so"), None),
        (file("/x/libother.so", soname="libother.so", exports=("__kmpc_fork_call",)), "omp"),
        (file("/x/libother.so", exports=("__kmpc_fork_call", "mkldnn_version")), "contained"),
        (file("/x/libgomp-a34b3233.so.1.0.0", soname="libgomp-a34b3233.so.1.0.0"), "gomp"),
        (file("/x/libopenblasp-r0-34a18dc3.3.7.so"), "openblas"),
        (file("/x/link.so", real_path="/x/libgomp.so.1.0.0"), "gomp"),
        (file("/x/libc.so.6", soname="libc.so.6", exports=("omp_get_max_threads",)), None),
    ],
)
def test_kind(found: ElfFile, kind: str | None):
    assert kind_of(found) == kind


@pytest.mark.parametrize(
    ("fields", "kind", "mkl", "name"),
    [
        ({"version": "0.19.0"}, "mkldnn", None, "MKL-DNN 0.19.0"),
        ({"version": "1.0.2"}, "mkldnn", None, "MKL-DNN 1.0.2"),
        ({"version": "1.1.0"}, "mkldnn", None, "DNNL 1.1.0"),
        ({"version": "1.4.1"}, "contained", None, "DNNL 1.4.1"),
        ({"version": "1.5.0"}, "mkldnn", None, "oneDNN 1.5.0"),
        ({"version": "2.4.0"}, "mkldnn", None, "oneDNN 2.4.0"),
        ({"build_id": "d0266ed018ea47e28c42edf360f8e200aabbccdd", "exports": MKLDNN}, "mkldnn", None, "MKL-DNN 0.14"),
        ({"build_id": "44a0150f3890f237bf57e72f13869ac700000000", "exports": MKLDNN}, "mkldnn", None, "MKL-DNN 0.12"),
        ({"build_id": "00", "exports": MKLDNN}, "mkldnn", None, "MKL-DNN before 0.19"),
        ({"exports": (*MKLDNN, "mkldnn_version")}, "mkldnn", None, "MKL-DNN"),
        ({"exports": ("dnnl_memory_set_data_handle",)}, "contained", None, "DNNL or oneDNN"),
        ({"problem": "empty"}, "mkldnn", None, "unreadable (empty)"),
        ({}, "mklml", "Intel(R) Math Kernel Library Version 2019.0.0 Product Build 20180710", "MKLML 2019.0.0"),
        ({"size_bytes": 154033966}, "mklml", None, "MKLML 2018.0.3"),
        ({"size_bytes": 154033966, "build_id": "00"}, "mklml", None, "MKLML"),
        ({}, "mkl", None, "MKL"),
        ({"version": "5.0.20170525"}, "iomp", None, "Intel OpenMP 5.0.20170525"),
        ({}, "omp", None, "LLVM OpenMP"),
        ({}, "gomp", None, "GNU OpenMP"),
        ({"version": "0.3.7"}, "openblas", None, "OpenBLAS 0.3.7"),
    ],
)
def test_name(fields: dict[str, Any], kind: str, mkl: str | None, name: str):
    assert identify(file("/x/lib.so", **fields), kind, mkl) == name


def answer(**changes: Any) -> dict[str, Any]:
    """What the payload tells of a small healthy environment."""
    lib = f"{FOLDER}/lib/libmkldnn.so.0"
    objects = {
        "/usr/bin/python3.7": {"real_path": "/usr/bin/python3.7", "identity": "1:1", "bits": 64, "machine": 62},
        BINDING: {"identity": "1:2", "needed": ["libmkldnn.so.0"], "rpath": "$ORIGIN/lib", "bits": 64, "machine": 62},
        lib: {"identity": "1:3", "soname": "libmkldnn.so.0", "exports": list(MKLDNN), "bits": 64, "machine": 62},
        "/opt/libmkldnn.so.0": {
            "identity": "1:4",
            "soname": "libmkldnn.so.0",
            "exports": [*MKLDNN, "mkldnn_version"],
            "version": "0.19.0",
            "bits": 64,
            "machine": 62,
        },
    }
    told: dict[str, Any] = {
        "libraries": 1,
        "executable": "/usr/bin/python3.7",
        "binding": BINDING,
        "numpy": [],
        "variables": {"LD_LIBRARY_PATH": "/opt"},
        "preload_file": None,
        "cache": [],
        "default_folders": ["/lib"],
        "hwcaps": [],
        "objects": objects,
        "found": [
            {"path": lib, "places": ["ideep4py"], "owner": "ideep4py 2.0.0.post3"},
            {"path": "/opt/libmkldnn.so.0", "places": ["LD_LIBRARY_PATH"], "owner": None},
        ],
        "sources": [
            {
                "name": "LD_LIBRARY_PATH",
                "value": "/opt",
                "path": "/home/user/.bashrc",
                "line_number": 3,
                "line": "export LD_LIBRARY_PATH=/opt",
                "kind": "rc",
            }
        ],
        "walk": {"entries": 12, "seconds": 0.1, "complete": True, "unreadable": 0},
        "started": None,
        "mkl_versions": {},
    }
    return {**told, **changes}


def started(after: list[str], **changes: Any) -> dict[str, Any]:
    fine = {"ok": True, "seconds": 0.2, "warnings": []}
    return {
        "at_start": [],
        "after": after,
        "visible": {},
        "bound": {"omp_get_max_threads": "/x/libiomp5.so"},
        "told": {"import": fine, "first_op": fine},
        "stderr": ["", "", ""],
        "ended": {"code": 0, "timed_out": False, "problem": None, "seconds": 0.4},
        **changes,
    }


def test_own_and_strange_libraries_are_told_apart_and_the_rpath_wins():
    found = read_native(answer(), emulated=False)
    assert [(item.own, item.name, item.owner) for item in found.files] == [
        (True, "MKL-DNN before 0.19", "ideep4py 2.0.0.post3"),
        (False, "MKL-DNN 0.19.0", None),
    ]
    [taken] = [item for item in found.predicted if item.name == "libmkldnn.so.0"]
    assert (taken.path, taken.passed_over) == (f"{FOLDER}/lib/libmkldnn.so.0", ("/opt/libmkldnn.so.0",))
    assert taken.step == f"DT_RPATH of {BINDING}"
    assert found.sources[0].line_number == 3
    assert (found.entries, found.complete, found.started, found.disagreements) == (12, True, None, ())


def test_a_process_that_took_another_file_is_a_disagreement():
    told = answer(started=started(["/opt/libmkldnn.so.0", BINDING]))
    found = read_native(told, emulated=False)
    assert found.started is not None
    assert found.started.imported is not None
    assert found.started.imported.ok
    [text] = found.disagreements
    assert "libmkldnn.so.0" in text
    assert "/opt/libmkldnn.so.0" in text


def test_a_process_that_took_what_was_predicted_is_none():
    told = answer(started=started([f"{FOLDER}/lib/libmkldnn.so.0", BINDING]))
    assert read_native(told, emulated=False).disagreements == ()


def test_of_a_child_that_died_at_its_operation_the_maps_still_count():
    died = started(
        ["/opt/libmkldnn.so.0"],
        told={"import": {"ok": True, "seconds": 0.1, "warnings": []}},
        ended={"code": -6, "timed_out": False, "problem": None, "seconds": 0.4},
    )
    found = read_native(answer(started=died), emulated=False)
    assert found.started is not None
    assert found.started.first_op is not None
    assert found.started.first_op.signal == "SIGABRT"
    assert found.disagreements


def test_what_is_mapped_at_the_start_comes_first():
    before = started(["/opt/libmkldnn.so.0", BINDING], at_start=["/opt/libmkldnn.so.0", "/lib/libc.so.6"])
    found = read_native(answer(started=before), emulated=False)
    [taken] = [item for item in found.predicted if item.name == "libmkldnn.so.0"]
    assert (taken.path, taken.step) == ("/opt/libmkldnn.so.0", "already loaded")
    assert found.disagreements == ()


@pytest.mark.parametrize("key", ["executable", "objects", "variables", "walk"])
def test_an_answer_that_lacks_something_is_refused(key: str):
    told = answer()
    del told[key]
    with pytest.raises(CouldNotCheck, match=key):
        read_native(told, emulated=False)


def test_what_numpy_opens_by_itself_is_there_before_ideep4py():
    told = answer(
        started=started(
            ["/opt/libmkldnn.so.0", BINDING], with_numpy=["/opt/libmkldnn.so.0"], at_start=["/lib/libc.so.6"]
        )
    )
    found = read_native(told, emulated=False)
    [taken] = [item for item in found.predicted if item.name == "libmkldnn.so.0"]
    assert (taken.path, taken.step) == ("/opt/libmkldnn.so.0", "already loaded")
    assert found.disagreements == ()


def test_what_numpy_needs_by_name_is_predicted_and_not_taken_from_the_process():
    numpy, blas, other = "/env/numpy/core/_multiarray_umath.so", "/env/numpy.libs/libblas.so", "/opt/libblas.so"
    told = answer(numpy=[numpy], started=started([BINDING, numpy, other], with_numpy=[numpy, other]))
    told["objects"] |= {
        numpy: {"identity": "1:7", "needed": ["libblas.so"], "rpath": "/env/numpy.libs", "bits": 64, "machine": 62},
        blas: {"identity": "1:8", "soname": "libblas.so", "bits": 64, "machine": 62},
    }
    found = read_native(told, emulated=False)
    assert any("libblas.so: predicted /env/numpy.libs/libblas.so" in text for text in found.disagreements)


def test_the_loaders_own_tokens_are_used():
    told = answer(tokens={"LIB": "lib64", "PLATFORM": "haswell"})
    told["objects"][BINDING]["rpath"] = "/x/$LIB/$PLATFORM"
    told["objects"]["/x/lib64/haswell/libmkldnn.so.0"] = {"identity": "1:9", "bits": 64, "machine": 62}
    found = read_native(told, emulated=False)
    [taken] = [item for item in found.predicted if item.name == "libmkldnn.so.0"]
    assert taken.path == "/x/lib64/haswell/libmkldnn.so.0"
