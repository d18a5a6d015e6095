"""Every link of Chainer, trained for three steps and asked once: a line of JSON for each, with what came of it.

The word is the name of an optimizer. Links that this Chainer does not have are left out. Python 2.7 and 3.
"""

from __future__ import print_function

import json
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

try:
    import chainer.link_hooks as hooks
except ImportError:  # Chainer 4 and 5.0
    hooks = None

warnings.simplefilter("ignore")


def normal(*shape):
    return np.random.RandomState(sum(shape)).standard_normal(shape).astype("f")


def labels(*shape):
    return np.random.RandomState(3).randint(0, 5, shape).astype("i")


def rows():
    return [chainer.Variable(normal(length, 6)) for length in (4, 3, 2)]


ROW, IMAGE, SMALL = normal(3, 6), normal(2, 16, 8, 8), normal(2, 3, 8, 8)
TREE = {0: 3, 1: 2, 2: 2, 3: 1, 4: 1}

# How each is made, and what it is called with; a function is called for its value.
LINKS = {
    "Convolution2D": (lambda: L.Convolution2D(16, 24, 3, pad=1), IMAGE),
    "Convolution2D of any": (lambda: L.Convolution2D(None, 16, 3), IMAGE),
    "Convolution2D in groups": (lambda: L.Convolution2D(16, 16, 3, groups=4), IMAGE),
    "DilatedConvolution2D": (lambda: L.DilatedConvolution2D(16, 16, 3, dilate=2), IMAGE),
    "DepthwiseConvolution2D": (lambda: L.DepthwiseConvolution2D(16, 2, 3), IMAGE),
    "ConvolutionND 1": (lambda: L.ConvolutionND(1, 4, 6, 3), normal(2, 4, 9)),
    "ConvolutionND 2": (lambda: L.ConvolutionND(2, 16, 16, 3), IMAGE),
    "ConvolutionND 3": (lambda: L.ConvolutionND(3, 4, 6, 3), normal(2, 4, 5, 5, 5)),
    "DeconvolutionND 3": (lambda: L.DeconvolutionND(3, 4, 6, 3), normal(2, 4, 5, 5, 5)),
    "LocalConvolution2D": (lambda: L.LocalConvolution2D(3, 4, 8, 3), SMALL),
    "DeformableConvolution2D": (lambda: L.DeformableConvolution2D(3, 4, 3), SMALL),
    "MLPConvolution2D": (lambda: L.MLPConvolution2D(16, (16, 8), 3), IMAGE),
    "Inception": (lambda: L.Inception(16, 16, 8, 16, 8, 16, 16), IMAGE),
    "InceptionBN": (lambda: L.InceptionBN(16, 8, 8, 16, 8, 16, "max", 16), IMAGE),
    "Bilinear": (lambda: L.Bilinear(4, 5, 6), normal(3, 4), normal(3, 5)),
    "Bias": (lambda: L.Bias(1, (6,)), ROW),
    "Scale": (lambda: L.Scale(1, (6,), True), ROW),
    "Linear": (lambda: L.Linear(6, 7), ROW),
    "Linear of any": (lambda: L.Linear(None, 7), normal(3, 6, 2)),
    "EmbedID": (lambda: L.EmbedID(5, 7), labels(3, 4)),
    "EmbedID, one ignored": (lambda: L.EmbedID(5, 7, ignore_label=1), labels(3, 4)),
    "StatefulGRU": (lambda: L.StatefulGRU(6, 5), ROW),
    "StatelessGRU": (lambda: L.StatelessGRU(6, 5), normal(3, 5), ROW),
    "StatefulZoneoutLSTM": (lambda: L.StatefulZoneoutLSTM(6, 5, 0.0, 0.0), ROW),
    "LSTM": (lambda: L.LSTM(6, 5), ROW),
    "LSTM of any": (lambda: L.LSTM(None, 5), ROW),
    "StatefulPeepholeLSTM": (lambda: L.StatefulPeepholeLSTM(6, 5), ROW),
    "StatefulMGU": (lambda: L.StatefulMGU(6, 5), ROW),
    "NStepLSTM": (lambda: L.NStepLSTM(2, 6, 5, 0.0), None, None, rows),
    "NStepBiGRU": (lambda: L.NStepBiGRU(2, 6, 5, 0.0), None, rows),
    "NStepRNNTanh": (lambda: L.NStepRNNTanh(1, 6, 5, 0.0), None, rows),
    "ChildSumTreeLSTM": (lambda: L.ChildSumTreeLSTM(6, 5),) + tuple(normal(3, 5) for _ in range(4)) + (ROW,),
    "NaryTreeLSTM": (lambda: L.NaryTreeLSTM(6, 5, 2),) + tuple(normal(3, 5) for _ in range(4)) + (ROW,),
    "Highway": (lambda: L.Highway(6), ROW),
    "Maxout": (lambda: L.Maxout(6, 5, 2), ROW),
    "BatchNormalization of rows": (lambda: L.BatchNormalization(6), ROW),
    "BatchNormalization of images": (lambda: L.BatchNormalization(16), IMAGE),
    "BatchNormalization of any": (lambda: L.BatchNormalization(axis=(0, 2, 3)), IMAGE),
    "BatchNormalization, 3-D": (lambda: L.BatchNormalization(6), normal(4, 6, 5)),
    "BatchNormalization, 5-D": (lambda: L.BatchNormalization(6), normal(4, 6, 3, 3, 3)),
    "BatchRenormalization": (lambda: L.BatchRenormalization(16), IMAGE),
    "DecorrelatedBatchNormalization": (lambda: L.DecorrelatedBatchNormalization(16, groups=4), IMAGE),
    "GroupNormalization": (lambda: L.GroupNormalization(4, 16), IMAGE),
    "LayerNormalization": (lambda: L.LayerNormalization(6), ROW),
    "PReLU": (lambda: L.PReLU((6,)), ROW),
    "PReLU of one": (lambda: L.PReLU(), ROW),
    "Swish": (lambda: L.Swish((6,)), ROW),
    "SimplifiedDropconnect": (lambda: L.SimplifiedDropconnect(6, 5, 0.0), ROW),
    "BinaryHierarchicalSoftmax": (
        lambda: L.BinaryHierarchicalSoftmax(6, L.BinaryHierarchicalSoftmax.create_huffman_tree(TREE)),
        ROW,
        labels(3),
    ),
    "NegativeSampling": (lambda: L.NegativeSampling(6, [3, 2, 2, 1, 1], 2), ROW, labels(3)),
    "CRF1d": (lambda: L.CRF1d(5), [normal(3, 5), normal(3, 5)], [labels(3), labels(3)]),
    "Classifier": (
        lambda: L.Classifier(chainer.Sequential(L.Linear(None, 9), F.relu, L.Linear(None, 5))),
        ROW,
        labels(3),
    ),
    "SpectralNormalization": (
        lambda: L.Convolution2D(16, 24, 3, pad=1).add_hook(hooks.SpectralNormalization()),
        IMAGE,
    ),
    "WeightStandardization": (
        lambda: L.Convolution2D(16, 24, 3, pad=1).add_hook(hooks.WeightStandardization()),
        IMAGE,
    ),
}
for kind in ((), (4,), (4, 3), (4, 3, 2), (4, 3, 2, 2), (2, 2, 4, 3, 2)):
    LINKS["Parameter, %d-D" % len(kind)] = (lambda shape=kind: L.Parameter(normal(*shape)),)


def outputs(result):
    if isinstance(result, chainer.Variable):
        return [result]
    return [one for part in result for one in outputs(part)] if isinstance(result, (list, tuple)) else []


def asked(link, inputs):
    np.random.seed(9)
    if hasattr(link, "reset_state"):
        link.reset_state()
    return outputs(link(*[one() if callable(one) else one for one in inputs]))


def numbers_of(make, inputs, rule):
    np.random.seed(7)
    link = make()
    optimizer = getattr(chainer.optimizers, rule)()
    optimizer.setup(link)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-3))
    numbers = []
    for _ in range(3):
        link.cleargrads()
        loss = sum(F.sum(y * normal(*y.shape) if y.ndim else y) for y in asked(link, inputs))
        loss.backward()
        optimizer.update()
        numbers.append(float(loss.array))
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        arrays = [y.array for y in asked(link, inputs)]
    arrays += [param.array for _, param in sorted(link.namedparams())]
    for array in arrays:
        flat = np.array(array).ravel()
        numbers += [float(value) for value in flat[:: max(1, flat.size // 8)]]
    return numbers, sorted(set(type(param.array).__name__ for param in link.params()))


def main():
    for name in sorted(LINKS):
        make, inputs = LINKS[name][0], LINKS[name][1:]
        try:
            np.random.seed(7)
            make()
        except (AttributeError, TypeError):
            continue  # of a later Chainer
        try:
            numbers, kinds = numbers_of(make, inputs, sys.argv[1])
            told = {"numbers": numbers, "where": kinds}
        except Exception as error:
            told = {"raised": "%s: %s" % (type(error).__name__, error)}
        print("\n" + json.dumps(dict(told, case=name)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
