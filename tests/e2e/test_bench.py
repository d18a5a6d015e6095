"""bench on real wheels: a small run always; every net, the user's model, Ctrl-C and a regression in the slow tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.proof.bench_engines import own_engines
from ideepdoctor.proof.bench_plan import NETS
from ideepdoctor.proof.worker import Worker
from ideepdoctor.system import RealSystem
from ideepdoctor.targets.target import Target
from tests.e2e.environments import Answer, doctor

Made = Callable[..., tuple[Path, Answer]]
QUICK = ("--seconds", "0.05", "--blocks", "2", "--batch", "1", "--no-details", "--yes", "--format", "json")


def bench(env: Path, *words: str, **environ: str) -> Answer:
    return doctor("bench", "--python", str(env), *words, *QUICK, environ=environ)


def test_three_engines_take_turns(made: Made) -> None:
    env, _ = made("3.7")
    answer = bench(env, "--net", "conv")
    data: dict[str, Any] = answer.document["bench"]
    assert answer.code == 0, answer.stderr
    assert [row["status"] for row in data["results"]] == ["measured"] * 3
    assert [engine["guard"] for engine in data["engines"]] == [False, True, False]
    installed, tuned, numpy = data["engines"]
    # What pip alone installs has none of the variables that the environment's start-up file sets.
    assert "CHAINER_USE_IDEEP" not in installed["variables"]
    assert tuned["variables"]["CHAINER_USE_IDEEP"] == "auto"
    assert numpy["versions"]["numpy"] == installed["versions"]["numpy"]
    assert data["ceiling"]["gflops"] > 1
    assert all(row["forward"] and row["backward"] and row["gflops"] > 0 for row in data["results"])


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_every_net_takes_a_step_in_every_python_with_both_engines_and_the_same_loss(made: Made, version: str) -> None:
    env, _ = made(version)
    target = Target(str(env / "bin" / "python"))
    for net in NETS:
        losses = []
        for spec in own_engines(target):
            with Worker(RealSystem(), target, "bench", bare=spec.bare) as worker:
                request = {**spec.options, "do": "load", "net": net, "batch": 2}
                told = worker.ask(request, timeout_seconds=300)
                steps = worker.ask({"do": "steps", "count": 1}, timeout_seconds=300)
            assert told["used"] is (spec.kind == "ideep"), (net, spec.id)
            assert len(steps["forward"]) == len(steps["backward"]) == 1
            losses.append(told["loss"])
        if net != "conv":
            # One set of weights and images: the engines compute the same.
            assert losses[1] == pytest.approx(losses[2], rel=1e-3), net


MODEL = """
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class Small(chainer.Chain):
    def __init__(self):
        super(Small, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(3, 8, 3, pad=1)
            self.out = L.Linear(8 * 16 * 16, 4)

    def __call__(self, x, t):
        return F.softmax_cross_entropy(self.out(F.relu(self.conv(x))), t)


def make():
    x = np.random.RandomState(0).standard_normal((5, 3, 16, 16)).astype(np.float32)
    return Small(), x, np.zeros(5, np.int32)
"""


@pytest.mark.slow
def test_the_users_own_model(made: Made, tmp_path: Path) -> None:
    env, _ = made("3.7")
    (tmp_path / "small.py").write_text(MODEL)
    answer = bench(env, "--model", f"{tmp_path}/small.py:make")
    assert answer.code == 0, answer.stderr
    assert [row["status"] for row in answer.document["bench"]["results"]] == ["measured"] * 3
    assert answer.document["bench"]["nets"][0]["parameters"] == 8 * 27 + 8 + 4 * 2048 + 4
    broken = bench(env, "--model", f"{tmp_path}/small.py:nothing")
    assert broken.code == 3
    assert "has no function nothing" in broken.document["error"]["message"]


@pytest.mark.slow
def test_too_many_threads_are_slower_than_before_and_end_with_1(made: Made, own_state: Path) -> None:
    many = str(32 * len(os.sched_getaffinity(0)))
    env, _ = made("3.7")
    words = ("--net", "conv", "--engine", "tuned", "--seconds", "0.1", "--blocks", "6", "--batch", "1")
    rest = ("--python", str(env), "--no-details", "--format", "json")
    first = doctor("bench", *words, *rest)
    assert first.code == 0
    name = first.document["bench"]["id"]
    slower = doctor(
        "bench", *words, *rest, "--fail-if-slower", "20%", "--baseline", name, environ={"OMP_NUM_THREADS": many}
    )
    assert slower.code == 1, slower.document["regressions"]
    (finding,) = [item for item in slower.document["findings"] if item["code"] == "IDP709"]
    assert any(f"OMP_NUM_THREADS none to {many}" in seen["text"] for seen in finding["evidence"])


@pytest.mark.slow
def test_a_run_that_is_interrupted_keeps_what_it_has(made: Made, own_state: Path) -> None:
    env, _ = made("3.7")
    words = [
        "bench",
        "--python",
        str(env),
        "--net",
        "conv,alexnet",
        "--batch",
        "1",
        "--blocks",
        "500",
        "--seconds",
        "0.1",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "ideepdoctor", *words, "--format", "json", "--verbose"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "IDEEPDOCTOR_STATE_DIR": str(own_state)},
    )
    assert process.stderr is not None
    # Each of the three engines has had its turn when the second block begins.
    assert any(b"block 2 of" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    error = json.loads(out)["error"]
    name = error["message"].split()[-1]
    kept = doctor("bench", "history", name, "--format", "json")
    assert kept.code == 0
    data = kept.document["bench"]
    assert not data["complete"] and data["results"][0]["status"] == "measured"


def test_a_batch_beyond_all_memory_is_refused_before_it_is_tried(made: Made) -> None:
    env, _ = made("3.7")
    started = time.monotonic()
    answer = doctor("bench", "--python", str(env), "--net", "vgga", "--batch", "4096", "--format", "json")
    assert answer.code == 3
    assert answer.document["error"]["code"] == "no-memory"
    assert "GB are free" in answer.document["error"]["message"] and "--batch" in answer.document["error"]["hint"]
    assert time.monotonic() - started < 60
