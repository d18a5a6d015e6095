"""What the rules about a build have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ideepdoctor.facts.build import facts_of_log
from ideepdoctor.model.build import BuildRequest, LogHit
from ideepdoctor.model.facts import Facts
from ideepdoctor.rules import BUILD_RULES, RULES
from ideepdoctor.rules.base import Rule
from ideepdoctor.rules.distro import COMPILER, GIT, headers, install
from ideepdoctor.rules.engine import judge
from ideepdoctor.rules.explain import document
from ideepdoctor.rules.signature_table import SIGNATURES
from tests.rules.hosts import alone, facts_on
from tests.rules.test_signatures import LINES, SAMPLES
from tests.rules.test_treatments import commands, parses

HOST = "py37-healthy"
CURED = {"IDP805", "IDP806", "IDP807", "IDP809", "IDP813", "IDP814", "IDP815", "IDP816", "IDP817", "IDP823"}
"""What ``ideepdoctor build`` cures by itself."""


def of_log(code: str, line: str, *, own: bool = False) -> Facts:
    facts = facts_of_log((LogHit(code, 7, line),))
    assert facts.build is not None
    return replace(facts, build=replace(facts.build, request=BuildRequest("/p", "/o") if own else None))


@pytest.mark.parametrize(("code", "line"), SAMPLES)
@pytest.mark.parametrize("own", [False, True], ids=["by hand", "own"])
def test_every_line_is_explained_by_its_rule(code: str, line: str, own: bool):
    (finding,) = judge(of_log(code, line, own=own), BUILD_RULES).findings
    assert finding.code == code
    assert finding.found == f"line 7: {line}"
    assert all((finding.needed, finding.consequence, finding.next_step))
    assert [item.text for item in finding.evidence] == [f"line 7: {line}"]
    assert all(parses(command) for command in commands(finding.next_step))
    if code in CURED:
        assert ("; or ideepdoctor build, which " in finding.next_step) == (not own)


def test_every_signature_has_a_rule_and_every_rule_of_logs_a_sample():
    codes = {rule.code() for rule in BUILD_RULES}
    assert {signature.code for signature in SIGNATURES} == set(LINES) == codes - {"IDP821"}


def test_hits_of_others_are_not_explained():
    facts = of_log("IDP805", "sh: cmake: not found")
    assert [item.code for item in judge(facts, BUILD_RULES).findings] == ["IDP805"]


@pytest.mark.parametrize("rule", BUILD_RULES)
def test_where_no_build_is_looked_at_there_is_no_outcome(rule: type[Rule]):
    facts = facts_on(HOST)
    assert list(rule().check(facts)) == []
    judgement = judge(facts, [rule])
    assert (judgement.findings, judgement.ok, judgement.unknown, judgement.skipped) == ((), (), (), ())


def test_what_is_built_does_not_stop_a_build():
    built = {"march": "native", "cpu_flags": ["avx512_fp16"], "mkl": "none", "commit": "8", "mkldnn_commit": "c"}
    overlay = {"built": {**built, "numpy": "1", "verified": False}}
    assert {item.code for item in judge(facts_on(HOST, overlay), RULES).findings} == {"IDP820", "IDP824"}
    assert judge(facts_on(HOST, overlay, {"build": {}}), RULES).findings == ()
    assert alone("IDP820", HOST, overlay, {"planned_ideep4py": "2.0.0.post3"}) == []
    assert alone("IDP824", HOST, overlay, {"planned_ideep4py": "2.0.0.post3"}) == []


def test_a_processor_that_is_not_known():
    built = {"march": "native", "cpu_flags": ["avx2"], "mkl": "none", "commit": "8", "mkldnn_commit": "c"}
    overlay = {"built": {**built, "numpy": "1", "verified": True}, "cpu": {"cpuinfo_flags": None, "cpuid_flags": None}}
    found = judge(facts_on(HOST, overlay), [rule for rule in RULES if rule.code() in ("IDP101", "IDP820")])
    assert [item.code for item in found.unknown] == ["IDP820"]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("Debian GNU/Linux 12 (bookworm)", "as root: apt install g++"),
        ("Ubuntu 24.04.1 LTS", "as root: apt install g++"),
        ("Fedora Linux 41", "as root: dnf install gcc-c++"),
        ("Red Hat Enterprise Linux 9.4 (Plow)", "as root: dnf install gcc-c++"),
        ("Rocky Linux 8.9", "as root: dnf install gcc-c++"),
        ("Amazon Linux 2023", "as root: dnf install gcc-c++"),
        ("Alpine Linux v3.20", "as root: apk add g++"),
        ("openSUSE Leap 15.6", "as root: zypper install gcc-c++"),
        ("Arch Linux", "as root: pacman -S gcc"),
        ("Gentoo", "as root: apt install g++ (Debian, Ubuntu) or dnf install gcc-c++ (Fedora, RHEL)"),
        (None, "as root: apt install g++ (Debian, Ubuntu) or dnf install gcc-c++ (Fedora, RHEL)"),
    ],
)
def test_packages_by_distribution(name: str | None, command: str):
    assert install(name, COMPILER) == command


def test_headers_are_those_of_the_version():
    assert install("Ubuntu 24.04", headers("3.11")) == "as root: apt install python3.11-dev"
    assert install("Ubuntu 24.04", headers(None)) == "as root: apt install python3-dev"
    assert install("Fedora Linux 41", headers("3.9")) == "as root: dnf install python3.9-devel"
    assert "git" in install(None, GIT)


def test_the_advice_is_for_the_distribution_of_the_target():
    fedora = {"platform": {"os_name": "Fedora Linux 41"}}
    (finding,) = alone("IDP804", HOST, {"build": {"make": ""}}, fedora)
    assert finding.next_step == "as root: dnf install make"


def test_nobody_is_told_to_use_sudo():
    assert not any("sudo" in document(rule) for rule in BUILD_RULES)


@pytest.mark.parametrize(
    ("code", "line", "by_hand", "own"),
    [
        ("IDP813", "error: x [-Werror=array-bounds]", "export CFLAGS=-w", "ask with its log"),
        ("IDP804", "sh: make: not found", "install make", "install make"),
        ("IDP805", "Policy CMP0048 may not be set to OLD", "cmake==3.18.4.post1", "ideepdoctor build --fresh"),
        ("IDP810", "No space left on device", "TMPDIR", "IDEEPDOCTOR_CACHE_DIR"),
        ("IDP811", "Killed", "make -j1", "ideepdoctor build --jobs 1"),
    ],
)
def test_the_doctors_own_build_needs_another_step_than_a_person(code: str, line: str, by_hand: str, own: str):
    (person,) = judge(of_log(code, line), BUILD_RULES).findings
    (doctor,) = judge(of_log(code, line, own=True), BUILD_RULES).findings
    assert by_hand in person.next_step
    assert own in doctor.next_step
    if by_hand != own:
        assert own not in person.next_step and by_hand not in doctor.next_step


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("IDP803 sh: git: command not found", "was not fetched"),
        ("IDP803 detected dubious ownership in repository", "somebody else's"),
        ("IDP805 CMake Error: Unknown argument --build", "3.20 and later refuse"),
        ("IDP805 CMake 2.8.12 or higher is required", "too old"),
        ("IDP805 sh: cmake: not found", "no cmake on PATH"),
        ("IDP805 [Errno 2] No such file or directory: 'cmake'", "no cmake on PATH"),
        ("IDP805 unable to execute 'cmake'", "no cmake on PATH"),
        ("IDP805 Compatibility with CMake < 3.5 has been removed", "CMake 4 refuses"),
        ("IDP806 redefinition of 'struct swig_type_info'", "SWIG 4's code"),
        ("IDP806 swig error : Unrecognized option -modern", "SWIG 4's code"),
        ("IDP806 unable to execute 'swig'", "none on PATH"),
        ("IDP808 curl: (6) Could not resolve host", "MKLML was not downloaded"),
        ("IDP808 No Intel mklml pkg.", "MKLML was not downloaded"),
        ("IDP808 gzip: stdin: not in gzip format", "MKLML was not downloaded"),
        ("IDP808 fatal: error: mkl_vsl.h: No such file", "MKLML was not downloaded"),
        ("IDP808 fatal: unable to access 'x'", "could not be reached"),
        ("IDP809 undefined symbol: cblas_sgemm_alloc", "later years"),
        ("IDP809 file INSTALL cannot find", "no libmklml_intel.so"),
        ("IDP812 Illegal instruction", "another machine"),
        ("IDP812 illegal instruction", "another machine"),
        ("IDP812 died with SIGILL", "another machine"),
        ("IDP812 uncaught target signal 4", "another machine"),
        ("IDP812 bad value for '-march='", "does not know"),
        ("IDP819 Xbyak::Error", "MKL-DNN 0.12"),
        ("IDP819 Unsupported iDeep version (1)", "Chainer takes neither"),
        ("IDP819 no attribute '__version__'", "Chainer takes neither"),
        ("IDP819 pathspec 'x' did not match", "no such tag"),
    ],
)
def test_what_a_line_means(line: str, words: str):
    code, _, text = line.partition(" ")
    (finding,) = judge(of_log(code, text), BUILD_RULES).findings
    assert words in finding.consequence


@pytest.mark.parametrize(
    ("memory", "jobs", "step"),
    [
        (2_000_000_000, 16, "--jobs 5"),
        (799_999_999, 1, "free memory"),
        (800_000_000, 1, None),
        (800_000_000, None, None),
        (1_199_999_999, 3, "--jobs 2"),
        (1_200_000_000, 3, None),
    ],
)
def test_memory_and_jobs(memory: int, jobs: int | None, step: str | None):
    found = alone("IDP811", HOST, {"build": {"memory_bytes": memory, "jobs": jobs}})
    assert [item.severity for item in found] == ([] if step is None else ["warning"])
    assert all(step is not None and step in item.next_step for item in found)


@pytest.mark.parametrize(
    ("version", "told"), [("1.8.3.1", True), ("2.16.9", True), ("2.17.1", False), ("3.0", False), ("", True)]
)
def test_the_oldest_git(version: str, told: bool):
    found = alone("IDP803", HOST, {"build": {"git": version}})
    assert [item.found for item in found] == ([f"git {version}" if version else "no git on PATH"] if told else [])


@pytest.mark.parametrize(
    ("overlay", "told"),
    [
        ({"compiler": "", "compiler_works": None}, True),
        ({"compiler": "c++ 12", "compiler_works": ""}, False),
        ({"compiler": "c++ 12", "compiler_works": None}, False),
        ({"compiler": "c++ 12", "compiler_works": "x"}, True),
        ({"compiler": None, "compiler_works": "x"}, False),
    ],
)
def test_a_compiler_that_works(overlay: dict[str, str | None], told: bool):
    assert len(alone("IDP801", HOST, {"build": overlay})) == told


def test_what_a_compiler_says_is_told_by_its_error():
    said = "In file included\na.cc:1: fatal error: omp.h: No such file\ncompilation terminated."
    (finding,) = alone("IDP801", HOST, {"build": {"compiler": "c++ 12", "compiler_works": said}})
    assert finding.found == "c++ 12: a.cc:1: fatal error: omp.h: No such file"
    (finding,) = alone("IDP801", HOST, {"build": {"compiler": "c++ 12", "compiler_works": "one\nlast"}})
    assert finding.found == "c++ 12: last"


@pytest.mark.parametrize(
    ("release", "chainer", "needed"),
    [
        ("2.0.0.post3", "7.8.1", None),
        ("2.0.0.post3", None, None),
        ("2.0.0.post3", "no version", None),
        ("2.0.0.post3", "4.5.0", "--ref v1.0.4"),
        ("1.0.4", "6.0.0", "--ref 8800808"),
        ("1.0.4", "3.0", "another Chainer"),
        ("2.0.0", "4.5.0", "v1.0.4"),
    ],
)
def test_a_release_and_its_chainer(release: str, chainer: str | None, needed: str | None):
    asked = {"python": "/p", "output": "/o", "ref": "x", "chainer": chainer}
    build = {"request": asked, "ref": "x", "release": release, "cpu_vendor": "GenuineIntel"}
    found = alone("IDP819", HOST, {"build": build})
    assert [needed in item.needed for item in found if needed] == ([] if needed is None else [True])
    assert all(item.severity == "error" for item in found)


@pytest.mark.parametrize(
    ("vendor", "verify", "severities"),
    [("GenuineIntel", True, []), (None, True, []), ("AuthenticAMD", True, ["error"]), ("X", False, ["warning"])],
)
def test_the_talks_release_by_processor(vendor: str | None, verify: bool, severities: list[str]):
    asked = {"python": "/p", "output": "/o", "ref": "v1.0.3", "verify": verify}
    build = {"request": asked, "ref": "v1.0.3", "release": "1.0.3", "cpu_vendor": vendor}
    assert [item.severity for item in alone("IDP819", HOST, {"build": build})] == severities


@pytest.mark.parametrize(
    ("ref", "more", "severities"),
    [
        ("master", {}, ["error"]),
        ("main", {}, ["error"]),
        ("master", {"source": "/fork"}, ["warning"]),
        ("1234567", {}, ["warning"]),
        (None, {}, []),
    ],
)
def test_a_ref_of_which_nothing_is_known(ref: str | None, more: dict[str, str], severities: list[str]):
    asked = {"python": "/p", "output": "/o", "ref": ref, **more}
    found = alone("IDP819", HOST, {"build": {"request": asked, "ref": ref}})
    assert [item.severity for item in found] == severities


@pytest.mark.parametrize(
    ("network", "severities"),
    [
        ("a did not answer within 4 s", ["warning"]),
        ("a did not answer within 4 s; b did not answer within 4 s", ["warning"]),
        ("a did not answer within 4 s; b cannot be reached", ["error"]),
        ("a cannot be reached", ["error"]),
        ("", []),
        (None, []),
    ],
)
def test_a_slow_server_is_no_reason_to_refuse(network: str | None, severities: list[str]):
    assert [item.severity for item in alone("IDP808", HOST, {"build": {"network": network}})] == severities
