"""Peers of bench for real: environments made by the product, a step of each net, the same numbers as Chainer's."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ideepdoctor.commands.session import Session
from ideepdoctor.proof.bench_engines import EngineSpec
from ideepdoctor.proof.bench_plan import NETS
from ideepdoctor.proof.peers import engines
from ideepdoctor.proof.worker import Worker
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import payload_source
from ideepdoctor.treatment.progress import Quiet
from tests.conftest import legacy_python
from tests.e2e.environments import Answer, doctor

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]
VALUES = Path(__file__).parents[1] / "programs" / "bench_values.py"


def peer(name: str, minor: str = "3.7") -> EngineSpec:
    """The engine of a peer; its environment is made once per run, in the tests' own cache."""
    session = Session(RealSystem(), os.environ, "/", Quiet(), lambda _report: True)
    [spec] = engines(session, [name], minor)
    return spec


def steps(spec: EngineSpec, net: str, batch: int, **variables: str) -> tuple[dict, dict]:
    """What the worker answers to ``load`` and to ``steps``."""
    with Worker(RealSystem(), spec.target, spec.payload, variables) as worker:
        loaded = worker.ask({"do": "load", "net": net, "batch": batch, **spec.options}, timeout_seconds=300)
        return loaded, worker.ask({"do": "steps", "count": 2}, timeout_seconds=300)


def test_ideep4py_1_takes_a_step() -> None:
    legacy_python("3.6")
    spec = peer("ideep-1.0.4", "3.6")
    loaded, timed = steps(spec, "conv", 1)
    assert spec.label == "Chainer 4.5.0 + iDeep 1.0.4"
    assert (loaded["used"], loaded["versions"]["chainer"]) == (True, "4.5.0")
    assert len(timed["forward"]) == len(timed["backward"]) == 2


@pytest.mark.parametrize("word", ["caffe", "torch", "cntk"])
def test_a_peer_that_is_missing_is_one_error(word: str, tmp_path: Path) -> None:
    """Nobody can be asked here whether to download PyTorch."""
    environ = {"IDEEPDOCTOR_CACHE_DIR": str(tmp_path)}
    answer = doctor("bench", "--python", legacy_python("3.7"), "--peer", word, "--format", "json", environ=environ)
    assert answer.code == 2, answer.stderr
    failure = answer.document["error"]
    assert word in failure["message"].lower() or "pytorch" in failure["message"].lower()
    assert failure["hint"]
    assert not (tmp_path / "peers").exists()


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("name", ["torch", "torch-channels-last", "opencv", "mkl", "ideep-1.0.4"])
def test_every_peer_takes_a_step_of_every_net(name: str, net: str) -> None:
    spec = peer(name)
    loaded, timed = steps(spec, net, 2, OMP_NUM_THREADS="2")
    with Worker(RealSystem(), peer("mkl").target, "bench") as worker:
        told = worker.ask({"do": "describe", "net": net, "batch": 2}, timeout_seconds=60)
    assert (loaded["flops"], loaded["parameters"]) == (told["flops"], told["parameters"])
    assert loaded["versions"] and loaded["batch"] == 2
    assert loaded["threads"] == 2 if spec.kind in ("torch", "opencv") else True
    assert all(second > 0 for second in timed["forward"] + timed["backward"])
    assert len(timed["forward"]) == 2
    assert len(timed["backward"]) == (0 if spec.forward_only else 2)
    if net != "conv" and not spec.forward_only:
        assert math.isfinite(loaded["loss"])
    assert loaded["used"] == {"ideep-1.0.4": True, "mkl": False}.get(name)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.7", "3.6", "2.7"])
def test_numpy_really_uses_mkl(version: str) -> None:
    legacy_python(version)
    spec = peer("mkl", version)
    found = {}
    for variables in ({}, {"MKL_DEBUG_CPU_TYPE": "5"}):
        with Worker(RealSystem(), spec.target, spec.payload, variables) as worker:
            [row] = worker.ask({"do": "sgemm", "sizes": [512]}, timeout_seconds=60)["sgemm"]
            assert row["library"].endswith("(MKL)")
            found[len(variables)] = row["gflops"]
    code = "import numpy; print('mkl' in str(numpy.__config__.blas_opt_info['libraries']))"
    said = subprocess.run([spec.target.python, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "True"
    if version != "3.7" and "AuthenticAMD" in Path("/proc/cpuinfo").read_text():
        # MKL 2019 takes its slow path on AMD unless it is told otherwise; nothing else would.
        assert found[1] > 1.5 * found[0]


@pytest.mark.slow
def test_pytorch_is_there_without_the_libraries_of_cuda() -> None:
    spec = peer("torch")
    folder = Path(spec.target.python).parent.parent
    [packages] = folder.glob("lib/python*/site-packages")
    assert sorted(path.name for path in (packages / "nvidia").iterdir()) == ["cu13"]
    assert (packages / "torch/lib/libcublas.so.13").stat().st_size < 100_000
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 1_200_000_000
    with Worker(RealSystem(), spec.target, spec.payload) as worker:
        [row] = worker.ask({"do": "sgemm", "sizes": [256]}, timeout_seconds=60)["sgemm"]
    assert row["library"].startswith("PyTorch 2.13.0") and row["gflops"] > 1


def compared(made: Made, tmp_path: Path, spec: EngineSpec, sides: tuple[str, str], net: str) -> dict:
    """Run a net in a peer and in Chainer with the same numbers; what the comparison says."""
    environment, answer = made("3.7")
    assert answer.code == 0
    for payload in (spec.payload, "bench"):
        (tmp_path / payload).write_bytes(payload_source(payload))
    options = ["channels_last"] if spec.options.get("channels_last") else []
    words = [str(VALUES), sides[0], str(tmp_path / spec.payload), str(tmp_path), net, "2", *options]
    subprocess.run([spec.target.python, "-B", *words], check=True, timeout=300)
    words = [str(VALUES), sides[1], str(tmp_path / "bench"), str(tmp_path), net, "2"]
    python = environment / "bin" / "python"
    done = subprocess.run([str(python), "-B", *words], check=True, capture_output=True, text=True, timeout=300)
    for path in tmp_path.glob("*.raw"):
        path.unlink()  # up to 1.8 GB
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "net"),
    [*(("torch", net) for net in NETS), ("torch-channels-last", "googlenet"), ("torch-channels-last", "resnet50")],
)
def test_pytorch_computes_what_chainer_does(made: Made, tmp_path: Path, net: str, name: str) -> None:
    found = compared(made, tmp_path, peer(name), ("torch", "chainer"), net)
    # The same mathematics: in float64 the two agree as far as float64 goes.
    assert found["apart"] < 1e-9, found
    assert found["parameters"] >= 14
    if net != "conv":
        right = found["double"][1]
        assert abs(found["double"][0] - right) < 1e-10 * right
        assert all(abs(loss - right) < 1e-5 * right for loss in found["single"])
    # And each rounds in float32, in an order of its own: a maximum or a ReLU decided otherwise moves a gradient by
    # 1e-3, in ResNet-50 with its batch normalization of two images by 4e-2.
    theirs, ours = found["errors"]
    assert theirs < 4 * max(ours, 1e-3), found


@pytest.mark.slow
@pytest.mark.parametrize("net", NETS)
def test_opencv_computes_what_chainer_does_in_inference(made: Made, tmp_path: Path, net: str) -> None:
    errors = compared(made, tmp_path, peer("opencv"), ("opencv", "outputs"), net)
    assert len(errors) == {"googlenet": 3, "conv": 7}.get(net, 1)
    assert max(errors.values()) < 1e-5, errors


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "left"), [(signal.SIGINT, 130, False), (signal.SIGKILL, -9, True)])
def test_an_installation_that_is_interrupted_is_made_anew(
    number: signal.Signals, code: int, left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = legacy_python("3.7")
    peer("mkl")  # so that uv has the files: nothing is fetched twice
    monkeypatch.setenv("IDEEPDOCTOR_CACHE_DIR", str(tmp_path))
    words = [str(Path(sys.executable).with_name("ideepdoctor")), "bench", "--python", python, "--peer", "mkl", "--yes"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("peers/mkl-*/requirements/all.txt")) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(60) == code
    assert bool(list(tmp_path.glob("peers/mkl-*"))) == left
    assert not list(tmp_path.glob("peers/mkl-*/complete"))
    loaded, _ = steps(peer("mkl"), "conv", 1)
    assert loaded["versions"]["numpy"] == "1.21.4"
