"""``run`` and notebooks: the kernel that executes one has the guard, and its models are moved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.environments import copy_environment, doctor, uv

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

CELLS = [
    "import sys, numpy as np, chainer, chainer.links as L, chainer.functions as F",
    "net = chainer.Sequential(L.Convolution2D(16, 16, 3), lambda h: h * h, L.Linear(None, 4))\n"
    "optimizer = chainer.optimizers.MomentumSGD().setup(net)\n"
    "x = np.random.RandomState(0).standard_normal((2, 16, 8, 8)).astype('f')\n"
    "optimizer.update(lambda: F.sum(net(x)))",
    "guard, auto = (sys.modules['_ideepdoctor_' + name] for name in ('guard', 'auto'))\n"
    "print(type(net[0].W.array).__name__, guard.status()['corrections']['product']['applied'] > 0, "
    "auto.status()['moved'], any('/run/' in path for path in sys.path))",
]


def test_the_kernel_of_a_notebook_has_the_guard(made, tmp_path: Path):
    source, _ = made("3.7")
    env = copy_environment(source, tmp_path / "env")
    uv("pip", "install", "--python", str(env / "bin" / "python"), "ipykernel", "nbconvert")
    uv("pip", "install", "--python", str(env / "bin" / "python"), "numpy==1.21.6")
    cells = [
        {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None} for text in CELLS
    ]
    notebook = tmp_path / "a notebook.ipynb"
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 2}))
    options = ("nbconvert", "--to", "notebook", "--execute", "--output", "done", str(notebook))
    state = {"HOME": str(tmp_path / "home"), "IPYTHONDIR": str(tmp_path / "ipython")}
    for first in (("python", "-m"), ("jupyter",)):
        (tmp_path / "done.ipynb").unlink(missing_ok=True)
        done = doctor("run", "--python", str(env), "--", *first, *options, cwd=tmp_path, environ=state)
        assert done.code == 0, done.stderr
        outputs = json.loads((tmp_path / "done.ipynb").read_text())["cells"][-1]["outputs"]
        assert outputs[0]["text"] == ["mdarray True {'optimizer': 1, 'inference': 0} False\n"]
