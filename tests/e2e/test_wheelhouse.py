"""``wheelhouse``: files by hash from a real index (a small mirror of this machine; in the slow tests the usual one)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ideepdoctor.commands.source import SourceOptions, package_source
from ideepdoctor.errors import CouldNotCheck
from ideepdoctor.model.plan import PackageSource, Requirement
from ideepdoctor.system import RealSystem
from ideepdoctor.treatment.installers import HashMismatch
from ideepdoctor.treatment.progress import Quiet
from ideepdoctor.wheelhouse import fill
from ideepdoctor.wheelhouse.fetch import pip_program
from ideepdoctor.wheelhouse.wanted import FileSet
from tests.conftest import legacy_python
from tests.e2e.environments import doctor
from tests.mirror import PASSWORD, Mirror, pin_of, serving, tiny_wheel

pytestmark = pytest.mark.e2e

TINY, OTHER = "tiny-1.0-py3-none-any.whl", "other-1.0-py3-none-any.whl"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror with two small wheels; the pinned pip is there already."""
    pip_program(RealSystem(), os.environ["IDEEPDOCTOR_CACHE_DIR"], lambda _text: None, PackageSource())
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_")) and name != "UV_CACHE_DIR"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_RETRIES", "0")
    (tmp_path / "index").mkdir()
    for name in ("tiny", "other"):
        tiny_wheel(tmp_path / "index", name)
    with serving(Mirror().add(tmp_path / "index")) as serves:
        yield serves


def filled(mirror: Mirror, folder: Path, *pins: Requirement, url: str = "", every: bool = True) -> fill.Filled:
    source = package_source(SourceOptions(index_url=url or mirror.url))
    around = fill.Surroundings(RealSystem(), os.environ["IDEEPDOCTOR_CACHE_DIR"], Quiet(), source)
    wanted = pins or tuple(pin_of(mirror.files[name]) for name in (OTHER, TINY))
    return fill.fill(around, str(folder), (FileSet("a set", "a-set", wanted, every),), with_doctor=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_come_by_hash_once(mirror, tmp_path):
    assert filled(mirror, tmp_path / "wh").fetched == (OTHER, TINY)
    assert names(tmp_path / "wh") == sorted([OTHER, TINY, "manifest.json", "requirements-a-set.txt"])
    asked = len(mirror.asked)
    assert filled(mirror, tmp_path / "wh").fetched == ()
    assert len(mirror.asked) == asked
    (tmp_path / "wh" / TINY).write_bytes(b"damaged")
    checked = doctor("wheelhouse", str(tmp_path / "wh"), "--check", "--format", "json")
    assert (checked.code, f"{TINY} is altered" in checked.document["error"]["message"]) == (1, True)
    assert filled(mirror, tmp_path / "wh").anew == (TINY,)
    assert doctor("wheelhouse", str(tmp_path / "wh"), "--check").code == 0


def test_a_mirror_that_names_no_digests_will_do(mirror, tmp_path):
    mirror.digests = False
    assert filled(mirror, tmp_path / "wh").fetched == (OTHER, TINY)


@pytest.mark.parametrize(
    ("fault", "kind", "told"),
    [
        ("gone", CouldNotCheck, "lists tiny 1.0 and does not serve it"),
        ("swapped", HashMismatch, "has another file"),
        ("absent", CouldNotCheck, "does not have tiny 1.0"),
        ("private", CouldNotCheck, "wants a user and a password"),
    ],
)
def test_the_faults_of_a_mirror_leave_whole_files_alone(mirror, tmp_path, fault, kind, told):
    pins = [pin_of(mirror.files[name]) for name in (OTHER, TINY)]
    if fault == "private":
        mirror.private = True
    elif fault == "absent":
        pins[1] = replace(pins[1], sha256=("0" * 64,))
    else:
        getattr(mirror, fault).add(TINY)
    with pytest.raises(kind) as caught:
        filled(mirror, tmp_path / "wh", *pins)
    assert told in caught.value.message, caught.value.message
    assert mirror.url in caught.value.message
    # What came before it is whole and stays; of the other nothing is left.
    if fault == "private":
        assert not (tmp_path / "wh").exists()
    else:
        assert names(tmp_path / "wh") == [OTHER]


def test_a_password_is_used_and_kept_nowhere(mirror, tmp_path, monkeypatch):
    mirror.private = True
    monkeypatch.setenv("IDEEPDOCTOR_INDEX_URL", mirror.whole_url)
    assert filled(mirror, tmp_path / "wh", url=mirror.whole_url).fetched == (OTHER, TINY)
    assert not any(PASSWORD.encode() in path.read_bytes() for path in (tmp_path / "wh").iterdir())


def test_any_file_of_a_tool_will_do_and_a_wheel_is_taken_first(mirror, tmp_path):
    mirror.files["tiny-1.0.tar.gz"] = tmp_path / "index" / "tiny-1.0.tar.gz"
    mirror.files["tiny-1.0.tar.gz"].write_bytes(b"an archive")
    digests = [pin_of(mirror.files[name]).sha256[0] for name in (TINY,)]
    archive = pin_of(mirror.files["tiny-1.0.tar.gz"])
    both = Requirement("tiny", "1.0", (*archive.sha256, *digests))
    assert filled(mirror, tmp_path / "wh", both, every=False).fetched == (TINY,)


def test_without_a_network_it_says_so_and_leaves_what_is_there(mirror, tmp_path):
    with pytest.raises(CouldNotCheck) as caught:
        filled(mirror, tmp_path / "wh", url="http://127.0.0.1:9/simple")
    assert "the network is needed and not there" in caught.value.message


@pytest.mark.slow
def test_everything_with_the_doctor_and_what_a_build_needs(tmp_path):
    folder = tmp_path / "wh"
    words = ("wheelhouse", str(folder), "--python", "3.7", "--with-build", "--doctor", "--format", "json")
    answer = doctor(*words, timeout_seconds=900)
    assert answer.code == 0, answer.stdout + answer.stderr
    document = answer.document["wheelhouse"]
    there = set(document["manifest"]["files"])
    for start in ("chainer-7.8.1.tar.gz", "cmake-3.18.4.post1", "swig-3.0.12", "mkl_include-2018.0.3", "ideepdoctor-"):
        assert any(name.startswith(start) for name in there), start
    assert doctor("wheelhouse", str(folder), "--check").code == 0
    again = doctor(*words)
    # The doctor's own wheel is packed anew where its source is worked on meanwhile.
    assert [name for name in again.document["wheelhouse"]["fetched"] if not name.startswith("ideepdoctor-")] == []

    # By hand, as the README says, with no network.
    env = tmp_path / "by-hand"
    subprocess.run([legacy_python("3.7"), "-m", "venv", env], check=True, timeout=120)
    pip = ("-m", "pip", "install", "--no-index", "--find-links", str(folder))
    offline = [*isolated(), str(env / "bin" / "python"), *pip]
    for name in ("setuptools", "wheel"):
        subprocess.run([*offline, name], check=True, timeout=300, capture_output=True)
    listed = str(folder / "requirements-chainer7.8.1-ideep4py2.0.0.post3-py3.7.txt")
    done = subprocess.run(
        [*offline, "--require-hashes", "--no-build-isolation", "-r", listed],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr

    # The doctor itself, in an environment of its own, with no network.
    own = tmp_path / "doctor"
    subprocess.run([sys.executable, "-m", "venv", own], check=True, timeout=120)
    [listed] = [str(path) for path in folder.glob("requirements-doctor-*.txt")]
    offline = [*isolated(), str(own / "bin" / "python"), *pip]
    done = subprocess.run([*offline, "--require-hashes", "-r", listed], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([own / "bin" / "ideepdoctor", "--version"], capture_output=True, text=True, timeout=60)
    assert shown.stdout.startswith("ideepdoctor "), shown.stderr


def isolated() -> list[str]:
    """Words that start a program in a network namespace without routes; skips where that is not allowed."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True).returncode != 0:
        pytest.skip("network namespaces are not allowed here")
    return [unshare, "-rn"]


@pytest.mark.slow
def test_a_chain_of_mirrors_and_setup_from_one(tmp_path, monkeypatch):
    """A wheelhouse served as a mirror: another one filled from it, and an environment set up from it."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    first, second, stack = tmp_path / "first", tmp_path / "second", "chainer7.8.1-ideep4py2.0.0.post3"
    filled_first = doctor("wheelhouse", str(first), "--python", "3.7", timeout_seconds=900)
    assert filled_first.code == 0, filled_first.stderr
    with serving(Mirror(private=True).add(first)) as mirror:
        url = ("--index-url", mirror.whole_url)
        answer = doctor("wheelhouse", str(second), "--python", "3.7", *url, "--format", "json", timeout_seconds=900)
        assert answer.code == 0, answer.stdout + answer.stderr
        old = json.loads((first / "manifest.json").read_text())["files"]
        assert json.loads((second / "manifest.json").read_text())["files"] == old
        mirror.asked.clear()
        made = doctor(
            "setup", "--python", legacy_python("3.7"), "--env", str(tmp_path / "env"), "--stack", stack, *url, "--yes",
            "--format", "json", "-v",
            environ={"UV_CACHE_DIR": str(tmp_path / "uv"), "IDEEPDOCTOR_STATE_DIR": str(tmp_path / "state")},
        )  # fmt: skip
    assert made.code == 0, made.stdout + made.stderr
    assert len(set(mirror.fetched())) == 10
    assert PASSWORD not in made.stdout + made.stderr
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert kept
    assert not any(PASSWORD.encode() in path.read_bytes() for path in kept)
