"""Every failure of a build that is known: provoked with the documented commands on the stand-in and recognised by its
log; and cured by ``ideepdoctor build``, or refused before anything is begun.

A compiler that is killed and a disk that is full in the middle of the doctor's own build: see test_build.py.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builder.standin import StandIn
from tests.e2e.build_failures import FAILURES, Failure
from tests.e2e.building import DOCTOR, SECONDS, Site, site
from tests.e2e.by_hand import Workshop, python_environment
from tests.e2e.environments import Answer, doctor, uv

pytestmark = pytest.mark.e2e
QUICK = ("no-headers", "march-below-avx2")
ALMOST = "sapphirerapids"
"""A processor of Intel's with instructions that no other has; the tests ask whether this machine is one."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def standin(shop: Workshop) -> StandIn:
    return shop.standin


@pytest.fixture
def own(standin: StandIn, tmp_path: Path) -> Site:
    return site(standin, tmp_path / "site")


@pytest.mark.parametrize(
    "failure",
    [pytest.param(one, id=one.name, marks=() if one.name in QUICK else pytest.mark.slow) for one in FAILURES],
)
def test_a_build_by_hand_fails_and_its_log_is_explained(shop: Workshop, tmp_path: Path, failure: Failure):
    if failure.name == "another-processor" and shutil.which("qemu-x86_64") is None:
        pytest.skip("no qemu-x86_64 here")
    if failure.name == "xbyak" and "AuthenticAMD" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor is Intel's")
    folder = tmp_path / "build"
    folder.mkdir()
    log = tmp_path / "build.log"
    log.write_text(failure.provoke(shop, folder))
    answer = doctor("explain", "--log", str(log), "--format", "json")
    findings, causes = answer.document["findings"], answer.document["causes"]
    assert findings or causes, answer.stdout + answer.stderr + log.read_text()[-3000:]
    if findings:
        assert findings[0]["code"] == failure.code
    else:  # a log that has nothing of a build but its program: what everybody has whose program ends so
        assert any(failure.code in one["codes"] for one in causes)
    assert answer.code == (1 if findings and findings[0]["severity"] == "error" else 0)
    text = doctor("explain", "--log", "-", stdin=log.read_text())
    assert text.code == answer.code
    first = findings[0]["code"] if findings else causes[0]["codes"][0]
    assert first in text.stdout and "line " in text.stdout and text.stderr == ""


def test_a_log_that_cannot_be_read_is_a_usage_error(tmp_path: Path):
    answer = doctor("explain", "--log", str(tmp_path / "none.log"), "--format", "json")
    assert answer.code == 2
    assert answer.document["error"]["code"] == "usage"
    assert "none.log" in answer.document["error"]["message"]


@pytest.mark.slow
def test_the_doctors_own_build_cures_all_of_them_at_once(shop: Workshop, own: Site, tmp_path: Path):
    """In the surroundings of all these failures: no submodule, CMake 4, SWIG 4, a Python 3.11 without anything, a full
    MKL in MKLROOT, flags that end every build, the linker's RUNPATH, and no place to download MKLML from."""
    python = shop.python("3.11")
    tree = shop.standin.clone("post3", tmp_path / "ideep", with_mkldnn=False)
    bins = [shop.tool("cmake==4.0.3"), shop.tool("swig==4.2.1"), python]
    environ = {
        **own.environ,
        "PATH": ":".join([*map(str, bins), os.environ["PATH"]]),
        "MKLROOT": str(shop.full_mkl),
        "CFLAGS": "-Werror -march=nothing",
        "CXXFLAGS": "-Werror -march=nothing",
        "LDFLAGS": "-Wl,--enable-new-dtags",
        "MAKEFLAGS": "-j",
    }
    words = ["--source", str(tree), "--mkl", str(shop.mkl), "--march", "x86-64-v3", "--no-verify", "-o", str(tmp_path)]
    words = ["build", "--python", str(python / "python"), *words, "--format", "json"]
    answer = doctor(*words, environ=environ, timeout_seconds=SECONDS)
    assert answer.code == 0, answer.stdout + answer.stderr
    wheel = answer.document["build"]["wheel"]
    fresh = python_environment(tmp_path / "fresh", str(python / "python"), "six", f"numpy=={wheel['numpy']}")
    uv("pip", "install", "--python", str(fresh / "bin" / "python"), "--no-deps", wheel["path"])
    done = subprocess.run(
        [str(fresh / "bin" / "python"), "-c", "import ideep4py; print(ideep4py.__version__)"],
        capture_output=True,
        text=True,
        env={"PATH": os.defpath},
    )
    assert done.stdout == "2.0.0.post3\n", done.stderr  # libiomp5.so was found
    with zipfile.ZipFile(wheel["path"]) as packed:
        assert "ideep4py/lib/libiomp5.so" in packed.namelist()
    # Its own log names nothing.
    told = doctor("explain", "--log", answer.document["build"]["log"], "--format", "json")
    assert (told.code, told.document["findings"]) == (0, [])
    # Installed, it says what it is.
    found = doctor("diagnose", "--quick", "--python", str(fresh), "--format", "json").document["findings"]
    assert "IDP824" in [item["code"] for item in found]


def refused(place: Site, answer: Answer, code: str, exit_code: int = 1) -> None:
    """It says why, by name, and has begun nothing."""
    assert answer.code == exit_code, answer.stdout + answer.stderr
    errors = [item["code"] for item in answer.document["findings"] if item["severity"] == "error"]
    assert errors == [code]
    assert answer.document["verdict"] == "nothing was changed"
    assert not (place.folder / "out").exists() and place.works == [] and place.logs == []


def planned(place: Site, python: str, *options: str, **environ: str) -> Answer:
    words = ["build", "--python", python, "--source", place.standin.url, "--mkldnn-source", place.standin.mkldnn_url]
    words += ["-o", str(place.folder / "out"), "--format", "json", *options]
    return doctor(*words, environ={**place.environ, **environ}, timeout_seconds=SECONDS)


def links(folder: Path, *programs: str) -> str:
    """A PATH that has these programs alone."""
    folder.mkdir()
    for program in programs:
        found = shutil.which(program)
        assert found is not None
        (folder / program).symlink_to(found)
    return str(folder)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        pytest.param(("--ref", "v2.0.0"), "IDP819", id="no __version__"),
        pytest.param(("--ref", "v9.9"), "IDP819", id="no such tag", marks=pytest.mark.slow),
        pytest.param(("--ref", "v1.0.4", "--chainer", "7.8.1"), "IDP819", id="Chainer 7", marks=pytest.mark.slow),
        pytest.param(("--ref", "v1.0.4", "--march", "x86-64-v9"), "IDP812", id="no such march", marks=pytest.mark.slow),
        pytest.param(("--ref", "v1.0.4", "--march", "x86-64-v2"), "IDP812", id="low march", marks=pytest.mark.slow),
        pytest.param(("--ref", "v1.0.4", "--mkl", "."), "IDP821", id="an MKL without files", marks=pytest.mark.slow),
    ],
)
def test_refused_before_it_begins(own: Site, legacy: Callable[[str], str], options: tuple[str, ...], code: str):
    refused(own, planned(own, legacy("3.7"), *options), code)


@pytest.mark.slow
def test_what_cannot_run_here_is_refused_and_built_for_elsewhere_if_asked(own: Site, legacy: Callable[[str], str]):
    cpuinfo = Path("/proc/cpuinfo").read_text()
    if "GenuineIntel" not in cpuinfo:
        refused(own, planned(own, legacy("3.7"), "--ref", "v1.0.3"), "IDP819")
    if "avx512_fp16" not in cpuinfo:
        words = ("--ref", "v1.0.4", "--march", ALMOST)
        refused(own, planned(own, legacy("3.7"), *words), "IDP812")
        assert planned(own, legacy("3.7"), *words, "--no-verify", "--dry-run").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("programs", "code"),
    [
        (("cc", "gcc", "make", "git"), "IDP801"),
        (("cc", "c++", "git"), "IDP804"),
        (("cc", "c++", "make"), "IDP803"),
    ],
)
def test_a_program_that_is_missing(
    own: Site, legacy: Callable[[str], str], tmp_path: Path, programs: tuple[str, ...], code: str
):
    path = links(tmp_path / "bin", *programs, "as", "ld", "sh")
    refused(own, planned(own, legacy("3.7"), "--ref", "v1.0.4", PATH=path), code)


@pytest.mark.slow
def test_a_full_mkl_and_many_jobs_are_only_told(own: Site, legacy: Callable[[str], str], shop: Workshop):
    words = ("--ref", "v1.0.4", "--jobs", "1000", "--dry-run")
    answer = planned(own, legacy("3.7"), *words, MKLROOT=str(shop.full_mkl))
    assert answer.code == 0
    found = {item["code"]: item["severity"] for item in answer.document["findings"]}
    assert found == {"IDP809": "info", "IDP811": "warning"}


def within(place: Site, unshare: str, before: str, python: str, *options: str, **environ: str) -> Answer:
    """The same in namespaces of its own, after a command of the shell."""
    words = [DOCTOR, "build", "--python", python, "--format", "json", "-o", str(place.folder / "out"), *options]
    script = f"{before} exec {shlex.join(words)}"
    done = subprocess.run(
        ["unshare", unshare, "sh", "-c", script],
        env={**os.environ, **place.environ, **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr.strip())
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_a_small_disk_is_refused(own: Site, legacy: Callable[[str], str]):
    cache = Path(own.environ["IDEEPDOCTOR_CACHE_DIR"])
    cache.mkdir()
    before = f"mount -t tmpfs -o size=900m none {shlex.quote(str(cache))} &&"
    options = ("--source", own.standin.url, "--ref", "v1.0.4")
    refused(own, within(own, "-rm", before, legacy("3.7"), *options), "IDP810")


@pytest.mark.slow
def test_no_network_is_refused_in_seconds(own: Site, legacy: Callable[[str], str], tmp_path: Path):
    answer = within(own, "-rn", "", legacy("3.7"), UV_CACHE_DIR=str(tmp_path / "uv"))
    refused(own, answer, "IDP808", 3)
    [finding] = [item for item in answer.document["findings"] if item["code"] == "IDP808"]
    assert "cannot be reached" in finding["found"]
