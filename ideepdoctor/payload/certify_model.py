"""A user's own model: what it gives to iDeep, and its gradients against float64; a part of the payload certify.

The model is a function without arguments in a file, which returns (link or callable, inputs...): what is called, and
the arrays or Variables that it is called with. It is run as it comes: who calls to_intel64() in the program calls it
there, too. What the call returns is a Variable, or a tuple, list or dict of them; a scalar is differentiated as a loss,
anything else gets random gradients.

Answer to the action model:
  failure          why nothing could run, or ""
  ready            see certify
  refused          why this is no such function, or ""
  ended            how the run ended when it killed its process, or ""
  cases            what it gives to iDeep, each once, complete; source is how often
  others           functions that are not given to iDeep: name, why and count of each
  gradients        name, error (null: not finite), tolerance and right of each output and parameter, or null
  notes            what the reader must know of the comparison
"""

import copy
import signal

from certify_cases import complete, key_of  # noqa: E402
from certify_ops import ELEMENTWISE, ONE_ARRAY  # noqa: E402
from lab import Child, describe, in_float64, tolerance  # noqa: E402
from user_model import Refused, call_function, load_function, variables_of  # noqa: E402

# Gradients below this share of the largest one are zero but for rounding: their errors are relative to that share.
LEAST_SHARE = 1e-4


def pair_of(function, names):
    """Attributes of a function as a list."""
    return [int(getattr(function, name)) for name in names.split()]


def window_of(function):
    """Options of a pooling function: of max_pooling_nd in newer Chainers, of Pooling2D in older ones."""
    if hasattr(function, "kh"):
        ksize, stride, pad = [pair_of(function, names) for names in ("kh kw", "sy sx", "ph pw")]
    else:
        ksize, stride, pad = [[int(n) for n in getattr(function, name)] for name in ("ksize", "stride", "pad")]
    return {"ksize": ksize, "stride": stride, "pad": pad}


def convolved(function, shapes):
    """Options of a convolution."""
    options = {"stride": pair_of(function, "sy sx"), "pad": pair_of(function, "ph pw")}
    if max(pair_of(function, "dy dx")) > 1:
        options["dilate"] = pair_of(function, "dy dx")
    if getattr(function, "groups", 1) > 1:
        options["groups"] = int(function.groups)
    return options


def deconvolved(function, shapes):
    """Options of a transposed convolution."""
    return dict(convolved(function, shapes), outsize=pair_of(function, "outh outw"))


def max_pooled(function, shapes):
    """Options of max pooling."""
    return dict(window_of(function), cover_all=bool(function.cover_all))


def split(function, shapes):
    """Options of split_axis."""
    where = getattr(function, "indices", None)
    where = function.sections if where is None else [int(index) for index in where]
    return {"indices_or_sections": where, "axis": int(function.axis)}


def normalized_over(function, shapes):
    """Options of batch_normalization: the axes only where they are not the usual ones."""
    options = {"eps": float(function.eps)}
    axis = getattr(function, "axis", None)
    usual = tuple(i for i in range(len(shapes[0])) if i != 1)
    if axis is not None and tuple(axis) != usual:
        options["axis"] = [int(i) for i in axis]
    return options


def nothing(function, shapes):
    """No options."""
    return {}


# Class of Chainer's function: our name for it, and what reads its options.
CLASSES = {
    "Convolution2DFunction": ("convolution_2d", convolved),
    "Deconvolution2DFunction": ("deconvolution_2d", deconvolved),
    "LinearFunction": ("linear", nothing),
    "ReLU": ("relu", nothing),
    "LeakyReLU": ("leaky_relu", lambda function, shapes: {"slope": float(function.slope)}),
    "MaxPooling2D": ("max_pooling_2d", max_pooled),
    "MaxPoolingND": ("max_pooling_2d", max_pooled),
    "AveragePooling2D": ("average_pooling_2d", lambda function, shapes: window_of(function)),
    "LocalResponseNormalization": (
        "local_response_normalization",
        lambda f, shapes: {"n": int(f.n), "k": float(f.k), "alpha": float(f.alpha), "beta": float(f.beta)},
    ),
    "BatchNormalization": ("batch_normalization", normalized_over),
    "FixedBatchNormalization": ("fixed_batch_normalization", normalized_over),
    "Concat": ("concat", lambda function, shapes: {"axis": int(function.axis)}),
    "SplitAxis": ("split_axis", split),
    "Dropout": ("dropout", lambda function, shapes: {"ratio": float(function.dropout_ratio)}),
    "LSTM": ("lstm", nothing),
    "SLSTM": ("slstm", nothing),
    "MultiAdd": ("add", nothing),
    "Add": ("h + g", nothing),
    "Mul": ("h * g", nothing),
    "Div": ("h / g", nothing),
    "Sub": ("h - g", nothing),
    "Sigmoid": ("sigmoid", nothing),
    "Tanh": ("tanh", nothing),
}


def case_of(lab, function, arrays):
    """The case of a function that is about to be run, or why there is none: (case, "") or (None, reason)."""
    name = type(function).__name__
    shapes = [list(getattr(array, "shape", ())) for array in arrays]
    mine = [isinstance(array, lab.mdarray) for array in arrays]
    op, options_of = CLASSES.get(name, (None, nothing))
    if op is None and any(name.lower() in names.split() for names, _ in ONE_ARRAY):
        op = name.lower()
    if op is None:
        return None, "NumPy does it"
    if any(str(array.dtype) != "float32" for array in arrays):
        return None, "the input is %s" % next(str(a.dtype) for a in arrays if str(a.dtype) != "float32")
    if len(shapes[0]) not in (2, 4):
        return None, "%d-dimensional arrays" % len(shapes[0])
    if op in ELEMENTWISE and (not any(mine) or any(shape != shapes[0] for shape in shapes)):
        return None, "NumPy does it"
    if any(not all(shape) for shape in shapes):
        return None, "an empty array"
    weights = op in ("convolution_2d", "deconvolution_2d", "linear")
    words = []
    for number, ours in enumerate(mine):
        parameter = weights and number or len(shapes[number]) == 1
        words.append("p" if not ours else "w" if parameter else "b")
    inputs = "".join(words).rstrip("p")
    case = {"op": op, "shapes": shapes, "options": options_of(function, shapes), "inputs": inputs}
    return dict((key, value) for key, value in case.items() if value), ""


class Recording(object):
    """Runs a user's model in a child and tells what it gives to iDeep, as it happens: the model may kill it."""

    def __init__(self, lab, order, tell):
        self.lab, self.order, self.tell = lab, order, tell
        self.number, self.known, self.forward = 0, {}, True

    def run(self):
        """Tell functions, gradients and the comparison; or why the user's function was refused."""
        signal.alarm(self.order["model_seconds"])
        try:
            self.run_user()
        except Refused as reason:
            self.tell(event="refused", message=str(reason))
        signal.alarm(0)

    def run_user(self):
        """Load and call the function, run the model once with the hook, compare it."""
        lab, name = self.lab, str(self.order["function"])
        with lab.ideep():
            model, inputs = call_function(load_function(self.order["file"], name), name)
            hook = self.new_hook()
            lab.np.random.seed(0)
            try:
                with hook:
                    outputs = variables_of(lab.chainer, model(*inputs))
                    self.forward = False
                    for output in outputs:
                        self.give_gradient(output)
                        output.backward()
            except Refused:
                raise
            except Exception as error:
                self.raises_with_numpy_too(name)
                self.tell(event="raised", message=describe(error))
                return
        self.tell(event="compared", **Comparison(lab, model, inputs).run())

    def raises_with_numpy_too(self, name):
        """Raises Refused where the model raises with NumPy alone: then it is no fault of iDeep's."""
        with self.lab.numpy():
            model, inputs = call_function(load_function(self.order["file"], name), name)
            try:
                for output in variables_of(self.lab.chainer, model(*inputs)):
                    self.give_gradient(output)
                    output.backward()
            except Exception as error:
                raise Refused("the model raises without iDeep, too: %s" % describe(error))

    def give_gradient(self, output):
        """A gradient for an output: a scalar's is 1."""
        if output.size > 1 or output.grad is None and output.ndim:
            np = self.lab.np
            output.grad = np.random.RandomState(4).standard_normal(output.shape).astype(output.dtype)

    def new_hook(self):
        """A FunctionHook that tells each function before it is run, and whether iDeep's gradient comes back to it."""
        recording = self

        class Hook(self.lab.chainer.FunctionHook):
            name = "ideepdoctor_certify"

            def forward_preprocess(self, function, in_data):
                recording.saw(function, in_data)

            def backward_preprocess(self, function, in_data, out_grad):
                recording.saw_gradient(function, out_grad)

        return Hook()

    def saw(self, function, arrays):
        """Tell a function; not those that make up a backward pass."""
        if not self.forward:
            return
        inner = getattr(function, "function", function)  # of FunctionAdapter, for functions of the old style
        case, why = case_of(self.lab, inner, arrays)
        self.known[id(function)] = self.number, function  # held, so that no other one gets its id
        self.tell(event="function", number=self.number, name=type(inner).__name__, case=case, why=why)
        self.number += 1

    def saw_gradient(self, function, gradients):
        """Tell that an array of iDeep comes back."""
        number = self.known.get(id(function), (None, None))[0]
        if number is not None and any(isinstance(array, self.lab.mdarray) for array in gradients):
            self.tell(event="gradient", number=number)


class Comparison(object):
    """The gradients of a whole model: iDeep, NumPy in float32 and in float64, each with a copy of the model."""

    def __init__(self, lab, model, inputs):
        self.lab, self.model, self.inputs, self.notes = lab, model, inputs, []
        self.is_link = isinstance(model, lab.chainer.Link)

    def run(self):
        """gradients and notes of the answer."""
        try:
            with self.without_dropout():
                ours = self.gradients(self.lab.ideep, self.lab.np.float32, False)
                single = self.gradients(self.lab.numpy, self.lab.np.float32, True)
                true = self.gradients(self.lab.numpy, self.lab.np.float64, True)
        except Exception as error:
            self.notes.append("the whole model was not compared: %s" % describe(error))
            return {"gradients": None, "notes": self.notes}
        return {"gradients": self.judged(ours, single, true), "notes": self.notes}

    def judged(self, ours, single, true):
        """Rows of name, error, tolerance, right."""
        np = self.lab.np
        exact = dict((name, np.array(array).astype(np.float64)) for name, array in true)
        largest = max([abs(array).max() for array in exact.values() if array.size] or [0.0])
        rows = []

        def error_of(name, array):
            if array is None or name not in exact or exact[name].shape != array.shape:
                return float("inf")
            scale = max(abs(exact[name]).max() if exact[name].size else 0.0, LEAST_SHARE * largest)
            difference = abs(np.array(array).astype(np.float64) - exact[name])
            worst = float(difference.max()) if difference.size else 0.0
            return float("inf") if worst != worst else float(worst / scale) if scale else worst

        plain = dict(single)
        for name, array in ours:
            limit = max(tolerance(2**16), 10 * error_of(name, plain.get(name)))
            error = error_of(name, array)
            finite = error != float("inf")
            limit = limit if limit != float("inf") else None
            row = {"name": name, "error": error if finite else None, "tolerance": limit}
            rows.append(dict(row, right=bool(limit is None or finite and error <= limit)))
        return rows

    def gradients(self, context, dtype, on_numpy):
        """Named outputs and gradients of a run."""
        lab = self.lab
        with context():
            model, held = self.copied(dtype, on_numpy)
            try:
                lab.np.random.seed(0)
                outputs = variables_of(lab.chainer, model(*[self.cast(value, dtype) for value in self.inputs]))
                named = [("output %d" % (number + 1), output.data) for number, output in enumerate(outputs)]
                params = self.parameters(model, outputs)
                for _, param in params:
                    param.cleargrad()
                for output in outputs:
                    if output.size > 1 or output.ndim:
                        random = lab.np.random.RandomState(4).standard_normal(output.shape)
                        output.grad = lab.np.asarray(random).astype(lab.np.float32).astype(output.dtype)
                    output.backward()
                named += [(name, param.grad) for name, param in params if param.grad is not None]
                # Read only now: reading changes the layout of an array of iDeep.
                return [(name, lab.np.array(array)) for name, array in named]
            finally:
                for param, data in held:
                    param.data = data

    def copied(self, dtype, on_numpy):
        """A copy of the model in this type; of a callable, itself, and the parameters' arrays to put back."""
        lab = self.lab
        if self.is_link:
            for link in self.model.links():
                if hasattr(link, "reset_state"):
                    link.reset_state()
            model = copy.deepcopy(self.model)
            if on_numpy:
                model.to_cpu()
            return in_float64(lab, model) if dtype == lab.np.float64 else model, []
        held = []
        if on_numpy:
            outputs = variables_of(lab.chainer, self.model(*self.inputs))
            held = [(param, param.data) for _, param in self.parameters(None, outputs)]
            for param, data in held:
                param.data = lab.np.array(copy.deepcopy(data)).astype(dtype)
        return self.model, held

    def parameters(self, model, outputs):
        """Named parameters: of a Link, or all that the graph of the outputs begins with."""
        chainer = self.lab.chainer
        if self.is_link:
            return sorted(model.namedparams())
        found, seen, left = [], set(), [output.creator_node for output in outputs]
        while left:
            node = left.pop()
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            for variable_node in node.inputs:
                variable = variable_node.get_variable_or_none()
                if isinstance(variable, chainer.Parameter) and not any(variable is known for known in found):
                    found.append(variable)
                left.append(variable_node.creator_node)
        return [("parameter %d %s" % (number, param.name or ""), param) for number, param in enumerate(found)]

    def cast(self, value, dtype):
        """An input in this type, where it holds floating-point numbers."""
        np, chainer = self.lab.np, self.lab.chainer
        if isinstance(value, chainer.Variable):
            return chainer.Variable(self.cast(value.data, dtype))
        if isinstance(value, (tuple, list)):
            return type(value)(self.cast(item, dtype) for item in value)
        if isinstance(value, self.lab.mdarray) and dtype != np.float32:
            value = np.array(copy.deepcopy(value))
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return value.astype(dtype)
        return value

    def without_dropout(self):
        """A context in which dropout hands on what it gets: its random numbers are iDeep's own."""
        comparison = self
        from chainer.functions.noise import dropout

        kind = dropout.Dropout

        class Context(object):
            def __enter__(self):
                self.held = kind.__dict__["forward_cpu"], kind.__dict__["backward"]
                kind.forward_cpu = lambda self, inputs: comparison.handed_on(inputs)
                kind.backward = lambda self, indexes, gradients: gradients

            def __exit__(self, *ignored):
                kind.forward_cpu, kind.backward = self.held

        return Context()

    def handed_on(self, inputs):
        """What dropout gives here."""
        note = "dropout was left out of the comparison of the whole model; it is certified by itself"
        if note not in self.notes:
            self.notes.append(note)
        return tuple(inputs)


# ------------------------------------------------------------------------------------------- in the parent


def times(count):
    """``1 time``, ``2 times``."""
    return "%d time%s" % (count, "" if count == 1 else "s")


def examine_model(setting, order, request, whether_ready):
    """Answer the action model."""
    more = {"file": request["file"], "function": request["function"], "model_seconds": request["model_seconds"]}
    setting["deadline"] += request["model_seconds"]
    child = Child(setting, dict(order, quiet=True, **more))
    compared, refused, raised = child.first("compared"), child.first("refused"), child.first("raised")
    answer = whether_ready(child, True)
    ended = "the model raised %s" % raised["message"] if raised else ""
    if answer["ready"] and not (compared or refused or raised):
        ended = "%s: %s" % child.ending()
    cases, others, gradients = {}, {}, set()
    for event in child.events:
        if event["event"] == "gradient":
            gradients.add(event["number"])
    last = ""
    for event in child.events:
        if event["event"] != "function":
            continue
        last = event["name"]
        if event["case"] is None:
            others.setdefault((event["name"], event["why"]), []).append(event["number"])
            continue
        case = dict(event["case"], gradient="b") if event["number"] in gradients else event["case"]
        cases.setdefault(key_of(case), (case, []))[1].append(event["number"])
    if ended and last:
        ended += " (the last function that was begun: %s)" % last
    return dict(
        answer,
        refused=refused["message"] if refused else "",
        ended=ended,
        cases=[dict(complete(case), source=times(len(numbers))) for case, numbers in cases.values()],
        others=[{"name": name, "why": why, "count": len(numbers)} for (name, why), numbers in sorted(others.items())],
        gradients=compared["gradients"] if compared else None,
        notes=compared["notes"] if compared else [],
    )
