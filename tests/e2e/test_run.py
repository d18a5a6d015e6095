"""``run`` on programs that never heard of iDeep: it is used, the numbers are NumPy's, the program's ways are kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.environments import doctor

pytestmark = pytest.mark.e2e

TRAIN = """\
from __future__ import print_function
import json, sys
import numpy as np
import chainer
import chainer.functions as F
import chainer.links as L


class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 32, 3, pad=1)
            self.bn = L.BatchNormalization(32)
            self.c2 = L.Convolution2D(32, 32, 3, pad=1)
            self.fc = L.Linear(None, 10)

    def forward(self, x):
        h = F.relu(self.bn(self.c1(x)))
        return self.fc(F.max_pooling_2d(F.relu(self.c2(h)), 2))


np.random.seed(0)
model = L.Classifier(Net())
optimizer = chainer.optimizers.MomentumSGD(0.01)
optimizer.setup(model)
losses = []
for i in range(5):
    x, t = np.random.rand(8, 3, 16, 16).astype("f"), np.random.randint(0, 10, 8).astype("i")
    optimizer.update(model, x, t)
    losses.append(float(model.loss.data))
fresh = Net()
with chainer.using_config("train", False), chainer.no_backprop_mode():
    fresh(x)
h = model.predictor.c1(chainer.Variable(x))
print(json.dumps({"losses": losses, "weights": type(model.predictor.c1.W.data).__name__,
                  "output": type(h.data).__name__, "inference": type(fresh.c1.W.data).__name__}))
"""


def told(done) -> dict[str, object]:
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
def test_an_unchanged_script_uses_ideep_and_learns_the_same(made, tmp_path: Path, version: str):
    env, answer = made(version)
    assert answer.code == 0
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    python = str(env / "bin" / "python")
    fast = doctor("run", "--python", python, "--", str(script), cwd=tmp_path)
    assert fast.code == 0, fast.stderr
    plain = doctor("run", "--python", python, "--", str(script), cwd=tmp_path, environ={"CHAINER_USE_IDEEP": "never"})
    ours, numpys = told(fast), told(plain)
    assert (ours["weights"], ours["output"], ours["inference"]) == ("mdarray", "mdarray", "mdarray")
    assert (numpys["weights"], numpys["output"], numpys["inference"]) == ("ndarray", "ndarray", "ndarray")
    assert ours["losses"] == pytest.approx(numpys["losses"], rel=1e-4)


def test_without_auto_the_model_stays_as_the_script_made_it(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "train.py").write_text(TRAIN)
    answer = doctor("run", "--no-auto", "--python", str(env), "--", "train.py", cwd=tmp_path)
    found = told(answer)
    assert (found["weights"], found["output"]) == ("ndarray", "mdarray")


def started(made_env: Path, *words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("ideepdoctor")), "run", "--python", str(made_env), "--", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_the_exit_code_the_streams_and_the_arguments_are_the_programs(made):
    env, _ = made("3.7")
    code = "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write(repr(sys.argv[1:])); sys.exit(7)"
    done = started(env, "python", "-c", code, "--format", "-v", "x y", input="over standard input")
    assert (done.returncode, done.stdout, done.stderr) == (7, "over standard input", "['--format', '-v', 'x y']")


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGPIPE", "SIGTERM"])
def test_a_signal_that_ends_the_program_is_seen_outside(made, name: str):
    env, _ = made("3.7")
    code = f"import os, signal; signal.signal(13, signal.SIG_DFL); os.kill(os.getpid(), signal.{name})"
    assert started(env, "python", "-c", code).returncode == -getattr(signal, name)


def test_the_users_own_sitecustomize_runs_too_and_child_processes_are_served(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = 'mine'\n")
    script = tmp_path / "tell.py"
    script.write_text(
        "import subprocess, sys\n"
        "ours = '_ideepdoctor_auto' in sys.modules\n"
        "if sys.argv[1:]:\n"
        "    sys.exit(0 if ours else 1)\n"
        "child = subprocess.call([sys.executable, sys.argv[0], 'child'])\n"
        "print(sys.mine, ours, child, any('/run/' in path for path in sys.path))\n"
    )
    done = started(env, "python", str(script), env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.stdout == "mine True 0 False\n", done.stderr


def test_a_sitecustomize_that_fails_is_told_as_python_tells_it_and_the_program_runs(made, tmp_path: Path):
    env, _ = made("3.7")
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('of mine')\n")
    done = started(env, "python", "-c", "print('ran')", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "of mine" in done.stderr


def test_a_preloaded_mkldnn_is_named_and_left_out(made, tmp_path: Path):
    env, _ = made("3.7")
    older, _ = made("3.6", "--stack", "chainer4.5.0-ideep4py1.0.4")
    other = next((older / "lib").glob("python3.6/site-packages/ideep4py/lib/libmkldnn.so.0"))
    code = "import os, ideep4py, numpy; ideep4py.relu.Forward(ideep4py.array(numpy.ones((2, 2), 'f')));"
    code += "print(os.environ.get('LD_PRELOAD'))"
    environ = {**os.environ, "LD_PRELOAD": str(other), "LD_LIBRARY_PATH": str(other.parent)}
    done = started(env, "python", "-c", code, env=environ)
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    assert "IDP401" in done.stderr
