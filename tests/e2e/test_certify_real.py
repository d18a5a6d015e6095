"""certify on real environments: every hazard by name without the guard, nothing with it, nothing right blamed."""

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

from tests.e2e.environments import Answer, doctor

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]

CLEAN = ("--no-guard",)
NAMED = {"H1", "H2", "H3", "H4", "H5", "H7", "H8", "H9", "H10", "H11", "H14"}
OPS = "bn,products,load,optimizers,max_pooling,concat,split_axis,fixed_batch_norm,keep,arrays,lrn"
"""Operations among whose first cases every hazard is."""

# What the guard does not correct, by (operation, status): to be taken out of here as it learns.
UNNAMED = {
    ("max_pooling_2d", "wrong"),  # its input was read in between
    ("mdarray", "crashed"),  # float64
}
"""What a clean install does wrong beside the hazards that have a name."""

# Of the list "right, and to be kept right": no case of these operations may be blamed, with the guard or without.
RIGHT = {"convolution_2d", "deconvolution_2d", "linear", "leaky_relu", "add", "dropout"}


def certify(python: Path, *words: str, **environ: str) -> Answer:
    target = ("--python", str(python), "--format", "json")
    return doctor("certify", *target, *words, environ=environ, timeout_seconds=3000)


def failing(data: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Failing cases that have no name, by operation and status."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in data["failures"]:
        found.setdefault((row["op"], row["status"]), []).append(row)
    return found


def hazards(data: dict[str, Any]) -> set[str]:
    return {row["hazard"] for row in data["failures"] if row["hazard"]}


SLOW = [pytest.param(version, marks=pytest.mark.slow) for version in ("3.6", "2.7")]


@pytest.mark.parametrize("version", ["3.7", *SLOW])
def test_every_hazard_is_found_by_name_in_a_short_budget(made: Made, version: str) -> None:
    env, _ = made(version, *CLEAN)
    answer = certify(env, "--threads", "2", "--ops", OPS, "--budget", "15s", "--fresh")
    data = answer.document["certify"]
    assert answer.code == 1, answer.stderr
    assert hazards(data) == NAMED
    codes = {row["hazard"]: row["code"] for row in data["failures"] if row["hazard"]}
    assert codes == {
        "H1": "IDP602",
        "H2": "IDP603",
        "H3": "IDP604",
        "H4": "IDP612",
        "H5": "IDP613",
        "H7": "IDP605",
        "H8": "IDP605",
        "H9": "IDP614",
        "H10": "IDP615",
        "H11": "IDP616",
        "H14": "IDP609",
    }
    assert set(codes.values()) <= set(answer.codes("error"))
    assert not RIGHT & {row["op"] for row in data["failures"]}
    assert "H7" in answer.document["verdict"] and answer.document["verdict"].startswith("WRONG")


def test_with_the_guard_the_same_is_right(made: Made) -> None:
    env, _ = made("3.7")
    answer = certify(env, "--threads", "2", "--ops", OPS, "--budget", "7s", "--fresh")
    data = answer.document["certify"]
    assert data["guard"]["active"] is True and data["tried"] >= 20
    assert failing(data) == {}
    assert hazards(data) == set()


def test_right_operations_are_not_blamed_and_ideep_is_used(made: Made) -> None:
    env, _ = made("3.7", *CLEAN)
    answer = certify(env, "--threads", "3", "--ops", "conv,linear,leaky_relu,dropout", "--budget", "6s", "--fresh")
    data = answer.document["certify"]
    assert answer.code == 0, answer.stdout
    assert data["failed"] == 0 and data["right"] == data["tried"] > 10
    used = {row["op"]: row for row in data["ops"]}
    assert used["linear"]["used"] == "yes"
    assert any(kernel.startswith("convolution jit:") for kernel in used["convolution"]["kernels"])
    why = " ".join(item["text"] for row in data["ops"] for item in row["why_not"])
    assert "groups and depthwise" in why or used["convolution"]["tried"] < 10


MODEL = """
import chainer, chainer.functions as F, chainer.links as L, numpy as np

class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(None, 16, 3, pad=1)
            self.b = L.BatchNormalization(16)
            self.c2 = L.Convolution2D(16, 16, 3, pad=1)
            self.l = L.Linear(None, 10)

    def __call__(self, x, t):
        h = F.relu(self.b(self.c1(x)))
        h = h * F.sigmoid(self.c2(h))
        return F.softmax_cross_entropy(self.l(F.dropout(F.max_pooling_2d(h, 2))), t)

def make():
    np.random.seed(0)
    x = np.random.standard_normal((32, 3, 28, 28)).astype("f")
    net = Net()
    net(x[:1], np.zeros(1, "i"))
    net.to_intel64()
    return net, x, np.arange(32, dtype="i") % 10

def deadly():
    a, b = L.Convolution2D(3, 16, 3), L.Convolution2D(3, 4, 3)
    return (lambda x: F.concat((a(x), b(x)))), np.ones((2, 3, 8, 8), "f")

def broken():
    return (lambda x: F.relu(x) + unknown), np.ones((2, 3), "f")
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    return path


def test_a_model_is_certified_in_its_own_shapes(made: Made, net: Path) -> None:
    words = ("--threads", "2", "--model", f"{net}:make")
    wrong = certify(made("3.7", *CLEAN)[0], *words)
    data = wrong.document["certify"]
    assert wrong.code == 1 and {"H1", "H2"} <= hazards(data)
    assert [case["op"] for case in data["model"]["cases"]].count("convolution_2d") == 2
    ours = next(case["case"] for case in data["model"]["cases"] if case["op"] == "batch_normalization")
    assert ours.startswith("(32,16,28,28) (16) (16)")
    assert {row["name"] for row in data["model"]["others"]} >= {"SoftmaxCrossEntropy"}
    bad = {row["name"] for row in data["model"]["gradients"] if not row["right"]}
    assert {"/c1/W", "/b/gamma"} <= bad and not {"output 1", "/l/W"} & bad
    right = certify(made("3.7")[0], *words)
    data = right.document["certify"]
    assert right.code == 0, right.stdout
    assert all(row["right"] for row in data["model"]["gradients"]) and len(data["model"]["gradients"]) > 8
    assert any("dropout" in note for note in data["model"]["notes"])


def test_a_model_that_dies_is_told_with_the_function_that_killed_it(made: Made, net: Path) -> None:
    answer = certify(made("3.7", *CLEAN)[0], "--threads", "2", "--model", f"{net}:deadly")
    data = answer.document["certify"]
    assert answer.code == 1 and hazards(data) == {"H7"}
    assert "SIGABRT" in data["model"]["ended"] and "Concat" in data["model"]["ended"]


def test_a_model_that_raises_with_numpy_too_is_one_clear_error(made: Made, net: Path) -> None:
    answer = certify(made("3.7")[0], "--model", f"{net}:broken")
    assert answer.code == 2
    assert "the model raises without iDeep, too: NameError" in answer.document["error"]["message"]


def test_a_run_that_was_killed_goes_on(made: Made, tmp_path: Path) -> None:
    env, _ = made("3.7")
    state = tmp_path / "state"
    environ = {**os.environ, "IDEEPDOCTOR_STATE_DIR": str(state)}
    words = ["certify", "--python", str(env), "--threads", "1,2", "--ops", "leaky_relu", "--format", "json"]
    command = [str(Path(sys.executable).with_name("ideepdoctor")), *words]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60

    def begun() -> bool:
        """Whether tries are written down, and not the file's first line alone."""
        return any('"setting"' in path.read_text() for path in state.glob("certify/*.jsonl"))

    while not begun() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
    data = json.loads(done.stdout)["certify"]
    assert 0 < data["kept_from_before"] < data["tries"] == data["tried"]
    again = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert json.loads(again.stdout)["certify"]["kept_from_before"] == data["tries"]


STACKS = [("3.7",), ("3.6",), ("2.7",)]
OLDER = [("3.7", "--stack", f"chainer{version}-ideep4py2.0.0.post3") for version in ("6.7.0", "5.4.0")]


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_the_whole_catalogue_on_a_clean_stack(made: Made, stack: tuple[str, ...]) -> None:
    env, _ = made(*stack, *CLEAN)
    data = certify(env, "--fresh").document["certify"]
    assert data["complete"] and data["unknown_files"] == []
    assert hazards(data) == NAMED | {"H15", "H16"}
    unnamed = {key for key, rows in failing(data).items() if any(row["hazard"] is None for row in rows)}
    assert unnamed <= UNNAMED
    assert not RIGHT & {row["op"] for row in data["failures"]}
    assert data["memory"]["ideep_bytes"] > 10 * 2**20 and data["fork"]["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS + OLDER, ids=str)
def test_the_whole_catalogue_with_the_guard(made: Made, stack: tuple[str, ...]) -> None:
    env, _ = made(*stack)
    data = certify(env, "--fresh").document["certify"]
    assert data["complete"] and data["guard"]["active"]
    assert failing(data) == {}
