"""The functions that certify compares, and how one case of them is run; a part of the payload certify.

A case is an object of JSON:
  op        name of a function in OPERATIONS, or of another kind of operation (see certify_models)
  shapes    of the inputs
  options   of the function, by name
  inputs    a letter for each input: p an array of NumPy, b an array of iDeep as a convolution leaves it (blocked where
            the channels allow it), w an array of iDeep as to_intel64() leaves a parameter; short ones are filled with p
  gradient  p or b: how the gradient of the output arrives
  twice     whether gradients of the gradients are compared, too
  read      whether the input and the output are read through NumPy between forward and backward, which makes a blocked
            array plain
  special   "", "nan" or "inf": what some elements of the first input are
  source    where the shapes are from, for people
Only op is always there.
"""

import json
import zlib

from lab import LEAST_TERMS, NotRun, Result, describe  # noqa: E402

RATIO = 0.4  # of dropout, where a case has none


class Operation(object):
    """A function of Chainer: how it is called, what its inputs are, and how its rounding errors grow.

    make       takes chainer.functions and the options, returns a function of Variables
    names      a letter or word for each input
    terms      takes the shapes and the options, returns the longest sum of products in it
    prepare    takes NumPy and the arrays, returns arrays that the function accepts
    integers   the inputs that are no floating-point numbers, by position
    """

    def __init__(self, make, names="x", terms=None, prepare=None):
        self.make, self.names, self.terms, self.prepare = make, names, terms, prepare


def product(numbers):
    """Their product, 1 if there are none."""
    total = 1
    for number in numbers:
        total *= number
    return total


def pair(value):
    """A pair for a number or a pair."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value, value)


def function_named(F, name):
    """A function of Chainer. Raises NotRun where this version has none of that name."""
    if not hasattr(F, name):
        raise NotRun("this Chainer has no %s" % name)
    return getattr(F, name)


def plain_words(options):
    """Options with tuples for JSON's lists and text that is str on Python 2, too."""
    found = {}
    for name, value in options.items():
        found[str(name)] = tuple(value) if isinstance(value, list) else value
    return found


def called(name, splat=False):
    """The function of this name with the options as they are."""

    def make(F, options):
        function, words = function_named(F, name), plain_words(options)
        if splat:
            return lambda *xs: function(xs, **words)
        return lambda *xs: function(*xs, **words)

    return make


def convolution_terms(shapes, options):
    """Terms of a convolution: weights of one output forward, places of a weight backward."""
    (n, c, height, width), (k, part, rows, columns) = shapes[:2]
    sy, sx = pair(options.get("stride", 1))
    used = min(sy * sx, rows * columns)  # a place of the input is seen by rows * columns / used outputs
    return max(part * rows * columns, k * rows * columns // used, n * height * width // (sy * sx))


def linear_terms(shapes, options):
    """Terms of a linear layer: inputs, outputs, batch."""
    return max(product(shapes[0][1:]), shapes[1][0], shapes[0][0])


def channel_terms(shapes, options):
    """Terms of a mean over all but the channels; squares of it make the variance."""
    return product(shapes[0]) // shapes[0][1]


def window_terms(shapes, options):
    """Terms of a pooling window or of a sum over channels."""
    return max(LEAST_TERMS, product(pair(options.get("ksize", options.get("n", 1)))))


def normalized(np, arrays):
    """Inputs of BatchNormalization: gamma away from zero, variances positive."""
    made = list(arrays)
    made[1] = abs(made[1]) + np.float32(0.5)
    if len(made) > 4:
        made[4] = abs(made[4]) + np.float32(0.5)
    return made


def batch_normalization(F, options):
    """F.batch_normalization; its running averages are its own."""
    return called("batch_normalization")(F, options)


def away_from_zero(np, arrays):
    """The last input is a divisor."""
    made = list(arrays)
    made[-1] = made[-1] * np.float32(0.05) + np.float32(2.0)
    return made


def positive(np, arrays):
    """Inputs of logarithms and roots."""
    return [abs(array) + np.float32(0.5) for array in arrays]


def inside_one(np, arrays):
    """Inputs of inverse functions, within -0.9 and 0.9."""
    return [np.clip(array * np.float32(0.4), -0.9, 0.9).astype(np.float32) for array in arrays]


class Functions(object):
    """chainer.functions, where what this version lacks raises NotRun."""

    def __init__(self, F):
        self._functions = F

    def __getattr__(self, name):
        return function_named(self._functions, name)


def lambda_of(function):
    """An expression of the inputs; takes chainer.functions first."""
    return lambda F, options: lambda *xs: function(Functions(F), *xs)


def element(function, names="x", prepare=None):
    """An operation on elements, made of an expression."""
    return Operation(lambda_of(function), names, None, prepare)


def one(name, prepare=None):
    """A function of one array with no options."""
    return Operation(called(name), "x", None, prepare)


# What Chainer gives to ideep4py itself.
SERVED = {
    "convolution_2d": Operation(called("convolution_2d"), "xWb", convolution_terms),
    "deconvolution_2d": Operation(called("deconvolution_2d"), "xWb", convolution_terms),
    "linear": Operation(called("linear"), "xWb", linear_terms),
    "relu": one("relu"),
    "leaky_relu": Operation(called("leaky_relu")),
    "max_pooling_2d": Operation(called("max_pooling_2d"), "x", window_terms),
    "average_pooling_2d": Operation(called("average_pooling_2d"), "x", window_terms),
    "local_response_normalization": Operation(called("local_response_normalization"), "x", window_terms),
    "batch_normalization": Operation(batch_normalization, ("x", "gamma", "beta"), channel_terms, normalized),
    "fixed_batch_normalization": Operation(
        called("fixed_batch_normalization"), ("x", "gamma", "beta", "mean", "variance"), channel_terms, normalized
    ),
    "concat": Operation(called("concat", True), "abcdefgh"),
    "split_axis": Operation(called("split_axis"), "x"),
    "add": Operation(called("add"), "abcdefgh"),
    "lstm": Operation(called("lstm"), ("c", "x")),
    "slstm": Operation(called("slstm"), ("c1", "c2", "x1", "x2")),
}

# What NumPy's part of Chainer makes of arrays of iDeep: arithmetic of the elements.
ELEMENTWISE = {
    "h * g": element(lambda F, g, h: g * h, "gh"),
    "h * h": element(lambda F, h: h * h),
    "h / g": element(lambda F, h, g: h / g, "hg", away_from_zero),
    "h + g": element(lambda F, g, h: g + h, "gh"),
    "h - g": element(lambda F, g, h: g - h, "gh"),
    "-h": element(lambda F, h: -h),
    "2.5 * h": element(lambda F, h: 2.5 * h),
    "2.5 / h": element(lambda F, h: 2.5 / h, "x", positive),
    "h / 2.5": element(lambda F, h: h / 2.5),
    "1 - h": element(lambda F, h: 1 - h),
    "h + 1": element(lambda F, h: h + 1),
    "h ** 2": element(lambda F, h: h**2),
    "h ** 3": element(lambda F, h: h**3),
    "2.0 ** h": element(lambda F, h: 2.0**h),
    "h ** g": element(lambda F, h, g: h**g, "hg", positive),
    "h[:, 1:]": element(lambda F, h: h[:, 1:]),
    "h * sigmoid(h)": element(lambda F, h: h * F.sigmoid(h)),
    "h * row": element(lambda F, h, g: h * F.broadcast_to(g, h.shape), "hg"),
    "maximum": Operation(called("maximum"), "gh"),
    "minimum": Operation(called("minimum"), "gh"),
    "linear_interpolate": Operation(called("linear_interpolate"), "pgh"),
    "squared_error": Operation(called("squared_error"), "gh"),
    "absolute_error": Operation(called("absolute_error"), "gh"),
    "where": element(lambda F, g, h: F.where(g.data > 0, g, h), "gh"),
    "scale": element(lambda F, h, g: F.scale(h, g, 1), "hg"),
    "bias": element(lambda F, h, g: F.bias(h, g, 1), "hg"),
    "prelu": Operation(called("prelu"), "xW"),
    "normalize": Operation(called("normalize"), "x", channel_terms),
    "group_normalization": element(lambda F, x, g, b: F.group_normalization(x, 2, g, b), ("x", "gamma", "beta")),
    "reshape": element(lambda F, h: F.reshape(h, (h.shape[0], -1))),
    "transpose": element(lambda F, h: F.transpose(h, (0, 2, 3, 1))),
    "flatten": one("flatten"),
    "sum": Operation(called("sum"), "x", lambda shapes, options: product(shapes[0])),
    "mean": Operation(called("mean"), "x", lambda shapes, options: product(shapes[0])),
    "average_over_image": element(lambda F, h: F.average(h, (2, 3))),
    "max": Operation(called("max")),
    "softmax": Operation(called("softmax")),
    "log_softmax": Operation(called("log_softmax")),
    "pad": element(lambda F, h: F.pad(h, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")),
    "stack": element(lambda F, g, h: F.stack((g, h), 1), "gh"),
    "depth2space": element(lambda F, h: F.depth2space(h, 2)),
    "unpooling_2d": element(lambda F, h: F.unpooling_2d(h, 2, cover_all=False)),
    "spatial_pyramid_pooling_2d": element(lambda F, h: F.spatial_pyramid_pooling_2d(h, 2, pooling="max")),
    "upsampling": element(lambda F, h: F.unpooling_2d(h, 2, 2)),
    "im2col": element(lambda F, h: F.im2col(h, 3, 1, 1)),
    "as_strided": element(lambda F, h: F.as_strided(h, (2, 16, 4), (576, 36, 1))),
    "matmul": Operation(called("matmul"), "gh"),
    "tensordot": Operation(
        lambda_of(lambda F, g, h: F.tensordot(g, h, ((0, 2, 3), (0, 2, 3)))), "gh", lambda shapes, options: 1024
    ),
    "broadcast_to": element(lambda F, h: F.broadcast_to(h[:1], h.shape)),
    "tile": element(lambda F, h: F.tile(h, (1, 2, 1, 1))),
    "repeat": element(lambda F, h: F.repeat(h, 2, 1)),
    "swapaxes": element(lambda F, h: F.swapaxes(h, 1, 3)),
    "rollaxis": element(lambda F, h: F.rollaxis(h, 1, 4)),
    "moveaxis": element(lambda F, h: F.moveaxis(h, 1, 3)),
    "flip": element(lambda F, h: F.flip(h, 1)),
    "separate": element(lambda F, h: F.separate(h, 1)),
    "squeeze": element(lambda F, h: F.squeeze(h[:, :1], 1)),
    "expand_dims": element(lambda F, h: F.expand_dims(h, 1)),
    "hstack": element(lambda F, g, h: F.hstack((g, h)), "gh"),
    "vstack": element(lambda F, g, h: F.vstack((g, h)), "gh"),
    "cumsum": element(lambda F, h: F.cumsum(h, 1)),
    "logsumexp": element(lambda F, h: F.logsumexp(h, 1)),
    "mean_squared_error": Operation(called("mean_squared_error"), "gh", lambda shapes, options: product(shapes[0])),
    "mean_absolute_error": Operation(called("mean_absolute_error"), "gh", lambda shapes, options: product(shapes[0])),
    "huber_loss": element(lambda F, g, h: F.huber_loss(g, h, 1.0, "no"), "gh"),
    "local_convolution_2d": element(lambda F, x, W: F.local_convolution_2d(x, W), "xW"),
    "layer_normalization": element(
        lambda F, x, g, b: F.layer_normalization(F.reshape(x, (x.shape[0], -1)), g, b), ("x", "gamma", "beta")
    ),
    "unchained copy": element(lambda F, h: F.copy(h, -1)),
}
# Functions of one array with no options: the names, and what their inputs must be.
ONE_ARRAY = (
    ("exp log2 sqrt rsqrt log log10 log1p expm1 sin cos tan sinh cosh square sign", positive),
    ("arcsin arccos arctan", inside_one),
    ("sigmoid tanh elu selu crelu softplus clipped_relu hard_sigmoid relu6 absolute erf", None),
)
for _names, _prepare in ONE_ARRAY:
    for _name in _names.split():
        ELEMENTWISE[_name] = one(_name, _prepare)
ELEMENTWISE["maxout"] = element(lambda F, h: F.maxout(h, 2, 1))
ELEMENTWISE["glu"] = element(lambda F, g, h: g * F.sigmoid(h), "gh")

OPERATIONS = dict(SERVED, **ELEMENTWISE)
# Here a NaN may spread to more channels than it must: MKL-DNN keeps a running sum.
SPREADS_NAN = ("local_response_normalization",)
# Functions of a random number generator of iDeep's own: compared with what their own mask makes of the input.
MASKED = ("dropout",)


def letters(case):
    """The layout letter of each input."""
    return (case.get("inputs", "") + "p" * len(case["shapes"]))[: len(case["shapes"])]


def seed_of(case):
    """The same numbers for the same case, whatever ran before."""
    values = [case.get(name) for name in ("op", "shapes", "options", "inputs", "gradient", "twice", "read", "special")]
    return zlib.crc32(json.dumps(values, sort_keys=True).encode("ascii")) & 0x7FFFFFFF


def arrays_for(lab, case, operation):
    """The float32 inputs of a case; weights are small where they have many inputs, so that outputs are about 1."""
    np, random = lab.np, lab.np.random.RandomState(seed_of(case))
    made = []
    for shape in case["shapes"]:
        array = random.standard_normal(tuple(shape)).astype(np.float32)
        weight = len(made) == 1 and operation.terms in (convolution_terms, linear_terms)
        made.append(array * np.float32(max(1, product(shape[1:])) ** -0.5) if weight else array)
    if operation.prepare is not None:
        made = operation.prepare(np, made)
    if case.get("special"):
        values = {"nan": [np.nan] * 3, "inf": [np.inf, -np.inf, np.inf]}[case["special"]]
        where = random.choice(made[0].size, 3, replace=False)
        made[0].ravel()[where] = values  # a view: the array is contiguous
    return made


def blocked(lab, array):
    """An array of iDeep as a convolution leaves it, and its elements: a convolution with ones on its diagonal.

    Where elements are not finite, the sum makes others so, too; so the elements are what really came out.
    """
    np = lab.np
    if not lab.available or not array.size or array.ndim not in (2, 4):
        return array, array
    if array.ndim == 2:
        return lab.ideep4py.array(array), array
    one = np.eye(array.shape[1], dtype=np.float32)[:, :, None, None]

    def make():
        return lab.F.convolution_2d(array, one).data

    if np.isfinite(array).all():
        return make(), array
    # Reading makes plain; so it is another one that is read.
    return make(), np.array(make())


def laid_out(lab, array, letter):
    """The array in this layout, and its elements."""
    if letter == "b":
        return blocked(lab, array)
    if letter == "w" and lab.available and array.ndim in (1, 2, 4):
        return lab.ideep4py.array(array, itype=lab.ideep4py.wgt_array), array
    return array, array


class Evaluation(object):
    """A function of Chainer run forward and backward: named results, and where iDeep's arrays came out."""

    def __init__(self, lab, case, names, mark=None):
        self.lab, self.case, self.names, self.mark = lab, case, names, mark or (lambda phase: None)
        self.named, self.forward, self.backward = [], False, False

    def is_ours(self, array):
        return isinstance(array, self.lab.mdarray) if self.lab.mdarray else False

    def gradient_for(self, number, output, dtype):
        """The gradient that arrives at an output."""
        np = self.lab.np
        made = np.random.RandomState(4 + number).standard_normal(output.shape)
        made = np.asarray(made, dtype=np.float32)
        if dtype == np.float32 and self.case.get("gradient") == "b":
            return blocked(self.lab, made)[0]
        return made.astype(dtype)

    def run(self, function, arrays, dtype):
        """Fill ``named`` with the outputs, the gradients and, where asked, the gradients of those."""
        chainer = self.lab.chainer
        inputs = [chainer.Variable(array) for array in arrays]
        self.mark("forward")
        outputs = function(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        self.forward = any(self.is_ours(output.data) for output in outputs)
        plural = len(outputs) > 1
        for number, output in enumerate(outputs):
            self.named.append(("output %d" % (number + 1) if plural else "output", output.data))
        self.mark("between")
        arriving = [self.gradient_for(number, output, dtype) for number, output in enumerate(outputs)]
        if self.case.get("read"):
            for variable in inputs[:1] + list(outputs):
                self.lab.np.asarray(variable.data)
        self.mark("backward")
        if self.case.get("twice"):
            found = self.twice(inputs, outputs, [chainer.Variable(array) for array in arriving])
        elif plural:
            grads = chainer.grad(outputs, inputs, [chainer.Variable(array) for array in arriving])
            found = [None if grad is None else grad.data for grad in grads]
        else:
            outputs[0].grad = arriving[0]
            outputs[0].backward()
            found = [variable.grad for variable in inputs]
        self.backward = any(self.is_ours(array) for array in found)
        for name, array in zip(self.names, found):
            self.named.append(("gradient of " + name, array))
        return self

    def twice(self, inputs, outputs, arriving):
        """Gradients, and the gradients of a fixed combination of those by the inputs and what arrived."""
        chainer, np = self.lab.chainer, self.lab.np
        first = chainer.grad(outputs, inputs, arriving, enable_double_backprop=True)
        there = [grad for grad in first if grad is not None]
        weights = [np.random.RandomState(40 + number).standard_normal(g.shape) for number, g in enumerate(there)]
        weights = [chainer.Variable(w.astype(np.float32).astype(g.dtype)) for w, g in zip(weights, there)]
        second = chainer.grad(there, inputs + arriving, weights)
        names = list(self.names)[: len(inputs)] + ["the gradient"] * len(arriving)
        for name, grad in zip(names, second):
            self.named.append(("second gradient of " + name, None if grad is None else grad.data))
        return [None if grad is None else grad.data for grad in first]


def run_function(lab, case, mark):
    """Compare a function with float64, forward and backward.

    ``mark`` is called with "forward", "between", "backward" and "reference" as each begins.
    """
    operation = OPERATIONS[case["op"]]
    function = operation.make(lab.F, case.get("options") or {})
    arrays = arrays_for(lab, case, operation)
    terms = LEAST_TERMS if operation.terms is None else operation.terms(case["shapes"], case.get("options") or {})
    with lab.chainer.using_config("train", True), lab.np.errstate(all="ignore"):
        with lab.ideep():
            made = [laid_out(lab, array, letter) for array, letter in zip(arrays, letters(case))]
            evaluation = Evaluation(lab, case, operation.names, mark)
            ours = evaluation.run(function, [array for array, _ in made], lab.np.float32)
        with lab.numpy():
            values = [values.astype(lab.np.float64) for _, values in made]
            mark("reference")
            try:
                true = Evaluation(lab, case, operation.names).run(function, values, lab.np.float64)
            except Exception as error:
                raise NotRun("NumPy in float64 raises: %s" % describe(error)[:200])
    pairs = [(name, mine, other) for (name, mine), (_, other) in zip(ours.named, true.named)]
    if case.get("special") == "nan":
        pairs = [
            without_nan(lab.np, case["op"], values[0], "gradient of " + operation.names[0], pair) for pair in pairs
        ]
    return Result((ours.forward, ours.backward), pairs, terms)


def without_nan(np, op, x, name, pair):
    """The arrays with zeros where a NaN means nothing.

    That is the gradient of the input where the input is NaN, and for some functions more of the output.
    """
    if pair[1] is None or pair[2] is None:
        return pair
    ours, true = np.array(pair[1]), np.array(pair[2])
    if pair[0] == name:
        nothing_there = np.isnan(x)
    elif op in SPREADS_NAN:
        nothing_there = np.isnan(ours) & ~np.isnan(true)
    else:
        return pair
    return pair[0], np.where(nothing_there, 0, ours), np.where(nothing_there, 0, true)


def run_dropout(lab, case, mark):
    """Compare with what its own mask makes of the input, and the share of zeros with what was asked for."""
    np, shape, ratio = lab.np, case["shapes"][0], (case.get("options") or {}).get("ratio", RATIO)
    x, gy = [np.random.RandomState(seed).standard_normal(shape).astype(np.float32) for seed in (1, 2)]
    with lab.ideep(), lab.chainer.using_config("train", True):
        variable = lab.chainer.Variable(laid_out(lab, x, letters(case)[0])[0])
        mark("forward")
        y = lab.F.dropout(variable, ratio)
        mask = getattr(y.creator, "mask", None)
        if mask is None:
            raise NotRun("this Chainer does not keep the mask where it could be read")
        mark("between")
        y.grad = blocked(lab, gy)[0] if case.get("gradient") == "b" else gy
        mark("backward")
        y.backward()
    mark("reference")
    used = lab.is_ours(y), isinstance(variable.grad, lab.mdarray)
    output, gradient, mask = [np.array(array).astype(np.float64) for array in (y.data, variable.grad, mask)]
    kept = np.float64(np.float32(1) / np.float32(1 - ratio))
    pairs = [("output", output, x * mask), ("gradient of x", gradient, gy * mask)]
    pairs.append(("mask", mask, np.where(mask == 0, 0.0, kept)))
    zeros, note = float((mask == 0).mean()), ""
    if abs(zeros - ratio) > 5 * (ratio * (1 - ratio) / mask.size) ** 0.5:
        note = "%.1f %% of the mask is zero, %.0f %% was asked for" % (100 * zeros, 100 * ratio)
    return Result(used, pairs, LEAST_TERMS, note)
