"""The same training three times: NumPy, iDeep without the guard, iDeep with it. The losses side by side.

Run it with the Python of an environment that has the guard, as `ideepdoctor setup` makes it, or by `ideepdoctor run`:

    .ideep/bin/python recipes/guard_training.py [--steps 50] [--each]
    ideepdoctor run --python 3.7 -- recipes/guard_training.py

A small convolutional network (BatchNormalization, local response normalization, concat, a gate h * sigmoid(h)) learns
random data with AdaGrad. Ten steps are made with NumPy, and saved. Then each of the three makes a new network, moves it
to iDeep if it is to use it, loads what was saved, as a training does that is resumed, and goes on from there. Nothing
else differs, so the losses should agree but for rounding. With --each, the guard is also tried without one correction
at a time, which shows what that one is worth.

Exit code: 0 where the losses with the guard agree with NumPy's to 1e-3 at every step, 1 where they do not. Python 2.7
and 3; 20 seconds on two cores.
"""

from __future__ import print_function

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

BEFORE, BATCH, SIZE = 10, 16, 48  # steps before the save, images in a batch, height and width of an image
LIMIT = 1e-3
CORRECTIONS = ("bn", "lrn", "load", "product,-optimizer")


def network():
    """The network, its weights the same whenever it is made."""
    import chainer
    import chainer.functions as F
    import chainer.links as L
    import numpy as np

    class Net(chainer.Chain):
        def __init__(self):
            super(Net, self).__init__()
            with self.init_scope():
                self.conv1 = L.Convolution2D(3, 16, 5, pad=2)
                self.bn1 = L.BatchNormalization(16)
                self.wide = L.Convolution2D(16, 32, 3, pad=1)
                self.narrow = L.Convolution2D(16, 16, 1)
                self.conv3 = L.Convolution2D(48, 32, 3, pad=1)
                self.bn3 = L.BatchNormalization(32)
                self.out = L.Linear(32, 10)

        def __call__(self, x):
            h = F.relu(self.bn1(self.conv1(x)))
            h = F.local_response_normalization(F.max_pooling_2d(h, 3, 2), 5, 1, 0.02)
            h = F.concat([self.wide(h), self.narrow(h)])
            h = F.max_pooling_2d(F.relu(h * F.sigmoid(h)), 2)
            h = F.relu(self.bn3(self.conv3(h)))
            return self.out(F.reshape(F.average_pooling_2d(h, h.shape[2:]), (-1, 32)))

    random = np.random.RandomState(0)
    net = Net()
    for _, param in sorted(net.namedparams()):
        if param.data.ndim > 1:
            param.data[...] = random.standard_normal(param.shape) * (2.0 / param.data[0].size) ** 0.5
    return net


def steps(net, optimizer, first, count):
    """Make some steps; return their losses. The data of a step depends on its number alone."""
    import chainer.functions as F
    import numpy as np

    losses = []
    for step in range(first, first + count):
        random = np.random.RandomState(step)
        t = random.randint(0, 10, BATCH).astype(np.int32)
        x = random.standard_normal((BATCH, 3, SIZE, SIZE)).astype(np.float32)
        x += 0.1 * t[:, None, None, None].astype(np.float32)  # something that can be learned
        net.cleargrads()
        loss = F.softmax_cross_entropy(net(x), t)
        loss.backward()
        optimizer.update()
        losses.append(float(loss.data))
    return losses


def corrections(key):
    """Names of the guard's corrections that are active, or were applied; none where there is no guard."""
    guard = sys.modules.get("_ideepdoctor_guard")
    rows = guard.status()["corrections"] if guard is not None else {}
    return sorted(name for name in rows if rows[name][key])


def begin(folder):
    """The steps before the save; print whether there is a guard as JSON."""
    import chainer

    net, optimizer = network(), chainer.optimizers.AdaGrad(0.003)
    optimizer.setup(net)
    steps(net, optimizer, 0, BEFORE)
    chainer.serializers.save_npz(os.path.join(folder, "net"), net)
    chainer.serializers.save_npz(os.path.join(folder, "optimizer"), optimizer)
    print("\n" + json.dumps({"active": corrections("active")}))


def resume(folder, count):
    """Go on from what was saved; print what came of it as JSON."""
    import chainer

    net, optimizer = network(), chainer.optimizers.AdaGrad(0.003)
    ours = chainer.config.use_ideep != "never"
    if ours:
        net.to_intel64()
    optimizer.setup(net)
    chainer.serializers.load_npz(os.path.join(folder, "net"), net)
    chainer.serializers.load_npz(os.path.join(folder, "optimizer"), optimizer)
    losses = steps(net, optimizer, BEFORE, count)
    told = {"losses": losses, "chainer": chainer.__version__}
    told["applied"] = corrections("applied")
    if ours:
        import ideep4py

        told["used"] = isinstance(net.conv1.W.data, ideep4py.mdarray)
    print("\n" + json.dumps(told))


def start(words, use, guard):
    """Run this file in a process of its own; return what it printed as JSON, or None, and how it ended."""
    environ = dict(os.environ, CHAINER_USE_IDEEP=use, IDEEPDOCTOR_GUARD=guard)
    environ.pop("CHAINER_DTYPE", None)
    process = subprocess.Popen([sys.executable, os.path.abspath(__file__)] + words, env=environ, stdout=subprocess.PIPE)
    text = process.communicate()[0].decode("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines and not process.returncode else None, process.returncode


def difference(losses, true):
    """The greatest difference of two losses of the same step, in proportion; infinity where one is no number."""
    greatest = 0.0
    for ours, known in zip(losses, true):
        if ours != ours:
            return float("inf")
        greatest = max(greatest, abs(ours - known) / abs(known))
    return greatest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50, help="steps after the resume")
    parser.add_argument("--each", action="store_true", help="try the guard without one correction at a time, too")
    parser.add_argument("--child", nargs=2, metavar=("ACT", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        act, folder = options.child
        return begin(folder) if act == "begin" else resume(folder, options.steps)

    rows = [("NumPy", "never", "off"), ("iDeep without the guard", "auto", "off"), ("iDeep with the guard", "auto", "")]
    if options.each:
        rows += [("  the same with -" + name, "auto", "-" + name) for name in CORRECTIONS]
    folder = tempfile.mkdtemp()
    try:
        begun, code = start(["--child", "begin", folder], "never", "")
        if begun is None:
            return "the training could not be begun: exit code %d" % code
        if not begun["active"]:
            return (
                "there is no guard here, or it knows nothing of these versions: ideepdoctor guard status --python "
                + (sys.executable)
            )
        words = ["--child", "resume", folder, "--steps", str(options.steps)]
        found = [start(words, use, guard) for _, use, guard in rows]
    finally:
        shutil.rmtree(folder)
    numpys, guarded = found[0][0], found[2][0]
    if numpys is None:
        return "the training with NumPy failed: exit code %d" % found[0][1]
    shown = sorted(set((1, min(10, options.steps), options.steps)))
    print("%-38s" % "loss" + "".join("%10s" % ("step %d" % step) for step in shown) + "   greatest difference")
    for (name, _, _), (told, code) in zip(rows, found):
        if told is None:
            print("%-38s  ended with %s" % (name, "signal %d" % -code if code < 0 else "exit code %d" % code))
            continue
        losses = told["losses"]
        line = "%-38s" % name + "".join("%10.5f" % losses[step - 1] for step in shown)
        print(line + ("" if told is numpys else "   %.3g" % difference(losses, numpys["losses"])))
    if guarded is None:
        return 1
    if not guarded["used"]:
        return "iDeep is not used here: ideepdoctor diagnose --python " + sys.executable
    print("Chainer %s; the guard corrected: %s" % (numpys["chainer"], ", ".join(guarded["applied"])))
    return int(not difference(guarded["losses"], numpys["losses"]) <= LIMIT)


if __name__ == "__main__":
    sys.exit(main())
