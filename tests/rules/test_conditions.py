"""Each condition of a rule both ways: what is said, when, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.deaths import failed
from tests.rules.hosts import QUICK, alone, facts_on

HOST = "py37-healthy"
NEWER = "py311-nothing"
PLANNED = {"planned_ideep4py": "2.0.0.post3"}


@pytest.mark.parametrize(
    ("code", "overlay"),
    [
        ("IDP301", {"packages": {"ideep4py": None}}),
        ("IDP303", {"packages": {"ideep4py": "1.0.4"}}),
        ("IDP304", {"packages": {"chainer": "4.5.0"}}),
        ("IDP305", {"packages": {"numpy": "1.9.0"}}),
        ("IDP306", {"python": {"version": "3.12.1"}, "packages": {"setuptools": None}, **QUICK}),
        ("IDP308", {"packages": {"chainer": None}}),
        (
            "IDP309",
            {"packages": {"ideep4py": {"altered": [{"path": "l", "problem": "x", "expected": "", "found": ""}]}}},
        ),
        ("IDP501", {"variables": {"effective": {"CHAINER_USE_IDEEP": None}}}),
        ("IDP504", {"limits": {"affinity_cpus": [0, 1], "quota_cpus": 1.0}}),
        ("IDP701", {"variables": {"effective": {"MKL_DEBUG_CPU_TYPE": None}}}),
    ],
)
def test_what_is_about_to_be_installed_is_not_judged_by_what_is_there(code: str, overlay: dict[str, Any]):
    assert len(alone(code, HOST, overlay)) == 1
    assert alone(code, HOST, overlay, PLANNED) == []


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("IDP303", "chainer"),
        ("IDP303", "ideep4py"),
        ("IDP304", "chainer"),
        ("IDP304", "ideep4py"),
        ("IDP306", "chainer"),
        ("IDP307", "chainer"),
        ("IDP307", "protobuf"),
        ("IDP309", "ideep4py"),
        ("IDP310", "ideep4py"),
        ("IDP311", "chainer"),
        ("IDP312", "ideep4py"),
        ("IDP502", "chainer"),
    ],
)
def test_what_is_not_installed_has_no_other_fault(code: str, missing: str):
    broken = {
        "packages": {missing: None},
        "imports": {name: failed("TypeError", "Descriptors cannot be created") for name in ("ideep4py", "chainer")},
        "chainer": {"ideep_available": False},
        "variables": {"effective": {"CHAINER_USE_IDEEP": "1"}},
    }
    assert (
        alone(code, HOST, broken, {"imports": {"chainer.links.caffe": failed("TypeError", "Descriptors cannot")}}) == []
    )


@pytest.mark.parametrize(
    ("flags", "names", "found", "shown"),
    [
        (["sse2"], {}, "avx cannot be used (AMD EPYC)", "avx"),
        (["sse2"], {"model_name": None}, "avx cannot be used (AuthenticAMD)", "avx"),
        (["sse2"], {"model_name": None, "vendor": None}, "avx cannot be used (unknown CPU)", "avx"),
        (["avx512cd", "avx512bw", "avx512dq", "avx512vl"], {}, "avx512f cannot be used (AMD EPYC)", "avx512"),
    ],
)
def test_idp110_names_the_processor_and_what_shows_it(flags: list[str], names: dict[str, None], found: str, shown: str):
    release = "2.0.0b1.post1" if shown == "avx512" else "2.0.0.post3"
    cpu = {"cpuinfo_flags": flags, "emulated": False, "xcr0": None, "model_name": "AMD EPYC", **names}
    (finding,) = alone("IDP110", "py36-healthy", {"packages": {"ideep4py": release}, "cpu": cpu})
    assert finding.found == found
    assert finding.evidence[0].command == f"ideepdoctor cpu --why-not {shown}"


@pytest.mark.parametrize(
    ("vendor", "said"), [("GenuineIntel", "CPUID says GenuineIntel,"), (None, "CPUID says something")]
)
def test_idp112_says_what_cpuid_says(vendor: str | None, said: str):
    (finding,) = alone("IDP112", HOST, {"cpu": {"emulated": True, "cpuid_vendor": vendor}})
    assert finding.found.startswith(said)


def interpreter(version: str, abi: str, *, bits: int = 64, implementation: str = "CPython") -> dict[str, Any]:
    path = f"/opt/{implementation}{version}-{bits}"
    rest = {"real_path": path, "libc": "glibc 2.36", "source": "PATH"}
    return {"path": path, "version": version, "abi": abi, "bits": bits, "implementation": implementation, **rest}


@pytest.mark.parametrize(
    ("interpreters", "path"),
    [
        (None, None),
        ([], None),
        ([interpreter("3.12.1", "cp312")], None),
        ([interpreter("3.7.1", "cp37m", bits=32)], None),
        ([interpreter("3.7.1", "cp37m", implementation="PyPy")], None),
        ([interpreter("3.5.1", "cp35m"), interpreter("2.7.18", "cp27mu")], "/opt/CPython2.7.18-64"),
        ([interpreter("2.7.18", "cp27mu"), interpreter("3.6.1", "cp36m")], "/opt/CPython3.6.1-64"),
        ([interpreter("3.6.1", "cp36m"), interpreter("3.7.1", "cp37m")], "/opt/CPython3.7.1-64"),
        ([interpreter("3.7.1", "cp37m", bits=32), interpreter("3.6.1", "cp36m")], "/opt/CPython3.6.1-64"),
    ],
)
def test_idp201_names_the_best_interpreter_that_is_there(interpreters: list[dict[str, Any]] | None, path: str | None):
    (finding,) = alone("IDP201", NEWER, {"interpreters": interpreters})
    older = "ideepdoctor setup" if path is None else f"ideepdoctor setup --python {path}"
    assert finding.next_step == f"{older}; or have one built for this Python: ideepdoctor setup --build --python 3.11"
    assert (path or "is at") in finding.needed or path is None


@pytest.mark.parametrize(
    ("overlay", "severity"),
    [
        ({}, Severity.ERROR),
        ({"packages": {"chainer": "7.8.1"}}, Severity.WARNING),
        ({"packages": {"chainer": "7.8.1"}, **PLANNED}, Severity.ERROR),
        (PLANNED, Severity.ERROR),
    ],
)
def test_idp201_is_a_warning_where_chainer_works_without(overlay: dict[str, Any], severity: Severity):
    assert [finding.severity for finding in alone("IDP201", NEWER, overlay)] == [severity]


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        *((kind, "ideepdoctor setup --python 3.7") for kind in ("system", "pyenv", "uv", "other")),
        *((kind, "ideepdoctor fix --python /home/user/ideep/bin/python") for kind in ("venv", "conda")),
    ],
)
def test_idp301_puts_nothing_into_an_interpreter_that_others_share(kind: str, command: str):
    missing = {"packages": {"ideep4py": None}, "python": {"kind": kind}}
    assert [finding.next_step for finding in alone("IDP301", HOST, missing)] == [command]


def test_idp305_knows_no_window_for_other_pythons():
    assert alone("IDP305", HOST, {"python": {"version": "3.5.10"}, "packages": {"numpy": "1.9.0"}}) == []


@pytest.mark.parametrize(
    ("python", "numpy", "setuptools", "causes"),
    [
        ("3.8.18", "1.24.4", "73.0.1", ""),
        ("3.11.9", "1.26.4", "73.0.1", ""),
        ("3.11.9", None, "73.0.1", ""),
        ("3.9.18", "2.0.2", "73.0.1", "NumPy 2.0.2, which lacks np.sctypes"),
        ("3.9.18", "1.26.4", "74.0.0", "setuptools 74.0.0, which lacks distutils.msvccompiler"),
        ("3.9.18", "1.26.4", "81.0.0", "setuptools 81.0.0, which lacks distutils.msvccompiler"),
        ("3.9.18", "1.26.4", "82.0.0", "setuptools 82.0.0, which lacks pkg_resources"),
        ("3.9.18", "1.26.4", None, "no setuptools, which has pkg_resources"),
        (
            "3.10.1",
            "2.1",
            "80.1",
            "NumPy 2.1, which lacks np.sctypes; setuptools 80.1, which lacks distutils.msvccompiler",
        ),
        ("3.12.1", "1.26.4", "73.0.1", "Python 3.12, which has no distutils for numpy.distutils"),
        ("3.7.16", "2.0.2", None, ""),
    ],
)
def test_idp306_foretells_from_the_versions(python: str, numpy: str | None, setuptools: str | None, causes: str):
    versions = {"chainer": "7.8.1", "numpy": numpy, "setuptools": setuptools}
    seen = alone("IDP306", NEWER, {"python": {"version": python}, "packages": versions}, QUICK)
    assert [finding.found for finding in seen] == ([causes] if causes else [])


GONE = {
    "No module named 'pkg_resources'": "no pkg_resources",
    "No module named 'distutils.msvccompiler'": "no distutils.msvccompiler",
    "`np.sctypes` was removed in the NumPy 2.0 release": "no np.sctypes",
    "No module named 'numpy.distutils'": "no numpy.distutils",
}


def import_fails(text: str, *, python: str = "3.10.1", **more: Any) -> dict[str, Any]:
    packages = {"chainer": "7.8.1", "numpy": "1.23.5", "setuptools": "68.0"}
    outcome = {"seconds": 0.1, **failed("Error", text), **more}
    return {"python": {"version": python}, "packages": packages, "imports": {"chainer": outcome}}


@pytest.mark.parametrize(("text", "cause"), GONE.items())
def test_idp306_knows_the_errors_even_where_the_versions_look_right(text: str, cause: str):
    (finding,) = alone("IDP306", NEWER, import_fails(text))
    assert finding.found.startswith(cause)
    assert finding.consequence == f"import chainer fails: {text}"
    assert alone("IDP306", NEWER, import_fails("something else")) == []
    assert alone("IDP306", NEWER, import_fails(text, ok=True)) == []
    assert alone("IDP306", HOST, {"imports": {"chainer": failed("Error", text)}}) == []
    (by_stderr,) = alone("IDP306", NEWER, import_fails("", stderr_tail=text))
    assert by_stderr.consequence == "import chainer fails"


def test_idp306_takes_no_module_that_a_traceback_goes_through_for_one_that_is_gone():
    frames = (
        "rc/numpy.distutils/system_info.py, line 196, in <module>\n"
        "    from numpy.distutils.command.config import config as cmd_config\n"
        "    from pkg_resources import np.sctypes\n"
    )
    last = "No module named 'distutils.msvccompiler'"
    (finding,) = alone("IDP306", NEWER, import_fails(last, stderr_tail=f"{frames}ModuleNotFoundError: {last}\n"))
    assert finding.found == "no distutils.msvccompiler (setuptools 74 and later)"
    (finding,) = alone("IDP306", NEWER, import_fails("", stderr_tail=f"{frames}ModuleNotFoundError: {last}\n"))
    assert finding.found == "no distutils.msvccompiler (setuptools 74 and later)"


def test_idp306_names_all_causes_that_the_versions_show():
    (finding,) = alone("IDP306", NEWER, import_fails("No module named 'pkg_resources'"), {"packages": {"numpy": "2.0"}})
    assert "NumPy 2.0, which lacks np.sctypes" in finding.found
    assert "pkg_resources" in finding.found


@pytest.mark.parametrize(
    ("python", "managed", "needed", "command"),
    [
        ("3.8.1", None, "setuptools<74 and numpy<2 (Python 3.8 to 3.11)", "-m pip install 'setuptools<74' 'numpy<2'"),
        ("3.11.1", None, "setuptools<74 and numpy<2 (Python 3.8 to 3.11)", "-m pip install 'setuptools<74' 'numpy<2'"),
        (
            "3.11.1",
            "/usr/lib/EXTERNALLY-MANAGED",
            "setuptools<74 and numpy<2 (Python 3.8 to 3.11)",
            "ideepdoctor setup",
        ),
        (
            "3.12.1",
            None,
            "Python 3.11 or older, or the start-up file of this doctor and an older setuptools",
            "ideepdoctor setup --build --python 3.12",
        ),
    ],
)
def test_idp306_says_what_can_be_done(python: str, managed: str | None, needed: str, command: str):
    broken = import_fails("No module named 'pkg_resources'", python=python)
    broken["python"]["externally_managed"] = managed
    (finding,) = alone("IDP306", NEWER, broken)
    assert finding.needed == needed
    assert finding.next_step.endswith(command)


def test_idp306_without_an_import_in_a_full_run_foretells_nothing():
    broken = {"packages": {"chainer": "7.8.1", "numpy": "2.0"}, "imports": None, "mode": "full"}
    assert alone("IDP306", NEWER, broken) == []
    assert facts_on(NEWER, broken).mode == "full"


BROKEN = failed("ImportError", "libfoo.so: cannot open shared object file")


@pytest.mark.parametrize(
    ("overlay", "told"),
    [
        ({}, True),
        ({"imports": {"ideep4py": {"ok": False, "error_text": "x"}}}, True),
        ({"imports": {"ideep4py": {"ok": False, "signal": "SIGSEGV"}}}, False),
        ({"imports": {"ideep4py": {"ok": False, "timed_out": True}}}, False),
        ({"imports": {"ideep4py": {"ok": False}, "numpy": {"ok": False}}}, False),
        ({"imports": {"numpy": {"ok": False}}}, True),
        ({"imports": {"ideep4py": {"ok": False, "signal": "SIGSEGV"}}, "packages": {"ideep4py": None}}, True),
        ({"packages": {"numpy": None}}, False),
        ({"packages": {"numpy": None, "ideep4py": None}}, True),
        ({"packages": {"numpy": None}, "python": {"version": "3.5.10"}}, True),
    ],
)
def test_idp311_is_told_where_nothing_below_chainer_explains_it(overlay: dict[str, Any], told: bool):
    assert len(alone("IDP311", HOST, {"imports": {"chainer": BROKEN}}, overlay)) == told


def test_idp311_needs_only_the_import_of_chainer():
    facts = {"imports": None}
    only = {"imports": {"chainer": {"seconds": 0.1, **BROKEN}}}
    assert len(alone("IDP311", HOST, facts, only)) == 1


@pytest.mark.parametrize(
    ("overlay", "fix"),
    [
        ({"packages": {"six": None}}, "safe"),
        ({}, "manual"),
        ({"packages": {"six": None}, "python": {"externally_managed": "/usr/lib/EXTERNALLY-MANAGED"}}, "manual"),
        ({"packages": {"six": None}, "imports": {"chainer": {"error_text": "libx.so: undefined symbol: y"}}}, "manual"),
    ],
)
def test_idp311_treats_what_is_missing_and_can_be_installed(overlay: dict[str, Any], fix: str):
    missing = {"imports": {"chainer": failed("ModuleNotFoundError", "No module named 'six'")}}
    (finding,) = alone("IDP311", HOST, missing, overlay)
    assert finding.fix == fix
    assert ("ideepdoctor fix" in finding.next_step) == (fix == "safe")


@pytest.mark.parametrize(
    ("reason", "said"), [("ImportError: x", "ImportError: x"), (None, "no reason given"), ("", "no")]
)
def test_idp312_gives_chainers_reason(reason: str | None, said: str):
    (finding,) = alone("IDP312", HOST, {"chainer": {"ideep_available": False, "ideep_reason": reason}})
    assert finding.found.startswith(f"is_ideep_available() is False: {said}")


@pytest.mark.parametrize(("model", "said"), [("AMD EPYC 7742", "(AMD EPYC 7742)"), (None, "(AMD)")])
def test_idp701_names_the_processor(model: str | None, said: str):
    unset = {"variables": {"effective": {"MKL_DEBUG_CPU_TYPE": None}}, "cpu": {"model_name": model}}
    (finding,) = alone("IDP701", HOST, unset)
    assert finding.found == f"MKL_DEBUG_CPU_TYPE is not set {said}"


NEW_PROTOBUF = {"packages": {"protobuf": "4.24.4"}}
DESCRIPTORS = failed("TypeError", "Descriptors cannot not be created directly.")


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (DESCRIPTORS, True),
        (failed("TypeError", "Descriptors cannot be created directly."), True),
        (failed("ImportError", "another"), False),
        (failed("ImportError", ""), False),
        ({**DESCRIPTORS, "ok": True}, False),
    ],
)
def test_idp307_goes_by_the_import_of_the_bridge(outcome: dict[str, Any], told: bool):
    assert len(alone("IDP307", HOST, NEW_PROTOBUF, {"imports": {"chainer.links.caffe": outcome}})) == told
    assert alone("IDP307", HOST, {"imports": {"chainer.links.caffe": outcome}}) == []


def test_idp307_is_not_told_where_the_bridge_was_not_tried():
    assert alone("IDP307", HOST, NEW_PROTOBUF, QUICK) == []


@pytest.mark.parametrize(
    ("managed", "command"),
    [(None, "-m pip install 'protobuf<3.21'"), ("/usr/lib/EXTERNALLY-MANAGED", "ideepdoctor setup")],
)
def test_idp307_by_hand_on_a_newer_python(managed: str | None, command: str):
    newer = {
        "packages": {"protobuf": "4.24.4", "chainer": "7.8.1"},
        "imports": {"chainer.links.caffe": {"seconds": 0.1, **DESCRIPTORS}},
        "python": {"externally_managed": managed},
    }
    (finding,) = alone("IDP307", NEWER, newer)
    assert finding.next_step.endswith(command)
