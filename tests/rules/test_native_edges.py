"""Rules about executable stacks, MKL, variables and BLAS: just inside of what was measured, and just outside."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.deaths import killed
from ideepdoctor.rules.idp411 import IDP411
from ideepdoctor.rules.idp506 import IDP506
from ideepdoctor.rules.idp706 import IDP706
from ideepdoctor.rules.loading import LIB, MKLDNN, elf, own_file, own_taken, stranger
from ideepdoctor.rules.variable_names import KNOWN, meant
from ideepdoctor.treatment.variables import recommended

from .hosts import alone, facts_on, faults, judged

OWN = f"{LIB}/{MKLDNN}"
ASKS = {OWN: elf(OWN, soname=MKLDNN, executable_stack=True)}
HOST = "py37-healthy"


def sets(**values: str) -> dict[str, Any]:
    return {
        "limits": {"affinity_cpus": [0, 1]},
        "variables": {"inherited": values, "effective": values, "set_by_doctor": []},
    }


def glibc(version: str | None, libc: str = "glibc") -> dict[str, Any]:
    return {"platform": {"libc": libc, "libc_version": version}}


def shape(code: str, *overlays: dict[str, Any]) -> list[tuple[Severity, str]]:
    return [(item.severity, item.next_step) for item in alone(code, HOST, *overlays)]


@pytest.mark.parametrize(
    ("version", "severity"),
    [("2.36", Severity.INFO), ("2.40", Severity.INFO), ("2.41", Severity.ERROR), ("2.42", Severity.ERROR)],
)
def test_the_glibc_that_refuses(version: str, severity: Severity):
    marked = {"native": {"objects": ASKS}}
    assert shape("IDP409", marked, glibc(version)) == [(severity, f"patchelf --clear-execstack {OWN}")]
    told = alone("IDP409", HOST, marked, glibc(version))[0].consequence
    assert told.startswith("it works") == (severity is Severity.INFO)
    assert shape("IDP409", marked, glibc(version, "musl")) == []
    assert shape("IDP409", marked, glibc(None)) == []
    allowed = sets(GLIBC_TUNABLES="glibc.rtld.execstack=2")
    assert len(shape("IDP409", marked, glibc(version), allowed)) == (severity is Severity.INFO)
    assert len(shape("IDP409", marked, glibc(version), sets(GLIBC_TUNABLES="glibc.rtld.execstack=20"))) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"owner": None}, False),
        ({"places": ["LD_LIBRARY_PATH"]}, False),
        ({"own": True}, False),
        ({"file": elf("/x/libmxnet.so", executable_stack=False)}, False),
        ({"file": elf("/x/libmxnet.so")}, False),
    ],
)
def test_a_neighbour_that_asks(changes: dict[str, Any], told: bool):
    row = stranger("/x/libmxnet.so", owner="mxnet-mkl 1.5.0", places=["site-packages"], kind="contained")
    row = {**row, "file": elf("/x/libmxnet.so", executable_stack=True), **changes}
    found = alone("IDP409", HOST, {"native": {"files": [row]}}, glibc("2.41"))
    assert [item.severity for item in found] == ([Severity.WARNING] if told else [])
    assert alone("IDP409", HOST, {"native": {"files": [row]}}, glibc("2.40")) == []
    both = alone("IDP409", HOST, {"native": {"files": [row], "objects": ASKS}}, glibc("2.41"))
    assert [item.severity for item in both] == [Severity.ERROR]


def test_two_files_that_ask_are_one_finding():
    other = f"{LIB}/libiomp5.so"
    both = {"native": {"objects": {**ASKS, other: elf(other, executable_stack=True)}, "predicted": own_taken()}}
    [finding] = alone("IDP409", HOST, both)
    assert finding.found.endswith(", and 1 more")
    assert len(finding.evidence) == 2
    unused = {"native": {"objects": {"/x/unused.so": elf("/x/unused.so", executable_stack=True)}}}
    assert alone("IDP409", HOST, unused) == []


def test_whose_files_are_in_the_cache():
    row = own_file()
    for places, own, told in ((["ld.so cache"], True, 1), (["ideep4py"], True, 0), (["ld.so cache"], False, 0)):
        assert len(alone("IDP410", HOST, {"native": {"files": [{**row, "places": places, "own": own}]}})) == told
    assert alone("IDP410", HOST, {"packages": {"ideep4py": None}}) == []


def with_(example: int, *overlays: dict[str, Any]) -> list[Any]:
    return alone("IDP411", HOST, IDP411.bad[example].overlay, *overlays)


def test_mixed_and_incomplete_mkl():
    mapped, owners, missing, kernel, unclear = (with_(number)[0] for number in range(5))
    assert [item.severity for item in (mapped, owners, missing, kernel, unclear)] == [
        Severity.WARNING,
        Severity.WARNING,
        Severity.ERROR,
        Severity.ERROR,
        Severity.ERROR,
    ]
    assert "/opt/intel/mkl/lib/intel64/libmkl_core.so" in mapped.found
    assert owners.found.endswith("its parts belong to conda mkl 2018.0.3 and mkl 2019.0")
    assert missing.found.endswith(": libmkl_core, libmkl_intel_thread missing")
    assert kernel.found.endswith(": libmkl_def, libmkl_avx2 missing")
    assert "a part for this CPU may be missing" in unclear.found
    assert mapped.next_step == "conda install --force-reinstall mkl"
    preload = {"variables": {"inherited": {"LD_PRELOAD": "/opt/intel/mkl/lib/intel64/libmkl_core.so"}}}
    assert with_(0, preload)[0].next_step == "unset LD_PRELOAD"
    assert with_(1, preload)[0].next_step != "unset LD_PRELOAD"
    pip = with_(2, {"packages": {"mkl": "2019.0"}})[0].next_step
    assert pip.endswith("-m pip install --force-reinstall --no-deps mkl==2019.0")
    conda = {"packages": {"mkl": {"version": "2019.0", "installer": "conda"}}}
    assert with_(2, conda)[0].next_step == "conda install --force-reinstall mkl"


@pytest.mark.parametrize(
    "ending",
    [
        {"ok": False, "exit_code": 1},
        {"ok": False, "exit_code": 2, "error_type": "SystemExit"},
        {"ok": False, "signal": "SIGSEGV"},
        {"ok": True},
    ],
)
def test_an_import_that_mkl_did_not_end(ending: dict[str, Any]):
    assert with_(2, {"imports": {"numpy": {"seconds": 0.1, **ending, "exit_code": ending.get("exit_code")}}}) == []


def mkl_rows(*rows: tuple[str, str | None]) -> dict[str, Any]:
    files = [
        {"file": elf(path), "kind": "mkl", "name": "MKL", "own": False, "owner": owner, "places": ["prefix"]}
        for path, owner in rows
    ]
    return {"native": {"files": files, "predicted": [], "started": {"with_numpy": [path for path, _ in rows]}}}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("/a/libmkl_rt.so", "dpkg libmkl-rt"), ("/a/libmkl_core.so", "dpkg libmkl-core")], 0),
        ([("/a/libmkl_rt.so.2", "mkl 2022.1"), ("/a/libmkl_core.so.2", "mkl 2022.1")], 0),
        ([("/a/libmkl_rt.so.2", "mkl 2022.1"), ("/a/libmkl_core.so", "conda mkl 2019.0")], 0),
        ([("/a/libmkl_rt.so.2", "mkl 2022.1"), ("/a/libmkl_core.so.2", "conda mkl 2021.4")], 1),
        ([("/a/libmkl_rt.so", "mkl 2019.0"), ("/b/libmkl_core.so", "mkl 2019.0")], 1),
        ([("/a/libmkl_core.so", "mkl 2019.0"), ("/b/libmkl_intel_lp64.so", "mkl 2018.0.3")], 0),
        ([("/a/libmkl_rt.so", "mkl 2019.0"), ("/a/libmkl_core.so", None)], 0),
    ],
)
def test_whose_parts(rows: list[tuple[str, str | None]], told: int):
    assert len(alone("IDP411", HOST, mkl_rows(*rows))) == told


def test_what_mkl_service_refuses():
    bad = IDP506.bad[0].overlay
    dead = {"imports": {"numpy": {"ok": False, "seconds": 0.1, "exit_code": 1}}}
    assert [item.severity for item in alone("IDP506", HOST, bad)] == [Severity.WARNING]
    assert [item.severity for item in alone("IDP506", HOST, bad, dead)] == [Severity.ERROR]
    assert alone("IDP506", HOST, bad, {"native": {"started": None}}) == []
    assert alone("IDP506", HOST, bad, {"native": {"started": {"at_start": ["/x/libgomp-plugin.so"]}}}) == []
    assert alone("IDP506", HOST, bad, sets(MKL_THREADING_LAYER="INTEL", MKL_SERVICE_FORCE_INTEL="")) == []
    assert len(alone("IDP506", HOST, bad, {"imports": None})) == 1


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("CHAINER_USE_IDEEEP", "CHAINER_USE_IDEEP"),
        ("CHAINER_IDEEP", "CHAINER_USE_IDEEP"),
        ("CHAINER_USE_IDEEP4PY", "CHAINER_USE_IDEEP"),
        ("CHAINER_TYPECHECK", "CHAINER_TYPE_CHECK"),
        ("OMP_NUM_THREAD", "OMP_NUM_THREADS"),
        ("OMP_NUMTHREADS", "OMP_NUM_THREADS"),
        ("MKL_NUM_THREAD", "MKL_NUM_THREADS"),
        ("KMP_BLOCK_TIME", "KMP_BLOCKTIME"),
        ("OPENBLAS_NUM_THREAD", "OPENBLAS_NUM_THREADS"),
        ("CHAINER_USE_MKLDNN", None),
        ("CHAINER_HOME", None),
        ("OMP_NUM_THREADS_DEV_0", None),
        ("OMP_NUM_THREAD_DEV_0", None),
        ("MKL_ROOT", None),
        ("MALLOC_ARENA_MAX", None),
        ("GOMP_NUM_THREADS", None),
    ],
)
def test_what_a_name_was_meant_to_be(name: str, right: str | None):
    assert meant(name) == right
    assert all(meant(known) is None for known in KNOWN)


def test_variables_that_nothing_reads():
    [slip] = alone("IDP507", HOST, sets(OMP_NUM_THREAD="4"))
    assert (slip.severity, slip.next_step) == (Severity.WARNING, 'export OMP_NUM_THREADS="$OMP_NUM_THREAD"')
    assert slip.consequence == "OMP_NUM_THREADS is not set"
    [both] = alone("IDP507", HOST, sets(OMP_NUM_THREAD="4", OMP_NUM_THREADS="2"))
    assert both.consequence.startswith("OMP_NUM_THREADS has its value all the same")
    later = sets(DNNL_VERBOSE="1", MKLDNN_MAX_CPU_ISA="AVX2", MKLDNN_VERBOSE="1")
    [finding] = alone("IDP507", HOST, later)
    assert (finding.severity, finding.next_step) == (Severity.INFO, "unset DNNL_VERBOSE MKLDNN_MAX_CPU_ISA")
    assert alone("IDP507", HOST, later, {"packages": {"ideep4py": None}}) == []
    assert len(alone("IDP507", HOST, later, {"native": None})) == 1
    for kind, own, told in (("contained", False, 0), ("mkldnn", False, 0), ("mkldnn", True, 1), ("iomp", False, 1)):
        row = {**stranger(), "kind": kind, "own": own}
        assert len(alone("IDP507", HOST, later, {"native": {"files": [row]}})) == told
    unread = {"variables": {"inherited": {"OMP_NUM_THREAD": "1"}, "effective": None, "set_by_doctor": []}}
    assert len(alone("IDP507", HOST, unread)) == 1


def test_a_variable_that_hides_a_clash_is_one_finding():
    rows = [
        {"file": elf(path), "kind": "iomp", "name": path, "own": False, "owner": None, "places": []}
        for path in ("/a/libiomp5.so", "/b/libiomp5.so")
    ]
    two = {"native": {"files": rows, "started": {"after": ["/a/libiomp5.so", "/b/libiomp5.so"]}}}
    hidden = sets(KMP_DUPLICATE_LIB_OK="true", CHAINER_USE_IDEEP="auto")
    assert (alone("IDP508", HOST, two, hidden), len(alone("IDP408", HOST, two, hidden))) == ([], 1)
    assert len(alone("IDP508", HOST, hidden)) == 1
    assert len(alone("IDP508", HOST, hidden, {"native": None})) == 1


@pytest.mark.parametrize(
    ("values", "severities"),
    [
        ({"OMP_DYNAMIC": "FALSE"}, []),
        ({"OMP_DYNAMIC": "1"}, ["error"]),
        ({"OMP_MAX_ACTIVE_LEVELS": "0"}, ["error"]),
        ({"OMP_MAX_ACTIVE_LEVELS": "1"}, []),
        ({"OMP_MAX_ACTIVE_LEVELS": "-1"}, []),
        ({"KMP_LIBRARY": "SERIAL"}, ["error"]),
        ({"KMP_LIBRARY": "throughput"}, []),
        ({"OMP_THREAD_LIMIT": "0"}, ["error"]),
        ({"KMP_ALL_THREADS": "1"}, ["error"]),
        ({"KMP_DEVICE_THREAD_LIMIT": "1"}, ["error"]),
        ({"OMP_THREAD_LIMIT": "2"}, []),
        ({"OMP_THREAD_LIMIT": "3", "OMP_NUM_THREADS": "4"}, ["error"]),
        ({"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"}, []),
        ({"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "0"}, ["warning"]),
        ({"OMP_THREAD_LIMIT": "junk"}, []),
        ({"MKL_DEBUG_CPU_TYPE": "4"}, ["error"]),
        ({"MKL_DEBUG_CPU_TYPE": "5"}, []),
        ({"OMP_STACKSIZE": "1000g"}, ["error"]),
        ({"KMP_STACKSIZE": "1T"}, ["error"]),
        ({"GOMP_STACKSIZE": "100000000"}, ["error"]),
        ({"OMP_STACKSIZE": "24M"}, []),
        ({"OMP_STACKSIZE": "100000000B"}, []),
        ({"OMP_STACKSIZE": "abc"}, []),
        ({"OMP_NUM_THREADS": "-1"}, ["warning"]),
        ({"OMP_NUM_THREADS": "1.5"}, ["warning"]),
        ({"OMP_NUM_THREADS": ""}, []),
        ({"OMP_NUM_THREADS": " 2 , 1"}, []),
        ({"KMP_BLOCKTIME": "0"}, ["info"]),
        ({"KMP_BLOCKTIME": "1"}, []),
        ({"MALLOC_PERTURB_": "85", "OMP_WAIT_POLICY": "junk"}, []),
    ],
)
def test_values_that_do_harm(values: dict[str, str], severities: list[str]):
    assert [item.severity.value for item in alone("IDP509", HOST, sets(**values))] == severities
    assert alone("IDP509", HOST, sets(**values), {"packages": {"ideep4py": None}}) == []


def test_what_a_number_of_threads_that_is_none_leaves():
    assert alone("IDP509", HOST, sets(OMP_NUM_THREADS="0"))[0].consequence == "OpenMP takes one thread"
    assert "a number of its own" in alone("IDP509", HOST, sets(OMP_NUM_THREADS="abc"))[0].consequence


def test_how_many_threads_there_are():
    serial = {"variables": {"inherited": {}, "effective": {"KMP_LIBRARY": "serial"}, "set_by_doctor": []}}
    for affinity, logical, told in (([3], 2, 0), ([0, 1], 1, 1), (None, 2, 1), (None, 1, 0), (None, None, 0)):
        limits = {"limits": {"affinity_cpus": affinity}, "cpu": {"logical_cpus": logical}}
        assert len(alone("IDP509", HOST, serial, limits)) == told
    amd = sets(MKL_DEBUG_CPU_TYPE="4")
    assert alone("IDP509", HOST, amd, {"cpu": {"vendor": "GenuineIntel"}}) == []
    assert alone("IDP509", HOST, amd, {"cpu": {"cpuinfo_flags": ["avx2"], "cpuid_flags": ["avx2"]}}) == []
    unknown = {"limits": {"memory_total_bytes": None}}
    assert alone("IDP509", HOST, sets(OMP_STACKSIZE="1000g"), unknown) == []


def test_a_stack_beyond_the_memory_is_the_one_cause_of_refused_threads():
    refused = {"first_op": killed("SIGABRT", "OMP: Error #34: System unable to allocate necessary resources")}
    assert faults(judged(HOST, sets(OMP_STACKSIZE="1000g"), refused)) == ["IDP509"]
    assert faults(judged(HOST, sets(OMP_STACKSIZE="24M"), refused)) == ["IDP313"]
    illegal = {"first_op": killed("SIGILL")}
    assert faults(judged(HOST, sets(OMP_STACKSIZE="1000g"), illegal)) == ["IDP313", "IDP509"]


@pytest.mark.parametrize(("value", "refused"), [("true", 1), ("", 1), ("1.0", 1), ("0", 0), (" 1 ", 0), ("-1", 0)])
def test_numbers_that_chainer_wants(value: str, refused: int):
    failed = {"imports": {"chainer": {"ok": False, "seconds": 0.1, "error_type": "ValueError"}}, "chainer": None}
    other = {"imports": {"chainer": {"ok": False, "seconds": 0.1, "error_type": "ImportError"}}, "chainer": None}
    given = sets(CHAINER_TYPE_CHECK=value, CHAINER_USE_IDEEP="auto", MKL_DEBUG_CPU_TYPE="7")
    assert len(alone("IDP509", HOST, given, failed)) == refused
    assert alone("IDP509", HOST, given, other) == []
    assert alone("IDP509", HOST, given) == []
    assert len(alone("IDP509", HOST, given, {"imports": None})) == refused
    assert alone("IDP509", HOST, given, {"imports": None, "packages": {"chainer": None}}) == []
    if refused:
        assert faults(judged(HOST, given, failed)) == ["IDP509"]


@pytest.mark.parametrize(
    ("values", "one_thread"),
    [
        ({"GOMP_CPU_AFFINITY": "0-1"}, True),
        ({"GOMP_CPU_AFFINITY": "0 5"}, True),
        ({"GOMP_CPU_AFFINITY": "5 0"}, False),
        ({"GOMP_CPU_AFFINITY": "junk"}, False),
        ({"GOMP_CPU_AFFINITY": ""}, False),
        ({"GOMP_CPU_AFFINITY": "0-1", "OMP_PROC_BIND": "false"}, False),
        ({"GOMP_CPU_AFFINITY": "0-1", "OMP_PLACES": "sockets"}, False),
        ({"GOMP_CPU_AFFINITY": "5", "OMP_PROC_BIND": "true"}, True),
    ],
)
def test_a_binding_by_gnus_variable(values: dict[str, str], one_thread: bool):
    assert len(alone("IDP505", HOST, sets(**values))) == one_thread
    assert alone("IDP505", HOST, sets(GOMP_CPU_AFFINITY="0"), {"limits": {"affinity_cpus": None}}) == []


@pytest.mark.parametrize("number", range(len(IDP706.bad)))
def test_numpy_without_blas(number: int):
    bad = IDP706.bad[number].overlay
    assert [item.severity for item in alone("IDP706", HOST, bad)] == [Severity.WARNING]
    assert alone("IDP706", HOST, bad, {"platform": {"system": "Darwin"}}) == []
    assert alone("IDP706", HOST, bad, {"packages": {"numpy": None}}) == []
    assert alone("IDP706", HOST, bad, {"native": {"started": {"with_numpy": ["/usr/lib/libblas.so.3"]}}}) == []
    assert alone("IDP706", HOST, bad, {"native": None}) == []
    path = "/e/numpy/core/_multiarray_umath.so"
    for library in ("/usr/lib/x/atlas/libblas.so.3", "/e/lib/libmkl_rt.so.1", "/usr/lib/blis-openmp/libblas.so.4"):
        assert alone("IDP706", HOST, bad, {"native": {"started": {"with_numpy": [path, library]}}}) == []


def test_a_machine_of_two_sockets_is_told_its_cores():
    two = {
        "cpu": {"sockets": 2, "physical_cores": 56, "logical_cpus": 112, "vendor": "GenuineIntel"},
        "limits": {"affinity_cpus": list(range(112)), "quota_cpus": None},
        "profile": None,
    }
    [threads] = [item for item in recommended(facts_on(HOST, two)) if item.name == "OMP_NUM_THREADS"]
    assert (threads.value, threads.why) == ("56", "112 CPUs are hyper-threads of 56 cores")
