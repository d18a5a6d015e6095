"""Time whole training steps with and without the guard, and with NumPy, in turn.

    .venv/bin/python tests/benchmarks/guard_cost.py --python ENVIRONMENT/bin/python [--rounds 15] [--net NAME]

The environment has Chainer with ideep4py. One process each for guarded, unguarded and NumPy stands by, and the three
take a step in turn, so that what else the machine does falls on all. Prints the median time of a step and the ratio of
guarded to unguarded, round by round, with its quartiles and range: of the time that passed, and of the time of all
processors together, which others on the machine disturb less.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ideepdoctor.targets.target import payload_source

# Valid on Python 2.7: takes a step for each line that it reads, and tells the seconds.
PROGRAM = r"""
import resource, sys, time
import numpy as np
import chainer, chainer.functions as F, chainer.links as L
name, batch = sys.argv[1], int(sys.argv[2])


class Plain(chainer.Chain):  # like AlexNet, at half its width; nothing in it is a hazard
    def __init__(self):
        super(Plain, self).__init__()
        with self.init_scope():
            self.c1 = L.Convolution2D(3, 48, 11, 4)
            self.c2 = L.Convolution2D(48, 128, 5, pad=2)
            self.c3 = L.Convolution2D(128, 192, 3, pad=1)
            self.c4 = L.Convolution2D(192, 128, 3, pad=1)
            self.l1 = L.Linear(128 * 36, 512)
            self.l2 = L.Linear(512, 100)

    normalize = staticmethod(lambda h: h)

    def __call__(self, x):
        h = F.max_pooling_2d(self.normalize(F.relu(self.c1(x))), 3, 2)
        h = F.max_pooling_2d(self.normalize(F.relu(self.c2(h))), 3, 2)
        h = F.max_pooling_2d(F.relu(self.c4(F.relu(self.c3(h)))), 3, 2)
        return self.l2(F.dropout(F.relu(self.l1(h))))


class LRN(Plain):
    normalize = staticmethod(F.local_response_normalization)


class BN(chainer.Chain):  # convolution, BatchNormalization, ReLU at the shapes of ResNet, and a sum
    widths = [64, 64, 128, 128, 256, 256]

    def __init__(self):
        super(BN, self).__init__()
        with self.init_scope():
            self.c = chainer.ChainList(*[L.Convolution2D(None, w, 3, pad=1, nobias=True) for w in self.widths])
            self.b = chainer.ChainList(*[L.BatchNormalization(w) for w in self.widths])
            self.l = L.Linear(None, 100)

    def __call__(self, x):
        h = x
        for index, (c, b) in enumerate(zip(self.c, self.b)):
            y = F.relu(b(c(h)))
            h = F.max_pooling_2d(y, 2) if index % 2 == 0 else y + h
        return self.l(F.average_pooling_2d(h, h.shape[2]))


class Wrong(BN):  # 16 channels at 56x56: wrong gradients with two threads, and corrected
    widths = [16] * 6


sizes = {"Plain": 227, "LRN": 227, "BN": 56, "Wrong": 112}
net = {"Plain": Plain, "LRN": LRN, "BN": BN, "Wrong": Wrong}[name]()
random = np.random.RandomState(0)
x = random.standard_normal((batch, 3, sizes[name], sizes[name])).astype("f")
t = random.randint(0, 100, batch).astype("i")
net(x[:1])
if chainer.config.use_ideep != "never":
    net.to_intel64()
optimizer = chainer.optimizers.MomentumSGD(1e-4)
optimizer.setup(net)


def processors():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def step():
    start, used = time.time(), processors()
    loss = F.softmax_cross_entropy(net(x), t)
    net.cleargrads()
    loss.backward()
    optimizer.update()
    return time.time() - start, processors() - used


step()
guard = sys.modules.get("_ideepdoctor_guard")
applied = guard and sorted(key for key, row in guard.status()["corrections"].items() if row["applied"])
print("ready " + ",".join(applied or []))
sys.stdout.flush()
while sys.stdin.readline():
    print("%r %r" % step())
    sys.stdout.flush()
"""

NETS = ("Plain", "LRN", "BN", "Wrong")


class Stepper:
    """A process that takes a step when asked; ``first`` is what it said when it was ready."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.first = self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit("a process ended early")
        return line

    def step(self) -> tuple[float, ...]:
        """Seconds of one step: that passed, and of all processors."""
        assert self.process.stdin is not None
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return tuple(map(float, self.read().split()))

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def worker(python: str, folder: str, net: str, batch: int, guarded: bool, ideep: str) -> Stepper:
    """A process with or without the guard."""
    code = ("import sys; sys.path.append(sys.argv.pop()); import _ideepdoctor_guard\n" if guarded else "") + PROGRAM
    words = [python, "-c", code, net, str(batch), *([folder] if guarded else [])]
    # Waiting threads sleep at once, and do not disturb the next process.
    return Stepper(words, {**os.environ, "CHAINER_USE_IDEEP": ideep, "KMP_BLOCKTIME": "0"})


def quartiles(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.3f} (quartiles {low:.3f} to {high:.3f}, range {min(values):.3f} to {max(values):.3f})"


def measure(python: str, folder: str, net: str, batch: int, rounds: int) -> None:
    workers = {
        "guarded": worker(python, folder, net, batch, True, "auto"),
        "unguarded": worker(python, folder, net, batch, False, "auto"),
        "numpy": worker(python, folder, net, batch, False, "never"),
    }
    seconds: dict[str, list[tuple[float, ...]]] = {name: [] for name in workers}
    order = list(workers)
    for turn in range(rounds + 1):
        for name in order if turn % 2 else order[::-1]:
            spent = workers[name].step()
            if turn:
                seconds[name].append(spent)
    for each in workers.values():
        each.end()
    print(f"{net}: corrected {' '.join(workers['guarded'].first.split()[1:]) or 'nothing'}")
    for index, what in enumerate(("passed", "of all processors")):
        series = {name: [spent[index] for spent in found] for name, found in seconds.items()}
        times = ", ".join(f"{name} {1000 * statistics.median(spent):.1f}" for name, spent in series.items())
        print(f"  milliseconds {what}: {times}")
        for over, under in (("guarded", "unguarded"), ("numpy", "guarded")):
            ratios = [a / b for a, b in zip(series[over], series[under], strict=True)]
            print(f"    {over} / {under}: {quartiles(ratios)}")


def start_up(python: str, folder: str, rounds: int) -> None:
    """Milliseconds of importing the guard in a started Python, and of importing Chainer with it and without."""
    code = "import sys, time; sys.path.append(sys.argv[1]); s = time.time(); import {}; print(repr(time.time() - s))"
    found: dict[str, list[float]] = {"guard": [], "chainer": [], "guard, chainer": []}
    for _ in range(rounds + 1):
        for name, spent in found.items():
            words = code.format(name.replace("guard", "_ideepdoctor_guard"))
            done = subprocess.run([python, "-c", words, folder], capture_output=True, text=True, check=True)
            spent.append(float(done.stdout))
    for name, spent in found.items():
        print(f"import {name:<16} {1000 * statistics.median(spent[1:]):8.2f} ms, least {1000 * min(spent[1:]):.2f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--net", choices=NETS, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "_ideepdoctor_guard.py").write_bytes(payload_source("guard"))
        started = time.monotonic()
        start_up(options.python, folder, options.rounds)
        for net in options.net or NETS:
            measure(options.python, folder, net, options.batch, options.rounds)
        print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
