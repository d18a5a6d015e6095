"""Commands that show a death again: one line to copy, with the variables that matter, on the machine where it was."""

from __future__ import annotations

import shlex

from ideepdoctor.model.facts import Facts
from ideepdoctor.rules.elsewhere import command_there

IMPORT_IDEEP4PY = "import ideep4py"
IMPORT_CHAINER = "import chainer"
FIRST_OPERATION = (
    "import numpy, ideep4py; x = numpy.linspace(-1, 1, 64).astype('float32').reshape(8, 8); "
    "print(numpy.array(ideep4py.relu.Forward(ideep4py.array(x))))"
)
"""What the probe tries in children of their own."""

_MATTER = ("CHAINER_", "DNNL_", "GOMP_", "KMP_", "LD_", "MKL_", "MKLDNN_", "OMP_", "ONEDNN_", "OPENBLAS_", "PYTHON")
"""How the names of variables begin that decide what is loaded, and how it computes."""
_PARTS = "import numpy as np; from chainer import config, functions as F; config.use_ideep = 'auto'"
_RANDOM = "r = lambda *s: np.random.RandomState(20180).standard_normal(s).astype('f')"
_CONVOLVED = "h = F.convolution_2d(r(2, 16, 8, 8), r(16, 16, 3, 3), pad=1)"
_OPERATIONS = {
    ("convolution", "x (4,16,14,14), W (32,16,3,3), pad 1"): (
        "F.convolution_2d(x, r(32, 16, 3, 3), r(32), pad=1)",
        "4, 16, 14, 14",
    ),
    ("convolution", "x (2,3,32,32), W (16,3,7,7), stride 2, pad 3"): (
        "F.convolution_2d(x, r(16, 3, 7, 7), r(16), stride=2, pad=3)",
        "2, 3, 32, 32",
    ),
    ("relu", "of a convolution (2,16,8,8)"): ("F.relu(h)", ""),
    ("max_pooling", "3x3, stride 2, of a convolution (2,16,8,8)"): ("F.max_pooling_2d(h, 3, 2)", ""),
    ("average_pooling", "3x3, stride 2, of a convolution (2,16,8,8)"): ("F.average_pooling_2d(h, 3, 2)", ""),
    ("linear", "x (32,128), W (64,128)"): ("F.linear(x, r(64, 128), r(64))", "32, 128"),
    ("concat", "convolutions of 16 and 16 channels"): ("F.concat([h, h], axis=1)", ""),
    ("dropout", "ratio 0.4, (4,16,32,32), by its own mask"): ("F.dropout(x, 0.4)", "4, 16, 32, 32"),
    ("lstm", "32 units, batch 8"): ("F.lstm(r(8, 32), F.linear(x, r(128, 48), r(128)))[1]", "8, 48"),
    ("batch_normalization", "forward, (8,16,28,28)"): ("F.batch_normalization(x, r(16), r(16))", "8, 16, 28, 28"),
}
"""Of the smoke test's cases about no known hazard: how each is called, and the shape of x; without one it gets the
output of a convolution."""
_OPTIMIZERS = {
    "sgd": "optimizers.SGD(lr=0.01)",
    "momentum_sgd": "optimizers.MomentumSGD(lr=0.01)",
}


def again(facts: Facts, program: str) -> str:
    """The command that runs this program as the user's Python would, with the variables that matter."""
    given = facts.variables.inherited
    names = [name for name in sorted(given) if name.startswith(_MATTER) and given[name] is not None]
    values = [f"{name}={shlex.quote(str(given[name]))}" for name in names]
    words = [*(shlex.quote(word) for word in (*facts.target.emulator, facts.python.executable)), "-c"]
    command = " ".join([*(["env", *values] if values else []), *words, shlex.quote(program)])
    return command_there(facts.target, command)


def operation(op: str, case: str) -> str | None:
    """The program that calls a function of the smoke test as it does, forward and backward; None for another case."""
    if op in _OPTIMIZERS and case == "two steps after to_intel64()":
        return _training(_OPTIMIZERS[op])
    found = _OPERATIONS.get((op, case))
    if found is None:
        return None
    call, shape = found
    given = f"x = r({shape})" if shape else _CONVOLVED
    return f"{_PARTS}; {_RANDOM}; {given}; y = {call}; y.grad = np.ones(y.shape, 'f'); y.backward(); print(y.array)"


def _training(optimizer: str) -> str:
    return (
        "from chainer import Sequential, config, functions as F, links, optimizers; import numpy as np; "
        "config.use_ideep = 'auto'; r = np.random.RandomState(20180).standard_normal; "
        f"net = Sequential(links.Convolution2D(16, 32, 3, pad=1), F.relu, links.Linear(2048, 16)); "
        f"net.to_intel64(); o = {optimizer}; o.setup(net); "
        "[o.update(lambda: F.sum(net(r((4, 16, 8, 8)).astype('f')))) for _ in range(2)]; print('ends')"
    )
