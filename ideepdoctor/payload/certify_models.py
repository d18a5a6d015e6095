"""What certify tries with whole models and with bare arrays of iDeep; a part of the payload certify.

Kinds of cases (op), each with options:
  optimizer   name, hook: three steps after to_intel64(), compared with float64; where NumPy in float32 is worse than
              the rounding model says, ten times its error is allowed
  load        how: parameters that come into a model after to_intel64()
  keep        how: a model after to_intel64() is copied, pickled, saved
  mdarray     expression: arithmetic of bare arrays
"""

import io
import os
import pickle
import shutil
import sys
import tempfile

from certify_ops import blocked  # noqa: E402
from lab import LEAST_TERMS, NotRun, Result, in_float64, relative_error  # noqa: E402

STEPS = 3
ROUNDING = 1e-6  # what gradients in float32 differ by, summed up in another order
LONGEST_SUM = 24 * 8 * 8  # terms: of the linear link in build_net


def normal_array(np, shape, seed, scale=1.0):
    """Float32 normal deviates."""
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def net_class(lab):
    """The class of the model, made once: pickle looks it up by its name, in the module that was started."""
    module = sys.modules["__main__"]
    if hasattr(module, "CertifiedNet"):
        return module.CertifiedNet
    links, functions = lab.L, lab.F

    class CertifiedNet(lab.chainer.Chain):
        def __init__(self, normalized):
            super(CertifiedNet, self).__init__()
            self.normalized = normalized
            with self.init_scope():
                self.conv = links.Convolution2D(16, 32, 3, pad=1)
                self.odd = links.Convolution2D(32, 24, 3, pad=1)
                if normalized:
                    self.bn = links.BatchNormalization(24)
                self.out = links.Linear(24 * 8 * 8, 10)

        def __call__(self, x):
            h = functions.relu(self.odd(functions.relu(self.conv(x))))
            return self.out(self.bn(h) if self.normalized else h)

    CertifiedNet.__module__, CertifiedNet.__qualname__ = "__main__", "CertifiedNet"
    module.CertifiedNet = CertifiedNet
    return CertifiedNet


def build_net(lab, normalized, fill=None):
    """Convolution, ReLU, convolution with channels that fill no block, (BatchNormalization), linear; input 16x8x8."""
    np, net = lab.np, net_class(lab)(normalized)
    for seed, (name, param) in enumerate(sorted(net.namedparams())):
        scale = param.data[0].size ** -0.5 if param.data.ndim > 1 else 0.3
        value = normal_array(np, param.data.shape, 50 + seed, scale) + np.float32(name.endswith("gamma"))
        param.data = value if fill is None else np.full_like(value, fill)
    return net


def outputs_of(lab, net, dtype):
    """What a model computes in test mode, and its parameters, by name."""
    x = normal_array(lab.np, (4, 16, 8, 8), 1).astype(dtype)
    with lab.chainer.using_config("train", False):
        y = net(lab.chainer.Variable(x))
    return [("output", y.data)] + [(name, param.data) for name, param in sorted(net.namedparams())]


def train_net(lab, net, optimizer, dtype, steps=STEPS, noise=0):
    """Take steps, each with other numbers; return the named parameters. ``noise``: seed of changes by rounding, or 0.

    With the same numbers in each step, optimizers that look at the variance of gradients would divide differences of
    almost equal numbers, and any rounding would count.
    """
    np = lab.np
    with lab.chainer.using_config("train", True):
        for step in range(steps):
            net.cleargrads()
            x = normal_array(np, (4, 16, 8, 8), 100 + step)
            if noise:
                x *= 1 + normal_array(np, x.shape, 1000 * noise + step, ROUNDING)
            y = net(lab.chainer.Variable(x.astype(dtype)))
            y.grad = normal_array(np, y.shape, 200 + step).astype(dtype)
            y.backward()
            optimizer.update()
    return [(name, param.data) for name, param in sorted(net.namedparams())]


def new_optimizer(lab, options):
    """The optimizer that a case names, with its hook."""
    name = str(options["name"])
    if not hasattr(lab.chainer.optimizers, name):
        raise NotRun("this Chainer has no optimizer %s" % name)
    optimizer = getattr(lab.chainer.optimizers, name)()
    hook = options.get("hook")
    if hook:
        holder = getattr(lab.chainer, "optimizer_hooks", None) or lab.chainer.optimizer
        if not hasattr(holder, str(hook)):
            raise NotRun("this Chainer has no hook %s" % hook)
        arguments = {"GradientHardClipping": (-0.5, 0.5), "GradientClipping": (1.0,), "GradientLARS": ()}
        optimizer._certify_hook = getattr(holder, str(hook))(*arguments.get(str(hook), (0.01,)))
    return optimizer


def set_up(optimizer, net):
    """Attach an optimizer and its hook to a model."""
    optimizer.setup(net)
    hook = getattr(optimizer, "_certify_hook", None)
    if hook is not None:
        optimizer.add_hook(hook)
    return optimizer


def run_optimizer(lab, case, mark):
    """Three steps of an optimizer: the change of each parameter, relative to the largest change in it.

    Some optimizers divide by differences of almost equal numbers, and make much of any rounding. Ten times as much is
    allowed as it makes of rounding in NumPy in float32, in four tries.
    """
    lab.need_ideep()
    np, options = lab.np, case["options"]
    start = dict((name, np.array(p.data).astype(np.float64)) for name, p in build_net(lab, False).namedparams())

    def changes(net, dtype, noise=0):
        trained = train_net(lab, net, set_up(new_optimizer(lab, options), net), dtype, STEPS, noise)
        return [(name, np.array(data).astype(np.float64) - start[name]) for name, data in trained]

    with lab.ideep():
        net = build_net(lab, False)
        net.to_intel64()
        ours = changes(net, np.float32)
    used = isinstance(net.conv.W.data, lab.mdarray)
    mark("reference")
    with lab.numpy():
        single = [changes(build_net(lab, False), np.float32, noise) for noise in range(4)]
        true = changes(in_float64(lab, build_net(lab, False)), np.float64)
    pairs = [("change of " + name, mine, exact) for (name, mine), (_, exact) in zip(ours, true)]
    tries = [(plain, exact) for tried in single for (_, plain), (_, exact) in zip(tried, true)]
    result = Result((used, used), pairs, LONGEST_SUM)
    result.allowed = 10 * max(relative_error(np, plain, exact) for plain, exact in tries)
    return result


def save_and_load(lab, source, net, how):
    """Bring the parameters of one model into another that was moved to iDeep."""
    chainer = lab.chainer
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "saved")
    try:
        if how == "copyparams":
            net.copyparams(source)
        elif how == "load_npz":
            chainer.serializers.save_npz(path, source)
            chainer.serializers.load_npz(path, net)
        elif how == "load_npz, weights read before":
            lab.np.asarray(net.conv.W.data)
            chainer.serializers.save_npz(path, source)
            chainer.serializers.load_npz(path, net)
        elif how == "load_hdf5":
            need_h5py()
            chainer.serializers.save_hdf5(path, source)
            chainer.serializers.load_hdf5(path, net)
        elif how == "resume of a Trainer":
            # A snapshot holds the updater, which holds the model and the optimizer.
            for model, action in ((source, chainer.serializers.save_npz), (net, chainer.serializers.load_npz)):
                optimizer = chainer.optimizers.SGD()
                optimizer.setup(model)
                iterator = chainer.iterators.SerialIterator([0], 1)
                action(path, chainer.training.StandardUpdater(iterator, optimizer))
        else:
            raise NotRun("no way to load is called %s" % how)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def need_h5py():
    """Stop where h5py is not installed; Chainer then cannot read HDF5."""
    try:
        import h5py  # noqa: F401
    except Exception as error:
        raise NotRun("h5py cannot be imported: %s" % error)


def run_load(lab, case, mark):
    """Load into a model after to_intel64(); what it computes and what it holds must be what was saved."""
    lab.need_ideep()
    np, how = lab.np, str(case["options"]["how"])
    with lab.numpy():
        source = build_net(lab, True)
    with lab.ideep():
        net = build_net(lab, True, 0.0)
        net.to_intel64()
        save_and_load(lab, source, net, how)
        ours = outputs_of(lab, net, np.float32)
    used = isinstance(net.conv.W.data, lab.mdarray)
    mark("reference")
    with lab.numpy():
        true = outputs_of(lab, in_float64(lab, build_net(lab, True)), np.float64)
    return Result((used, None), [(name, mine, data) for (name, mine), (_, data) in zip(ours, true)], LONGEST_SUM)


def run_resume(lab, case, mark):
    """MomentumSGD goes on after its state and the model were saved and loaded as if nothing had happened."""
    lab.need_ideep()
    np, chainer = lab.np, lab.chainer

    def go(net, dtype):
        optimizer = chainer.optimizers.MomentumSGD()
        optimizer.setup(net)
        train_net(lab, net, optimizer, dtype, 2)
        stored = [io.BytesIO(), io.BytesIO()]
        for target, stream in zip((optimizer, net), stored):
            chainer.serializers.save_npz(stream, target)
            stream.seek(0)
            chainer.serializers.load_npz(stream, target)
        return train_net(lab, net, optimizer, dtype, 2)

    with lab.ideep():
        net = build_net(lab, False)
        net.to_intel64()
        ours = go(net, np.float32)
        used = isinstance(net.conv.W.data, lab.mdarray)
    mark("reference")
    with lab.numpy():
        true = go(in_float64(lab, build_net(lab, False)), np.float64)
    return Result((used, None), [(name, mine, data) for (name, mine), (_, data) in zip(ours, true)], 4 * LONGEST_SUM)


def kept(lab, net, how):
    """A copy of a model, made in this way."""
    import copy

    if how == "deepcopy":
        return copy.deepcopy(net)
    if how == "Link.copy":
        return net.copy()
    if how == "to_cpu":
        net.to_cpu()
        return net
    if how == "to_cpu and back":
        net.to_cpu()
        net.to_intel64()
        return net
    if how == "save_npz":
        stream, other = io.BytesIO(), build_net(lab, True, 0.0)
        lab.chainer.serializers.save_npz(stream, net)
        stream.seek(0)
        lab.chainer.serializers.load_npz(stream, other)
        return other
    if how.startswith("pickle"):
        return pickle.loads(pickle.dumps(net, int(how.split()[-1])))
    raise NotRun("no way to keep is called %s" % how)


def run_keep(lab, case, mark):
    """A model after to_intel64() and its copy compute the same, and the right thing."""
    lab.need_ideep()
    np = lab.np
    how = str(case["options"]["how"])
    with lab.ideep():
        net = build_net(lab, True)
        net.to_intel64()
        used = isinstance(net.conv.W.data, lab.mdarray)
        other = kept(lab, net, how)
        ours = outputs_of(lab, other, np.float32) + outputs_of(lab, net, np.float32)
    mark("reference")
    with lab.numpy():
        true = outputs_of(lab, in_float64(lab, build_net(lab, True)), np.float64)
    return Result((used, None), [(name, mine, data) for (name, mine), (_, data) in zip(ours, true + true)], LONGEST_SUM)


def in_place(operation):
    """An expression that changes its first operand; the value is that operand."""

    def function(np, h, g, x):
        before = h
        h = operation(np, h, g, x)
        if h is not before and not isinstance(before, np.ndarray):
            raise ValueError("the array was replaced by another one")
        return h

    return function


def _iadd(np, h, g, x):
    h += g
    h -= x
    return h


def _imul(np, h, g, x):
    h *= g
    h *= x
    return h


def _iadd_double(np, h, g, x):
    h += x.astype(np.float64)
    h *= x.astype(np.float64)
    return h


# Of two blocked arrays h and g and an array x of NumPy; the reference has arrays of NumPy in their places.
EXPRESSIONS = {
    "h * g": lambda np, h, g, x: h * g,
    "h * h": lambda np, h, g, x: h * h,
    "h / (g * g + 1)": lambda np, h, g, x: h / (g * g + 1),
    "h * x": lambda np, h, g, x: h * x,
    "x * h": lambda np, h, g, x: x * h,
    "h / x": lambda np, h, g, x: h / (abs(x) + 1),
    "h * x transposed": lambda np, h, g, x: h * x.transpose(0, 1, 3, 2),
    "h * row": lambda np, h, g, x: h * x[:, :, :1],
    "h + g": lambda np, h, g, x: h + g - x,
    "2.5 * h": lambda np, h, g, x: 2.5 * h * np.float32(2) / 3 - 1,
    "h += g": in_place(_iadd),
    "h *= g": in_place(_imul),
    "-h": lambda np, h, g, x: -h,
    "abs(h)": lambda np, h, g, x: abs(h),
    "h ** 2": lambda np, h, g, x: h**2,
    "2.0 ** h": lambda np, h, g, x: 2.0**h,
    "abs(h) ** x": lambda np, h, g, x: (abs(h) + 1) ** x,
    "pow(h, 3)": lambda np, h, g, x: pow(h, 3),
    "h + float64": lambda np, h, g, x: h + x.astype(np.float64),
    "h * float64": lambda np, h, g, x: h * x.astype(np.float64),
    "h - float16": lambda np, h, g, x: h - x.astype(np.float16),
    "h += float64": in_place(_iadd_double),
    "h[:, 3:9]": lambda np, h, g, x: h[:, 3:9],
    "h.sum(axis)": lambda np, h, g, x: h.sum(axis=(0, 2, 3)),
    "h.mean()": lambda np, h, g, x: np.asarray(h.mean()),
    "h.max()": lambda np, h, g, x: np.asarray(h.max()),
    "h.reshape": lambda np, h, g, x: h.reshape((2, -1)),
    "h.astype": lambda np, h, g, x: h.astype(np.float64),
    "h.copy()": lambda np, h, g, x: h.copy(),
    "h > x": lambda np, h, g, x: (h > x) * 1.0,
    "np.exp(h)": lambda np, h, g, x: np.exp(h),
    "np.concatenate": lambda np, h, g, x: np.concatenate([h, g], 1),
    "np.tensordot": lambda np, h, g, x: np.tensordot(h, g, ((0, 2, 3), (0, 2, 3))),
}


def run_mdarray(lab, case, mark):
    """An expression of arrays of iDeep as convolutions leave them, without Chainer."""
    lab.need_ideep()
    np, function = lab.np, EXPRESSIONS[str(case["options"]["expression"])]
    shape = tuple(case["shapes"][0])
    h, g, x = [normal_array(np, shape, seed) for seed in (31, 32, 33)]
    with lab.ideep():
        ours = function(np, blocked(lab, h)[0], blocked(lab, g)[0], x)
    true = function(np, h.astype(np.float64), g.astype(np.float64), x.astype(np.float64))
    return Result((isinstance(ours, lab.mdarray), None), [("value", ours, true)], product_terms(shape))


def product_terms(shape):
    """Terms of the longest sum among the expressions."""
    return max(LEAST_TERMS, shape[0] * shape[1] * shape[2] * shape[3])
