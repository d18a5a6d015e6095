# ruff: noqa: B905, E402, UP008, UP031
"""Run inside an environment: is iDeep really used, are its operations right, does training converge as without it?

Prints one line, ``PROVED`` and what was seen, or raises. Valid on Python 2.7 and 3.5 to 3.7.
The shapes are chosen away from the known hazards: those belong to the smoke test, this asks whether the stack works.
"""

import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")

import chainer
import chainer.functions as F
import chainer.links as L

RANDOM = np.random.RandomState(0)


def rand(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


X, W, B = rand(4, 16, 14, 14), rand(32, 16, 3, 3), rand(32)
FLAT, LINEAR, BIAS = rand(8, 64), rand(32, 64), rand(32)
GAMMA, BETA = rand(16), rand(16)
OPS = [
    ("convolution_2d", lambda x, w, b: F.convolution_2d(x, w, b, pad=1), (X, W, B)),
    ("deconvolution_2d", lambda x, w: F.deconvolution_2d(x, w, pad=1), (X, rand(16, 32, 3, 3))),
    ("relu", F.relu, (X,)),
    ("max_pooling_2d", lambda x: F.max_pooling_2d(x, 3, 2), (X,)),
    ("average_pooling_2d", lambda x: F.average_pooling_2d(x, 2, 2), (X,)),
    ("linear", F.linear, (FLAT, LINEAR, BIAS)),
    ("local_response_normalization", F.local_response_normalization, (X,)),
    ("batch_normalization", F.batch_normalization, (X, GAMMA, BETA)),
    ("concat", lambda a, b: F.concat((a, b)), (X, rand(4, 16, 14, 14))),
    ("add", lambda a, b: a + b, (X, rand(4, 16, 14, 14))),
]


def outputs(function, arrays, mode, dtype):
    """The op's value and the gradients of all its inputs, as float64."""
    variables = [chainer.Variable(array.astype(dtype)) for array in arrays]
    with chainer.using_config("use_ideep", mode):
        y = function(*variables)
        kind = type(y.data)
        y.grad = np.linspace(-1, 1, y.size).reshape(y.shape).astype(dtype)
        y.backward()
    found = [y.data] + [variable.grad for variable in variables]
    return kind, [np.asarray(array, dtype=np.float64) for array in found]


def check_ops(mode="auto"):
    """Compare the operations in float32 with NumPy's in float64; the worst relative error. ``never``: without iDeep."""
    worst = 0.0
    for name, function, arrays in OPS:
        kind, found = outputs(function, arrays, mode, np.float32)
        # BatchNormalization hands its result on as a plain array.
        if mode == "auto" and name == "convolution_2d" and kind.__module__.split(".")[0] != "ideep4py":
            raise AssertionError("convolution gave %r: iDeep is not used" % (kind,))
        _, right = outputs(function, arrays, "never", np.float64)
        for one, other in zip(found, right):
            error = np.abs(one - other).max() / np.abs(other).max()
            worst = max(worst, error)
            if not error < 1e-3:
                raise AssertionError("%s is wrong: relative error %g" % (name, error))
    return worst


class Net(chainer.Chain):
    def __init__(self, norm):
        super(Net, self).__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 16, 3, pad=1)
            self.c2 = L.Convolution2D(16, 32, 3, pad=1)
            self.fc = L.Linear(32 * 4 * 4, 10)
            if norm:
                self.bn = L.BatchNormalization(16)

    def __call__(self, x):
        h = self.c1(x)
        if hasattr(self, "bn"):
            h = self.bn(h)
        h = F.max_pooling_2d(F.relu(h), 2, 2)
        h = F.max_pooling_2d(F.relu(self.c2(h)), 2, 2)
        return self.fc(F.dropout(h, 0.0))


def train(mode, optimizer, norm):
    """Losses of 30 updates on one small fixed problem."""
    np.random.seed(1)
    net = L.Classifier(Net(norm))
    x = np.random.RandomState(2).rand(16, 3, 16, 16).astype(np.float32)
    t = np.arange(16, dtype=np.int32) % 10
    losses = []
    with chainer.using_config("use_ideep", mode):
        optimizer.setup(net)
        if mode == "auto":
            net.to_intel64()
        for _ in range(30):
            optimizer.update(net, x, t)
            loss = net(x, t)
            losses.append(float(np.asarray(loss.data)))
    return losses


def check_training(norm):
    for name in ("SGD", "MomentumSGD"):
        kind = getattr(chainer.optimizers, name)
        with_ideep, without = train("auto", kind(lr=0.02), norm), train("never", kind(lr=0.02), norm)
        if not with_ideep[-1] < 0.97 * with_ideep[0]:
            raise AssertionError("%s does not learn: %r" % (name, with_ideep))
        drift = max(abs(a - b) for a, b in zip(with_ideep, without))
        if not drift < 0.02:
            raise AssertionError("%s differs from NumPy by %g" % (name, drift))


if __name__ == "__main__":
    # to_intel64() raises on a BatchNormalization with Chainer 4.0.0b4; "plain" leaves it out of the trained net.
    batch_normalization = "plain" not in sys.argv[1:]
    error = check_ops()
    check_training(batch_normalization)
    print("PROVED %d ops, worst relative error %.0e, SGD and MomentumSGD training" % (len(OPS), error))
