"""Run inside an environment without ideep4py: does Chainer compute and train with NumPy alone?

Prints one line, ``PROVED`` and what was seen, or raises. For Python 3.8 and later. HDF5 is tried where h5py is.
"""

import copy
import importlib.util
import io
import pickle
import tempfile
import warnings

import numpy as np

warnings.simplefilter("ignore")

import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
from chainer import training  # noqa: E402
from chainer.training import extensions  # noqa: E402
from prove import OPS, Net, check_ops, train  # noqa: E402

# Name and arguments; the rate at which each learns this problem within 30 updates.
OPTIMIZERS = (
    ("SGD", {"lr": 0.02}),
    ("MomentumSGD", {"lr": 0.02}),
    ("CorrectedMomentumSGD", {"lr": 0.02}),
    ("NesterovAG", {"lr": 0.02}),
    ("MSVAG", {"lr": 0.02}),
    ("AdaGrad", {"lr": 0.01}),
    ("AdaDelta", {"eps": 1e-4}),
    ("Adam", {"alpha": 0.003}),
    ("RMSprop", {"lr": 0.001}),
    ("RMSpropGraves", {"lr": 0.0005}),
    ("SMORMS3", {"lr": 0.001}),
)


def check_optimizers():
    """Each optimizer learns, on a small convolutional net with BatchNormalization."""
    for name, options in OPTIMIZERS:
        losses = train("never", getattr(chainer.optimizers, name)(**options), True)
        if not (np.isfinite(losses).all() and losses[-1] < 0.97 * losses[0]):
            raise AssertionError(f"{name} does not learn: {losses}")
    return len(OPTIMIZERS)


def arrays_of(link):
    """Parameters and persistent values by path, as plain arrays."""
    target = {}
    chainer.serializers.DictionarySerializer(target).save(link)
    return {name: np.array(value) for name, value in target.items() if value is not None}


def must_be_equal(one, other, what):
    """Raise where two models differ in any value."""
    left, right = arrays_of(one), arrays_of(other)
    if sorted(left) != sorted(right) or not all(np.array_equal(left[name], right[name]) for name in left):
        raise AssertionError(f"{what} changes a model")


def check_serializers():
    """A trained model comes back from npz, HDF5 (where h5py is), pickle and a deep copy as it was; what was tried."""
    net = L.Classifier(Net(True))
    optimizer = chainer.optimizers.Adam().setup(net)
    optimizer.update(net, np.random.rand(4, 3, 16, 16).astype(np.float32), np.arange(4, dtype=np.int32))
    kinds = ["npz"] + (["hdf5"] if importlib.util.find_spec("h5py") else [])
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            path, other = f"{folder}/model.{kind}", L.Classifier(Net(True))
            getattr(chainer.serializers, "save_" + kind)(path, net)
            getattr(chainer.serializers, "load_" + kind)(path, other)
            must_be_equal(net, other, kind)
    must_be_equal(net, pickle.loads(pickle.dumps(net)), "pickle")
    must_be_equal(net, copy.deepcopy(net), "a deep copy")
    return kinds


class Mlp(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2, self.l3 = L.Linear(None, 32), L.Linear(None, 32), L.Linear(None, 4)

    def forward(self, x):
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


def trainer_of(folder, epochs, iterator):
    """A trainer with the usual extensions, on four classes that an MLP can tell apart."""
    random = np.random.RandomState(3)
    x = random.rand(256, 8).astype(np.float32)
    t = (2 * (x[:, 0] > 0.5) + (x[:, 1] > 0.5)).astype(np.int32)
    data, test = chainer.datasets.split_dataset_random(chainer.datasets.TupleDataset(x, t), 192, seed=0)
    np.random.seed(4)
    model = L.Classifier(Mlp())
    optimizer = chainer.optimizers.Adam(0.01).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-5))
    updater = training.updaters.StandardUpdater(iterator(data, 16), optimizer)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=folder)
    trainer.extend(extensions.Evaluator(chainer.iterators.SerialIterator(test, 16, False, False), model))
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.PrintReport(["epoch", "main/loss", "validation/main/accuracy"], out=io.StringIO()))
    trainer.extend(extensions.ExponentialShift("alpha", 0.98), trigger=(1, "epoch"))
    trainer.extend(extensions.snapshot(filename="snapshot"), trigger=(1, "epoch"))
    return trainer, model


def check_trainer():
    """Trainer, updater, evaluator, log, schedule, snapshot and resume, with each kind of iterator.

    Resumed with one kind: Chainer 5's others save a None, which NumPy does not load since 1.16.3.
    """
    kinds = {
        "SerialIterator": lambda data, size: chainer.iterators.SerialIterator(data, size, shuffle=False),
        "MultithreadIterator": lambda data, size: chainer.iterators.MultithreadIterator(data, size, shuffle=False),
        # Its snapshot fails without a shuffle, on every Python.
        "MultiprocessIterator": lambda data, size: chainer.iterators.MultiprocessIterator(data, size, n_processes=2),
    }
    for name, iterator in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            trainer, whole = trainer_of(folder, 12, iterator)
            trainer.run()
            log = trainer.get_extension("LogReport").log
            if not (log[-1]["main/loss"] < 0.6 * log[0]["main/loss"] and log[-1]["validation/main/accuracy"] > 0.8):
                raise AssertionError(f"{name}: does not learn: {log}")
        if name != "SerialIterator":
            continue
        with tempfile.TemporaryDirectory() as folder:
            trainer_of(folder, 6, iterator)[0].run()
            trainer, resumed = trainer_of(folder, 12, iterator)
            chainer.serializers.load_npz(f"{folder}/snapshot", trainer)
            trainer.run()
        must_be_equal(whole, resumed, f"a resumed run with {name}")
    return len(kinds)


if __name__ == "__main__":
    error = check_ops("never")
    optimizers, serializers, iterators = check_optimizers(), check_serializers(), check_trainer()
    print(
        f"PROVED Chainer on NumPy: {len(OPS)} ops, worst relative error {error:.0e}, {optimizers} optimizers learn, "
        f"{', '.join(serializers)} and pickle, Trainer with {iterators} iterators, resume"
    )
