"""What --mkl auto measures beside the nets of bench: operations that call MKL's vector functions, and matrix products.

Opened by path as a model of the user's is (bench --model FILE:FUNCTION): runs in the target, Python 2.7 and later.
"""

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


def floats(*shape):
    """Normal deviates, the same ones each time."""
    return np.random.RandomState(1).standard_normal(shape).astype(np.float32)


class Dropout(chainer.Chain):
    """A convolution, and what drops half of its output."""

    def __init__(self):
        super(Dropout, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(16, 64, 3, pad=1)

    def __call__(self, x):
        """A mask of 1.6 million draws in the forward pass, products with it in both."""
        return F.dropout(F.dropout(self.conv(x), 0.5), 0.5)


class Linear(chainer.Chain):
    """Two wide linear layers."""

    def __init__(self):
        super(Linear, self).__init__()
        with self.init_scope():
            self.one = L.Linear(4096, 4096)
            self.two = L.Linear(4096, 1000)

    def __call__(self, x):
        """As AlexNet ends."""
        return self.two(F.relu(self.one(x)))


def dropout():
    """What bench calls."""
    model = Dropout()
    model.to_intel64()
    return model, floats(8, 16, 56, 56)


def linear():
    """What bench calls."""
    model = Linear()
    model.to_intel64()
    return model, floats(32, 4096)
