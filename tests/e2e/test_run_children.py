"""What ``run`` brings into a program reaches the processes that the program starts, and harms none of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import installed_interpreters, legacy_python
from tests.e2e.environments import copy_environment, doctor, site_packages
from tests.e2e.running import OURS, program, run_words, start

pytestmark = pytest.mark.e2e


@pytest.fixture
def python() -> str:
    return legacy_python("3.7")


CHILDREN = """
import multiprocessing, sys
def ours(_=None):
    return sorted(name[13:] for name in sys.modules if name.startswith("_ideepdoctor_"))
if __name__ == "__main__":
    print(ours())
    if len(sys.argv) > 1:
        multiprocessing.set_start_method(sys.argv[1])
    pool = multiprocessing.Pool(1)
    print(pool.map(ours, [0])[0])
    pool.close()
    pool.join()
"""
BOTH = "['auto', 'guard']\n"


def test_processes_of_multiprocessing_have_it(python: str, tmp_path: Path):
    path = program(tmp_path, CHILDREN)
    for words in (("fork",), ("spawn",), ("forkserver",)):
        done = start(run_words(python, path, *words))
        assert (done.stdout.decode(), done.stderr) == (BOTH * 2, b"")
    done = start(run_words(legacy_python("2.7"), path))
    assert (done.stdout.decode(), done.stderr) == (BOTH * 2, b"")


def test_other_pythons_that_it_starts_have_it_too_and_come_to_no_harm(python: str):
    pythons = [found.place.path for found in installed_interpreters() if not found.identity.is_virtual]
    assert len(pythons) > 2
    code = f"import subprocess, sys\nfor path in sys.argv[1:]: subprocess.call([path, '-c', {OURS!r}])"
    done = start(run_words(python, "python", "-uc", code, *pythons))
    assert (done.stdout.decode(), done.stderr) == (BOTH * len(pythons), b"")


def test_a_python_that_ignores_variables_runs_without_and_that_is_told(python: str):
    for option in ("-E", "-I", "-S"):
        done = start(run_words(python, "python", option, "-c", OURS))
        assert (done.returncode, done.stdout) == (0, b"[]\n")
        assert b"does not load what corrects iDeep" in done.stderr
    code = f"import subprocess, sys; subprocess.call([sys.executable, '-E', '-c', {OURS!r}])"
    assert start(run_words(python, "python", "-c", code)).stdout == b"[]\n"


RANKS = """#!/bin/sh
# Stands in for an mpiexec: mpiexec -n COUNT PROGRAM...
count=$2; shift 2
rank=0
while [ $rank -lt $count ]; do
    STANDIN_RANK=$rank "$@" &
    pids="$pids $!"
    rank=$((rank + 1))
done
code=0
for pid in $pids; do wait $pid || code=$?; done
exit $code
"""
RANK = """
import os, sys
names = ("STANDIN_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")
rank = [os.environ[name] for name in names if name in os.environ][0]
ours = sorted(name[13:] for name in sys.modules if name.startswith("_ideepdoctor_"))
os.write(1, ("rank %s %s\\n" % (rank, ours)).encode())
sys.exit(int(rank) * 3)
"""


def test_the_ranks_of_an_mpiexec_have_it(python: str, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", RANKS, "mpiexec")
    path = program(tmp_path, RANK)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = start(run_words(python, "mpiexec", "-n", "2", "python", path), env=environ)
    assert sorted(done.stdout.decode().splitlines()) == [f"rank {rank} ['auto', 'guard']" for rank in (0, 1)]
    assert (done.returncode, done.stderr) == (3, b"")


@pytest.mark.skipif(
    shutil.which("mpiexec") is None and os.environ.get("IDEEPDOCTOR_REQUIRE_LEGACY") != "1", reason="no mpiexec here"
)
def test_the_ranks_of_the_real_mpiexec_have_it(python: str, tmp_path: Path):
    path = program(tmp_path, RANK)
    environ = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    environ |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "HYDRA_LAUNCHER": "fork"}
    done = start(run_words(python, "mpiexec", "-n", "2", "python", path), env=environ)
    assert set(done.stdout.decode().splitlines()) >= {f"rank {rank} ['auto', 'guard']" for rank in (0, 1)}
    assert done.returncode == 3


def test_an_environments_own_start_up_files_run_as_before(python: str, tmp_path: Path):
    subprocess.run([python, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    (site_packages(tmp_path / "env") / "sitecustomize.py").write_text("import sys; sys.mine = __file__\n")
    (site_packages(tmp_path / "env") / "mine.pth").write_text("import sys; sys.lines = ['pth']\n")
    home = tmp_path / "home"
    users = home / "lib" / "python3.7" / "site-packages"
    users.mkdir(parents=True)
    (users / "usercustomize.py").write_text("import sys; sys.lines = getattr(sys, 'lines', []) + ['user']\n")
    code = "import sys; print(getattr(sys, 'mine', None), getattr(sys, 'lines', None), sys.path, sys.prefix)"
    environ = {**os.environ, "PYTHONUSERBASE": str(home), "PYTHONPATH": ":relative:/nowhere:"}
    for path in (str(tmp_path / "env" / "bin" / "python"), python):
        plain = start([path, "-c", code], env=environ, cwd=tmp_path)
        ours = start(run_words(path, "python", "-c", code), env=environ, cwd=tmp_path)
        assert (ours.stdout, ours.stderr) == (plain.stdout, b"")
        assert b"sitecustomize.py" in ours.stdout or b"['user']" in ours.stdout


def test_a_run_in_a_run_is_one(python: str, tmp_path: Path):
    code = "import os, sys; " + OURS[12:] + "; print(os.environ['PYTHONPATH'].count('/run/'))"
    inner = [*run_words(python, "python", "-c", code)]
    done = start(run_words(python, *inner))
    assert (done.stdout.decode(), done.stderr) == (BOTH + "1\n", b"")
    inner[2:2] = ["--no-guard"]
    code = "import os, sys; " + OURS[12:] + "; print(os.environ['IDEEPDOCTOR_GUARD'])"
    inner[-1] = code
    assert start(run_words(python, *inner)).stdout == b"[]\noff\n"


def test_many_at_once_begin_with_no_cache(python: str, tmp_path: Path):
    environ = {**os.environ, "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache")}
    words = run_words(python, "python", "-c", OURS)
    pipe = subprocess.PIPE
    running = [subprocess.Popen(words, env=environ, stdout=pipe, stderr=pipe) for _ in range(4)]
    assert [process.communicate(timeout=120) for process in running] == [(BOTH.encode(), b"")] * 4
    [folder] = (tmp_path / "cache" / "run").iterdir()
    left = {path.name for path in folder.iterdir()} - {"__pycache__"}
    assert left == {"sitecustomize.py", *(f"_ideepdoctor_{name}.py" for name in ("guard", "auto", "trace"))}


def test_what_was_changed_in_the_cache_is_written_again(python: str, tmp_path: Path):
    environ = {**os.environ, "IDEEPDOCTOR_CACHE_DIR": str(tmp_path)}
    words = run_words(python, "python", "-c", OURS)
    assert start(words, env=environ).stdout.decode() == BOTH
    [guard] = tmp_path.glob("run/*/_ideepdoctor_guard.py")
    text = guard.read_bytes()
    guard.write_text("raise SystemExit('not ours')\n")
    [auto] = tmp_path.glob("run/*/_ideepdoctor_auto.py")
    auto.unlink()
    assert start(words, env=environ).stdout.decode() == BOTH
    assert guard.read_bytes() == text


def test_no_home_and_a_cache_that_cannot_be_written(python: str, tmp_path: Path):
    alone = {name: value for name, value in os.environ.items() if name != "HOME"}
    assert start(run_words(python, "python", "-c", OURS), env=alone).stdout.decode() == BOTH
    closed = {**alone, "HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    closed.pop("IDEEPDOCTOR_CACHE_DIR")
    done = start(run_words(python, "python", "-c", OURS), env=closed)
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"IDEEPDOCTOR_CACHE_DIR" in done.stderr and b"--no-guard" in done.stderr
    words = run_words(python, "python", "-c", OURS)
    words[2:2] = ["--no-guard"]
    done = start(words, env=closed)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b"")


def test_a_read_only_cache_that_is_complete_serves(python: str, tmp_path: Path):
    humbly = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if humbly and (not shutil.which("setpriv") or start([*humbly, "true"]).returncode):
        pytest.skip("root cannot give up its rights here")
    environ = {**os.environ, "IDEEPDOCTOR_CACHE_DIR": str(tmp_path / "cache")}
    words = [*humbly, sys.executable, "-m", "ideepdoctor", *run_words(python, "python", "-Bc", OURS)[1:]]
    assert start(words, env=environ, cwd=tmp_path).stdout.decode() == BOTH
    folders = [tmp_path / "cache", *(path for path in (tmp_path / "cache").rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        done = start(words, env=environ, cwd=tmp_path)
        assert (done.stdout.decode(), done.stderr) == (BOTH, b"")
    finally:
        for folder in folders:
            folder.chmod(0o700)


STATUS = """
import json, sys, chainer, chainer.links as L, numpy as np
link = L.Convolution2D(16, 16, 3)
chainer.optimizers.SGD().setup(link)
h = link(np.ones((2, 16, 8, 8), "f")).array
product = np.array(h * h)
guard, auto = (sys.modules.get("_ideepdoctor_" + name) for name in ("guard", "auto"))
told = {"right": bool(np.allclose(product, np.array(h) ** 2, 1e-4)), "weights": type(link.W.array).__name__}
told["guard"] = guard and [guard.status()["active"], guard.__file__, guard.status()["problems"]]
told["auto"] = auto and auto.status()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def guarded(made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a guard of its own, as setup makes it."""
    env, answer = made("3.7")
    assert answer.code == 0
    copy = copy_environment(env, tmp_path_factory.mktemp("guarded") / "env")
    assert (site_packages(copy) / "_ideepdoctor_guard.py").is_file()
    return copy


def status(env: Path, *options: str, **environ: str) -> dict[str, Any]:
    done = doctor("run", *options, "--python", str(env), "--", "python", "-c", STATUS, environ=environ)
    assert (done.code, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_one_guard_is_at_work_and_it_is_the_newer(guarded: Path):
    theirs = site_packages(guarded) / "_ideepdoctor_guard.py"
    text = theirs.read_text()
    try:
        for number, is_theirs in (("0", False), ("999", True)):
            theirs.write_text(re.sub(r'\{"guard": \d+,', f'{{"guard": {number},', text, count=1))
            found = status(guarded)
            assert (found["right"], found["weights"]) == (True, "mdarray")
            assert (found["guard"][1] == str(theirs)) is is_theirs
            assert found["guard"][0] and found["guard"][2] == []
            assert found["auto"]["moved"] == {"optimizer": 1, "inference": 0}
    finally:
        theirs.write_text(text)


def test_switches_reach_the_environments_guard_too(guarded: Path):
    without = status(guarded, "--no-guard")
    assert (without["right"], without["weights"], without["auto"], without["guard"][0]) == (
        False,
        "ndarray",
        None,
        False,
    )
    off = status(guarded, IDEEPDOCTOR_GUARD="off")
    assert (off["right"], off["weights"], off["guard"][0]) == (False, "ndarray", False)
    assert off["auto"]["left"] == {
        "weights that are loaded later would be wrong: the guard does not correct that here": 1
    }
    assert status(guarded, IDEEPDOCTOR_GUARD="-load")["weights"] == "ndarray"
    optimizer = status(guarded, IDEEPDOCTOR_GUARD="-product,-optimizer")
    assert (optimizer["right"], optimizer["weights"]) == (False, "ndarray")
    by_hand = status(guarded, "--no-auto")
    assert (by_hand["right"], by_hand["weights"], by_hand["auto"]) == (True, "ndarray", None)
