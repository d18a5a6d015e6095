"""Programs for ``trace`` to run; a comment ``# @name`` marks a line that a report is to name."""

from __future__ import annotations

PLANTED = """\
from __future__ import print_function
import numpy as np
import chainer
import chainer.functions as F
import chainer.links as L


class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 64, 3, pad=1)
            self.c2 = L.Convolution2D(64, 64, 3, pad=1, groups=2)
            self.c3 = L.ConvolutionND(3, 1, 2, 3, pad=1)
            self.c4 = L.Convolution2D(64, 16, 3, pad=1)
            self.fc = L.Linear(None, 10)

    def __call__(self, x):
        h = F.relu(self.c1(x))  # @first
        h = F.relu(self.c2(h))  # @groups
        v = self.c3(F.reshape(h, (h.shape[0], 1) + h.shape[1:]))  # @5d
        with chainer.using_config('use_ideep', 'never'):  # @never
            h = self.c4(h)  # @kept
        h = F.max_pooling_2d(h, 2)
        return self.fc(h) + F.sum(v)


def main():
    np.random.seed(0)
    model = L.Classifier(Net())
    optimizer = chainer.optimizers.MomentumSGD(0.01)
    optimizer.setup(model)  # @setup
    for i in range(4):
        x = np.random.rand(8, 3, 16, 16).astype(np.float32)
        t = np.random.randint(0, 10, 8).astype(np.int32)
        optimizer.update(model, x, t)  # @update
    noise = np.random.rand(8, 3, 16, 16)  # @made
    s = F.leaky_relu(noise)  # @float64
    s = F.average_pooling_2d(s, 2)
    empty = np.zeros((0, 3, 16, 16), np.float32)
    F.relu(empty)  # @empty
    print('%.4f' % float(model.loss.array))


main()
"""

CLEAN = """\
from __future__ import print_function
import numpy as np
import chainer
import chainer.functions as F
import chainer.links as L


class Net(chainer.Chain):
    def __init__(self):
        super(Net, self).__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 16, 3, pad=1)
            self.bn = L.BatchNormalization(16)
            self.c2 = L.Convolution2D(16, 32, 3, pad=1)
            self.c3 = L.Convolution2D(16, 32, 3, pad=1)
            self.d = L.Deconvolution2D(32, 16, 3, pad=1)
            self.fc = L.Linear(None, 10)

    def __call__(self, x):
        h = F.local_response_normalization(F.relu(self.c1(x)))
        h = F.leaky_relu(self.bn(h))
        h = F.concat([self.c2(h), self.c3(h)], axis=1)
        a, b = F.split_axis(h, 2, axis=1)
        h = F.max_pooling_2d(F.add(a, b, a), 2)
        h = F.average_pooling_2d(self.d(F.dropout(h, 0.0)), 2)
        return self.fc(h)


def main():
    np.random.seed(0)
    model = L.Classifier(Net())
    x = np.random.rand(8, 3, 16, 16).astype(np.float32)
    t = np.random.randint(0, 10, 8).astype(np.int32)
    model(x[:1], t[:1])
    model.to_intel64()
    optimizer = chainer.optimizers.MomentumSGD(0.01)
    optimizer.setup(model)
    for i in range(4):
        optimizer.update(model, x, t)
    print('%.4f' % float(model.loss.array))


main()
"""

WORK = """\
from __future__ import print_function
import os, signal, sys, time
import numpy as np
import chainer
import chainer.functions as F

x = chainer.Variable(np.ones((2, 16, 8, 8), 'f'))
W = np.ones((16, 16, 3, 3), 'f')


def work(n=3):
    for i in range(n):
        h = F.relu(F.convolution_2d(x, W))  # @work
    return h


class Death(chainer.FunctionNode):
    def forward(self, inputs):
        os.kill(os.getpid(), signal.SIGSEGV)


work()
"""

ENDS = {
    "raises": "print('before'); 1 / 0",
    "exits": "print('lost without a flush'); os._exit(5)",
    "dies": "print('before'); sys.stdout.flush(); Death().apply((x,))  # @death",
    "forks": """
print('twice', end='')
child = os.fork()
work(2)
if child == 0:
    os._exit(3)
print(os.waitpid(child, 0)[1] >> 8)
""",
    "replaces": """
class Out(object):
    def write(self, text):
        os.write(1, ('<%s>' % text).encode())
    def flush(self):
        pass
sys.stdout = Out()
work()
print('b')
""",
    "redirects": """
print('first')
sys.stdout.flush()
kept = os.dup(1)
r, w = os.pipe()
os.dup2(w, 1)
work()
os.write(1, b'x')
os.close(1)
work()
assert os.read(r, 10) == b'x'
os.closerange(4, 100)
work()
assert [os.open('/dev/null', os.O_RDONLY) for i in range(3)] == [1, 4, 5]
work()
os.write(kept, b'last')
""",
    "daemons": """
if os.fork():
    os._exit(0)
os.setsid()
os.close(0); os.close(1); os.close(2)
work(5)
""",
    "threads": """
import threading
threads = [threading.Thread(target=work) for i in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print('joined')
""",
}


def line_of(program: str, mark: str) -> int:
    """Number of the line that is marked."""
    [found] = [number for number, line in enumerate(program.splitlines(), 1) if line.endswith(f"# @{mark}")]
    return found
