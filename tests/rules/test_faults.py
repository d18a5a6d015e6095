"""One fault is one finding, what is not known is said to be unknown, and no threshold is off by one."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.rules.base import Unknown
from ideepdoctor.rules.deaths import failed, killed
from tests.rules.hosts import HEALTHY, QUICK, alone, facts_on, faults, judged, unknowns

HOST = "py37-healthy"
NUMPY_BROKEN = failed("ImportError", "libopenblas.so.0: cannot open shared object file: No such file or directory")
NO_NUMPY = failed("ModuleNotFoundError", "No module named 'numpy'")


def imports(**outcomes: dict[str, Any]) -> dict[str, Any]:
    return {"imports": outcomes, "chainer": None}


@pytest.mark.parametrize("host", HEALTHY)
def test_quick_leaves_nothing_unknown_on_a_healthy_machine(host: str):
    judgement = judged(host, QUICK)
    assert (judgement.findings, judgement.unknown, judgement.skipped) == ((), (), ())


@pytest.mark.parametrize(
    ("overlay", "expected"),
    [
        pytest.param(
            imports(numpy=NUMPY_BROKEN, ideep4py=NUMPY_BROKEN, chainer=NUMPY_BROKEN), ["IDP310"], id="NumPy is broken"
        ),
        pytest.param(
            {"packages": {"numpy": None}, **imports(numpy=NO_NUMPY, ideep4py=NO_NUMPY, chainer=NO_NUMPY)},
            ["IDP305"],
            id="NumPy is missing",
        ),
        pytest.param(
            {"packages": {"numpy": "1.15.4"}, "imports": {"ideep4py": failed("ImportError", "numpy.core.multiarray")}},
            ["IDP305"],
            id="NumPy is too old",
        ),
        pytest.param(imports(ideep4py=killed("SIGSEGV"), chainer=killed("SIGSEGV")), ["IDP320"], id="import kills"),
        pytest.param(
            imports(ideep4py={"ok": False, "timed_out": True}, chainer={"ok": False, "timed_out": True}),
            ["IDP320"],
            id="import hangs",
        ),
        pytest.param(
            {
                "packages": {
                    "ideep4py": {"altered": [{"path": "l", "problem": "size", "expected": "2", "found": "1"}]}
                },
                **imports(ideep4py=killed("SIGBUS"), chainer=killed("SIGBUS")),
            },
            ["IDP309"],
            id="a truncated library",
        ),
        pytest.param(
            {
                "imports": {"ideep4py": failed("ImportError", "undefined symbol: x")},
                "chainer": {"ideep_available": False},
            },
            ["IDP310"],
            id="ImportError that Chainer hides",
        ),
        pytest.param(
            {
                "variables": {"effective": {"CHAINER_DTYPE": "f4"}},
                **imports(chainer=failed("TypeError", "incorrect dtype")),
            },
            ["IDP321"],
            id="a CHAINER_DTYPE that ends the import",
        ),
        pytest.param(
            {"packages": {"six": None}, **imports(chainer=failed("ModuleNotFoundError", "No module named 'six'"))},
            ["IDP311"],
            id="six is missing",
        ),
        pytest.param(
            {
                "packages": {"setuptools": None},
                **imports(chainer=failed("ModuleNotFoundError", "No module named 'pkg_resources'")),
            },
            ["IDP311"],
            id="setuptools is missing on 3.7",
        ),
        pytest.param({"packages": {"ideep4py": "1.0.4"}, "chainer": {"ideep_available": False}}, ["IDP303"], id="pair"),
        pytest.param(
            {
                "shadows": [
                    {"module": m, "path": f"/opt/{m}.py", "source": "PYTHONPATH"} for m in ("numpy", "six", "json")
                ]
            }
            | imports(numpy=NUMPY_BROKEN, ideep4py=NUMPY_BROKEN, chainer=NUMPY_BROKEN),
            ["IDP204"],
            id="three modules on PYTHONPATH",
        ),
        pytest.param({"packages": {"ideep4py": None}, "imports": {"ideep4py": failed("ImportError", "x")}}, ["IDP301"]),
    ],
)
def test_one_fault_is_one_finding(overlay: dict[str, Any], expected: list[str]):
    judgement = judged(HOST, overlay)
    assert (faults(judgement), unknowns(judgement)) == (expected, [])


def test_chainer_without_ideep4py_on_a_newer_python_that_cannot_be_imported_is_still_told():
    broken = {
        "packages": {"chainer": "7.8.1", "numpy": "1.23.5", "setuptools": "68.2.2"},
        "imports": {"chainer": {"seconds": 0.5, "error_type": None, "error_text": None, **killed("SIGSEGV")}},
    }
    assert faults(judged("py311-nothing", broken)) == ["IDP321", "IDP201"]
    assert faults(judged("py311-nothing", broken, {"packages": {"numpy": None}})) == ["IDP321", "IDP201"]


@pytest.mark.parametrize(
    ("code", "overlay", "said"),
    [
        ("IDP102", {"platform": {"libc": None}}, "C library"),
        ("IDP103", {"platform": {"libc_version": None}}, "glibc"),
        ("IDP110", {"cpu": {"cpuinfo_flags": None, "cpuid_flags": None}}, "flags"),
        ("IDP701", {"cpu": {"cpuinfo_flags": None, "cpuid_flags": None}}, "flags"),
        ("IDP701", {"cpu": {"vendor": None}}, "vendor"),
        ("IDP111", {"packages": {"ideep4py": "1.0.3"}, "cpu": {"vendor": None}}, "vendor"),
        ("IDP301", {"packages": None}, "distributions"),
        ("IDP306", {"packages": None}, "distributions"),
        *((code, {"native": None}, "shared libraries") for code in ("IDP401", "IDP402", "IDP403", "IDP405", "IDP406")),
        *((code, {"native": None}, "shared libraries") for code in ("IDP404", "IDP407", "IDP408")),
        ("IDP310", {"imports": None}, "not tried"),
        ("IDP311", {"imports": None}, "not tried"),
        ("IDP312", {"chainer": None}, "not asked"),
        ("IDP312", {"chainer": {"ideep_available": None}}, "did not answer"),
        ("IDP313", {"first_op": None}, "not tried"),
        ("IDP504", {"limits": {"affinity_cpus": None}, "cpu": {"logical_cpus": None}}, "number of CPUs"),
    ],
)
def test_what_is_not_known_is_unknown(code: str, overlay: dict[str, Any], said: str):
    with pytest.raises(Unknown, match=said):
        alone(code, HOST, overlay)
    judgement = judged(HOST, overlay)
    assert judgement.unknown, "something is said"
    assert code not in judgement.ok


@pytest.mark.parametrize("code", ["IDP310", "IDP311", "IDP312", "IDP313"])
def test_nothing_is_unknown_of_what_is_about_to_be_installed(code: str):
    missing = {"planned_ideep4py": "2.0.0.post3", "imports": None, "first_op": None, "chainer": None}
    assert alone(code, HOST, missing) == []


def test_a_hidden_module_is_the_only_thing_said_and_everything_that_imports_waits_for_it():
    shadow = {"shadows": [{"module": "numpy", "path": "/w/numpy.py", "source": "current folder"}]}
    broken = {
        "packages": {"numpy": "1.9", "chainer": "4.5.0"},
        "imports": {"chainer": killed("SIGSEGV")},
        "first_op": None,
    }
    judgement = judged(HOST, shadow, broken)
    assert faults(judgement) == ["IDP204"]
    waiting = {item.code for item in judgement.skipped}
    assert waiting >= {
        "IDP301",
        "IDP305",
        "IDP306",
        "IDP307",
        "IDP310",
        "IDP311",
        "IDP312",
        "IDP313",
        "IDP501",
        "IDP601",
    }


def test_shadows_of_two_sources_are_two_findings_with_each_its_cure():
    rows = [
        ("numpy", "/w/numpy.py", "current folder"),
        ("six", "/u/six.py", "user site"),
        ("json", "/w/json.py", "current folder"),
    ]
    shadows = [{"module": module, "path": path, "source": source} for module, path, source in rows]
    first, second = alone("IDP204", HOST, {"shadows": shadows})
    assert "/w/numpy.py" in first.next_step
    assert "so does json" in first.found
    assert [item.path for item in first.evidence] == ["/w/numpy.py", "/w/json.py"]
    assert second.next_step == "export PYTHONNOUSERSITE=1"


def threads(cpus: int, cores: int, quota: float | None, text: str | None) -> dict[str, Any]:
    effective = {} if text is None else {"OMP_NUM_THREADS": text}
    return {
        "cpu": {"physical_cores": cores, "logical_cpus": cpus},
        "limits": {"affinity_cpus": list(range(cpus)), "quota_cpus": quota},
        "variables": {"effective": effective, "inherited": effective},
    }


@pytest.mark.parametrize(
    ("case", "needed"),
    [
        (threads(8, 4, None, None), None),
        (threads(8, 4, None, "8"), None),
        (threads(8, 4, None, "4"), None),
        (threads(8, 4, None, "9"), "8 threads at most"),
        (threads(8, 4, 8.0, None), None),
        (threads(8, 4, 7.01, None), None),
        (threads(8, 4, 7.0, None), "7 threads at most"),
        (threads(8, 4, 0.5, None), "1 thread at most"),
        (threads(8, 4, 0.5, "1"), None),
        (threads(8, 4, 6.0, "4,2"), None),
        (threads(8, 4, 2.0, "4,2"), "2 threads at most"),
        (threads(8, 4, None, "abc"), None),
        (threads(8, 4, 2.0, "abc"), "2 threads at most"),
        (threads(8, 4, 2.0, "0"), "2 threads at most"),
        (threads(8, 4, None, "\N{SUPERSCRIPT TWO}"), None),
    ],
)
def test_threads_are_counted_against_the_affinity_and_the_quota_not_against_cores(
    case: dict[str, Any], needed: str | None
):
    assert [item.needed for item in alone("IDP504", HOST, case)] == ([] if needed is None else [needed])


def test_where_the_affinity_is_not_known_the_number_of_cpus_counts():
    case = threads(8, 4, 2.0, None)
    case["limits"]["affinity_cpus"] = None
    assert [item.found for item in alone("IDP504", HOST, case)] == ["8 threads (OpenMP's own choice), 8 CPUs, quota 2"]
    assert facts_on(HOST, case).limits.affinity_cpus is None
