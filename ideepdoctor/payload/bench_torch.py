"""The worker of bench for PyTorch (1.4 and later) on processors: the networks of the tables, in eager mode.

Requests (see talk.py for how they come):
  load   net, batch, channels_last (true: activations and weights of convolutions in that order): {"versions",
         "threads", "parameters", "flops", "used": null, "guard", "mkldnn", "first": [seconds] * 2, "loss", "batch"}
  steps  count: {"forward": [seconds], "backward": [seconds]} of each step
  sgemm  sizes: {"sgemm": [{"library", "size", "gflops"}]}

The weights, the images and the loss are of the same distributions as Chainer's in bench.py, and so are the values of
batch normalization (epsilon 2e-5, running averages with 0.9). ReLUs are computed in place, as models of PyTorch do.
"""

import os
import re
import sys

sys.path[:] = [entry for entry in sys.path if entry]

from nets import CLASSES, product, shapes_of  # noqa: E402
from peer import DECAY, EPSILON, SEED, asked_net, threads_allowed  # noqa: E402
from talk import CannotDo, serve_requests, sized_products, timed_steps, timer  # noqa: E402


def import_torch():
    """PyTorch, its libraries bound as late as can be.

    Of CUDA's libraries, an environment that the doctor makes has empty stand-ins: nothing of them is used without a
    GPU, but a loader that binds at once would look for every function.
    """
    lazy, now = getattr(os, "RTLD_LAZY", 1), getattr(os, "RTLD_NOW", 2)
    sys.setdlopenflags((sys.getdlopenflags() & ~now) | lazy)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no NumPy
        import torch
        import torch.backends.mkldnn  # PyTorch 1.4 does not import it itself
    return torch


class Model(object):
    """Weights and the computation that a table describes.

    ``weights`` holds the parameters by (node, "W", "b", "gamma" or "beta"), Chainer's names and shapes; ``seen`` the
    running averages of batch normalization, which are no parameters.
    """

    def __init__(self, torch, net, channels_last=False):
        self.torch, self.net, self.channels_last = torch, net, channels_last
        self.weights, self.seen = {}, {}
        shapes, generator = shapes_of(net), torch.Generator()
        generator.manual_seed(SEED)
        for node in net.nodes:
            given = shapes[node.inputs[0]] if node.inputs else ()
            if node.op == "conv":
                shape = (node.options["out"], given[0], node.options["kernel"], node.options["kernel"])
            elif node.op == "linear":
                shape = (node.options["out"], product(given))
            elif node.op == "bn":
                self.seen[node.name] = torch.zeros(given[0]), torch.ones(given[0])
                self.weights[node.name, "gamma"] = torch.ones(given[0])
                self.weights[node.name, "beta"] = torch.zeros(given[0])
                continue
            else:
                continue
            spread = (2.0 / product(shape[1:])) ** 0.5
            made = torch.empty(shape).normal_(0.0, spread, generator=generator)
            self.weights[node.name, "W"] = self.ordered(made)
            self.weights[node.name, "b"] = torch.zeros(shape[0])
        for tensor in self.weights.values():
            tensor.requires_grad_(True)

    def ordered(self, tensor):
        """The same numbers in the order in memory that was asked for."""
        if not self.channels_last or tensor.dim() != 4:
            return tensor
        try:
            return tensor.contiguous(memory_format=self.torch.channels_last)
        except (AttributeError, TypeError, RuntimeError):
            raise CannotDo("PyTorch %s has no channels last" % self.torch.__version__)

    def forget(self):
        """Drop the gradients of the last step."""
        for tensor in self.weights.values():
            tensor.grad = None

    def compute(self, images):
        """Each output with its share of the loss."""
        torch, weights = self.torch, self.weights
        functions = torch.nn.functional
        values, outputs = {}, []
        for node in self.net.nodes:
            given, options = [values[name] for name in node.inputs], node.options
            if node.op == "image":
                value = images[node.name]
            elif node.op == "conv":
                places = options["stride"], options["pad"]
                value = functions.conv2d(given[0], weights[node.name, "W"], weights[node.name, "b"], *places)
            elif node.op == "linear":
                flat = given[0].flatten(1)
                value = functions.linear(flat, weights[node.name, "W"], weights[node.name, "b"])
            elif node.op == "bn":
                mean, var = self.seen[node.name]
                gamma, beta = weights[node.name, "gamma"], weights[node.name, "beta"]
                value = functions.batch_norm(given[0], mean, var, gamma, beta, True, 1 - DECAY, EPSILON)
            elif node.op == "relu":
                value = functions.relu_(given[0])
            elif node.op == "max":
                window = options["kernel"], options["stride"], options["pad"]
                value = functions.max_pool2d(given[0], *window, ceil_mode=options["ceil"])
            elif node.op == "average":
                value = functions.avg_pool2d(given[0], options["kernel"], options["stride"], options["pad"])
            elif node.op == "concat":
                value = torch.cat(given, 1)
            elif node.op == "add":
                value = given[0] + given[1]
            else:
                value = given[0]
                outputs.append((value, options["share"]))
            values[node.name] = value
        return outputs

    def loss(self, outputs, truth):
        """The sum of the cross entropies, each with its share."""
        entropy = self.torch.nn.functional.cross_entropy
        return sum(share * entropy(output, truth) for output, share in outputs)


class Engine(object):
    """PyTorch in this process, and the network that was loaded."""

    def __init__(self):
        self.torch, self.step, self.loss = None, None, None

    def start(self):
        """Import it, once, with the threads that this process may use."""
        if self.torch is None:
            self.torch = import_torch()
            self.torch.set_num_threads(threads_allowed())

    def load(self, request):
        """Make a network and take its first step."""
        self.step = self.loss = None
        net, batch, told = asked_net(request, "PyTorch")
        self.start()
        model = Model(self.torch, net, bool(request.get("channels_last")))
        self.step = self.training(model, batch)
        first = self.step()
        told.update(versions=self.versions(), threads=self.torch.get_num_threads(), first=list(first), loss=self.loss)
        return dict(told, mkldnn=bool(self.torch.backends.mkldnn.is_available()))

    def training(self, model, batch):
        """A function that takes a step: the seconds of its forward and its backward pass."""
        torch, net = self.torch, model.net
        generator = torch.Generator()
        generator.manual_seed(SEED)
        images = {}
        for node in net.nodes:
            if node.op == "image":
                shape = (batch,) + tuple(node.options["shape"])
                images[node.name] = model.ordered(torch.randn(shape, generator=generator))
        truth = torch.randint(0, CLASSES, (batch,), generator=generator)
        gradients = None
        if net.name == "conv":
            shapes = shapes_of(net)
            ends = [node.name for node in net.nodes if node.op == "logits"]
            made = [torch.randn((batch,) + shapes[name], generator=generator) for name in ends]
            gradients = [model.ordered(tensor) for tensor in made]

        def step():
            started = timer()
            model.forget()
            outputs = model.compute(images)
            if gradients is None:
                loss = model.loss(outputs, truth)
                middle = timer()
                loss.backward()
            else:
                loss, middle = None, timer()
                for (output, _), gradient in zip(outputs, gradients):
                    output.backward(gradient)
            ended = timer()
            if loss is not None:
                self.loss = float(loss.detach())
            return middle - started, ended - middle

        return step

    def versions(self):
        """Versions of PyTorch and of the oneDNN in it."""
        found = {"torch": str(self.torch.__version__)}
        built = re.search(r"(?:MKL-DNN|oneDNN) v([0-9.]+)", self.built())
        if built:
            found["mkldnn"] = built.group(1)
        return found

    def built(self):
        """What PyTorch says of how it was built."""
        return str(self.torch.__config__.show())

    def products(self, sizes):
        """Matrix products of the BLAS in PyTorch."""
        self.start()
        torch, built = self.torch, self.built()
        library = re.search(r"Math Kernel Library Version ([0-9.]+)", built)
        other = re.search(r"BLAS_INFO=(\w+)", built)
        blas = "MKL " + library.group(1) if library else other.group(1) if other else "BLAS"

        def of_torch(n):
            generator = torch.Generator()
            generator.manual_seed(n)
            a, b = [torch.randn((n, n), generator=generator) for _ in range(2)]
            c = torch.empty((n, n))
            return lambda: torch.matmul(a, b, out=c)

        return sized_products("PyTorch %s (%s)" % (torch.__version__, blas), of_torch, sizes)


if __name__ == "__main__":
    ENGINE = Engine()
    serve_requests(
        {
            "load": ENGINE.load,
            "steps": lambda request: timed_steps(ENGINE.step, int(request["count"])),
            "sgemm": lambda request: {"sgemm": ENGINE.products(request["sizes"])},
        }
    )
