"""Rules about installed packages: files of another Python, doubles, needs, CuPy, and Chainer's own faults."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.findings import FixSafety, Severity
from ideepdoctor.model.plan import Install
from ideepdoctor.rules.chainer_faults import FAULTS, faults_of
from ideepdoctor.rules.deaths import failed
from ideepdoctor.rules.idp314 import IDP314
from ideepdoctor.rules.idp316 import IDP316
from ideepdoctor.rules.needs import environment, unmet
from ideepdoctor.stacks.catalog import all_stacks
from tests.rules.hosts import QUICK, alone, facts_on, faults, judged

HOST = "py37-healthy"
PLANNED = {"planned_ideep4py": "2.0.0.post3"}
SITE = "/home/user/ideep/lib/python3.7/site-packages"


def tagged(*tags: str) -> dict[str, Any]:
    return {"packages": {"ideep4py": {"tags": list(tags) or None}}}


@pytest.mark.parametrize(
    ("host", "overlay", "found"),
    [
        (HOST, tagged("cp36-cp36m-manylinux1_x86_64"), "cp36m in a Python of cp37m"),
        (HOST, tagged("cp36-cp36m-linux_x86_64", "cp37-cp37m-linux_x86_64"), None),
        (HOST, tagged("cp37-abi3-linux_x86_64"), None),
        (HOST, tagged("py3-none-any"), None),
        (HOST, tagged("nonsense"), None),
        (HOST, tagged("cp37-cp37m-manylinux1_i686"), "manylinux1_i686 in a Python of cp37m"),
        (HOST, tagged("cp37-cp37m-linux_i386"), "linux_i386 in a Python of cp37m"),
        (HOST, {**tagged("cp37-cp37m-linux_i686"), "python": {"bits": 32}}, None),
        (HOST, {**tagged("cp37-cp37m-linux_x86_64"), "python": {"bits": 32}}, "linux_x86_64 in a Python of cp37m"),
        ("py27-healthy", tagged("cp27-cp27m-manylinux1_x86_64"), "cp27m (UCS2) in a Python of cp27mu (UCS4)"),
        ("py27-healthy", {**tagged("cp27-cp27mu-x"), "python": {"abi": "cp27m"}}, "cp27mu (UCS4) in a Python of cp27m"),
        ("py27-healthy", tagged(), None),
        (HOST, {**tagged(), "python": {"abi": "cp37dm"}}, "cp37m in a Python of cp37dm"),
        (HOST, {**tagged(), "python": {"implementation": "PyPy", "abi": "pypy37_pp73"}}, None),
        (HOST, {**tagged(), "native": {"binding": None}}, None),
        (HOST, {**tagged(), "native": {"binding": f"{SITE}/_ideep4py.cpython-36m.so"}}, "cp36m in a Python of cp37m"),
    ],
)
def test_idp314_compares_what_it_was_made_for(host: str, overlay: dict[str, Any], found: str | None):
    seen = alone("IDP314", host, QUICK, overlay)
    assert [one.found.startswith(f"ideep4py 2.0.0.post3 for {found}") for one in seen] == ([True] if found else [])


def test_idp314_believes_an_import_and_installs_the_same_release_again():
    other = tagged("cp36-cp36m-manylinux1_x86_64")
    broken = {"imports": {"ideep4py": failed("ImportError", "No module named 'ideep4py._ideep4py'")}}
    assert alone("IDP314", HOST, other) == []
    assert alone("IDP314", HOST, other, broken, PLANNED) == []
    assert alone("IDP314", HOST, other, broken, {"packages": {"ideep4py": None}}) == []
    assert alone("IDP314", HOST, QUICK, tagged(), {"native": None}) == []
    facts = facts_on(HOST, other, broken)
    [finding] = IDP314().check(facts)
    assert finding.fix is FixSafety.SAFE
    [step] = IDP314().treat(finding, facts)
    assert isinstance(step, Install)
    assert [item.name for item in step.requirements] == ["ideep4py"] == list(step.reinstall)
    assert faults(judged(HOST, other, broken)) == ["IDP314"]


def again(name: str, version: str, location: str = SITE, installer: str | None = "pip") -> dict[str, Any]:
    return {"duplicates": [{"name": name, "version": version, "location": location, "installer": installer}]}


@pytest.mark.parametrize(
    ("overlay", "seen"),
    [
        (again("numpy", "1.16.6"), ["numpy 1.21.6 and 1.16.6 are both in " + SITE]),
        (again("numpy", "1.21.6"), ["numpy 1.21.6 and 1.21.6 are both in " + SITE]),
        (again("chainer", "7.7.0", installer="conda"), ["chainer 7.8.1 and 7.7.0 are both in " + SITE]),
        (again("six", "1.0"), []),
        (again("numpy", "1.21.6", "/usr/lib/python3"), []),
        (again("numpy", "1.16.6", "/usr/lib/python3"), [f"numpy 1.21.6 in {SITE} hides 1.16.6 in /usr/lib/python3"]),
        ({**again("numpy", "1.16.6"), **PLANNED}, []),
        ({**again("numpy", "1.16.6"), "packages": {"numpy": None}}, []),
    ],
)
def test_idp315_tells_of_what_matters_alone(overlay: dict[str, Any], seen: list[str]):
    assert [one.found for one in alone("IDP315", HOST, overlay)] == seen


def test_idp315_names_two_installers_and_ends_what_depends_on_it():
    by_both = {"packages": {"numpy": {"installer": "conda"}}}
    [finding] = alone("IDP315", HOST, by_both, again("numpy", "1.16.6"))
    assert finding.found.endswith(", by conda and pip")
    assert finding.severity is Severity.ERROR
    [one] = alone("IDP315", HOST, {"packages": {"numpy": {"installer": "pip"}}}, again("numpy", "1.16.6"))
    assert ", by " not in one.found
    old = {"packages": {"numpy": "1.9.0", "ideep4py": "1.0.4"}}
    assert faults(judged(HOST, old, again("numpy", "1.21.6"))) == ["IDP315"]
    [conda] = alone("IDP315", HOST, {"packages": {"numpy": {"installer": "uv"}}}, again("numpy", "1", "/c/conda-meta"))
    assert (conda.found, conda.severity) == ("numpy 1.21.6 by uv, while conda lists 1", Severity.INFO)
    [unknown] = alone("IDP315", HOST, again("numpy", "1", "/c/conda-meta"))
    assert "by something else than conda" in unknown.found


def needing(*lines: str, **versions: Any) -> dict[str, Any]:
    return {"packages": {"chainer": {"requires": list(lines)}, **versions}}


@pytest.mark.parametrize(
    ("line", "host", "met"),
    [
        ("absent", HOST, False),
        ("Six >= 1.9", HOST, True),
        ("six (>=1.9,<1.13)", HOST, False),
        ("absent; python_version >= '3.8'", HOST, True),
        ("absent; python_version < '3'", "py27-healthy", False),
        ("absent; python_full_version < '3.7.0'", HOST, True),
        ("absent; sys_platform == 'linux'", HOST, False),
        ("absent; sys_platform == 'linux2'", "py27-healthy", False),
        ("absent; sys_platform == 'win32' or os_name == 'nt'", HOST, True),
        ("absent; platform_machine == 'x86_64' and platform_system == 'Linux'", HOST, False),
        ("absent; implementation_name == 'cpython'", HOST, False),
        ("absent; platform_python_implementation != 'CPython'", HOST, True),
        ("absent; extra == 'test'", HOST, True),
        ("absent @@ nonsense", HOST, True),
        ("absent; platform_color == 'red'", HOST, True),
        ("Typing.Extensions", HOST, True),
    ],
)
def test_requirements_are_judged_for_the_targets_python(line: str, host: str, met: bool):
    assert ([one.line for one in unmet(facts_on(host, needing(line)))] == []) is met


def test_markers_of_other_systems():
    windows = {"platform": {"system": "Windows", "kernel": None}, "python": {"implementation": "PyPy"}}
    given = environment(facts_on(HOST, windows))
    assert (given["sys_platform"], given["os_name"], given["platform_release"]) == ("win32", "nt", "")
    assert (given["implementation_name"], given["implementation_version"]) == ("pypy", "3.7.16")
    other = environment(
        facts_on("py27-healthy", {"platform": {"system": "FreeBSD"}, "python": {"implementation": "X"}})
    )
    assert (other["sys_platform"], other["implementation_name"], other["os_name"]) == ("freebsd", "", "posix")


def test_what_needed_packages_need_counts_once_and_what_others_need_does_not():
    overlay = {
        "packages": {
            "chainer": {"requires": ["six", "filelock", "six"]},
            "six": {"requires": ["absent"]},
            "filelock": {"requires": ["six", "chainer", "absent>=2"]},
            "pandas": {"version": "1", "requires": ["missing"]},
            "numpy": {"version": "not a version"},
            "ideep4py": {"requires": ["numpy (==1.13)"]},
        }
    }
    found = [(one.by.name, one.line, one.name, one.found) for one in unmet(facts_on(HOST, overlay))]
    assert found == [("six", "absent", "absent", None), ("filelock", "absent>=2", "absent", None)]


def test_a_prerelease_meets_what_it_is_newer_than():
    assert list(unmet(facts_on(HOST, needing("six>=1.9", six="2.0b1")))) == []


@pytest.mark.parametrize(
    ("overlay", "seen"),
    [
        (needing("six (<1.13)"), [("six 1.17.0", Severity.INFO, FixSafety.MANUAL)]),
        ({**needing("six (<1.13)"), **QUICK}, [("six 1.17.0", Severity.WARNING, FixSafety.MANUAL)]),
        ({**needing("six (<1.13)", six="1.20"), **QUICK}, [("six 1.20", Severity.WARNING, FixSafety.SAFE)]),
        ({**needing("absent"), **QUICK}, [("no absent", Severity.WARNING, FixSafety.MANUAL)]),
        ({**needing("protobuf", protobuf=None), **QUICK}, [("no protobuf", Severity.INFO, FixSafety.SAFE)]),
        (needing("setuptools<40"), []),
        (needing("numpy>=2"), []),
        ({**needing("absent"), **PLANNED}, []),
        ({"packages": {"chainer": None, "numpy": {"requires": ["absent"]}}}, []),
        ({"packages": {"ideep4py": {"version": "1.0.4", "requires": ["numpy==1.13"]}, "numpy": "1.9"}}, []),
        ({"packages": {"ideep4py": {"version": "1.0.4", "requires": ["numpy==1.13"]}, "numpy": None}}, []),
        (
            {"packages": {"ideep4py": {"requires": ["six<1"]}}, **QUICK},
            [("six 1.17.0", Severity.WARNING, FixSafety.MANUAL)],
        ),
        ({"packages": {"ideep4py": {"version": "9", "requires": ["numpy==1.13"]}}}, []),
        (
            {"packages": {"ideep4py": {"version": "1.0.4", "requires": ["numpy==1.13"]}}},
            [("numpy 1.21.6", Severity.INFO, FixSafety.MANUAL)],
        ),
    ],
)
def test_idp316_tells_what_is_not_met(overlay: dict[str, Any], seen: list[tuple[str, Severity, FixSafety]]):
    assert [(one.found, one.severity, one.fix) for one in alone("IDP316", HOST, overlay)] == seen


def test_idp316_says_what_becomes_of_it_and_what_to_do():
    [worked] = alone("IDP316", HOST, needing("six (<1.13)"))
    assert worked.consequence.startswith("Chainer can be imported all the same; ")
    assert worked.next_step == "/home/user/ideep/bin/python -m pip install 'six<1.13'"
    assert worked.needed == "six<1.13 (chainer 7.8.1)"
    [untried] = alone("IDP316", HOST, needing("six (<1.13)"), QUICK)
    assert untried.consequence.startswith("pip check complains")
    [absent] = alone("IDP316", HOST, needing("absent"), QUICK)
    assert absent.consequence == "chainer fails where it imports absent"
    managed = {"python": {"externally_managed": "/usr/lib/python3/EXTERNALLY-MANAGED"}}
    assert alone("IDP316", HOST, needing("absent"), managed)[0].next_step == "ideepdoctor setup"
    [old] = alone("IDP316", HOST, needing("protobuf<3", protobuf="3.20.3"))
    assert "links.caffe" not in old.consequence
    unknown = {"python": {"version": "3.5.10", "abi": "cp35m"}}
    pin = {"packages": {"ideep4py": {"version": "1.0.4", "requires": ["numpy==1.13"]}}}
    assert alone("IDP316", HOST, pin, unknown) == [], "nothing was measured there"
    facts = facts_on(HOST, QUICK, needing("six", "filelock>=99", "setuptools<1", "numpy>=2", six=None, filelock="0.1"))
    first, *_ = IDP316().check(facts)
    [step] = IDP316().treat(first, facts)
    assert isinstance(step, Install)
    assert [item.name for item in step.requirements] == ["filelock", "six"]


def cupy(chainer: str = "7.8.0", **versions: str) -> dict[str, Any]:
    versions.setdefault("numpy", "1.20.3")
    return {"packages": {"chainer": chainer, **{name.replace("_", "-"): text for name, text in versions.items()}}}


DEAD = {"imports": {"chainer": failed("ValueError", "Not a valid numpy version string")}, "chainer": None}


@pytest.mark.parametrize(
    ("overlay", "seen"),
    [
        ({**cupy(cupy="10.0.0"), **DEAD}, [Severity.ERROR]),
        ({**cupy(cupy="10.0.0"), **QUICK}, [Severity.WARNING]),
        ({**cupy(cupy_cuda11x="12.1.0"), **DEAD}, [Severity.ERROR]),
        ({**cupy(cupy="10.0.0"), "imports": {"chainer": failed("ImportError", "no")}}, []),
        (
            {
                **cupy(cupy="10.0.0"),
                "imports": {"chainer": {"ok": False, "stderr_tail": "ValueError: Not a valid numpy version string"}},
            },
            [Severity.ERROR],
        ),
        ({**cupy("7.7.0", cupy="10.0.0"), **QUICK}, []),
        ({**cupy(cupy="10.0.0", numpy="1.21.0"), **QUICK}, []),
        ({"packages": {"chainer": "7.8.0", "cupy": "10.0.0", "numpy": None}, **QUICK}, []),
        ({**cupy(cupy="10.0.0", numpy="1.21.0"), **DEAD}, [Severity.ERROR]),
        ({**cupy("7.8.1", cupy="10.0.0"), **QUICK}, []),
        ({**cupy(cupy="9.6.0"), **QUICK}, []),
        ({**cupy(cupyx="10.0.0"), **QUICK}, []),
        ({**cupy(cupy="10.0.0"), **QUICK, **PLANNED}, []),
        ({"packages": {"chainer": None, "cupy": "10.0.0"}, **QUICK}, []),
    ],
)
def test_idp317_is_about_one_release_of_chainer(overlay: dict[str, Any], seen: list[Severity]):
    assert [one.severity for one in alone("IDP317", HOST, overlay)] == seen


def test_idp317_is_the_one_finding_and_installs_chainer():
    assert faults(judged(HOST, cupy(cupy="10.0.0"), DEAD)) == ["IDP317"]


@pytest.mark.parametrize(
    ("overlay", "count"),
    [
        (cupy(cupy="9.6.0", cupy_cuda102="9.6.0"), 1),
        ({**cupy(cupy="9.6.0"), **again("cupy", "9.5.0")}, 1),
        (cupy(cupy="9.6.0", cupy_core="1"), 0),
        ({**cupy(cupy="9.6.0", cupy_cuda102="9.6.0"), **PLANNED}, 0),
        ({"packages": {"chainer": None, "cupy": "9.6.0", "cupy-cuda102": "9.6.0"}}, 0),
    ],
)
def test_idp318_counts_distributions(overlay: dict[str, Any], count: int):
    found = alone("IDP318", HOST, overlay)
    assert len(found) == count
    assert all("uninstall -y cupy" in one.next_step for one in found)


def test_the_borders_of_each_fault():
    for fault in FAULTS:
        ideep4py = "1.0.4" if fault.ideep4py else "2.0.0.post3"
        for first, end in fault.chainer:
            assert fault in faults_of(first, ideep4py, python2=True), fault
            assert fault not in faults_of(end, ideep4py, python2=True), fault
            assert (fault in faults_of(first, ideep4py, python2=False)) is not fault.python2
        if fault.ideep4py:
            assert fault not in faults_of(fault.chainer[0][0], "2.0.0.post3", python2=True)
    assert faults_of("7.8.1", "2.0.0.post3", python2=False) == ()
    assert faults_of("5.4.0", "2.0.0.post3+doctor.v3", python2=False)
    assert faults_of("nonsense", "2", python2=False) == () == faults_of("5.4.0", "nonsense", python2=False)


@pytest.mark.parametrize("stack", all_stacks(), ids=lambda stack: stack.name)
def test_what_setup_makes_has_the_faults_of_its_release_and_no_others(stack):
    known = faults_of(stack.chainer, stack.ideep4py, python2=False)
    worst = {"4.0.0b4": Severity.WARNING, "4.5.0": Severity.INFO, "5.4.0": Severity.INFO, "6.7.0": Severity.INFO}
    pair = {"packages": {"chainer": stack.chainer, "ideep4py": stack.ideep4py}}
    expected = [worst[stack.chainer]] if stack.chainer in worst else []
    assert [one.severity for one in alone("IDP319", "py36-healthy", pair)] == expected
    assert bool(known) == bool(expected)


@pytest.mark.parametrize(
    ("host", "overlay", "found"),
    [
        (HOST, {"packages": {"chainer": "6.7.0"}}, "batch_normalization raises where gamma is not float32 and x is"),
        ("py27-healthy", {"packages": {"chainer": "6.7.0"}}, None),
        (HOST, {"packages": {"chainer": "6.7.0", "ideep4py": None}}, None),
        (HOST, {"packages": {"chainer": None}}, None),
        (HOST, {"packages": {"chainer": "6.7.0"}, **PLANNED}, None),
    ],
)
def test_idp319_tells_where_a_later_chainer_is(host: str, overlay: dict[str, Any], found: str | None):
    seen = alone("IDP319", host, overlay)
    assert [one.found for one in seen] == ([f"Chainer 6.7.0 has a known fault: {found}"] if found else [])


def test_idp319_says_how_bad_it_is_and_what_to_do():
    [bad] = alone("IDP319", HOST, {"packages": {"chainer": "6.1.0"}})
    assert (bad.severity, bad.next_step) == (
        Severity.WARNING,
        "ideepdoctor upgrade --python /home/user/ideep/bin/python",
    )
    assert bad.found.endswith("(and 3 other faults)") and "wrong" in bad.consequence
    assert len(bad.evidence) == 5
    [rare] = alone("IDP319", HOST, {"packages": {"chainer": "6.2.0"}})
    assert rare.found.endswith("(and 1 other fault)") and rare.consequence.startswith("an exception")
    managed = {"python": {"externally_managed": "/usr/lib/python3/EXTERNALLY-MANAGED"}}
    assert alone("IDP319", HOST, {"packages": {"chainer": "6.1.0"}}, managed)[0].next_step.startswith(
        "ideepdoctor setup"
    )
    [python2] = alone("IDP319", "py27-healthy", {"packages": {"chainer": "5.2.0"}})
    assert "the last for this Python is 6.7.0" in python2.needed


def test_a_width_of_unicode_that_nobody_tried_is_a_warning_and_another_python_an_error():
    narrow = {"packages": {"ideep4py": {"tags": ["cp27-cp27m-manylinux1_x86_64"]}}}
    [untried] = alone("IDP314", "py27-healthy", QUICK, narrow)
    assert (untried.severity, "may fail" in untried.consequence) == (Severity.WARNING, True)
    [failed] = alone("IDP314", "py27-healthy", narrow, {"imports": {"ideep4py": {"ok": False}}})
    assert failed.severity is Severity.ERROR
    [other] = alone("IDP314", "py37-healthy", QUICK, {"packages": {"ideep4py": {"tags": ["cp36-cp36m-linux_x86_64"]}}})
    assert other.severity is Severity.ERROR
