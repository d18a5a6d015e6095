"""Rules about pip: what its settings come to, and where it can build Chainer."""

from __future__ import annotations

from typing import Any

import pytest

from ideepdoctor.model.findings import Severity
from ideepdoctor.rules.pip_options import applied_to, setting, switched_off, switched_on, without, words
from tests.rules.hosts import alone, facts_on, judged

HOST = "py37-healthy"
NEWER = "py311-nothing"
USER = "/home/user/.config/pip/pip.conf"
MISSING = {"packages": {"ideep4py": None}}


def pip_settings(*rows: tuple[str, ...]) -> dict[str, Any]:
    """Rows of (option, value[, source[, section]])."""
    names = ("name", "value", "source", "command")
    return {"pip_settings": [dict(zip(names, (*row, *(USER, "global")[len(row) - 2 :]), strict=True)) for row in rows]}


@pytest.mark.parametrize(
    ("rows", "no_binary", "only_binary"),
    [
        ([], False, False),
        ([("no-binary", ":all:")], True, False),
        ([("no-binary", "Chainer, numpy")], True, False),
        ([("no-binary", "chainer-extra")], False, False),
        ([("no-binary", ":all:,:none:")], False, False),
        ([("no-binary", ":none:,chainer")], True, False),
        ([("no-binary", ":all:"), ("only-binary", "chainer", "PIP_ONLY_BINARY")], False, True),
        ([("no-binary", ":all:"), ("only-binary", "numpy")], True, False),
        ([("only-binary", "chainer"), ("no-binary", ":all:")], True, False),
        ([("only-binary", ":all:"), ("no-binary", "chainer", USER, "install")], True, False),
        ([("no-binary", "chainer", USER, "download")], False, False),
        ([("no-binary", "chainer"), ("no-binary", ":none:", "PIP_NO_BINARY")], False, False),
        ([("pre", ":all:")], False, False),
    ],
)
def test_formats_add_up_as_in_pip(rows: list[tuple[str, ...]], no_binary: bool, only_binary: bool):
    facts = facts_on(HOST, pip_settings(*rows))
    assert (applied_to(facts, "no-binary", "chainer") is not None) is no_binary
    assert (applied_to(facts, "only-binary", "chainer") is not None) is only_binary


def test_the_setting_that_names_the_distribution_is_told_before_the_one_for_all():
    facts = facts_on(HOST, pip_settings(("no-binary", ":all:"), ("no-binary", "ideep4py", "PIP_NO_BINARY")))
    found = applied_to(facts, "no-binary", "ideep4py")
    assert found is not None and found.source == "PIP_NO_BINARY"


def test_what_comes_later_counts_more():
    facts = facts_on(
        HOST, pip_settings(("user", "true"), ("user", "No", USER, "install"), ("user", "on", "x", "wheel"))
    )
    assert switched_on(facts, "user") is None
    off = switched_off(facts, "user")
    assert off is not None and off.value == "No"
    assert setting(facts, "pre") is None and switched_off(facts, "pre") is None
    assert setting(facts_on(HOST, {"pip_settings": None}), "user") is None


@pytest.mark.parametrize(
    ("source", "section", "step"),
    [
        ("PIP_USER", "global", "unset PIP_USER"),
        (USER, "global", "/home/user/ideep/bin/python -m pip config --user unset global.user"),
        (USER, "install", "/home/user/ideep/bin/python -m pip config --user unset install.user"),
        ("/etc/pip.conf", "global", "/home/user/ideep/bin/python -m pip config --global unset global.user"),
        ("/home/user/ideep/pip.conf", "global", "/home/user/ideep/bin/python -m pip config --site unset global.user"),
        ("/home/user/.pip/pip.conf", "global", "take user out of /home/user/.pip/pip.conf"),
        ("/srv/own.conf", "global", "take user out of /srv/own.conf"),
    ],
)
def test_how_to_be_rid_of_it(source: str, section: str, step: str):
    facts = facts_on(HOST, pip_settings(("user", "yes", source, section)))
    [one] = facts.pip_settings or ()
    assert without(facts, one) == step
    where = f"{source}, section install" if section == "install" else source
    assert words(one) == f"user = yes ({where})"


@pytest.mark.parametrize(
    ("rows", "overlay", "seen"),
    [
        ([("no-binary", "numpy")], MISSING, []),
        ([("no-binary", ":all:")], MISSING, [Severity.WARNING]),
        ([("no-binary", ":all:")], {}, [Severity.INFO]),
        ([("only-binary", ":all:")], {}, [Severity.INFO]),
        ([("only-binary", ":all:")], {"packages": {"chainer": None}}, [Severity.WARNING]),
        ([("no-index", "1")], {}, [Severity.INFO]),
        ([("no-index", "1")], MISSING, [Severity.WARNING]),
        ([("no-index", "0")], MISSING, []),
        ([("no-index", "1"), ("find-links", "/w", USER, "install")], MISSING, []),
        ([("user", "true")], {"packages": {"chainer": None}}, [Severity.WARNING]),
        ([("target", "/opt/here")], {}, [Severity.INFO]),
        ([("prefix", "/opt/here")], {}, [Severity.INFO]),
        ([("prefix", "/home/user/ideep/")], {}, []),
        ([("require-virtualenv", "true")], {}, []),
        ([("require-virtualenv", "true")], {"python": {"kind": "pyenv"}}, [Severity.INFO]),
        ([("index-url", "https://mirror.example/simple")], {}, []),
        ([("index-url", "https://mirror.example/simple")], MISSING, [Severity.INFO]),
        ([("extra-index-url", "https://mirror.example/simple")], MISSING, []),
        ([("index-url", "http://***@mirror.example/simple")], {}, [Severity.WARNING]),
        ([("extra-index-url", "https://a.example/s http://b.example/s")], {}, [Severity.WARNING]),
        ([("extra-index-url", "http://127.0.0.1:80/s"), ("trusted-host", "127.0.0.1 localhost:80")], {}, []),
        ([("trusted-host", "localhost mirror.example")], {}, [Severity.WARNING]),
        ([("trusted-host", "localhost.example")], {}, [Severity.WARNING]),
        ([("index-url", "http://b.example/s"), ("trusted-host", "b.example")], {}, [Severity.WARNING]),
        ([("cert", "/etc/ca.pem"), ("proxy", "http://proxy:3128")], MISSING, []),
    ],
)
def test_idp205_tells_each_setting_as_it_matters(
    rows: list[tuple[str, ...]], overlay: dict[str, Any], seen: list[Severity]
):
    assert [one.severity for one in alone("IDP205", HOST, overlay, pip_settings(*rows))] == seen


def test_idp205_is_for_pip_and_for_where_setup_uses_it():
    rows = pip_settings(("no-binary", ":all:"))
    planned = {"planned_ideep4py": "2.0.0.post3"}
    assert alone("IDP205", HOST, rows, {"packages": {"pip": None}}) == []
    assert len(alone("IDP205", HOST, rows, {"packages": None})) == 1
    assert alone("IDP205", HOST, rows, planned) == []
    [finding] = alone("IDP205", "py27-healthy", rows, planned, {"packages": {"pip": None}})
    assert finding.severity is Severity.WARNING, "it is still to be installed"
    mirror = pip_settings(("index-url", "https://mirror.example/simple"))
    assert alone("IDP205", "py27-healthy", mirror, planned, MISSING) == []
    assert alone("IDP205", HOST, mirror, {"packages": None}) == []


def test_idp205_says_what_becomes_of_it():
    user = pip_settings(("user", "true"))
    assert "refuses" in alone("IDP205", HOST, user)[0].consequence
    assert "arrives in the user's folder" in alone("IDP205", HOST, user, {"python": {"kind": "pyenv"}})[0].consequence
    [plain] = alone("IDP205", HOST, pip_settings(("trusted-host", "b.example"), ("index-url", "http://b.example/s")))
    assert plain.found.startswith("index-url"), "the index itself is told before the host"
    [other] = alone("IDP205", HOST, {"python": {"purelib": None}}, pip_settings(("target", "/x\u00e9")))
    assert other.needed == "pip installs into /home/user/ideep"
    assert other.found == "target = /x\\xe9 (/home/user/.config/pip/pip.conf)"


def test_facts_of_an_older_doctor_raise_nothing():
    judgement = judged(HOST, {"pip_settings": None, "duplicates": []})
    assert (judgement.findings, judgement.unknown) == ((), ())


WITH = "setuptools {}, the installed one"
ANY = "setuptools 82 or later, whatever is installed"


@pytest.mark.parametrize(
    ("python", "pip", "setuptools", "wheel", "rows", "builds_with"),
    [
        # Measured: pip install --no-cache-dir chainer==7.8.1 with each of these.
        ("3.10.13", "22.3.1", "65.5.0", None, [], None),
        ("3.10.13", "23.0.1", "65.5.0", None, [], None),
        ("3.10.13", "23.1", "65.5.0", None, [], ANY),
        ("3.10.13", "24.0", "65.5.0", None, [], ANY),
        ("3.10.13", "24.0", "65.5.0", "0.45", [], None),
        ("3.10.13", "25.2", "65.5.0", "0.45", [], None),
        ("3.10.13", "25.2", "82.0.1", "0.45", [], WITH.format("82.0.1")),
        ("3.10.13", "25.3", "65.5.0", "0.45", [], ANY),
        ("3.10.13", "22.3.1", "82.0.1", None, [], WITH.format("82.0.1")),
        ("3.10.13", "26.3", "65.5.0", "0.45", [("constraint", "c")], ANY),
        ("3.10.13", "26.3", "65.5.0", "0.45", [("build-constraint", "c")], None),
        ("3.10.13", "26.3", "65.5.0", "0.45", [("no-build-isolation", "false")], None),
        ("3.10.13", "26.3", "65.5.0", "0.45", [("no-build-isolation", "true")], ANY),
        # The rest follows from it.
        ("3.10.13", "26.3", "82.0", "0.45", [("no-build-isolation", "0")], WITH.format("82.0")),
        ("3.10.13", "24.0", "65.5.0", None, [("constraint", "c")], None),
        ("3.10.13", "24.0", "65.5.0", None, [("build-constraint", "c")], ANY),
        ("3.10.13", "22.3.1", None, None, [], ANY),
        ("3.9.18", "26.3", "65.5.0", "0.45", [], ANY),
        ("3.8.18", "25.0", None, None, [], None),
    ],
)
def test_idp206_knows_what_pip_builds_with(
    python: str,
    pip: str,
    setuptools: str | None,
    wheel: str | None,
    rows: list[tuple[str, str]],
    builds_with: str | None,
):
    packages = {"pip": pip, "setuptools": setuptools, "wheel": wheel}
    seen = alone("IDP206", NEWER, {"python": {"version": python}, "packages": packages}, pip_settings(*rows))
    found = [f"pip {pip} on Python {python.rpartition('.')[0]} builds with {builds_with}"] if builds_with else []
    assert [one.found for one in seen] == found


def test_idp206_is_a_note_and_its_step_works_where_it_can():
    bare = {"packages": {"pip": "26.3"}}
    [finding] = alone("IDP206", NEWER, bare)
    assert finding.severity is Severity.INFO
    assert finding.next_step.count("-m pip install") == 2 and "--no-build-isolation chainer==7.8.1" in finding.next_step
    managed = {"python": {"externally_managed": "/usr/lib/python3/EXTERNALLY-MANAGED"}}
    assert alone("IDP206", NEWER, bare, managed)[0].next_step == "ideepdoctor setup --build --python 3.11"
    newer = {"python": {"version": "3.12.1", "abi": "cp312"}}
    assert alone("IDP206", NEWER, bare, newer)[0].next_step == "ideepdoctor setup --build --python 3.12"
    pypy = {"python": {"version": "3.13.1", "implementation": "PyPy"}}
    assert alone("IDP206", NEWER, bare, pypy)[0].next_step == "ideepdoctor setup"
    assert alone("IDP206", NEWER, bare, {"packages": {"chainer": "7.8.1"}}) == []
    assert alone("IDP206", NEWER, bare, {"planned_ideep4py": "2.0.0.post3+doctor"}) == []
