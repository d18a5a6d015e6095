"""What a build needs and what there is: by a double that answers every program, and once by this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.errors import UsageError
from ideepdoctor.facts.build import PROGRAM, collect_build, facts_of_log
from ideepdoctor.model.build import BuildFacts, BuildRequest, LogHit
from ideepdoctor.model.findings import Severity
from ideepdoctor.rules import BUILD_RULES
from ideepdoctor.rules.engine import judge
from tests.builder.standin import make_standin
from tests.doubles import Answer, Call, CountingSystem, FakeSystem, completed

MACROS = "".join(
    f"#define {name} 1\n"
    for name in [
        "__x86_64__",
        "__AVX__",
        "__AVX2__",
        "__FMA__",
        "__BMI__",
        "__BMI2__",
        "__F16C__",
        "__LZCNT__",
        "__MOVBE__",
        "__SSE3__",
        "__SSSE3__",
        "__SSE4_1__",
        "__SSE4_2__",
        "__POPCNT__",
        "__LAHF_SAHF__",
        "__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16",
    ]
)
PYTHON = "/env/bin/python"


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with every program that a build takes from PATH; what they say, the double says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("c++", "g++", "cc", "gcc", "make", "git"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def environ(bin_folder: Path, tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(bin_folder), "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache")}


def is_program(name: str, *words: str) -> Callable[[Call], bool]:
    return lambda call: Path(call.argv[0]).name == name and all(word in call.argv for word in words)


def machine(*first: tuple[Callable[[Call], bool], Answer]) -> FakeSystem:
    """A machine that has everything, but for what these answers say."""
    system = FakeSystem(list(first))
    system.on(is_program("c++", "--version"), "c++ (Debian 12.2.0-14+deb12u1) 12.2.0\nmore\n")
    system.on(is_program("c++", "-fopenmp"), "")
    system.on(is_program("c++", "-dM"), MACROS)
    system.on(is_program("c++", "--help=target"), "  -march=                  \t\thaswell\n")
    system.on(is_program("make"), "GNU Make 4.3\n")
    system.on(is_program("git", "--version"), "git version 2.39.5\n")
    system.on(is_program("git", "ls-remote"), "1" * 40 + "\tHEAD\n")
    system.on(is_program("python"), "/usr/include/python3.11\n3.11")
    system.on(is_program("uv", "install"), completed(returncode=1, stderr="not in the cache"))
    system.on(is_program("uv", "compile"), "cmake==3.18.4.post1\nswig==3.0.12\n")
    return system


def looked(system: FakeSystem, environ: dict[str, str], **asked: Any) -> BuildFacts:
    return collect_build(system, environ, BuildRequest(PYTHON, "/out", **asked))


def codes(build: BuildFacts) -> list[str]:
    """Of the errors and warnings that the rules find."""
    found = judge(replace(facts_of_log(()), build=build), BUILD_RULES)
    assert found.unknown == ()
    return [item.code for item in found.findings if item.severity is not Severity.INFO]


def test_a_machine_that_has_everything(environ: dict[str, str]):
    system = machine()
    build = looked(system, environ)
    assert build.compiler == "c++ (Debian 12.2.0-14+deb12u1) 12.2.0"
    assert build.compiler_version == (12, 2, 0)
    assert build.compiler_works == ""
    assert (build.headers, build.python_minor) == ("/usr/include/python3.11", "3.11")
    assert (build.git, build.make, build.cmake, build.swig) == ("2.39.5", "4.3", "3.18.4.post1", "3.0.12")
    assert build.network == ""
    assert build.march is not None and build.march.label == "v3.haswell" and build.march_error == ""
    assert (build.ref, build.ref_found, build.release) == ("8800808", None, "2.0.0.post3")
    assert build.disk_free_bytes and build.memory_bytes and build.jobs
    assert codes(build) == []
    tried = next(call for call in system.calls if "-fopenmp" in call.argv)
    assert tried.stdin == PROGRAM and "-std=c++11" in tried.argv
    assert system.folders == set()  # the temporary one is gone
    assert not any(call.kind in ("write_file", "make_folder") for call in system.calls)


@pytest.mark.parametrize(
    ("missing", "expected"),
    [(("c++", "g++"), ["IDP801"]), (("cc", "gcc"), ["IDP801"]), (("make",), ["IDP804"]), (("git",), ["IDP803"])],
)
def test_a_program_that_is_missing(
    bin_folder: Path, environ: dict[str, str], missing: tuple[str, ...], expected: list[str]
):
    for name in missing:
        (bin_folder / name).unlink()
    assert codes(looked(machine(), environ)) == expected


def test_g_plus_plus_will_do(bin_folder: Path, environ: dict[str, str]):
    (bin_folder / "c++").unlink()
    system = machine((is_program("g++", "--version"), "g++ (GCC) 9.3.1 20200408\n"))
    assert looked(system, environ).compiler_version == (9, 3, 1)


@pytest.mark.parametrize(
    ("words", "answer", "expected"),
    [
        (("c++", "-fopenmp"), completed(returncode=1, stderr="a.cc:1:10: fatal error: omp.h: No such"), ["IDP801"]),
        (("c++", "--version"), completed(returncode=127, error="Exec format error"), ["IDP801"]),
        (("c++", "-fopenmp"), completed(returncode=1), ["IDP801"]),
        (("c++", "-fopenmp"), completed(timed_out=True, returncode=-9), ["IDP801"]),
        (
            ("c++", "-dM"),
            completed(returncode=1, stderr="cc1plus: error: bad value ('native') for '-march=' switch"),
            ["IDP812"],
        ),
        (("c++", "-dM"), "#define __x86_64__ 1\n", ["IDP812"]),
        (("python",), "\n3.11", ["IDP802"]),
        (("make",), completed(returncode=2), ["IDP804"]),
        (("git", "--version"), "git version 1.7.1\n", ["IDP803"]),
        (("git", "ls-remote"), completed(returncode=128, stderr="x\nfatal: unable to access 'u'"), ["IDP808"]),
        (("git", "ls-remote"), completed(timed_out=True, returncode=-9), ["IDP808"]),
        (("uv", "compile"), completed(returncode=2, stderr="error: Failed to fetch\n  cause: dns error"), ["IDP808"]),
        (("uv", "compile"), completed(timed_out=True, returncode=-9), ["IDP808"]),
        (
            ("uv", "compile"),
            completed(returncode=1, stderr="Because there is no version of swig==3.0.12 and you require it"),
            ["IDP806"],
        ),
        (("uv", "compile"), completed(returncode=1, stderr="cmake was not found in the registry"), ["IDP805"]),
    ],
)
def test_what_does_not_work(environ: dict[str, str], words: tuple[str, ...], answer: Answer, expected: list[str]):
    assert codes(looked(machine((is_program(*words), answer)), environ)) == expected


def test_a_server_that_is_slow_is_told_and_does_not_stop_the_build(environ: dict[str, str]):
    slow = completed(timed_out=True, returncode=-9)
    build = looked(machine((is_program("git", "ls-remote"), slow), (is_program("uv", "compile"), slow)), environ)
    (finding,) = judge(replace(facts_of_log(()), build=build), BUILD_RULES).findings
    assert (finding.code, finding.severity) == ("IDP808", Severity.WARNING)


def test_an_interpreter_that_does_not_answer_is_not_without_headers(environ: dict[str, str]):
    build = looked(machine((is_program("python"), completed(returncode=1))), environ)
    assert (build.headers, build.python_minor) == (None, None)
    assert codes(build) == []


def test_credentials_are_not_told(environ: dict[str, str]):
    url = "https://me:secret@git.invalid/ideep.git"
    said = f"fatal: unable to access '{url}/': Could not resolve host"
    build = looked(machine((is_program("git", "ls-remote"), completed(returncode=1, stderr=said))), environ, source=url)
    assert build.network and "secret" not in build.network and "git.invalid" in build.network


def test_git_cannot_ask_for_a_password(environ: dict[str, str]):
    system = machine()
    mine = {"GIT_SSH_COMMAND": "ssh -i mine", "GIT_ASKPASS": "ask"}
    looked(system, environ | mine, source="https://git.invalid/ideep.git", ref="v1.0.4")
    call = next(call for call in system.calls if "ls-remote" in call.argv)
    assert call.env is not None and call.env["GIT_TERMINAL_PROMPT"] == "0"
    assert "GIT_ASKPASS" not in call.env and call.env["GIT_SSH_COMMAND"] == "ssh -i mine"
    assert call.argv[-3:] == ("HEAD", "refs/tags/v1.0.4", "refs/heads/v1.0.4")
    assert call.timeout_seconds is not None and call.timeout_seconds <= 5


@pytest.mark.parametrize(
    ("refs", "ref", "found", "expected"),
    [
        ("1\tHEAD\n2\trefs/tags/v1.0.4\n", "v1.0.4", True, []),
        ("1\tHEAD\n2\trefs/heads/own\n", "own", True, ["IDP819"]),
        ("1\tHEAD\n2\trefs/tags/v1.0.4\n", "refs/tags/v1.0.4", True, []),
        ("1\tHEAD\n", "refs/tags/v9.9", False, ["IDP819"]),
        ("1\tHEAD\n", "v9.9", False, ["IDP819"]),
        ("1\tHEAD\n", "8800808", None, []),
    ],
)
def test_whether_the_repository_has_the_ref(
    environ: dict[str, str], refs: str, ref: str, found: bool | None, expected: list[str]
):
    build = looked(machine((is_program("git", "ls-remote"), refs)), environ, ref=ref)
    assert build.ref_found is found
    assert codes(build) == expected


def test_what_is_in_a_cache_needs_no_network(environ: dict[str, str]):
    system = machine((is_program("uv", "install"), completed(stderr="Would install 2 packages")))
    system.answers.insert(0, (is_program("uv", "compile"), completed(returncode=1, stderr="dns error")))
    assert looked(system, environ).network == ""
    kept = Path(environ["IDEEPDOCTOR_CACHE_DIR"], "build")
    for kind in ("tools", "python", "mkl"):
        (kept / kind).mkdir(parents=True)
        (kept / kind / "1.json").write_text("{}")
    system = machine((is_program("uv"), completed(returncode=1, stderr="dns error")))
    assert looked(system, environ).network == ""
    assert not any(Path(words[0]).name == "uv" for words in system.commands())
    assert codes(looked(system, environ, fresh=True)) == ["IDP808"]
    (kept / "mkl" / "1.json").unlink()
    assert codes(looked(system, environ)) == ["IDP808"]
    assert codes(looked(system, environ, mkl="none")) == []


def test_would_download_is_not_in_the_cache(environ: dict[str, str]):
    system = machine((is_program("uv", "install"), completed(stderr="Would download 2 packages")))
    looked(system, environ)
    assert any("compile" in call.argv for call in system.calls)


def test_a_mirror_is_asked_in_the_place_of_the_index(environ: dict[str, str]):
    system = machine()
    looked(system, {**environ, "IDEEPDOCTOR_INDEX_URL": "https://me:secret@mirror.invalid/simple"})
    call = next(call for call in system.calls if "compile" in call.argv)
    assert call.env is not None and call.env["UV_DEFAULT_INDEX"] == "https://me:secret@mirror.invalid/simple"
    assert "secret" not in " ".join(call.argv)


def test_a_source_that_is_kept_is_not_asked_for(environ: dict[str, str]):
    from ideepdoctor.builder.trees import source_key

    request = BuildRequest(PYTHON, "/out")
    kept = Path(environ["IDEEPDOCTOR_CACHE_DIR"], "build", "source")
    kept.mkdir(parents=True)
    (kept / f"{source_key(request)}.json").write_text("{}")
    system = machine()
    build = collect_build(system, environ, request)
    assert build.git is None
    assert not any("ls-remote" in words for words in system.commands())


def test_a_folder_with_and_without_mkl_dnn(environ: dict[str, str], tmp_path: Path):
    standin = make_standin(tmp_path / "repositories")
    whole = standin.checkout("post3", tmp_path / "whole")
    build = looked(machine(), environ, source=str(whole))
    assert (build.mkldnn_present, build.git, build.ref) == (True, None, None)
    lacking = standin.checkout("post3", tmp_path / "lacking", with_mkldnn=False)
    away = machine((is_program("git", "ls-remote"), completed(returncode=128, stderr="fatal: no")))
    (lacking / ".gitmodules").write_text('[submodule "mkl-dnn"]\n\tpath = mkl-dnn\n\turl = https://git.invalid/m\n')
    build = looked(away, environ, source=str(lacking))
    assert (build.mkldnn_present, build.git) == (False, "2.39.5")
    assert codes(build) == ["IDP807", "IDP808"]
    assert codes(looked(machine(), environ, source=str(lacking))) == []


def test_what_is_asked_for_and_cannot_be(environ: dict[str, str]):
    with pytest.raises(UsageError, match="no folder or archive"):
        looked(machine(), environ, source="/nowhere/at/all")
    with pytest.raises(UsageError, match=r"3\.0"):
        looked(machine(), environ, chainer="3.0")
    build = looked(machine(), {**environ, "MKLROOT": "/opt/mkl"}, mkl="/nowhere")
    assert build.mklroot == "/opt/mkl"
    assert "lib/libmklml_intel.so" in build.mkl_missing
    assert codes(build) == ["IDP821"]


def test_this_machine_in_seconds_and_nothing_stays(tmp_path: Path):
    standin = make_standin(tmp_path / "repositories")
    environ = {**os.environ, "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    before = sorted(tmp_path.iterdir())
    system = CountingSystem()
    request = BuildRequest(sys.executable, str(tmp_path / "out"), source=standin.url, ref="v1.0.4", mkl="none")
    build = collect_build(system, environ, request)
    if not build.compiler:
        pytest.skip("no C++ compiler here")
    assert build.compiler_works == "" and build.compiler_version
    assert build.ref_found is True
    assert build.python_minor == "{}.{}".format(*sys.version_info)
    assert build.headers is not None and (not build.headers or Path(build.headers, "Python.h").is_file())
    assert sorted(tmp_path.iterdir()) == before
    assert system.written == []


def test_facts_of_a_log_are_judged_by_the_rules_of_a_build_alone():
    facts = facts_of_log((LogHit("IDP806", 3, "unable to execute 'swig'"),))
    found = judge(facts, BUILD_RULES)
    assert [item.code for item in found.findings] == ["IDP806"]
    assert found.findings[0].found == "line 3: unable to execute 'swig'"
    assert found.unknown == ()
