"""The worker of bench for Chainer: one network at a time, with iDeep or with NumPy. Python 2.7 and 3.5 to 3.14.

Requests (see talk.py for how they come):
  describe  net, batch: {"parameters", "flops": [forward, backward], "memory": {"ideep", "numpy"} in bytes,
            "layers": [{"layer", "primitive", "problem", "flops", "bytes", "first"}]}; nothing of it needs Chainer
  load      net, batch, use ("auto" or "never"), to_intel64, or model [FILE, FUNCTION]: makes the network with random
            weights and data and takes one step: {"versions", "threads", "parameters", "flops", "used", "guard",
            "mkldnn", "first": [seconds, seconds], "loss", "batch"}
  steps     count: {"forward": [seconds], "backward": [seconds]} of each step
  sgemm     sizes: {"sgemm": [{"library", "size", "gflops"}], "threads"} of each library in this process that has it
"""

import os
import re
import sys

sys.path[:] = [entry for entry in sys.path if entry]

from nets import (  # noqa: E402
    CLASSES,
    FLOAT,
    flops_of,
    memory_of,
    parameters_of,
    product,
    shapes_of,
    work_of,
)
from peer import SEED, net_of  # noqa: E402
from talk import CannotDo, serve_requests, sized_products, timed_steps, timer  # noqa: E402
from user_model import Refused, call_function, load_function, variables_of  # noqa: E402

BLOCK = 1048583  # a prime


def describe_net(request):
    """What follows from the table of a network."""
    net, batch = net_of(request), int(request["batch"])
    memory = {"ideep": memory_of(net, batch, False), "numpy": memory_of(net, batch, True)}
    told = {"parameters": sum(parameters_of(net).values()), "flops": flops_of(net, batch), "memory": memory}
    return dict(told, layers=layers_of(net, batch))


def layers_of(net, batch):
    """Convolutions and linear layers as MKL-DNN prints them: the text of the problem, work and bytes of one product."""
    shapes, counts, work, found = shapes_of(net), parameters_of(net), work_of(net), []
    images = set(node.name for node in net.nodes if node.op == "image")
    for node in net.nodes:
        if node.op not in ("conv", "linear"):
            continue
        given, made = shapes[node.inputs[0]], shapes[node.name]
        if node.op == "linear":
            problem = "mb%dic%doc%d" % (batch, product(given), made[0])
        else:
            sides = (given[1], made[1], node.options["kernel"], node.options["stride"], node.options["pad"])
            problem = "mb%d_g1ic%doc%d_ih%doh%dkh%dsh%ddh0ph%d" % ((batch, given[0], made[0]) + sides)
        touched = FLOAT * (batch * (product(given) + product(made)) + counts[node.name])
        primitive = {"conv": "convolution", "linear": "inner_product"}[node.op]
        layer = {"layer": node.name, "primitive": primitive, "problem": problem, "first": node.inputs[0] in images}
        found.append(dict(layer, flops=float(batch * work[node.name][0]), bytes=touched))
    return found


class Engine(object):
    """Chainer in this process, and the network that was loaded."""

    def __init__(self):
        self.chainer, self.step, self.used, self.loss, self.mdarray = None, None, None, None, ()

    def start(self):
        """Import what is measured, once."""
        if self.chainer is not None:
            return
        import chainer
        import chainer.functions
        import chainer.links
        import numpy

        self.np, self.F, self.L = numpy, chainer.functions, chainer.links
        try:
            import ideep4py

            self.mdarray = ideep4py.mdarray
        except Exception:
            pass  # an engine of NumPy's alone
        self.chainer = chainer

    def load(self, request):
        """Make a network and take its first step."""
        self.step = self.used = self.loss = None
        self.start()
        use = str(request.get("use") or "auto")
        if use == "auto" and not self.available():
            raise CannotDo("Chainer has no iDeep here: %s" % self.reason())
        self.chainer.global_config.use_ideep = use
        told = {"parameters": None, "flops": None}
        if request.get("model"):
            self.step, batch, told["parameters"] = self.own(request["model"])
        else:
            batch, described = int(request["batch"]), describe_net(request)
            told = {"parameters": described["parameters"], "flops": described["flops"]}
            model = make_model(self, net_of(request))
            if request.get("to_intel64") and use == "auto":
                model.to_intel64()
            self.step = self.training(model, batch)
        first = self.step()
        told.update(versions=self.versions(), threads=self.threads(), used=self.used, guard=self.guarded())
        return dict(told, mkldnn=bool(self.mdarray), first=list(first), loss=self.loss, batch=batch)

    def training(self, model, batch):
        """A function that takes a step of a network from the tables: the seconds of its two passes."""
        np, functions = self.np, self.F
        random = np.random.RandomState(SEED)
        images = {}
        for node in model.net.nodes:
            if node.op == "image":
                shape = (batch,) + tuple(node.options["shape"])
                images[node.name] = random.standard_normal(shape).astype(np.float32)
        truth = random.randint(0, CLASSES, batch).astype(np.int32)
        gradients = None
        if model.net.name == "conv":
            shapes = shapes_of(model.net)
            ends = [node.name for node in model.net.nodes if node.op == "logits"]
            gradients = [random.standard_normal((batch,) + shapes[name]).astype(np.float32) for name in ends]

        def step():
            started = timer()
            model.cleargrads()
            outputs = model.compute(images)
            if gradients is None:
                loss = sum(share * functions.softmax_cross_entropy(output, truth) for output, share in outputs)
                middle = timer()
                loss.backward()
            else:
                middle = timer()
                for (output, _), gradient in zip(outputs, gradients):
                    output.grad = gradient
                    output.backward()
            ended = timer()
            if self.used is None:
                self.used = isinstance(model.seen.data, self.mdarray) if self.mdarray else False
            if gradients is None:
                self.loss = float(loss.data)
            return middle - started, ended - middle

        return step

    def own(self, place):
        """The user's model: a step of it, the length of its first input, the number of its parameters."""
        try:
            model, inputs = call_function(load_function(*place), place[1])
        except Refused as reason:
            raise CannotDo(str(reason))
        np, chainer = self.np, self.chainer
        cleared = model.cleargrads if hasattr(model, "cleargrads") else lambda: None
        random, gradients = np.random.RandomState(SEED), []

        def step():
            started = timer()
            cleared()
            try:
                if self.used is None:
                    self.used = False
                    with self.watch():
                        outputs = variables_of(chainer, model(*inputs))
                else:
                    outputs = variables_of(chainer, model(*inputs))
            except Refused as reason:
                raise CannotDo(str(reason))
            middle = timer()
            self.used = self.used or any(isinstance(y.data, self.mdarray) for y in outputs)
            if not gradients:
                gradients.extend(random.standard_normal(y.shape).astype(y.dtype) for y in outputs)
            for output, gradient in zip(outputs, gradients):
                if output.data.size > 1:
                    output.grad = gradient
                output.backward()
            return middle - started, timer() - middle

        first = next((value for value in inputs if hasattr(value, "shape") and len(value.shape)), None)
        params = model.params() if hasattr(model, "params") else ()
        counts = [param.data.size for param in params if param.data is not None]
        return step, 1 if first is None else int(first.shape[0]), int(sum(counts)) if counts else None

    def watch(self):
        """A hook that sees whether functions get arrays of iDeep: what they compute is gone when the step has ended."""
        engine, base = self, getattr(self.chainer, "FunctionHook", None) or self.chainer.function.FunctionHook

        class Watch(base):
            name = "IdeepdoctorWatch"

            def forward_preprocess(self, function, in_data):
                if any(isinstance(data, engine.mdarray) for data in in_data):
                    engine.used = True

        return Watch()

    def available(self):
        """Whether Chainer can use iDeep."""
        try:
            from chainer.backends import intel64

            return bool(intel64.is_ideep_available())
        except Exception:
            return False

    def reason(self):
        """Why it cannot."""
        try:
            from chainer.backends import intel64

            intel64.check_ideep_available()
        except Exception as error:
            return " ".join(str(error).split())[:300]
        return "unknown"

    def versions(self):
        """Versions of what takes part."""
        found = {"chainer": self.chainer.__version__, "numpy": self.np.__version__}
        try:
            import ideep4py

            found["ideep4py"] = str(getattr(ideep4py, "__version__", "1"))
        except Exception:
            pass
        return found

    def threads(self):
        """Threads of the OpenMP runtime of iDeep (without MKL that of GCC); None where it is not here."""
        import ctypes

        names = ("libiomp5", "libgomp") if self.mdarray else ("libiomp5",)
        path = next((path for name in names for path in loaded() if name in path), None)
        try:
            return None if path is None else int(ctypes.CDLL(path).omp_get_max_threads())
        except (OSError, AttributeError):
            return None

    def guarded(self):
        """Whether the guard corrects something here."""
        module = sys.modules.get("_ideepdoctor_guard")
        try:
            return bool(module is not None and module.STATE.active)
        except AttributeError:
            return False


def make_model(engine, net):
    """A chain of links as the table says, with weights that keep numbers in range (He et al. 2015)."""
    np, functions, links = engine.np, engine.F, engine.L
    shapes, random = shapes_of(net), np.random.RandomState(SEED)

    deviates = random.standard_normal(BLOCK).astype(np.float32)

    def weights(*shape):
        # Deviates of one block, over and over: 130 million new ones would take seconds. No shape divides the block.
        return np.resize(deviates, shape) * np.float32((2.0 / product(shape[1:])) ** 0.5)

    class Model(engine.chainer.Chain):
        def __init__(self):
            super(Model, self).__init__()
            self.net, self.of, self.seen = net, {}, None
            with self.init_scope():
                for number, node in enumerate(net.nodes):
                    link, options = None, node.options
                    given = shapes[node.inputs[0]] if node.inputs else ()
                    if node.op == "conv":
                        sides = options["kernel"], options["kernel"]
                        initial = weights(options["out"], given[0], *sides)
                        places = options["kernel"], options["stride"], options["pad"]
                        link = links.Convolution2D(given[0], options["out"], *places, initialW=initial)
                    elif node.op == "linear":
                        initial = weights(options["out"], product(given))
                        link = links.Linear(product(given), options["out"], initialW=initial)
                    elif node.op == "bn":
                        link = links.BatchNormalization(given[0])
                    if link is not None:
                        setattr(self, "link%d" % number, link)
                        self.of[node.name] = link

        def compute(self, images):
            """Each output with its share of the loss."""
            values, outputs = {}, []
            for node in net.nodes:
                given, options = [values[name] for name in node.inputs], node.options
                if node.op == "image":
                    value = images[node.name]
                elif node.op in ("conv", "linear", "bn"):
                    value = self.of[node.name](given[0])
                    if node.op == "conv":
                        self.seen = value
                elif node.op == "relu":
                    value = functions.relu(given[0])
                elif node.op == "max":
                    window = options["kernel"], options["stride"], options["pad"], options["ceil"]
                    value = functions.max_pooling_2d(given[0], *window)
                elif node.op == "average":
                    value = functions.average_pooling_2d(given[0], options["kernel"], options["stride"], options["pad"])
                elif node.op == "concat":
                    value = functions.concat(given)
                elif node.op == "add":
                    value = given[0] + given[1]
                else:
                    value = given[0]
                    outputs.append((value, options["share"]))
                values[node.name] = value
            return outputs

    return Model()


def loaded():
    """Paths of the files that this process has mapped."""
    try:
        with open("/proc/self/maps") as stream:
            return sorted(set(line.split()[-1] for line in stream if ".so" in line))
    except (OSError, IOError):
        return []


def products(engine, sizes):
    """Matrix products of NumPy, and of the MKL that iDeep brought."""
    import ctypes

    engine.start()
    np = engine.np

    def arrays(n):
        random = np.random.RandomState(n)
        return [random.standard_normal((n, n)).astype(np.float32) for _ in range(3)]

    def of_numpy(n):
        a, b, c = arrays(n)
        return lambda: np.dot(a, b, c)

    found = sized_products("NumPy %s (%s)" % (np.__version__, blas_of(np)), of_numpy, sizes)
    path = next((path for path in loaded() if "libmklml" in os.path.basename(path)), None)
    if path is None:
        return found
    library = ctypes.CDLL(path)

    def of_mkl(n):
        given = arrays(n)
        a, b, c = [ctypes.c_void_p(array.ctypes.data) for array in given]
        one, none = ctypes.c_float(1), ctypes.c_float(0)
        row, plain = 101, 111  # CblasRowMajor, CblasNoTrans

        def multiply(held=given):
            library.cblas_sgemm(row, plain, plain, n, n, n, one, a, n, b, n, none, c, n)

        return multiply

    text = ctypes.create_string_buffer(256)
    try:
        library.MKL_Get_Version_String(text, 256)
    except AttributeError:
        pass
    version = re.search(r"Version ([0-9.]+)", text.value.decode("ascii", "replace"))
    return found + sized_products("MKLML %s" % (version.group(1) if version else ""), of_mkl, sizes)


def blas_of(np):
    """The BLAS that NumPy has loaded, by its file's name."""
    for name, word in (("OpenBLAS", "openblas"), ("MKL", "libmkl_rt"), ("MKL", "libmkl_core"), ("ATLAS", "atlas")):
        if any(word in os.path.basename(path) for path in loaded()):
            return name
    return "BLAS"


if __name__ == "__main__":
    ENGINE = Engine()
    serve_requests(
        {
            "describe": describe_net,
            "load": ENGINE.load,
            "steps": lambda request: timed_steps(ENGINE.step, int(request["count"])),
            "sgemm": lambda request: {"sgemm": products(ENGINE, request["sizes"]), "threads": ENGINE.threads()},
        }
    )
