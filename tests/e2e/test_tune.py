"""tune in real environments: what is fast and wrong is refused, limits are obeyed, the result is written and undone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.proof.tune_certify import Certifier
from ideepdoctor.proof.tune_measure import Bench, Subject
from ideepdoctor.proof.tune_nodes import measure_nodes
from ideepdoctor.proof.tune_space import DEFAULT, Option
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from tests.e2e.environments import Answer, doctor

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]

NORMALIZED = """
import chainer, chainer.links as L, chainer.functions as F, numpy as np
class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.c, self.b = L.Convolution2D(3, 16, 3, pad=1), L.BatchNormalization(16)
    def __call__(self, x):
        return F.relu(self.b(self.c(x)))
def make():
    np.random.seed(0)
    return Net(), np.random.randn(8, 3, 56, 56).astype("f")
"""
SMALL = """
import os, time
import chainer, chainer.links as L, chainer.functions as F, numpy as np
class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            for i in range(12):
                setattr(self, "c%d" % i, L.Convolution2D(8, 8, 3, pad=1))
    def __call__(self, x):
        for i in range(12):
            x = F.relu(getattr(self, "c%d" % i)(x))
        if WAIT:  # a machine on which one thread is faster, however busy the test's own is
            time.sleep(0.02 if os.environ.get("OMP_NUM_THREADS") == "1" else 0.2)
        return x
WAIT = False
def make():
    np.random.seed(0)
    model = Net()
    model.to_intel64()
    return model, np.random.randn(2, 8, 12, 12).astype("f")
"""
UNGUARDED = DEFAULT.with_option(Option("guard", "guard off", (("IDEEPDOCTOR_GUARD", "off"),)))


def written(folder: Path, text: str) -> Subject:
    (folder / "net.py").write_text(text)
    return Subject((), 0, (str(folder / "net.py"), "make"))


@pytest.mark.parametrize("version", ["3.7", pytest.param("2.7", marks=pytest.mark.slow)])
def test_a_setting_that_computes_wrong_gradients_is_refused_with_the_reason(made: Made, version: str, tmp_path: Path):
    env, _ = made(version)
    subject, target = written(tmp_path, NORMALIZED), Target(str(env / "bin" / "python"))
    certifier = Certifier(RealSystem(), target, subject, {}, str(tmp_path / "cache"), str(tmp_path / "state"))
    assert certifier.wrong(dict(os.environ), True, 60.0) == ""
    why = certifier.wrong({**os.environ, **UNGUARDED.variables}, True, 60.0)
    assert why.startswith("/b/") and " is off by " in why


@pytest.mark.slow
def test_a_net_of_the_tables_is_certified_as_it_is_measured(made: Made, tmp_path: Path):
    env, _ = made("3.7")
    subject, target = Subject(("conv", "alexnet"), 2), Target(str(env / "bin" / "python"))
    certifier = Certifier(RealSystem(), target, subject, {}, str(tmp_path / "cache"), str(tmp_path / "state"))
    assert certifier.wrong(dict(os.environ), True, 300.0) == ""
    assert certifier.wrong(dict(os.environ), False, 300.0) == ""
    late = Certifier(RealSystem(), target, subject, {}, str(tmp_path / "cache"), str(tmp_path / "other"))
    assert late.wrong(dict(os.environ), True, 0.0).startswith("there was no time to certify")


def test_blocks_are_measured_in_turn_and_what_cannot_be_measured_says_why(made: Made, tmp_path: Path):
    env, _ = made("3.7")
    killed = DEFAULT.with_option(Option("x", "no such library", (("PYTHONHOME", "/nonexistent"),)))
    restless = DEFAULT.with_option(Option("y", "waits", (("KMP_BLOCKTIME", "infinite"),), restless=True))
    bench = Bench(
        RealSystem(), Target(str(env / "bin" / "python")), written(tmp_path, SMALL), lambda item: item.variables, 0.05
    )
    try:
        first = bench.measure([DEFAULT, killed, restless], 0)
        second = bench.measure([DEFAULT, restless], 1)
    finally:
        bench.close()
    assert isinstance(first[killed], str) and first[killed].startswith("ended")
    for answer in (first[DEFAULT], first[restless], second[DEFAULT], second[restless]):
        assert not isinstance(answer, str) and all(0 < seconds < 10 for seconds in answer)
    assert list(second) == [restless, DEFAULT]  # in the second block the second begins


@pytest.mark.slow
def test_one_process_on_each_node_is_measured_against_one_over_all(made: Made, tmp_path: Path):
    """Two CPUs stand for two nodes: with a second thread that is waited for, two processes of one thread win."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        pytest.skip("one CPU")
    env, _ = made("3.7")
    target, subject = Target(str(env / "bin" / "python")), written(tmp_path, SMALL)
    found = measure_nodes(RealSystem(), target, subject, {"OMP_NUM_THREADS": "2"}, [cpus[:1], cpus[1:]])
    assert found.why == "" and found.each is not None and found.each.median > 0.5 and found.interleaved is None
    lost = measure_nodes(RealSystem(), target, subject, {"PYTHONHOME": "/nonexistent"}, [cpus[:1], cpus[1:]])
    assert lost.each is None and lost.why.startswith("ended")


def tune(env: Path, folder: Path, *words: str, text: str = SMALL, prefix: tuple[str, ...] = ()) -> dict:
    (folder / "net.py").write_text(text)
    given = ("tune", "--python", str(env), "--model", f"{folder}/net.py:make", "--format", "json", *words)
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "ideepdoctor", *given], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def test_with_one_cpu_no_number_of_threads_is_tried(made: Made, tmp_path: Path):
    env, _ = made("3.7")
    cpu = str(min(os.sched_getaffinity(0)))
    answer = tune(env, tmp_path, "--budget", "4s", "--dry-run", prefix=("taskset", "-c", cpu))
    names = {row["name"] for row in answer["tune"]["dimensions"]}
    assert names and names.isdisjoint({"threads", "affinity", "blocktime"})
    assert not answer["applied"] and not list(env.glob("lib/python*/site-packages/_ideepdoctor_profile.json"))


@pytest.mark.slow
def test_what_is_faster_is_written_obeyed_and_taken_back(broken_copy: Callable[..., Path], tmp_path: Path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU")
    env = broken_copy("3.7")
    (site,) = env.glob("lib/python*/site-packages")
    before = (site / "_ideepdoctor_startup.py").read_bytes()
    answer = tune(env, tmp_path, "--budget", "120s", "--yes", text=SMALL.replace("WAIT = False", "WAIT = True"))
    assert answer["tune"]["choice"]["variables"].get("OMP_NUM_THREADS") == "1", answer["verdict"]
    assert answer["applied"] and answer["verdict"].startswith("TUNED: ")
    show = "import os; print(os.environ.get('OMP_NUM_THREADS'))"
    program = [str(env / "bin" / "python"), "-c", show]
    assert subprocess.run(program, capture_output=True, text=True, check=True).stdout == "1\n"
    told = doctor("env", "--python", str(env), "--format", "json")
    assert {row["name"]: row["value"] for row in told.document["variables"]}["OMP_NUM_THREADS"] == "1"
    fine = doctor("diagnose", "--python", str(env), "--quick", "--format", "json")
    assert json.loads(fine.stdout)["findings"] == []
    elsewhere = doctor("diagnose", "--python", str(env), "--quick", "--format", "json", "--select", "IDP705")
    assert json.loads(elsewhere.stdout)["findings"] == []
    taskset = ["taskset", "-c", str(min(os.sched_getaffinity(0))), sys.executable, "-m", "ideepdoctor"]
    other = subprocess.run(
        [*taskset, "diagnose", "--python", str(env), "--quick", "--format", "json"], capture_output=True, text=True
    )
    assert [row["code"] for row in json.loads(other.stdout)["findings"]] == ["IDP705"]
    assert doctor("undo", answer["journal"]).code == 0
    assert (site / "_ideepdoctor_startup.py").read_bytes() == before
    assert not (site / "_ideepdoctor_profile.json").exists()
