"""Data-parallel training with ChainerMN on CPUs: the smallest that shows all parts.

Start it so: ./ideep-mpi.sh -n 2 python train_chainermn.py
"""

from __future__ import print_function

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np


class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(1, 16, 3, pad=1)
            self.norm = L.BatchNormalization(16)
            self.linear = L.Linear(None, 10)

    def __call__(self, x):
        h = F.max_pooling_2d(F.relu(self.norm(self.conv(x))), 2)
        return self.linear(h)


def data(count, seed):
    """Images whose bright row is their class: something that can be learned."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count).astype(np.int32)
    images = random.normal(0, 0.3, (count, 1, 10, 10)).astype(np.float32)
    images[np.arange(count), 0, labels] += 1
    return chainer.datasets.TupleDataset(images, labels)


def main():
    # Reduces over NumPy arrays by mpi4py; the others are for GPUs.
    communicator = chainermn.create_communicator("naive")
    whole = data(4000, 0) if communicator.rank == 0 else None
    train = chainermn.scatter_dataset(whole, communicator, shuffle=True, seed=0)
    model = L.Classifier(Net())
    model(np.zeros((1, 1, 10, 10), np.float32), np.zeros(1, np.int32))  # sizes are known before they are sent
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.MomentumSGD(0.01), communicator)
    optimizer.setup(model)
    iterator = chainer.iterators.SerialIterator(train, 50)
    losses = []
    while iterator.epoch < 2:
        x, t = chainer.dataset.concat_examples(iterator.next())
        optimizer.update(model, x, t)
        losses.append(float(model.loss.array))
    # Parameters are the same on every rank, or the ranks train different models.
    total = float(sum(np.abs(np.asarray(param.array)).sum() for param in model.params()))
    totals = communicator.gather_obj(total)
    if communicator.rank == 0:
        assert max(totals) - min(totals) <= 1e-3 * abs(totals[0]), totals
        print("ranks", communicator.size, "loss", round(losses[0], 3), "to", round(losses[-1], 3))


if __name__ == "__main__":
    main()
