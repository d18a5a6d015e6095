"""The guard in real environments: wrong or dying without it, right with it, and untouched where nothing is wrong."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ideepdoctor.targets.target import payload_source
from tests.e2e.environments import Answer, copy_environment, site_packages

pytestmark = pytest.mark.e2e

Made = Callable[..., tuple[Path, Answer]]

# Runs cases in the environment: each compares float32 with iDeep against float64 with NumPy, in a child of its own
# where it may end the process, and tells one JSON object in a line. Valid on Python 2.7.
PROGRAM = r'''
import copy, hashlib, io, json, os, pickle, sys, tempfile, warnings
warnings.simplefilter("ignore")
import chainer, numpy as np
import chainer.functions as F, chainer.links as L
from chainer import Variable
import ideep4py

CASES = []
RISKY = set()


def case(group, name, risky=False):
    def add(function):
        CASES.append((group, name, function))
        if risky:
            RISKY.add((group, name))
        return function
    return add


def normal(shape, seed, scale=1.0):
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def ideep():
    return chainer.using_config("use_ideep", "auto")


def plain():
    return chainer.using_config("use_ideep", "never")


def is_ours(array):
    return isinstance(array, ideep4py.mdarray)


def derive(function, arrays, dtype, between=None):
    variables = [Variable(array.astype(dtype)) for array in arrays]
    y = function(*variables)
    used = is_ours(y.data)
    if between:
        between(variables, y)
    y.grad = normal(y.shape, 6).astype(dtype)
    y.backward()
    return used, [y.data] + [variable.grad for variable in variables]


def compare(function, arrays, between=None, first=0):
    """Outputs and gradients: ours, and in float64."""
    with ideep():
        used, ours = derive(function, arrays, np.float32, between)
    with plain():
        _, true = derive(function, arrays, np.float64)
    return used, list(zip(ours, true))[first:]


def error(pairs):
    worst = 0.0
    for ours, true in pairs:
        if ours is None or true is None:
            worst = max(worst, 0.0 if ours is true else float("inf"))
            continue
        ours, true = np.array(ours).astype(float), np.array(true).astype(float)
        same = ours.shape == true.shape and np.array_equal(np.isnan(ours), np.isnan(true))
        if not same:
            return float("inf")
        ours, true = np.nan_to_num(ours), np.nan_to_num(true)
        if ours.size:
            scale = float(abs(true).max())
            worst = max(worst, float(abs(ours - true).max()) / (scale or 1.0))
    return worst


def conv(x, w, pad=1):
    return F.convolution_2d(x, w, pad=pad)


SHAPE = (2, 16, 8, 8)


def around(function, place, channels=16, of=1):
    """A function beside convolutions, which make its input or the gradient of its output blocked."""
    def run(x, w, w2, w3):
        h = conv(x, w) if place != "before" else x
        g = conv(x, w2) if place != "before" else x * 0.5 + 1
        y = function(h) if of == 1 else function(h, g)
        return conv(y, w3) if place != "after" else y
    with plain():
        made = function(Variable(normal(SHAPE, 1)), *[Variable(normal(SHAPE, 2))] * (of - 1))
    arrays = [normal(SHAPE, 1), normal((16, 16, 3, 3), 2, 0.1), normal((16, 16, 3, 3), 3, 0.1)]
    arrays.append(normal((16, made.shape[1], 3, 3), 4, 0.1))
    # float64 has no gradient for a weight that was not used, and float32 has none either.
    return compare(run, arrays)
'''

PROGRAM += r'''
# ---------------------------------------------------------------- H1

THREADS = int(os.environ["OMP_NUM_THREADS"])


def exposing(threads):
    middle = (threads * (2 * threads - 1)) ** 0.5
    side = int((1024000 * threads / 2.0 / middle / 8 / 4) ** 0.5)
    return 4, 2 * threads - 1, side, side


SHAPES = [(8, 16, 56, 56), (32, 16, 28, 28), (4, 3, 112, 112), (8, 64, 56, 56), (8, 32, 56, 56), (32, 32, 28, 28)]
SHAPES += [(32, 64, 28, 28), exposing(max(2, THREADS)), (2, 5, 7, 9), (64, 33)]
MORE = [(n, c, s, s) for n in (1, 4, 16, 32) for c in (3, 7, 16, 24, 33, 64, 96) for s in (7, 14, 28, 56)]


def normalize(shape):
    gamma = np.linspace(0.5, 2, shape[1]).astype(np.float32)
    with chainer.using_config("train", True):
        # Rounding adds up over the image; what the hazard does is a hundred times as large.
        return compare(F.batch_normalization, [normal(shape, 1), gamma, normal(shape[1:2], 2)], first=1)


for shape in SHAPES + (MORE if "slow" in sys.argv else []):
    case("bn", str(shape))(lambda shape=shape: normalize(shape))


def bn_of(h):
    vector = lambda a, b: Variable(np.linspace(a, b, h.shape[1]).astype(h.dtype))
    return F.batch_normalization(h, vector(0.5, 2), vector(-1, 1))


def fixed_bn_of(h):
    vector = lambda a, b: Variable(np.linspace(a, b, h.shape[1]).astype(h.dtype))
    return F.fixed_batch_normalization(h, vector(0.5, 2), vector(-1, 1), vector(-1, 2), vector(0.5, 3))


for place in ("after", "before", "both"):
    case("bn", place + " a convolution")(lambda place=place: around(bn_of, place))
    case("fixedbn", place + " a convolution")(lambda place=place: around(fixed_bn_of, place))
    case("fixedbn", "relu, " + place)(lambda place=place: around(lambda h: F.relu(fixed_bn_of(h)), place))

# ---------------------------------------------------------------- H2, H11

noise = normal(SHAPE, 11)
ONE = {
    "h*h": lambda h: h * h, "h/(h*h+1)": lambda h: h / (h * h + 1), "sigmoid": F.sigmoid, "tanh": F.tanh,
    "h*array": lambda h: h * noise.astype(h.dtype), "array*h": lambda h: noise.astype(h.dtype) * h,
    "h/array": lambda h: h / (abs(noise) + 1).astype(h.dtype), "array/exp": lambda h: noise.astype(h.dtype) / F.exp(h),
    "log": lambda h: F.log(F.square(h) + 1), "sqrt": lambda h: F.sqrt(F.square(h) + 1), "crelu": F.crelu,
    "gate": lambda h: h * F.sigmoid(h), "squared_error": lambda h: F.squared_error(h, noise.astype(h.dtype)),
    "2.5*h": lambda h: 2.5 * h, "2.5/h": lambda h: 2.5 / (F.square(h) + 1), "1-h": lambda h: 1 - h,
    "h**2": lambda h: h ** 2, "square": F.square, "elu": F.elu, "softplus": F.softplus, "exp": F.exp,
    "softmax": F.softmax, "maximum": lambda h: F.maximum(h, 0.5 * h), "sum": lambda h: h + h, "neg": lambda h: -h,
}
TWO = {
    "g*h": lambda g, h: g * h, "g/(h*h+1)": lambda g, h: g / (F.square(h) + 1), "g-h": lambda g, h: g - h,
    "fma": lambda g, h: g * h + h, "lerp": lambda g, h: F.sigmoid(g) * h + (1 - F.sigmoid(g)) * F.tanh(h),
    "glu": lambda g, h: g * F.sigmoid(h), "maximum": F.maximum, "interpolate": lambda g, h: F.linear_interpolate(g, h, g),
}
for place in ("after", "before", "both"):
    for name in sorted(ONE):
        case("product", "%s, %s" % (name, place))(lambda f=ONE[name], place=place: around(f, place))
    for name in sorted(TWO):
        case("product", "%s of two, %s" % (name, place))(lambda f=TWO[name], place=place: around(f, place, of=2))


def blocked(shape=SHAPE, seed=1):
    with ideep():
        return conv(Variable(normal(shape, seed)), Variable(normal((16, shape[1], 3, 3), 2, 0.1))).data


def raw(name, function, group="product", risky=False):
    def run():
        true = np.array(blocked())
        h = blocked()
        ours = function(h)
        return is_ours(h), [(ours, function(true.astype(float))), (h, true)]
    case(group, "mdarray " + name, risky)(run)


raw("h*h", lambda h: h * h)
raw("h/h", lambda h: h / (h * h))
raw("h*array", lambda h: h * noise)
raw("h*transposed", lambda h: h * noise.transpose(0, 1, 3, 2))
raw("h*scalar", lambda h: 2.5 * h * np.float32(2) / 3 - 1)
raw("h*row", lambda h: h * noise[:, :, :1])
raw("h**2", lambda h: h ** 2, "power")
raw("abs(h)**array", lambda h: (abs(h) + 1) ** noise, "power")
raw("2**h", lambda h: 2.0 ** h, "power")
raw("pow", lambda h: pow(h, 3), "power")
raw("h+float64", lambda h: h + noise.astype(float), "operand", True)
raw("h*float64", lambda h: h * noise.astype(float), "operand", True)
raw("h-float16", lambda h: h - noise.astype(np.float16), "operand", True)


@case("operand", "h += float64", True)
def _():
    h, true = blocked(), np.array(blocked())
    same = h
    h += noise.astype(float)
    h *= noise.astype(float)
    return same is h, [(h, (true + noise) * noise)]


@case("operand", "(1,16,1,1) * (1,1,4,4)", True)
def _():
    g, h = normal((1, 16, 1, 1), 1), normal((1, 1, 4, 4), 2)
    return True, [(ideep4py.array(g) * ideep4py.array(h), g * h), (ideep4py.array(g) + h, g + h)]


@case("operand", "shapes that do not fit raise", True)
def _():
    try:
        blocked() * normal((2, 16, 64), 1)
    except ValueError:
        return True, []
    return False, [(None, np.zeros(1))]
'''

PROGRAM += r'''
# ---------------------------------------------------------------- H3, H4, H10


class Net(chainer.Chain):
    def __init__(self, fill=None):
        super(Net, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(16, 32, 3, pad=1)
            self.odd = L.Convolution2D(32, 24, 3, pad=1)
            self.bn = L.BatchNormalization(24)
            self.out = L.Linear(24 * 8 * 8, 10)
        for seed, (name, param) in enumerate(sorted(self.namedparams())):
            scale = 0.1 if param.ndim > 1 else 0.3
            value = normal(param.shape, 50 + seed, scale) + (1 if name.endswith("gamma") else 0)
            param.data[...] = value if fill is None else fill

    def __call__(self, x):
        h = F.relu(self.odd(F.relu(self.conv(x))))
        return self.out(self.bn(h))


def in_float64(net):
    for link in net.links():
        for name in list(getattr(link, "_persistent", ())):
            if isinstance(getattr(link, name), np.ndarray):
                setattr(link, name, getattr(link, name).astype(float))
    for param in net.params():
        param.cleargrad()
        param.data = param.data.astype(float)
    return net


def train(net, optimizer, dtype, steps=3):
    optimizer.setup(net)
    x = normal((4, 16, 8, 8), 1).astype(dtype)
    for _ in range(steps):
        net.cleargrads()
        y = net(Variable(x))
        y.grad = normal(y.shape, 2).astype(dtype)
        y.backward()
        optimizer.update()
    return [param.data for _, param in sorted(net.namedparams()) if not _.endswith("odd/b")]


def both(make):
    """What a function of a network and a type gives, with iDeep after to_intel64() and in float64."""
    with plain():
        true = make(in_float64(Net()), float)
    with ideep():
        net = Net()
        net.to_intel64()
        ours = make(net, np.float32)
    return is_ours(net.conv.W.data), list(zip(ours, true))


def outputs(net, dtype):
    with chainer.using_config("train", False):
        return [net(Variable(normal((4, 16, 8, 8), 1).astype(dtype))).data] + [p.data for _, p in sorted(net.namedparams())]


SLOW_RULES = ["AdaDelta", "SMORMS3", "RMSprop", "RMSpropGraves", "NesterovAG", "CorrectedMomentumSGD", "AMSGrad"]
for name in ["AdaGrad", "MSVAG", "Adam", "SGD", "MomentumSGD"] + (SLOW_RULES if "slow" in sys.argv else []):
    if hasattr(chainer.optimizers, name):
        def run(name=name):
            return both(lambda net, dtype: train(net, getattr(chainer.optimizers, name)(), dtype))
        case("optimizer", name)(run)


def load_into(how):
    def run():
        folder = tempfile.mkdtemp()
        path = os.path.join(folder, "saved.npz")
        with plain():
            source = Net()
            chainer.serializers.save_npz(path, source)
            true = outputs(in_float64(Net()), float)
        with ideep():
            net = Net(np.nan)
            for link in net.links():
                for name in getattr(link, "_persistent", ()):
                    setattr(link, name, getattr(source.bn, name, 0)) if name.startswith("avg") else None
            net.to_intel64()
            how(net, source, path)
            ours = outputs(net, np.float32)
        return is_ours(net.conv.W.data), list(zip(ours, true))
    return run


def resume(net, source, path):
    """A Trainer's snapshot holds the updater's, which holds the model and the optimizer."""
    for model, action in ((source, chainer.serializers.save_npz), (net, chainer.serializers.load_npz)):
        optimizer = chainer.optimizers.SGD()
        optimizer.setup(model)
        iterator = chainer.iterators.SerialIterator([0], 1)
        action(path + "2", chainer.training.StandardUpdater(iterator, optimizer))


case("load", "load_npz")(load_into(lambda net, source, path: chainer.serializers.load_npz(path, net)))
case("load", "resume of a Trainer")(load_into(resume))
case("load", "copyparams")(load_into(lambda net, source, path: net.copyparams(source)))


def load_read(net, source, path):
    np.asarray(net.conv.W.data)  # which makes it plain
    chainer.serializers.load_npz(path, net)


case("load", "load_npz after the weights were read")(load_into(load_read))


@case("load", "resume of MomentumSGD continues the same")
def _():
    def run(net, dtype):
        optimizer = chainer.optimizers.MomentumSGD()
        train(net, optimizer, dtype, 2)
        path = os.path.join(tempfile.mkdtemp(), "optimizer.npz")
        chainer.serializers.save_npz(path, optimizer)
        chainer.serializers.save_npz(path + "2", net)
        chainer.serializers.load_npz(path, optimizer)
        chainer.serializers.load_npz(path + "2", net)
        return train(net, optimizer, dtype, 2)
    return both(run)


for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    def run(protocol=protocol):
        def again(net, dtype):
            other = pickle.loads(pickle.dumps(net, protocol))
            return outputs(other, dtype) + outputs(copy.deepcopy(net), dtype) + outputs(net, dtype)
        return both(again)
    case("pickle", "protocol %d" % protocol, True)(run)


@case("pickle", "for another program", True)
def _():
    with ideep():
        net = Net()
        net.to_intel64()
        text = pickle.dumps([net.conv.W.data, net.bn.gamma.data, net.out.W.data, blocked()], 2)
    if os.environ.get("PICKLED"):
        with open(os.environ["PICKLED"], "wb") as stream:
            stream.write(text)
    ours = pickle.loads(text)
    with plain():
        net = Net()
    return all(map(is_ours, ours)), list(zip(ours, [net.conv.W.data, net.bn.gamma.data, net.out.W.data, np.array(blocked())]))
'''

PROGRAM += r'''
# ---------------------------------------------------------------- H5, H7, H8, H14


def read_input(variables, y):
    np.asarray(y.creator_node.inputs[0].get_variable().data if hasattr(y, "creator_node") else variables[0].data)


def pool(size, stride, pad, cover_all, nan, read, ours):
    x = normal((2, 16, 9, 9), 1)
    if nan:
        x[0, 3, 2, 2] = x[1, 15, 8, 8] = np.nan
        x[0, 0, 0, 0], x[0, 1, 1, 1] = np.inf, -np.inf

    def run(x, w):
        h = conv(x, w) if not nan else (x * 1 if not ours else x)
        y = F.max_pooling_2d(h, size, stride, pad, cover_all)
        if read:
            np.asarray(h.data)
        return y
    return compare(run, [x, normal((16, 16, 3, 3), 2, 0.1)])


for window in ((3, 2, 0, True), (2, 2, 0, False), (3, 1, 1, True), (3, 2, 1, False)):
    for nan, read in ((False, False), (False, True), (True, False)):
        name = "%s%s%s" % (window, nan and " of NaN" or "", read and ", input read in between" or "")
        case("maxpool", name)(lambda a=window + (nan, read, True): pool(*a))


def concat(*channels):
    def run(x, *weights):
        return F.concat([conv(x, w) for w in weights])
    return compare(run, [normal((2, 16, 6, 6), 1)] + [normal((c, 16, 3, 3), 9 + c, 0.1) for c in channels])


for channels in ((16, 8), (16, 5), (16, 24), (32, 8), (8, 16, 5), (16, 16, 8), (8, 12), (24, 12)):
    case("concat", str(channels), True)(lambda c=channels: concat(*c))
for channels in ((16, 16), (8, 16), (24, 8), (16, 32, 48), (5, 16)):
    case("right", "concat %s" % (channels,))(lambda c=channels: concat(*c))


def split(channels, ends, axis=1):
    def run(x, w):
        return F.concat(F.split_axis(conv(x, w), ends, axis)[::-1], axis)
    return compare(run, [normal((2, 16, 6, 6), 1), normal((channels, 16, 3, 3), 3, 0.1)])


for channels, ends in ((16, 2), (16, [4, 9]), (8, [4]), (32, [8, 16]), (24, [12]), (48, [8, 24])):
    case("split", "%d at %s" % (channels, ends), True)(lambda c=channels, e=ends: split(c, e))
for channels, ends, axis in ((32, 2, 1), (48, 3, 1), (24, [8], 1), (16, 2, 2), (16, 2, 3), (16, 2, 0)):
    case("split", "%d at %s, axis %d" % (channels, ends, axis))(lambda c=channels, e=ends, a=axis: split(c, e, a))


def lrn(place, channels, n, k, alpha, beta, read=False):
    def run(x, w, w2):
        h = conv(x, w) if place in ("after", "both") else x
        y = F.local_response_normalization(h, n, k, alpha, beta)
        if read:
            np.asarray(h.data)
        return conv(y, w2) if place in ("before", "both") else y
    x = normal((2, 16 if place in ("after", "both") else channels, 7, 7), 1, 3)
    return compare(run, [x, normal((channels, 16, 3, 3), 3, 0.1), normal((16, channels, 3, 3), 4, 0.1)])


USUAL = (5, 2, 1e-4, 0.75)
for place in ("after", "before", "both", "alone"):
    for channels in (16, 24, 32, 20):
        for values in (USUAL, (5, 1, 0.1, 0.75)):
            case("lrn", "%s, %d channels, %s" % (place, channels, values))(lambda a=(place, channels) + values: lrn(*a))
    for values in ((3, 2, 0.1, 0.75), (7, 1, 0.05, 0.75), (4, 2, 0.1, 0.75), (5, 2, 0.1, 0.5), (2, 1, 0.1, 0.6)):
        case("lrn", "%s, 32 channels, %s" % (place, values))(lambda a=(place, 32) + values: lrn(*a))
case("lrn", "input read in between")(lambda: lrn("both", 32, 5, 1, 0.1, 0.75, True))

# ---------------------------------------------------------------- Chainer's functions, as its own tests try them


def arrangement(array, how):
    if how == "array of iDeep":
        return ideep4py.array(array)
    if how == "not contiguous":
        wide = np.zeros(array.shape[:-1] + (2 * array.shape[-1],), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def functions(name, function, arrays, uses=True, twice=False):
    for how in ("array", "not contiguous", "array of iDeep"):
        def run(how=how):
            with ideep():
                variables = [Variable(arrangement(array, how)) for array in arrays]
                y = function(*variables)
                used = is_ours(y.data)
                y.grad = arrangement(normal(y.shape, 6), how)
                y.backward(enable_double_backprop=twice)
                ours = [y.data] + [v.grad for v in variables]
                if twice:
                    sum_of = sum(F.sum(v.grad_var * v.grad_var) for v in variables)
                    for v in variables:
                        v.cleargrad()
                    sum_of.backward()
                    ours += [v.grad for v in variables]
            with plain():
                variables = [Variable(array.astype(float)) for array in arrays]
                y = function(*variables)
                y.grad = normal(y.shape, 6).astype(float)
                y.backward(enable_double_backprop=twice)
                true = [y.data] + [v.grad for v in variables]
                if twice:
                    sum_of = sum(F.sum(v.grad_var * v.grad_var) for v in variables)
                    for v in variables:
                        v.cleargrad()
                    sum_of.backward()
                    true += [v.grad for v in variables]
            return used if uses else None, list(zip(ours, true))
        case("functions", "%s, %s" % (name, how))(run)


for stride, pad, dilate in ((1, 1, 1), (2, 0, 1), ((2, 1), (1, 2), 1), (1, 2, 2)):
    def convolution(x, w, b=None, stride=stride, pad=pad, dilate=dilate):
        return F.convolution_2d(x, w, b, stride, pad, dilate=dilate)
    for twice in (False, True):
        arrays = [normal((2, 3, 9, 10), 1), normal((5, 3, 3, 3), 2, 0.2), normal((5,), 3)]
        functions("convolution_2d %s, double %s" % ((stride, pad, dilate), twice), convolution, arrays, twice=twice)
functions("convolution_2d without bias", convolution, [normal((2, 16, 9, 9), 1), normal((32, 16, 3, 3), 2, 0.1)])
for stride, pad in ((1, 1), (2, 0)):
    def deconvolution(x, w, b=None, stride=stride, pad=pad):
        return F.deconvolution_2d(x, w, b, stride, pad)
    functions("deconvolution_2d %s" % ((stride, pad),), deconvolution, [normal((2, 3, 5, 6), 1), normal((3, 4, 3, 3), 2, 0.2), normal((4,), 3)])
functions("linear", F.linear, [normal((4, 30), 1), normal((7, 30), 2, 0.2), normal((7,), 3)], twice=True)
functions("relu", F.relu, [normal((4, 16, 5, 5), 1)], twice=True)
functions("relu of a matrix", F.relu, [normal((4, 30), 1)])
functions("leaky_relu", F.leaky_relu, [normal((4, 16, 5, 5), 1)])
functions("batch_normalization", F.batch_normalization, [normal((4, 16, 5, 5), 1), 1 + normal((16,), 2, 0.1), normal((16,), 3)], uses=False)
functions("batch_normalization of a matrix", F.batch_normalization, [normal((20, 6), 1), 1 + normal((6,), 2, 0.1), normal((6,), 3)], uses=False)
for cover_all in (True, False):
    functions("max_pooling_2d, cover_all %s" % cover_all, lambda x, c=cover_all: F.max_pooling_2d(x, 3, 2, 1, c), [normal((2, 16, 8, 8), 1)])
functions("average_pooling_2d", lambda x: F.average_pooling_2d(x, 3, 2, 1), [normal((2, 16, 8, 8), 1)])
functions("local_response_normalization", F.local_response_normalization, [normal((2, 16, 6, 6), 1)])
functions("concat", lambda *xs: F.concat(xs), [normal((2, c, 4, 4), c) for c in (3, 16, 8)])
functions("concat, axis 2", lambda *xs: F.concat(xs, 2), [normal((2, 16, c, 4), c) for c in (3, 2, 8)])
functions("split_axis", lambda x: F.concat(F.split_axis(x, [3, 8], 1)[::-1]), [normal((2, 16, 4, 4), 1)])
functions("add", lambda x, y: x + y, [normal((4, 16, 5, 5), 1), normal((4, 16, 5, 5), 2)])
functions("add of three", F.add, [normal((4, 16, 5, 5), s) for s in (1, 2, 3)])


@case("functions", "dropout")
def _():
    with ideep():
        x = Variable(normal((4, 16, 16, 16), 1))
        y = F.dropout(x, 0.4)
        used = is_ours(y.data)
        y.grad = normal(y.shape, 2)
        y.backward()
        mask = np.array(y.data) / x.data
        share = float((mask == 0).mean())
    return used, [(y.data, x.data * mask), (x.grad, normal(y.shape, 2) * mask), (abs(share - 0.4) < 0.05, True)]
'''

PROGRAM += r'''
# ---------------------------------------------------------------- right anyway: the same bits, and by iDeep


def digest(arrays):
    return hashlib.sha1(b"".join(np.ascontiguousarray(np.array(a)).tobytes() for a in arrays if a is not None)).hexdigest()


SAME = {}


def same(name, function):
    def run():
        with ideep():
            used, arrays = function()
        SAME[name] = digest(arrays)
        return used, []
    case("same", name)(run)


def chain(function, channels=16):
    arrays = [normal((4, 16, 14, 14), 1), normal((channels, 16, 3, 3), 2, 0.1)]
    return lambda: derive(lambda x, w: function(conv(x, w)), arrays, np.float32)


for channels in (16, 24, 5):
    same("convolution, %d" % channels, chain(lambda h: h, channels))
    same("relu, %d" % channels, chain(F.relu, channels))
    same("max pooling, %d" % channels, chain(lambda h: F.max_pooling_2d(h, 3, 2), channels))
    same("average pooling, %d" % channels, chain(lambda h: F.average_pooling_2d(h, 3, 2), channels))
same("linear", lambda: derive(F.linear, [normal((32, 128), 1), normal((64, 128), 2), normal((64,), 3)], np.float32))
same("concat", lambda: derive(lambda x, w: F.concat([conv(x, w), conv(x, w)]), [normal(SHAPE, 1), normal((32, 16, 3, 3), 2)], np.float32))
same("sum", chain(lambda h: h + h))
same("lrn in blocks of 16", lambda: derive(lambda x, w, v: conv(F.local_response_normalization(conv(x, w)), v),
     [normal(SHAPE, 1), normal((16, 16, 3, 3), 2, 0.1), normal((16, 16, 3, 3), 3, 0.1)], np.float32))


def rule(name):
    def run():
        net = Net()
        net.bn = L.BatchNormalization(24)  # its gradients are corrected
        net.to_intel64()
        net.forget = None
        optimizer = getattr(chainer.optimizers, name)()
        optimizer.setup(net)
        x = normal((4, 16, 8, 8), 1)
        for _ in range(3):
            net.cleargrads()
            y = net.out(F.relu(net.odd(F.relu(net.conv(Variable(x))))))
            y.grad = normal(y.shape, 2)
            y.backward()
            optimizer.update()
        return is_ours(net.conv.W.data), [net.conv.W.data, net.odd.W.data, net.out.W.data, net.conv.b.data]
    return run


for name in ("SGD", "MomentumSGD"):
    same(name, rule(name))

# ---------------------------------------------------------------- a training


class Trained(chainer.Chain):
    def __init__(self):
        super(Trained, self).__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 16, 3, pad=1)
            self.conv2 = L.Convolution2D(16, 16, 3, pad=1)
            self.conv3 = L.Convolution2D(16, 8, 3, pad=1)
            self.bn1 = L.BatchNormalization(16)
            self.conv4 = L.Convolution2D(24, 32, 3, pad=1)
            self.bn2 = L.BatchNormalization(32)
            self.out = L.Linear(32, 10)
        for seed, (name, param) in enumerate(sorted(self.namedparams())):
            if param.ndim > 1:
                param.data[...] = normal(param.shape, 90 + seed, (1.0 / param.data[0].size) ** 0.5)

    def __call__(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.local_response_normalization(F.max_pooling_2d(self.conv2(h), 2), 5, 1, 0.02)
        h = F.concat([h * F.sigmoid(h), self.conv3(h)])
        h = F.relu(self.bn2(self.conv4(h)))
        return self.out(F.reshape(F.average_pooling_2d(h, h.shape[2]), (-1, 32)))


def training(how):
    folder = tempfile.mkdtemp()
    with plain():
        saved = Trained()
        chainer.serializers.save_npz(os.path.join(folder, "net"), saved)
    with how():
        net = Trained()
        for param in net.params():
            param.data[...] = 0
        if how is ideep:
            net.to_intel64()
        chainer.serializers.load_npz(os.path.join(folder, "net"), net)
        optimizer = chainer.optimizers.AdaGrad(0.01)
        optimizer.setup(net)
        losses = []
        random = np.random.RandomState(0)
        t = random.randint(0, 10, 16).astype("i")
        x = random.standard_normal((16, 3, 40, 40)).astype("f") + t[:, None, None, None] * 0.1
        for _ in range(50):
            net.cleargrads()
            loss = F.softmax_cross_entropy(net(Variable(x.astype("f"))), t)
            loss.backward()
            optimizer.update()
            losses.append(float(loss.data))
    return losses


def main():
    groups = sys.argv[1].split(",")
    if groups == ["training"]:
        print("\n" + json.dumps({"losses": training(plain if sys.argv[2] == "never" else ideep)}))
        return
    for group, name, function in CASES:
        if group not in groups and groups != ["all"]:
            continue
        told = {"group": group, "name": name}
        def run():
            try:
                used, pairs = function()
                worst = error(pairs)
                limit = {"same": 0, "optimizer": 2e-4, "load": 2e-4, "pickle": 2e-4, "bn": 5e-5}.get(group, 2e-5)
                told.update(status="right" if worst <= limit else "wrong", error=min(worst, 1e9), used=used)
            except Exception as problem:
                told.update(status="raised", message="%s: %s" % (type(problem).__name__, problem))
        if (group, name) in RISKY:
            ending, start = os.pipe()
            child = os.fork()
            if not child:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                run()
                os.write(start, json.dumps(told).encode("utf-8"))
                os._exit(0)
            os.close(start)
            with os.fdopen(ending, "rb") as stream:
                text = stream.read()
            _, status = os.waitpid(child, 0)
            told = json.loads(text.decode("utf-8")) if text and not status else dict(told, status="died", signal=status & 127)
        else:
            run()
        print("\n" + json.dumps(told))
    guard = sys.modules.get("_ideepdoctor_guard")
    print("\n" + json.dumps({"guard": guard and guard.status(), "same": SAME}))


main()
'''
