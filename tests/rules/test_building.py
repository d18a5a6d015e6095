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
