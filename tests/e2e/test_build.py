"""``build`` on a stand-in of upstream: a wheel of the right shape, refused because it computes nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builder.standin import StandIn, make_standin
from tests.e2e.building import SECONDS, Site, alive, compiled, end, site, slow_compiler, wait_until
from tests.e2e.environments import Answer, doctor, uv

pytestmark = pytest.mark.e2e
SCHEMA = json.loads((files("ideepdoctor") / "render" / "report.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def standin(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return make_standin(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def shared(standin: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A place whose cache all tests of this file that may share it share."""
    folder = tmp_path_factory.mktemp("site")
    yield site(standin, folder)
    shutil.rmtree(folder)


@pytest.fixture
def own(standin: StandIn, tmp_path: Path) -> Site:
    """A place of this test's own, with an empty cache."""
    return site(standin, tmp_path / "site")


def build(place: Site, python: str, *options: str, ref: str = "post3", output: str = "out", **more: str) -> Answer:
    words = place.words(python, *options, ref=ref, output=output)
    answer = doctor(*words, environ={**place.environ, **more}, timeout_seconds=SECONDS)
    document = answer.document
    jsonschema.validate(document, SCHEMA)
    assert document["summary"]["exit_code"] == answer.code
    return answer


def wheel_of(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.stdout + answer.stderr
    return answer.document["build"]["wheel"]


def _text(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def metadata(path: str, name: str) -> str:
    with zipfile.ZipFile(path) as wheel:
        [member] = [item for item in wheel.namelist() if item.endswith(f".dist-info/{name}")]
        return wheel.read(member).decode("utf-8")


def test_the_stand_in_becomes_a_wheel_that_the_proof_refuses_by_name(
    shared: Site, legacy: Callable[[str], str]
) -> None:
    python = legacy("3.11")
    first = build(shared, python, "--no-verify", "--mkl", "none", "--march", "x86-64-v3")
    wheel = wheel_of(first)
    assert Path(wheel["path"]).name == wheel["name"] and Path(wheel["path"]).is_file()
    assert wheel["name"].startswith("ideep4py-2.0.0.post3+doctor.v3.nomkl-cp311-cp311-")
    assert wheel["commit"] == shared.standin.commits["post3"]
    assert wheel["mkldnn_commit"] == shared.standin.mkldnn_commits["v0.14"]
    assert (wheel["mkl"], wheel["numpy"], wheel["proof"]) == ("none", "1.23.2", [])
    assert {"avx2", "fma"} <= set(wheel["cpu_flags"]) and "avx512f" not in wheel["cpu_flags"]
    assert "Requires-Dist: numpy>=1.23.2" in metadata(wheel["path"], "METADATA")
    assert json.loads(metadata(wheel["path"], "ideepdoctor-build.json"))["verified"] is False
    with zipfile.ZipFile(wheel["path"]) as packed:
        names = packed.namelist()
    assert any(name.startswith("ideep4py/_ideep4py.cpython-311") for name in names)
    assert {"ideep4py/lib/libmkldnn.so.0", "ideep4py/lib/libmklml_intel.so"} <= set(names)
    data = first.document["build"]
    assert data["from_cache"] is False and Path(data["log"]).read_text().count("\n$ ") > 10
    assert shared.works == []
    # The same again, to be proved: it comes from the cache, and is refused.
    (shared.folder / "out" / wheel["name"]).unlink()
    again = build(shared, python, "--mkl", "none", "--march", "x86-64-v3")
    assert again.code == 1
    error = again.document["error"]
    assert error["code"] == "verify-failed" and "computes nothing" in error["message"]
    assert wheel["name"] in error["message"] and Path(error["context"]["log"]).is_file()
    assert list((shared.folder / "out").iterdir()) == [] and shared.works == []
    assert "setup.py" not in Path(error["context"]["log"]).read_text()  # nothing was built again


def imported(python: str, numpy: str, wheel: str, folder: Path) -> str:
    """What a fresh environment with this wheel says of the stand-in's module."""
    uv("venv", "--no-project", "--python", python, str(folder))
    own = str(folder / "bin" / "python")
    uv("pip", "install", "--python", own, f"numpy=={numpy}")
    uv("pip", "install", "--python", own, "--no-deps", wheel)
    done = subprocess.run(
        [own, "-c", "import ideep4py; print(ideep4py.__version__, ideep4py._ideep4py.__file__)"],
        capture_output=True,
        text=True,
        env={"PATH": os.defpath},
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8", "3.9", "3.10", "3.12", "3.13"])
def test_for_every_python(shared: Site, legacy: Callable[[str], str], tmp_path: Path, version: str) -> None:
    python = legacy(version)
    wheel = wheel_of(build(shared, python, "--no-verify", "--mkl", "none", "--march", "x86-64-v3"))
    said = imported(python, wheel["numpy"], wheel["path"], tmp_path / "env")
    assert said.startswith("2.0.0.post3 ") and str(tmp_path / "env") in said, said


@pytest.mark.slow
def test_for_python_2(shared: Site, legacy: Callable[[str], str]) -> None:
    wheel = wheel_of(build(shared, legacy("2.7"), "--no-verify", "--mkl", "none", "--march", "x86-64-v3"))
    assert "-cp27-cp27m" in wheel["name"]
    with zipfile.ZipFile(wheel["path"]) as packed:
        assert "ideep4py/_ideep4py.so" in packed.namelist()


@pytest.mark.slow
@pytest.mark.parametrize(("version", "mkl"), [("3.7", "wheel"), ("3.8", "none")])
def test_the_old_layout(shared: Site, legacy: Callable[[str], str], version: str, mkl: str) -> None:
    answer = build(shared, legacy(version), "--no-verify", "--mkl", mkl, "--march", "x86-64-v3", ref="v1.0.3")
    wheel = wheel_of(answer)
    plain = ".nomkl" if mkl == "none" else ""
    assert wheel["name"].startswith(f"ideep4py-1.0.3+doctor.v3{plain}-")
    assert wheel["mkldnn_commit"] == shared.standin.mkldnn_commits["v0.12"]
    with zipfile.ZipFile(wheel["path"]) as packed:
        names = set(packed.namelist())
    assert {"ideep4py/lib/libmkldnn.so.0", "ideep4py/lib/libmklml_intel.so"} <= names
    assert ("ideep4py/lib/libiomp5.so" in names) is (mkl == "wheel")
    log = Path(answer.document["build"]["log"]).read_text()
    assert "Cloning" not in log and "a build downloads nothing" not in log


@pytest.mark.slow
def test_the_wheels_mkl_and_release_1_0_4(shared: Site, legacy: Callable[[str], str]) -> None:
    wheel = wheel_of(build(shared, legacy("3.6"), "--no-verify", "--march", "x86-64-v3", ref="v1.0.4"))
    assert wheel["name"].startswith("ideep4py-1.0.4+doctor.v3-cp36") and wheel["mkl"] == "wheel"
    with zipfile.ZipFile(wheel["path"]) as packed:
        assert {"ideep4py/lib/libmklml_intel.so", "ideep4py/lib/libiomp5.so"} <= set(packed.namelist())


PLAIN = ("--no-verify", "--mkl", "none", "--march", "x86-64-v3", "--jobs", "1")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_goes_on_where_it_was(
    own: Site, legacy: Callable[[str], str], tmp_path: Path, number: int
) -> None:
    slow = tmp_path / "slow"
    own.environ |= slow_compiler(slow, "memory.cpp", f"[ -e {slow}/on ] || sleep 300")
    words = own.words(legacy("3.11"), *PLAIN)
    process = own.start(words)
    wait_until(lambda: "memory.cpp" in compiled(slow) or process.poll() is not None)
    code, out, err = end(process, number)
    assert code == 130, out + err
    error = json.loads(out)["error"]
    assert error["code"] == "interrupted" and "same command goes on" in error["hint"]
    assert len(own.works) == 1 and not (own.folder / "out").exists()
    wait_until(lambda: alive(str(own.works[0])) == [], 10)
    before = compiled(slow)
    assert "version.cpp" in before  # the first object was there
    (slow / "on").touch()
    answer = doctor(*words, environ=own.environ, timeout_seconds=SECONDS)
    assert wheel_of(answer)["name"].startswith("ideep4py-2.0.0.post3+doctor.v3.nomkl-cp311")
    after = compiled(slow)[len(before) :]
    assert "memory.cpp" in after and "version.cpp" not in after
    assert own.works == []


@pytest.mark.slow
def test_a_doctor_that_was_killed_leaves_compilers_that_are_waited_for(
    own: Site, legacy: Callable[[str], str], tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    own.environ |= slow_compiler(slow, "memory.cpp", f"while [ ! -e {slow}/on ]; do sleep 0.1; done")
    words = own.words(legacy("3.11"), *PLAIN)
    process = own.start(words)
    wait_until(lambda: "memory.cpp" in compiled(slow) or process.poll() is not None)
    assert end(process, signal.SIGKILL)[0] == -signal.SIGKILL
    second = doctor(*words, environ=own.environ, timeout_seconds=SECONDS)
    assert second.code == 6 and "still at work" in second.document["error"]["message"], second.stdout
    (slow / "on").touch()
    wait_until(lambda: alive(str(own.works[0])) == [], 60)
    before = compiled(slow)
    assert wheel_of(doctor(*words, environ=own.environ, timeout_seconds=SECONDS))
    assert "memory.cpp" not in compiled(slow)[len(before) :]  # what they compiled is taken


@pytest.mark.slow
def test_the_same_build_twice_at_once(own: Site, legacy: Callable[[str], str], tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    own.environ |= slow_compiler(slow, "memory.cpp", f"while [ ! -e {slow}/on ]; do sleep 0.1; done")
    words = own.words(legacy("3.11"), *PLAIN)
    process = own.start(words)
    wait_until(lambda: "memory.cpp" in compiled(slow) or process.poll() is not None)
    second = doctor(*words, environ=own.environ, timeout_seconds=SECONDS)
    assert second.code == 6, second.stdout
    assert f"process {process.pid}" in second.document["error"]["message"]
    assert len(own.works) == 1  # the other's work is not touched
    (slow / "on").touch()
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out + err
    assert doctor(*words, environ=own.environ, timeout_seconds=SECONDS).document["build"]["from_cache"] is True


@pytest.mark.slow
def test_a_killed_compiler_is_named_and_leaves_the_log_alone(
    own: Site, legacy: Callable[[str], str], tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    own.environ |= slow_compiler(slow, "memory.cpp", f"echo $$ > {slow}/pid; sleep 300")
    process = own.start(own.words(legacy("3.11"), *PLAIN))
    wait_until(lambda: _text(slow / "pid") or process.poll() is not None)
    os.kill(int((slow / "pid").read_text()), signal.SIGKILL)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 4, out + err
    error = json.loads(out)["error"]
    assert error["code"] == "build-failed" and error["context"]["codes"].split(",")[0] == "IDP811"
    assert "library" in error["message"] and "IDP811" in error["hint"]
    assert own.works == [] and not (own.folder / "out").exists()
    assert [str(path) for path in own.logs] == [error["context"]["log"]]
    assert "Killed" in own.logs[0].read_text()


@pytest.mark.slow
def test_a_full_disk_is_named(own: Site, legacy: Callable[[str], str]) -> None:
    python = legacy("3.11")
    (own.cache / "work").mkdir(parents=True)
    mount = f'mount -t tmpfs -o size=1m none {own.cache / "work"} && exec "$@"'
    before = ["unshare", "-rm", "sh", "-c", mount, "sh"]
    if subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        pytest.skip("no user namespaces with mounts here")
    # MKL's two libraries take 130 MB of it.
    process = own.start(own.words(python, "--no-verify", "--march", "x86-64-v3"), before)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 4, out + err
    error = json.loads(out)["error"]
    assert "No space left" in error["message"] and "IDP810" in error["hint"]
    assert not (own.folder / "out").exists()


@pytest.mark.slow
def test_nothing_of_the_person_s_surroundings_goes_in(own: Site, legacy: Callable[[str], str], tmp_path: Path) -> None:
    python = legacy("3.11")
    plain = wheel_of(build(own, python, *PLAIN))
    strange = tmp_path / "strange"
    strange.mkdir()
    for name, text in {
        "cmake": "echo 'CMake Error: Unknown argument --build' >&2; exit 1",
        "swig": "echo 'SWIG Version 4.2.0'; exit 1",
        "ninja": "exit 1",
        "curl": "exit 0",
    }.items():
        (strange / name).write_text(f"#!/bin/sh\n{text}\n")
        (strange / name).chmod(0o755)
    full = tmp_path / "mkl"
    (full / "include").mkdir(parents=True)
    (full / "include" / "mkl_cblas.h").write_text("#error another MKL\n")
    (full / "lib").mkdir()
    (full / "lib" / "libmkl_rt.so").write_text("")
    hostile = {
        "PATH": f"{strange}:{os.environ['PATH']}",
        "MKLROOT": str(full),
        "CFLAGS": "-fno-such-flag",
        "CXXFLAGS": "-fno-such-flag",
        "CPPFLAGS": "-fno-such-flag",
        "LDFLAGS": "-Wl,--no-such-flag",
        "CC": "/no/such/compiler",
        "CXX": "/no/such/compiler",
        "MAKEFLAGS": "-k -j64",
        "CMAKE_GENERATOR": "Ninja",
        "CPATH": str(full / "include"),
        "PYTHONPATH": str(strange),
        "SWIG_LIB": str(strange),
    }
    again = build(own, python, *PLAIN, "--fresh", output="again", **hostile)
    wheel = wheel_of(again)
    assert wheel["name"] == plain["name"] and again.document["build"]["from_cache"] is False
    assert Path(wheel["path"]).read_bytes() == Path(plain["path"]).read_bytes()


@pytest.mark.slow
def test_another_python_takes_the_library_that_is_compiled_already(own: Site, legacy: Callable[[str], str]) -> None:
    own.environ |= slow_compiler(own.folder / "slow", "no such file", ":")
    wheel_of(build(own, legacy("3.11"), *PLAIN))
    before = compiled(own.folder / "slow")
    assert {"version.cpp", "memory.cpp", "gemm.cpp"} <= set(before)
    wheel_of(build(own, legacy("3.10"), *PLAIN))
    after = compiled(own.folder / "slow")[len(before) :]
    assert not {"version.cpp", "memory.cpp", "gemm.cpp"} & set(after)


@pytest.mark.slow
def test_a_damaged_cache_is_made_anew(own: Site, legacy: Callable[[str], str]) -> None:
    first = wheel_of(build(own, legacy("3.11"), *PLAIN))
    [kept] = (own.cache / "wheel").rglob("*.whl")
    kept.write_bytes(kept.read_bytes()[:-1])
    [library] = [path for path in (own.cache / "library").rglob("libmkldnn.so.0*") if not path.is_symlink()][:1]
    library.write_bytes(b"damaged")
    again = build(own, legacy("3.11"), *PLAIN, output="again")
    assert again.document["build"]["from_cache"] is False
    assert Path(wheel_of(again)["path"]).read_bytes() == Path(first["path"]).read_bytes()


@pytest.mark.slow
def test_without_a_network_from_a_wheelhouse(own: Site, legacy: Callable[[str], str], tmp_path: Path) -> None:
    python = legacy("3.11")
    no_network = ["unshare", "-rn"]
    if subprocess.run([*no_network, "true"], capture_output=True).returncode != 0:
        pytest.skip("no network namespaces here")
    house, ideep = tmp_path / "house", own.standin.archive("tar.gz", "post3", tmp_path)
    brought = doctor("wheelhouse", str(house), "--python", "3.11", "--with-build", timeout_seconds=SECONDS)
    assert brought.code == 0, brought.stderr
    own.environ["UV_CACHE_DIR"] = str(tmp_path / "uv")  # what this machine has fetched before does not help
    words = own.words(python, "--no-verify", "--march", "x86-64-v3", "--offline")
    words[words.index("--source") + 1] = str(ideep)
    for option in ("--ref", "--mkldnn-source"):  # all of it is in the archive
        del words[words.index(option) : words.index(option) + 2]
    alone = own.start(words, no_network)
    out, err = alone.communicate(timeout=SECONDS)
    assert alone.returncode in (1, 3), out + err  # nothing has the tools
    process = own.start([*words, "--wheelhouse", str(house)], no_network)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out + err
    wheel = json.loads(out)["build"]["wheel"]
    assert wheel["commit"].startswith("sha256:") and "-manylinux" in wheel["name"]  # auditwheel was in the house, too
