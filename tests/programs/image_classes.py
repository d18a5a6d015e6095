"""An image classifier as people write it for Chainer 5 to 7: it has never heard of iDeep. Its images are made up."""

from __future__ import print_function

import argparse

import chainer
import chainer.functions as F
import chainer.links as L
import numpy
from chainer import training
from chainer.training import extensions


class Block(chainer.Chain):
    def __init__(self, channels):
        super(Block, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, channels, 3, pad=1, nobias=True)
            self.bn = L.BatchNormalization(channels)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Net(chainer.Chain):
    def __init__(self, classes):
        super(Net, self).__init__()
        with self.init_scope():
            self.block1 = Block(16)
            self.block2 = Block(32)
            self.fc1 = L.Linear(None, 64)
            self.fc2 = L.Linear(None, classes)

    def forward(self, x):
        h = F.max_pooling_2d(self.block1(x), 2)
        h = F.average_pooling_2d(self.block2(h), 2)
        return self.fc2(F.relu(self.fc1(h)))


def images(count, classes):
    labels = numpy.random.randint(0, classes, count).astype(numpy.int32)
    pixels = numpy.random.rand(count, 3, 16, 16).astype(numpy.float32)
    for pixel, label in zip(pixels, labels):
        pixel[label % 3, label : label + 4] += 1
    return chainer.datasets.TupleDataset(pixels, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batchsize", type=int, default=16)
    parser.add_argument("--epoch", type=int, default=3)
    parser.add_argument("--gpu", type=int, default=-1)
    parser.add_argument("--out", default="result")
    args = parser.parse_args()

    numpy.random.seed(0)
    train, test = images(96, 10), images(32, 10)
    model = L.Classifier(Net(10))
    if args.gpu >= 0:
        chainer.backends.cuda.get_device_from_id(args.gpu).use()
        model.to_gpu()

    optimizer = chainer.optimizers.MomentumSGD(0.01)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(5e-4))

    train_iter = chainer.iterators.SerialIterator(train, args.batchsize)
    test_iter = chainer.iterators.SerialIterator(test, args.batchsize, repeat=False, shuffle=False)
    updater = training.updaters.StandardUpdater(train_iter, optimizer, device=args.gpu)
    trainer = training.Trainer(updater, (args.epoch, "epoch"), out=args.out)
    trainer.extend(extensions.Evaluator(test_iter, model, device=args.gpu))
    trainer.extend(extensions.snapshot(filename="snapshot"), trigger=(args.epoch, "epoch"))
    trainer.extend(extensions.LogReport())
    trainer.extend(extensions.PrintReport(["epoch", "main/loss", "validation/main/loss", "validation/main/accuracy"]))
    trainer.run()
    return trainer


if __name__ == "__main__":
    trainer = main()
