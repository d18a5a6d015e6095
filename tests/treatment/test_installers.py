"""What installers say, put into errors; real uv and pip are asked where they can be without a network."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from pathlib import Path

import pytest

from ideepdoctor.errors import ApplyFailed, CouldNotCheck
from ideepdoctor.model.plan import Install, Requirement
from ideepdoctor.system import Completed, RealSystem
from ideepdoctor.treatment.installers import HashMismatch, failure, install, record_problems, uv_program
from tests.doubles import FakeSystem, completed

ZEROS = "0" * 64
UV_REFUSED = """error: Failed to fetch: http://127.0.0.1:9/simple/six/
  cause: error sending request for url (http://127.0.0.1:9/simple/six/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)"""
UV_NO_NAME = """error: Failed to fetch: http://index.invalid/simple/six/
  cause: error sending request for url (http://index.invalid/simple/six/)
  cause: client error (Connect)
  cause: dns error
  cause: error resolving DNS
  cause: failed to lookup address information: Name or service not known"""
UV_OFFLINE = """error: No solution found when resolving dependencies
  cause: Because six was not found in the cache and you require six==1.16.0, we can conclude that your requirements
hint: Packages were unavailable because the network was disabled. When the network is disabled, registry packages may"""
UV_HASH = """error: Failed to download `six==1.16.0`
  cause: Hash mismatch for `six==1.16.0`

         Expected:
           sha256:0000000000000000000000000000000000000000000000000000000000000000

         Computed:
           sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"""
UV_NO_HASH = "error: In `--require-hashes` mode, all requirements must have a hash, but none were provided for: six"
UV_NO_VERSION = """error: No solution found when resolving dependencies
  cause: Because there is no version of six==99.0 and you require six==99.0, we can conclude that your requirements"""
UV_FULL = """error: Failed to install: numpy-1.21.6-cp37-cp37m-manylinux_2_12_x86_64.whl (numpy==1.21.6)
  cause: Failed to copy to `/small/e/lib/python3.7/site-packages/numpy.libs/libgfortran-2e0d59d6.so.5.0.0`
  cause: failed to copy file: No space left on device (os error 28)"""
PIP_RETRY = """WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip.\
_vendor.urllib3.connection.HTTPConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection\
 refused')': /simple/six/
ERROR: Could not find a version that satisfies the requirement six==1.16.0 (from versions: none)
ERROR: No matching distribution found for six==1.16.0"""
PIP_HASH = """ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package\
 versions, please update the hashes. Otherwise, examine the package contents carefully; someone may have tampered.
    six==1.16.0 (from -r bad.txt (line 1)):
        Expected sha256 0000000000000000000000000000000000000000000000000000000000000000
             Got        8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"""
PIP_NO_HASH = "ERROR: Hashes are required in --require-hashes mode, but they are missing from some requirements."
PIP_FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
PIP_NO_VERSION = "ERROR: No matching distribution found for six==99.0"


@pytest.mark.parametrize(
    ("said", "kind", "code", "told"),
    [
        (UV_REFUSED, CouldNotCheck, 3, "Connection refused"),
        (UV_NO_NAME, CouldNotCheck, 3, "Failed to fetch"),
        (UV_OFFLINE, CouldNotCheck, 3, "network was disabled"),
        (PIP_RETRY, CouldNotCheck, 3, "NewConnectionError"),
        (UV_HASH, HashMismatch, 4, "Computed"),
        (PIP_HASH, HashMismatch, 4, "Got        8abb"),
        (UV_FULL, ApplyFailed, 4, "the disk is full"),
        (PIP_FULL, ApplyFailed, 4, "the disk is full"),
        (UV_NO_HASH, ApplyFailed, 4, "must have a hash"),
        (PIP_NO_HASH, ApplyFailed, 4, "missing from some requirements"),
        (UV_NO_VERSION, ApplyFailed, 4, "no version of six==99.0"),
        (PIP_NO_VERSION, ApplyFailed, 4, "No matching distribution"),
    ],
)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_installers_say(said, kind, code, told, stream):
    texts = {"stdout": b"", "stderr": b"", stream: f"Resolved 1 package in 109ms\n{said}\n".encode()}
    error = failure(Completed(("uv", "pip"), 2, seconds=1.0, **texts), "installing")
    assert type(error) is kind
    assert int(error.exit_code) == code
    assert told in error.message
    assert said[:200] in error.context["output"]
    assert error.hint


def test_an_installer_without_an_end_is_the_network():
    error = failure(Completed(("uv",), -9, b"", b"", 1200.0, timed_out=True), "installing")
    assert (type(error), "1200 s" in error.message) == (CouldNotCheck, True)


def test_an_installer_that_cannot_be_started_says_so():
    error = failure(completed(returncode=127, error="[Errno 2] No such file or directory: 'uv'"), "installing")
    assert (type(error), "No such file" in error.message) == (ApplyFailed, True)


def wheel(folder: Path, name: str = "tiny", version: str = "1.0") -> Requirement:
    """A wheel of one module, made by hand; returns it as a requirement."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    parts = {
        f"{name}.py": f"version = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{part},,\n" for part in (*parts, f"{info}/RECORD")))
    return Requirement(name, version, (hashlib.sha256(path.read_bytes()).hexdigest(),))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty environment of this Python, and a uv that knows nothing."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    made = RealSystem().run([uv_program(), "venv", "--python", sys.executable, f"{tmp_path}/env"], timeout_seconds=60)
    assert made.ok, made.error_text()
    return tmp_path / "env"


def do(environment: Path, *wanted: Requirement, told: list[str] | None = None) -> None:
    step = Install(f"{environment}/bin/python", wanted, "uv")
    install(RealSystem(), step, str(environment.parent / "work"), [].append if told is None else told.append)


def modules(environment: Path) -> set[str]:
    return {path.name for path in environment.glob("lib/python*/site-packages/*.py")} - {"_virtualenv.py"}


def test_real_uv_installs_what_has_the_hash_and_nothing_else(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    right, other = wheel(tmp_path), wheel(tmp_path, "other")
    with pytest.raises(HashMismatch) as caught:
        do(environment, other, Requirement("tiny", "1.0", (ZEROS,)))
    assert right.sha256[0] in caught.value.message
    assert "tiny.py" not in modules(environment), "(what was right may be there: the whole run is taken back)"
    do(environment, right, other)
    assert modules(environment) == {"tiny.py", "other.py"}


def test_real_uv_without_network_uses_its_cache(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")
    told: list[str] = []
    with pytest.raises(CouldNotCheck) as caught:
        do(environment, Requirement("tiny", "1.0", (ZEROS,)), told=told)
    assert "127.0.0.1:9" in caught.value.message, "the error of the network, not that of the cache"
    assert not any("cache" in line for line in told), "that the cache did not do is no news"
    assert modules(environment) == set()


IDEEP = Requirement("ideep4py", "2.0.0", (ZEROS,))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """An environment whose ideep4py has one file of 3 bytes."""
    site = tmp_path / "env" / "lib" / "python3.7" / "site-packages"
    (site / "ideep4py-2.0.0.dist-info").mkdir(parents=True)
    (site / "lib.so").write_bytes(b"123")
    (site / "ideep4py-2.0.0.dist-info" / "RECORD").write_text('lib.so,sha256=x,3\n"a,b.py",,\nRECORD,,\n')
    return site


def broken(site: Path, *wanted: Requirement) -> str:
    return record_problems(Install(str(site.parents[2] / "bin" / "python"), wanted or (IDEEP,), "uv"))


def test_records(recorded):
    assert broken(recorded) == ""
    (recorded / "lib.so").write_bytes(b"")
    assert broken(recorded) == str(recorded / "lib.so")
    assert broken(recorded, Requirement("six", "1", (ZEROS,))) == "", "no ideep4py was asked for"
    assert broken(recorded, Requirement("ideep4py", "1.0.4", (ZEROS,))) == "", "another release"
    (recorded / "lib.so").unlink()
    assert broken(recorded) == str(recorded / "lib.so")


@pytest.mark.parametrize("damage", ["lib.so,sha256=x,thr", "lib.so", "\x00\x00\x00", "lib.so,a,3\nb\n"])
def test_a_damaged_record_is_a_problem(recorded, damage):
    (recorded / "lib.so").write_bytes(b"123")
    record = recorded / "ideep4py-2.0.0.dist-info" / "RECORD"
    record.write_text(damage)
    assert broken(recorded) == str(record)


@pytest.mark.parametrize("tool", ["uv", "pip"])
@pytest.mark.parametrize("cured", [True, False])
def test_a_damaged_cache_is_passed_by_once(recorded, tmp_path, tool, cured):
    (recorded / "lib.so").write_bytes(b"1")

    def installer(call):
        fresh = {"--no-cache", "--no-cache-dir"} & set(call.argv)
        if fresh and cured:
            (recorded / "lib.so").write_bytes(b"123")
        return completed()

    system = FakeSystem().on(lambda _call: True, installer)
    step = Install(str(recorded.parents[2] / "bin" / "python"), (IDEEP, Requirement("wheel", "1", (ZEROS,))), tool)
    if cured:
        install(system, step, "/work", lambda _text: None)
    else:
        with pytest.raises(ApplyFailed, match="twice"):
            install(system, step, "/work", lambda _text: None)
    first, every, *anew = system.commands()
    assert ("download" in anew[0]) is (tool == "pip")
    assert (first[first.index("-r") + 1], every[every.index("-r") + 1]) == ("/work/first.txt", "/work/all.txt")
    assert system.files["/work/first.txt"] == f"wheel==1 --hash=sha256:{ZEROS}\n".encode()
    assert all("--require-hashes" in command for command in system.commands())
    assert {"--reinstall-package=ideep4py", "--force-reinstall"} & set(anew[-1])


def test_variables_that_lead_elsewhere_are_kept_from_installers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
        monkeypatch.setenv(name, "/elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "http://mirror.invalid/simple")
    system = FakeSystem().on(lambda _call: True, "")
    install(
        system, Install("/env/bin/python", (Requirement("six", "1", (ZEROS,)),), "pip"), "/work", lambda _text: None
    )
    [call] = [call for call in system.calls if call.kind == "run"]
    assert call.env is not None
    assert "/elsewhere" not in call.env.values()
    assert call.env["PIP_INDEX_URL"] == "http://mirror.invalid/simple"
