"""Runs operations of Chainer with iDeep in child processes and compares each with a float64 NumPy reference.

Started as ``python -B -E -s - COOKIE REQUEST`` with this text on standard input; prints COOKIE json COOKIE.

REQUEST is URL-safe base64 of a JSON object:
  emulator         list of words to put before the interpreter for children
  loader_variables the user's variables that this process was started without (optional)
  threads          OMP_NUM_THREADS for the children, or null: what the user has
  timing           whether to time a convolution
  seconds          for everything together
  op_seconds       for the imports, and for each operation

Answer:
  failure          why nothing could run, or ""
  threads          what the OpenMP runtime uses, or null
  available        Chainer's own word on iDeep, null where nothing ran
  reason           why it is not available, or ""
  checks           objects with op, case, hazard, status, used_ideep, error, tolerance, message; an error of null is one
                   that is not finite, or none
  tells_kernels    whether this MKL-DNN knows MKLDNN_VERBOSE; null where unknown
  jit_code         whether the first convolution made executable memory; null where unknown
  verbose          MKLDNN_VERBOSE lines, one per primitive and implementation
  timing           null, or an object with case, flops and two lists of seconds, numpy and ideep, as measured in turn
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry]

import signal  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

from lab import (  # noqa: E402
    LEAST_TERMS,
    MOST_ELEMENTS,
    SEEN_WRONG,
    Child,
    Group,
    NotRun,
    Result,
    begin,
    cache_bytes,
    describe,
    exposing_shape,
    in_float64,
    judge,
    new_setting,
    serve,
)

CONV_TIMED = (8, 64, 128, 3, 28)
REPEATS = 9


class Case(object):
    """One operation to check: in which child, its names, and the function that runs it in a Lab.

    ``case`` is its text, or a function that makes a shape of four numbers from the Lab.
    """

    def __init__(self, group, op, case, hazard, run):
        self.group, self.op, self.case, self.hazard, self.run = group, op, case, hazard, run


# ------------------------------------------------------------------------------------------- in a child


def code_pages():
    """Mappings of this process that are executable and belong to no file: where JIT code is."""
    try:
        with open("/proc/self/maps") as stream:
            fields = [line.split() for line in stream]
    except (OSError, IOError):
        return set()
    return set(words[0] for words in fields if "x" in words[1] and (len(words) < 6 or words[5] == "[heap]"))


def can_tell_kernels():
    """Whether the MKL-DNN of this process knows MKLDNN_VERBOSE: ideep4py 1.0.3 brings one that does not."""
    try:
        with open("/proc/self/maps") as stream:
            paths = [line.split()[-1] for line in stream if "libmkldnn" in line]
        if not paths:
            return None
        with open(paths[0], "rb") as stream:
            return b"MKLDNN_VERBOSE" in stream.read()
    except (OSError, IOError):
        return None


def convolution(x_shape, w_shape, stride, pad):
    """A convolution of these shapes, with a bias."""

    def run(lab):
        def function(x, w, b):
            return lab.F.convolution_2d(x, w, b, stride=stride, pad=pad)

        side = (x_shape[2] + 2 * pad - w_shape[2]) // stride + 1
        terms = max(w_shape[1] * w_shape[2] * w_shape[3], x_shape[0] * side * side)
        return lab.compare(function, (x_shape, w_shape, w_shape[:1]), "xWb", terms)

    return run


def after_convolution(function, terms=144):
    """The usual place of an operation: its input is the output of a convolution with 16 channels."""

    def run(lab):
        def chain(x, w):
            return function(lab.F, lab.F.convolution_2d(x, w, pad=1))

        return lab.compare(chain, ((2, 16, 8, 8), (16, 16, 3, 3)), "xW", terms)

    return run


def max_pooling(functions, h):
    """Max pooling as in AlexNet."""
    return functions.max_pooling_2d(h, 3, 2)


def average_pooling(functions, h):
    """Average pooling with windows that overlap."""
    return functions.average_pooling_2d(h, 3, 2)


def linear(lab):
    """A fully connected layer."""
    return lab.compare(lab.F.linear, ((32, 128), (64, 128), (64,)), "xWb", 128)


def local_response_normalization(lab):
    """Local response normalization of a plain array."""
    return lab.compare(lab.F.local_response_normalization, ((2, 16, 8, 8),), "x", LEAST_TERMS)


def normalize_then_convolve(lab):
    """Local response normalization of a plain array whose gradient comes from a convolution, as in GoogLeNet."""

    def function(x, w):
        return lab.F.convolution_2d(lab.F.local_response_normalization(x), w, pad=1)

    return lab.compare(function, ((2, 16, 8, 8), (16, 16, 3, 3)), "xW", 720)


def lstm(lab):
    """One step of an LSTM: only its linear layer and its hyperbolic tangents can be iDeep's."""

    def function(c, x, w, b):
        cell, hidden = lab.F.lstm(c, lab.F.linear(x, w, b))
        return cell + hidden

    result = lab.compare(function, ((8, 32), (8, 48), (128, 48), (128,)), "cxWb", 256)
    return Result(None, result.pairs, result.terms)


def concat(first, second):
    """Join two convolutions with these numbers of output channels."""

    def run(lab):
        def function(x, v, w):
            parts = [lab.F.convolution_2d(x, weight, pad=1) for weight in (v, w)]
            return lab.F.concat(parts, axis=1)

        return lab.compare(function, ((2, 16, 8, 8), (first, 16, 3, 3), (second, 16, 3, 3)), "xVW", 288)

    return run


def combine(operator):
    """Combine the outputs of two convolutions element by element; the second is kept away from zero."""

    def run(lab):
        def function(x, v, w, b):
            return operator(lab.F.convolution_2d(x, v, pad=1), lab.F.convolution_2d(x, w, b, pad=1))

        x, v, w = lab.arrays((2, 16, 8, 8), (16, 16, 3, 3), (16, 16, 3, 3))
        small = lab.np.float32(0.05)
        b = lab.np.full(16, 5, dtype=lab.np.float32)
        return lab.compare(function, (), "xVWb", 288, [x, v * small, w * small, b])

    return run


def dropout(lab):
    """Compare with what its own mask makes of the input: the mask is random, so there is no other reference."""
    ratio, (x, gy) = 0.4, lab.arrays((4, 16, 32, 32), (4, 16, 32, 32))
    variable = lab.chainer.Variable(x)
    with lab.ideep(), lab.chainer.using_config("train", True):
        y = lab.F.dropout(variable, ratio)
        used = lab.is_ours(y)
        mask = getattr(y.creator, "mask", None)
        if mask is None:
            raise NotRun("this Chainer does not keep the mask where it could be read")
        y.grad = gy
        y.backward()
    mask = lab.np.array(mask).astype(lab.np.float64)
    kept = lab.np.float64(lab.np.float32(1) / lab.np.float32(1 - ratio))
    pairs = [("output", y.data, x * mask), ("gradient of x", variable.grad, gy * mask)]
    # Each element of the mask is 0 or 1 / (1 - ratio); 0 for a share that is ratio within five standard deviations.
    pairs.append(("mask", mask, lab.np.where(mask == 0, 0.0, kept)))
    zeros = float((mask == 0).mean())
    note = ""
    if abs(zeros - ratio) > 5 * (ratio * (1 - ratio) / mask.size) ** 0.5:
        note = "%.1f %% of the mask is zero, %.0f %% was asked for" % (100 * zeros, 100 * ratio)
    return Result(used, pairs, LEAST_TERMS, note)


def normalize(lab, shape):
    """Batch normalization in training mode, forward and backward."""
    x, gamma, beta = lab.arrays(shape, shape[1:2], shape[1:2])
    gamma = abs(gamma) + lab.np.float32(0.5)
    terms = shape[0] * shape[2] * shape[3]
    with lab.chainer.using_config("train", True):
        result = lab.compare(lab.F.batch_normalization, (), ("x", "gamma", "beta"), terms, [x, gamma, beta])
    # Some Chainers turn iDeep's output into a plain array, so a plain array proves nothing.
    result.used = result.used or None
    return result


def batch_normalization_forward(lab):
    """The output alone."""
    result = normalize(lab, (8, 16, 28, 28))
    return Result(result.used, result.pairs[:1], result.terms)


def batch_normalization(shape):
    """The gradients at this shape."""

    def run(lab):
        return gradients(normalize(lab, shape))

    return run


def gradients(result):
    """The result without its output."""
    return Result(result.used, result.pairs[1:], result.terms)


def exposed_case(lab):
    """The shape that is made for this machine; one thread is right at any, and gets the shape of two."""
    shape = exposing_shape(max(2, lab.threads or 1), cache_bytes(lab.emulated))
    if shape[0] * shape[1] * shape[2] * shape[3] > MOST_ELEMENTS:
        raise NotRun("the shape that exposes the fault is too large to compute in seconds: %s" % (shape,))
    return shape


def exposed(lab):
    """The gradients at the shape that is made for this machine."""
    return gradients(normalize(lab, exposed_case(lab)))


def network(lab, with_batch_normalization):
    """A small model, the same at every call: convolution, (batch normalization), relu, linear; 8x8 input."""
    np, links, functions = lab.np, lab.L, lab.F

    class Net(lab.chainer.Chain):
        def __init__(self):
            super(Net, self).__init__()
            with self.init_scope():
                self.conv = links.Convolution2D(16, 32, 3, pad=1)
                if with_batch_normalization:
                    self.bn = links.BatchNormalization(32)
                self.out = links.Linear(32 * 8 * 8, 16)

        def __call__(self, x):
            h = self.conv(x)
            if with_batch_normalization:
                h = self.bn(h)
            return self.out(functions.relu(h))

    net, random = Net(), np.random.RandomState(7)
    for name, param in sorted(net.namedparams()):
        scale = param.data[0].size ** -0.5 if param.data.ndim > 1 else 0.1
        offset = 1.0 if name.endswith("gamma") else 0.0
        param.data = (offset + scale * random.standard_normal(param.data.shape)).astype(np.float32)
    return net


def train(lab, net, optimizer, dtype, steps=2):
    """Take some steps of an optimizer; return whether iDeep was used and the named gradients and parameters."""
    x, gy = lab.arrays((4, 16, 8, 8), (4, 16))
    optimizer.setup(net)
    with lab.chainer.using_config("train", True):
        for _ in range(steps):
            net.cleargrads()
            y = net(lab.chainer.Variable(x.astype(dtype)))
            used = lab.is_ours(y)
            y.grad = gy.astype(dtype)
            y.backward()
            optimizer.update()
    named = [("output", y.data)]
    for name, param in sorted(net.namedparams()):
        named += [("gradient of " + name, param.grad), (name + " after the step", param.data)]
    return used, named


def optimize(name, with_batch_normalization=False, **settings):
    """Train a model after to_intel64() and compare its parameters; the second step sees what the first kept."""

    def run(lab):
        lab.need_ideep()
        make = getattr(lab.chainer.optimizers, name)
        with lab.ideep():
            net = network(lab, with_batch_normalization)
            net.to_intel64()
            used, ours = train(lab, net, make(lr=0.01, **settings), lab.np.float32)
        with lab.numpy():
            net = in_float64(lab, network(lab, with_batch_normalization))
            _, reference = train(lab, net, make(lr=0.01, **settings), lab.np.float64)
        pairs = [(key, mine, true) for (key, mine), (_, true) in zip(ours, reference)]
        if with_batch_normalization:
            # The gradient of a bias before batch normalization is zero but for rounding: nothing to be relative to.
            pairs = [pair for pair in pairs if pair[0] != "gradient of /conv/b"]
        # Two steps forward and backward: the longest sum is the linear link's, and errors of one step enter the next.
        return Result(used, pairs, 4 * 32 * 8 * 8)

    return run


def load_after(lab):
    """Save weights, read them into a model that was moved to iDeep before, and compare what it computes."""
    import io

    lab.need_ideep()
    stored = io.BytesIO()
    (x,) = lab.arrays((4, 16, 8, 8))
    with lab.numpy():
        source = network(lab, False)
        lab.chainer.serializers.save_npz(stored, source)
        stored.seek(0)
        reference = in_float64(lab, source)(lab.chainer.Variable(x.astype(lab.np.float64))).data
    with lab.ideep():
        net = network(lab, False)
        for param in net.params():
            param.data = lab.np.zeros_like(param.data)
        net.to_intel64()
        lab.chainer.serializers.load_npz(stored, net)
        y = net(lab.chainer.Variable(x))
    return Result(lab.is_ours(y), [("output", y.data, reference)], 32 * 8 * 8)


def split(lab):
    """Split the 16 channels of a convolution into 8 and 8, which lie in one block with AVX-512."""

    def function(x, w):
        parts = lab.F.split_axis(lab.F.convolution_2d(x, w, pad=1), 2, 1)
        return parts[0] - parts[1]

    return lab.compare(function, ((2, 16, 8, 8), (16, 16, 3, 3)), "xW", 288)


def fixed_batch_normalization(lab):
    """Normalize a convolution with given statistics, as in fine-tuning; the gradient comes from a relu."""
    x, w, gamma, beta, mean = lab.arrays((2, 16, 8, 8), (16, 16, 3, 3), (16,), (16,), (16,))

    def function(x, w, gamma, beta, mean, var):
        h = lab.F.convolution_2d(x, w, pad=1)
        return lab.F.relu(lab.F.fixed_batch_normalization(h, gamma, beta, mean, var))

    return lab.compare(function, (), ("x", "W", "gamma", "beta"), 144, [x, w, gamma, beta, mean, abs(mean) + 1])


def pool_nan(lab):
    """Where NaN comes out of a max pooling: 1 for NaN, 0 for a number."""
    x = lab.arrays((2, 16, 8, 8))[0]
    x[0, 3, 2, 5] = lab.np.nan
    with lab.ideep():
        y = lab.F.max_pooling_2d(lab.chainer.Variable(x), 2)
    with lab.numpy():
        reference = lab.F.max_pooling_2d(lab.chainer.Variable(x.astype(lab.np.float64)), 2).data
    pairs = [("NaN", lab.np.isnan(lab.np.array(y.data)) * 1.0, lab.np.isnan(reference) * 1.0)]
    return Result(lab.is_ours(y), pairs, LEAST_TERMS)


def rectify_infinity(lab):
    """What relu makes of both infinities, where NaN and infinity are: 1 and 2."""
    x = lab.arrays((2, 16, 8, 8))[0]
    x[0, 3, 2, 5], x[1, 2, 3, 4] = -lab.np.inf, lab.np.inf
    results = []
    for context, dtype in ((lab.ideep(), lab.np.float32), (lab.numpy(), lab.np.float64)):
        with context:
            results.append(lab.F.relu(lab.chainer.Variable(x.astype(dtype))))
    mine, true = [lab.np.array(y.data) for y in results]
    kinds = [lab.np.isnan(values) + 2.0 * lab.np.isinf(values) for values in (mine, true)]
    return Result(lab.is_ours(results[0]), [("kinds", kinds[0], kinds[1])], LEAST_TERMS)


def columns(functions, h):
    """Patches of the output of a convolution; only NumPy makes them."""
    return functions.im2col(h, 3, pad=1)


def awkward_pooling(functions, h):
    """Average pooling whose pad and stride are both above one."""
    return functions.average_pooling_2d(h, 5, 2, 2)


def raw_power(lab):
    """The square of a convolution's output as an array, not as a Variable."""
    x, w = lab.arrays((2, 16, 8, 8), (16, 16, 3, 3))
    with lab.ideep():
        h = lab.F.convolution_2d(lab.chainer.Variable(x), w, pad=1)
        mine = h.data**2
    with lab.numpy():
        x, w = x.astype(lab.np.float64), w.astype(lab.np.float64)
        reference = lab.F.convolution_2d(lab.chainer.Variable(x), w, pad=1).data ** 2
    return Result(lab.is_ours(h), [("power", lab.np.array(mine), reference)], 288)


def pickled(lab):
    """The weights of a model that was pickled after to_intel64() and loaded again."""
    import pickle

    lab.need_ideep()
    with lab.ideep():
        net = network(lab, False)
        weights = dict((name, param.data.astype(lab.np.float64)) for name, param in net.namedparams())
        net.to_intel64()
        params = pickle.loads(pickle.dumps(sorted(net.namedparams()), 2))
    pairs = [(name, lab.np.array(param.data), weights[name]) for name, param in params]
    return Result(None, pairs, LEAST_TERMS)


def cases():
    """Every operation in the order of its group; the core starts with the one that proves the use of iDeep."""
    core, normalization, hazards = "core", "normalization", "hazards"
    of_one, of_two, steps = "of a convolution (2,16,8,8)", "convolutions (2,16,8,8)", "two steps after to_intel64()"
    lrn, bn, back = "local_response_normalization", "batch_normalization", "batch_normalization backward"
    square, first = "x (4,16,14,14), W (32,16,3,3), pad 1", "x (2,3,32,32), W (16,3,7,7), stride 2, pad 3"
    found = [
        Case(core, "convolution", square, None, convolution((4, 16, 14, 14), (32, 16, 3, 3), 1, 1)),
        Case(core, "convolution", first, None, convolution((2, 3, 32, 32), (16, 3, 7, 7), 2, 3)),
        Case(core, "relu", of_one, None, after_convolution(lambda F, h: F.relu(h))),
        Case(core, "max_pooling", "3x3, stride 2, " + of_one, None, after_convolution(max_pooling)),
        Case(core, "average_pooling", "3x3, stride 2, " + of_one, None, after_convolution(average_pooling)),
        Case(core, "linear", "x (32,128), W (64,128)", None, linear),
        Case(core, lrn, "(2,16,8,8)", "H14", local_response_normalization),
        Case(core, "concat", "convolutions of 16 and 16 channels", None, concat(16, 16)),
        Case(core, "dropout", "ratio 0.4, (4,16,32,32), by its own mask", None, dropout),
        Case(core, "lstm", "32 units, batch 8", None, lstm),
        Case(core, "sgd", steps, None, optimize("SGD")),
        Case(core, "momentum_sgd", steps, None, optimize("MomentumSGD")),
        Case(core, "sgd with batch_normalization", steps, "to_intel64-bn", optimize("SGD", True)),
        Case(normalization, bn, "forward, (8,16,28,28)", None, batch_normalization_forward),
    ]
    for shape in SEEN_WRONG:
        found.append(Case(normalization, back, "(%d,%d,%d,%d)" % shape, "H1", batch_normalization(shape)))
    found += [
        Case(normalization, back, exposed_case, "H1", exposed),
        Case(hazards, "multiply", "h * h2 of " + of_two, "H2", combine(lambda g, h: g * h)),
        Case(hazards, "multiply", "h * h " + of_one, "H2", combine(lambda g, h: g * g)),
        Case(hazards, "divide", "h / h2 of " + of_two, "H2", combine(lambda g, h: g / h)),
        Case(hazards, "load_npz", "into a model after to_intel64()", "H3", load_after),
        Case(hazards, lrn, of_one, "H14", after_convolution(lambda F, h: F.local_response_normalization(h), 720)),
        Case(hazards, lrn, "(2,16,8,8), then a convolution", "H14", normalize_then_convolve),
        # 4 is a multiple of neither block size: 16 channels with AVX-512, 8 without.
        Case(hazards, "concat", "convolutions of 16 and 4 channels", "H7", concat(16, 4)),
        Case(hazards, "split_axis", of_one + " into 8 and 8 channels", "H8", split),
        # With a large epsilon: gradients near zero would otherwise turn rounding into full steps.
        Case(hazards, "ada_grad", steps, "H4", optimize("AdaGrad", eps=0.1)),
        Case(hazards, "max_pooling", "2x2, NaN in (2,16,8,8)", "H5", pool_nan),
        Case(hazards, "fixed_batch_normalization", of_one + ", then relu", "H9", fixed_batch_normalization),
        Case(hazards, "pickle", "a model after to_intel64()", "H10", pickled),
        Case(hazards, "power", "array ** 2 " + of_one, "H11", raw_power),
        Case(hazards, "average_pooling", "5x5, stride 2, pad 2, " + of_one, "H17", after_convolution(awkward_pooling)),
        Case(hazards, "im2col", "3x3, " + of_one, "H15", after_convolution(columns)),
        Case(hazards, "relu", "of minus infinity, (2,16,8,8)", "H16", rectify_infinity),
    ]
    return found


def time_convolution(lab, repeats=REPEATS):
    """Seconds of convolution forward + backward, NumPy and iDeep in turn, after two rounds that do not count."""
    n, c, k, r, side = CONV_TIMED
    x, w, gy = lab.arrays((n, c, side, side), (k, c, r, r), (n, k, side, side))

    def once(context):
        variables = lab.chainer.Variable(x), lab.chainer.Variable(w)
        with context:
            started = time.time()
            y = lab.F.convolution_2d(variables[0], variables[1], pad=r // 2)
            y.grad = gy
            y.backward()
            return time.time() - started

    seconds = {"numpy": [], "ideep": []}
    for turn in range(-2, repeats):
        for name, context in (("numpy", lab.numpy()), ("ideep", lab.ideep())):
            spent = once(context)
            if turn >= 0:
                seconds[name].append(spent)
    # Forward: one multiplication and one addition for each weight at each output; backward twice that.
    flops = 3 * 2 * n * k * c * r * r * side * side
    text = "batch %d, %d to %d channels, %dx%d, kernel %dx%d" % (n, c, k, side, side, r, r)
    return dict(seconds, case=text, flops=flops)


def child_main(cookie, order):
    """Do what the parent asks, and tell it before and after each operation."""
    lab, tell = begin(cookie, order)
    if lab is None:
        return
    if order["group"] == "timing":
        signal.alarm(order["op_seconds"])
        tell(event="timing", timing=time_convolution(lab))
        return
    table, before = cases(), code_pages()
    for index in order["indexes"]:
        case = table[index]
        signal.alarm(order["op_seconds"])
        text, hazard = case.case, case.hazard
        try:
            if callable(text):
                text = "(%d,%d,%d,%d)" % text(lab)
            about_garbage = lab.garbage and "batch_normalization" in case.op
            hazard = None if about_garbage else hazard
            tell(event="start", index=index, case=text, hazard=hazard)
            fields = judge(lab.np, case.run(lab))
            if about_garbage and fields["status"] == "wrong":
                fields["message"] += ": this Chainer hands on memory that this ideep4py does not fill"
        except NotRun as reason:
            fields = {"status": "not-run", "message": str(reason)}
        except Exception as error:
            fields = {"status": "raised", "message": describe(error)[:500]}
        tell(event="done", index=index, fields=fields)
        if index == 0:
            tell(event="kernel", told=can_tell_kernels(), jit_code=bool(code_pages() - before))
    signal.alarm(0)


# ------------------------------------------------------------------------------------------- in the parent


def distinct(lines):
    """One line of MKLDNN_VERBOSE for each primitive and implementation, in order."""
    kept = {}
    for position, line in enumerate(lines):
        kept.setdefault(tuple(line.split(",")[:4]), (position, line))
    return [line for _, line in sorted(kept.values())]


def as_check(table, record):
    """The check of an operation; what the child told at its start wins over the table."""
    index, start, fields = record
    case = table[index]
    text = start.get("case") or case.case
    if callable(text):
        text = "the shape that is wrong with this cache and number of threads"
    check = {"op": case.op, "case": text, "hazard": start.get("hazard", case.hazard), "used_ideep": None}
    return dict(dict(check, error=None, tolerance=None), **fields)


def examine(request):
    """Run every group and the timing; return the answer."""
    setting, table = new_setting(request), cases()
    groups = []
    for name in sorted(set(case.group for case in table)):
        indexes = [index for index, case in enumerate(table) if case.group == name]
        groups.append(Group(setting, {"group": name}, indexes))
    workers = [threading.Thread(target=group.run) for group in groups]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    ready = [group.ready for group in groups if group.ready]
    kernel = next((group.kernel for group in groups if group.kernel), {})
    failures = [group.failure for group in groups if group.failure]
    records = sorted((record for group in groups for record in group.records), key=lambda record: record[0])
    return {
        "failure": "" if ready else (failures or ["no child answered in time"])[0],
        "threads": ready[0]["threads"] if ready else None,
        "available": ready[0]["available"] if ready else None,
        "reason": ready[0]["reason"] if ready else "",
        "checks": [as_check(table, record) for record in records],
        "tells_kernels": kernel.get("told"),
        "jit_code": kernel.get("jit_code"),
        "verbose": distinct([line for group in groups for line in group.lines]),
        "timing": measure(setting) if ready and request["timing"] else None,
    }


def measure(setting):
    """The timing, in a child of its own while nothing else runs; None where it did not end."""
    event = Child(setting, {"group": "timing", "quiet": True}).first("timing")
    return event and event["timing"]


if __name__ == "__main__":
    serve(child_main, examine)
