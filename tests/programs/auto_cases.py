"""What programs do with models, with to_intel64() called behind their back or not: the same must come of it.

Runs in a Python that has Chainer; tells a line of JSON for each case: what it computed, and where the arrays were.
Python 2.7 and 3. The words are names of cases; none: all.
"""

from __future__ import print_function

import copy
import json
import os
import pickle
import sys
import tempfile
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import training
from chainer.training import extensions

CASES = {}
X = np.random.RandomState(1).standard_normal((8, 3, 10, 10)).astype("f")
T = np.arange(8).astype("i") % 5


def case(function):
    CASES[function.__name__] = function
    return function


class Net(chainer.Chain):
    """Sizes of inputs are left to be found, but for those of one layer."""

    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(None, 16, 3, pad=1)
            self.bn = L.BatchNormalization(16)
            self.conv2 = L.Convolution2D(16, 24, 3, pad=1)
            self.fc = L.Linear(None, 5)

    def forward(self, x):
        h = F.relu(self.bn(self.conv1(x)))
        return self.fc(F.max_pooling_2d(F.relu(self.conv2(h)), 2))


class OldNet(Net):
    """As programs for Chainer 1 to 4 were written: nothing goes through Link.__call__ but the layers."""

    __call__ = Net.forward


def ready(net=None):
    """A network whose parameters have their arrays."""
    net = net or Net()
    net(X)
    return net


def train(model, optimizer=None, steps=3):
    optimizer = optimizer or chainer.optimizers.MomentumSGD(0.01)
    optimizer.setup(model)
    return more(model, optimizer, steps)


def more(model, optimizer, steps=3):
    losses = []
    for _ in range(steps):
        model.cleargrads()
        loss = F.softmax_cross_entropy(model(X), T)
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    return losses


def infer(model, x=X):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        y = model(x)
    return [float(value) for value in np.array(y.array).ravel()[:10]]


def kinds(model):
    return sorted(set(type(param.array).__name__ for param in model.params()))


@case
def lazy_parameters():
    net = Net()
    return train(net), kinds(net)


@case
def a_call_that_is_the_programs_own():
    net = OldNet()
    return infer(ready(OldNet())) + train(net) + infer(net), kinds(net)


@case
def inference_before_the_optimizer():
    net = Net()
    return infer(net) + train(net), kinds(net)


@case
def set_up_twice():
    net = Net()
    return train(net) + train(net, chainer.optimizers.Adam()), kinds(net)


@case
def part_of_a_model():
    net = ready()
    first, rest = chainer.optimizers.SGD(0.01), chainer.optimizers.AdaGrad(0.01)
    first.setup(net.conv1)
    rest.setup(net.fc)
    before = [np.array(net.conv2.W.array).sum()]
    losses = []
    for _ in range(3):
        net.cleargrads()
        loss = F.softmax_cross_entropy(net(X), T)
        loss.backward()
        first.update()
        rest.update()
        losses.append(float(loss.array))
    return losses + [float(value) for value in before], kinds(net.conv1) + kinds(net.conv2)


@case
def lists_and_sequences():
    class Block(chainer.ChainList):
        def forward(self, x):
            return F.relu(self[1](self[0](x)))

    parts = [Block(L.Convolution2D(None, 16, 3), L.BatchNormalization(16)), F.relu, L.Linear(None, 5)]
    net = chainer.Sequential(*parts)
    return train(net) + infer(net), kinds(net)


class Odd(chainer.Chain):
    """Parameters and persistent values of every kind."""

    def __init__(self):
        super(Odd, self).__init__()
        random = np.random.RandomState(3)
        with self.init_scope():
            self.fc = L.Linear(6, 5)
            for size, shape in enumerate(((), (6,), (6, 6), (6, 6, 2), (6, 3, 2, 2), (6, 2, 2, 2, 2))):
                setattr(self, "p%d" % size, chainer.Parameter(random.standard_normal(shape).astype("f")))
            self.double = chainer.Parameter(random.standard_normal((6, 6)))
            self.half = chainer.Parameter(random.standard_normal((6, 6)).astype("e"))
            self.turned = chainer.Parameter(np.asfortranarray(random.standard_normal((6, 6)).astype("f")))
        for name, value in {
            "int": np.arange(6), "double": np.arange(6.0), "bool": np.ones(6, bool), "number": 3, "none": None,
            "text": "abc", "single": np.arange(6).astype("f"), "scalar": np.float32(3), "back": X[0, 0, ::-1, 0],
        }.items():  # fmt: skip
            self.add_persistent("q" + name, value)

    def forward(self, x):
        h = self.fc(x) * 0.1
        for size in range(6):
            h = h + F.sum(F.square(getattr(self, "p%d" % size))) * 0.01
        h = h + F.cast(F.sum(self.double * self.double), "f") + F.cast(F.sum(self.half), "f") + F.sum(self.turned)
        np.add.at(self.qsingle, [0, 1], 1)
        np.copyto(self.qdouble, self.qsingle)
        return h * float(self.qsingle.sum() + self.qint.sum() + self.qback.sum()) * 1e-2


@case
def parameters_of_every_kind():
    net, optimizer, x = Odd(), chainer.optimizers.MomentumSGD(1e-4), X[:, 0, 0, :6].copy()
    optimizer.setup(net)
    losses = []
    for _ in range(3):
        net.cleargrads()
        loss = F.sum(F.square(net(x)))
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    turned = [float(value) for value in np.array(net.turned.array).ravel()[:4]]
    names = ("double", "half", "p3", "p5", "p4", "p1")
    return losses + turned, [type(getattr(net, name).array).__name__ for name in names]


class Empty(Net):
    def __init__(self):
        super(Empty, self).__init__()
        with self.init_scope():
            self.nothing = chainer.Parameter(np.zeros((0, 4), "f"))
        self.add_persistent("none", np.zeros((0,), "f"))


@case
def an_array_of_no_elements():
    net = Empty()
    return train(net), None


@case
def float64_and_float16():
    results = []
    for kind in ("float64", "float16"):
        with chainer.using_config("dtype", np.dtype(kind)):
            net = Net()
            net.bn = L.BatchNormalization(16, dtype=kind)
            x = X.astype(kind)
            optimizer = chainer.optimizers.SGD(0.01).setup(net)
            for _ in range(2):
                net.cleargrads()
                loss = F.softmax_cross_entropy(net(x), T)
                loss.backward()
                optimizer.update()
                results.append(float(loss.array))
            assert all(param.dtype == kind for param in net.params())
    return results, kinds(net)


@case
def copies_before_and_after():
    net = ready()
    before = [copy.deepcopy(net), net.copy("copy"), net.copy("share")]
    results = train(net)
    after = [copy.deepcopy(net), net.copy("copy"), net.copy("share")]
    for other in before + after:
        results += infer(other)
    results += train(after[0]) + train(before[0]) + infer(net) + infer(after[2])
    return results, kinds(after[0])


@case
def a_copy_that_shares_before_there_are_arrays():
    net = Net()
    other = net.copy("share")
    losses = train(net)
    return losses + [float(abs(np.array(net.conv2.W.array) - np.array(other.conv2.W.array)).max())], None


@case
def a_target_network():
    net = ready()
    target, optimizer = copy.deepcopy(net), chainer.optimizers.RMSpropGraves(1e-3)
    optimizer.setup(net)
    results = []
    for _ in range(3):
        results += infer(target) + more(net, optimizer, 1)
        for ours, theirs in zip(sorted(target.namedparams()), sorted(net.namedparams())):
            ours[1].array[:] = 0.9 * ours[1].array + 0.1 * theirs[1].array
    target.copyparams(net)
    return results + infer(target), kinds(target)


@case
def weights_loaded_after_it_was_moved():
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "net.npz")
    saved = ready()
    chainer.serializers.save_npz(path, saved)
    net = ready()
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(net)
    chainer.serializers.load_npz(path, net)
    lazy = Net()
    chainer.optimizers.SGD(0.01).setup(lazy)
    chainer.serializers.load_npz(path, lazy)
    return infer(net) + more(net, optimizer) + infer(lazy) + infer(saved), kinds(lazy)


@case
def weights_of_other_kinds():
    """What a file holds is turned into float32, and what does not fit is refused."""
    folder, told = tempfile.mkdtemp(), []
    net = ready()
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(net)
    saved = ready()
    arrays = dict((name[1:], np.array(param.array)) for name, param in saved.namedparams())
    arrays.update(("bn/" + name, np.array(getattr(saved.bn, name))) for name in saved.bn._persistent)
    for kind in ("float64", "float16", "int32", ">f4", "fortran", "fewer"):
        path, given = os.path.join(folder, kind.strip(">") + ".npz"), dict(arrays)
        for name in sorted(name for name in arrays if arrays[name].shape):
            if kind == "fortran":
                given[name] = np.asfortranarray(arrays[name])
            elif kind != "fewer":
                given[name] = (arrays[name] * 9).astype(kind)
            elif name.startswith("fc"):
                given[name] = arrays[name][:-1]
        np.savez(path, **given)
        try:
            chainer.serializers.load_npz(path, net)
        except ValueError:
            told.append(1.0)
        told += infer(net)
    return told + more(net, optimizer), kinds(net)


def trainer(folder, epochs, updater=None, **options):
    np.random.seed(0)
    net = L.Classifier(Net())
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(net)
    data = chainer.datasets.TupleDataset(X, T)
    iterator = chainer.iterators.SerialIterator(data, 4, shuffle=False)
    made = (updater or training.StandardUpdater)(iterator, optimizer, **options)
    made = training.Trainer(made, (epochs, "epoch"), out=folder)
    again = chainer.iterators.SerialIterator(data, 4, repeat=False, shuffle=False)
    made.extend(extensions.Evaluator(again, net))
    made.extend(extensions.LogReport(trigger=(1, "iteration"), log_name="log"))
    return made, net


def logged(folder):
    with open(os.path.join(folder, "log")) as stream:
        rows = json.load(stream)
    return [row[key] for row in rows for key in ("main/loss", "validation/main/loss") if key in row]


@case
def a_trainer_that_goes_on_from_a_snapshot():
    folder, second = tempfile.mkdtemp(), tempfile.mkdtemp()
    first, _ = trainer(folder, 2)
    first.extend(extensions.snapshot(filename="snapshot"), trigger=(2, "epoch"))
    first.extend(extensions.snapshot_object(first.updater.get_optimizer("main").target, "net"), trigger=(2, "epoch"))
    first.run()
    results = logged(folder)
    resumed, net = trainer(second, 4)
    if int(chainer.__version__.split(".")[0]) >= 6:
        os.rename(os.path.join(folder, "snapshot"), os.path.join(second, "snapshot"))
        resumed.extend(extensions.snapshot(filename="snapshot", autoload=True), trigger=(9, "epoch"))
    else:
        chainer.serializers.load_npz(os.path.join(folder, "snapshot"), resumed)
    resumed.run()
    return results + logged(second) + infer(net.predictor), kinds(net)


def converter(batch, device=None):
    x, t = chainer.dataset.concat_examples(batch)
    return x * np.float32(0.5), t


@case
def an_updater_with_a_converter():
    folder = tempfile.mkdtemp()
    made, net = trainer(folder, 2, converter=converter)
    made.run()
    return logged(folder), kinds(net)


@case
def an_updater_with_a_device():
    """Chainer 6 and 7 bring the model to that device, after the optimizer was set up."""
    folder = tempfile.mkdtemp()
    made, net = trainer(folder, 2, device=-1)
    made.run()
    return logged(folder), kinds(net)


@case
def a_parallel_updater():
    folder = tempfile.mkdtemp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, net = trainer(folder, 2, training.ParallelUpdater, devices={"main": -1, "second": -1})
        made.run()
    return logged(folder), kinds(net)


@case
def workers_that_make_batches():
    net, losses = L.Classifier(Net()), []
    optimizer = chainer.optimizers.AdaGrad(0.01).setup(net)
    data = chainer.datasets.TupleDataset(X, T)
    iterator = chainer.iterators.MultiprocessIterator(data, 4, n_processes=2, shuffle=False, n_prefetch=1)
    for _ in range(4):
        optimizer.update(net, *chainer.dataset.concat_examples(next(iterator)))
        losses.append(float(net.loss.array))
    iterator.finalize()
    return losses, kinds(net)


@case
def pickles():
    net = ready()
    results = infer(net) + train(net)
    text = pickle.dumps(net, 2)
    other = pickle.loads(text)
    assert kinds(other) == ["ndarray"], kinds(other)
    assert b"ideep" not in text and b"ntel64" not in text and b"_ideepdoctor" not in text
    return results + infer(other) + train(other) + infer(net), kinds(other) + kinds(net)


@case
def arrays_that_the_program_holds():
    """Evolution strategies: the arrays are collected once, changed in place, and the model is asked."""
    net, random = ready(), np.random.RandomState(0)
    arrays = [param.array for _, param in sorted(net.namedparams())]
    results = []
    for _ in range(3):
        for array in arrays:
            array += random.standard_normal(array.shape).astype("f") * 0.1
        results += infer(net)
    return results, kinds(net)


@case
def views_that_the_program_holds():
    """Parameters that are parts of one long vector."""
    net = ready()
    params = [param for _, param in sorted(net.namedparams())]
    vector = np.concatenate([param.array.ravel() for param in params])
    start = 0
    for param in params:
        end = start + param.size
        param.array = vector[start:end].reshape(param.shape)
        start = end
    results = infer(net)
    vector *= 0.9
    return results + infer(net) + train(net) + [float(abs(vector).sum())], kinds(net)


@case
def weights_that_are_tied():
    net = ready()
    with net.init_scope():
        net.other = L.Convolution2D(16, 24, 3, pad=1)
    net.other.W.array = net.conv2.W.array
    results = train(net)
    return results + [float(abs(np.array(net.other.W.array) - np.array(net.conv2.W.array)).max())], None


@case
def persistent_values_that_the_program_holds():
    net = ready()
    mean = net.bn.avg_mean
    results = infer(net)
    mean += 1
    return results + infer(net) + [float(value) for value in np.array(net.bn.avg_mean)[:4]], None


@case
def brought_back_to_numpy():
    net = ready()
    results = infer(net) + train(net)
    net.to_cpu()
    arrays = [param.array for _, param in sorted(net.namedparams())]
    for array in arrays:
        array *= 0.9
    return results + infer(net), kinds(net)


@case
def never_for_a_while():
    net = ready()
    with chainer.using_config("use_ideep", "never"):
        results = infer(net)
        assert kinds(net) == ["ndarray"]
    return results + infer(net), kinds(net)


@case
def a_gradient_of_the_input():
    """Not in training, but with backprop: as for adversarial examples."""
    net = ready()
    x = chainer.Variable(X)
    with chainer.using_config("train", False):
        loss = F.softmax_cross_entropy(net(x), T)
    loss.backward()
    return [float(value) for value in np.array(x.grad).ravel()[:10]], kinds(net)


@case
def links_that_cannot_be_hashed():
    class Equal(Net):
        def __eq__(self, other):
            return True

        __hash__ = None

    net = Equal()
    return infer(net) + train(net), kinds(net)


@case
def methods_that_were_overridden():
    told = []

    class Own(Net):
        def to_cpu(self):
            told.append("cpu")
            return super(Own, self).to_cpu()

        def to_gpu(self, device=None):
            told.append("gpu")
            return self

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Chainer 7 warns of the class
        net = Own()
    return infer(net) + train(net), kinds(net) + told


@case
def warnings_that_are_errors():
    net = ready()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return infer(net), kinds(net)


@case
def recursion():
    class Deep(chainer.Chain):
        def __init__(self):
            super(Deep, self).__init__()
            with self.init_scope():
                self.fc = L.Linear(4, 4)

        def forward(self, x, depth):
            return self(F.tanh(self.fc(x)), depth - 1) if depth else x

    net = Deep()
    with chainer.no_backprop_mode():
        return [float(F.sum(net(X[:, 0, 0, :4], 100)).array)], kinds(net)


@case
def sums_over_axes():
    net, told = ready(), []
    for axis, keepdims in ((-1, False), (1, True), (-1, True), ((-2, -1), False), (None, True), ((0, 1), True)):
        net.cleargrads()
        y = F.sum(net(X), axis=axis, keepdims=keepdims)
        F.sum(y * y).backward()
        told += [float(value) for value in np.array(y.array).ravel()] + [float(abs(net.fc.W.grad).sum())]
    return told, None


def main(words):
    for name in words or sorted(CASES):
        chainer.global_config.cudnn_deterministic = True
        np.random.seed(5)
        try:
            numbers, where = CASES[name]()
            told = {"numbers": numbers, "where": where}
        except Exception as error:
            told = {"raised": "%s: %s" % (type(error).__name__, error)}
        print("\n" + json.dumps(dict(told, case=name)))
        sys.stdout.flush()
    auto = sys.modules.get("_ideepdoctor_auto")
    print("\n" + json.dumps({"auto": auto and auto.status()}))


if __name__ == "__main__":
    main(sys.argv[1:])
