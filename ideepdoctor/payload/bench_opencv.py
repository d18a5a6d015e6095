"""The worker of bench for OpenCV's DNN module, which computes forward only: the networks of the tables as ONNX models.

It needs the packages onnx and cv2. Requests (see talk.py for how they come):
  load   net, batch: {"versions", "threads", "parameters", "flops", "used": null, "guard", "mkldnn", "first": [seconds],
         "loss": null, "batch", "note"}
  steps  count: {"forward": [seconds], "backward": []} of each step
"""

import sys

sys.path[:] = [entry for entry in sys.path if entry]

from nets import product, shapes_of  # noqa: E402
from peer import EPSILON, SEED, asked_net, threads_allowed  # noqa: E402
from talk import serve_requests, timed_steps, timer  # noqa: E402

OPSET, IR = 13, 8  # of ONNX: old enough for OpenCV 4.5
POOLS = {"max": "MaxPool", "average": "AveragePool"}
PLAIN = {"relu": "Relu", "add": "Add"}
FORWARD = "OpenCV computes forward only"
INFERENCE = FORWARD + "; batch normalization with fixed averages, as in inference, which is less work than in training"


def random_weights(np, net):
    """Parameters by (node, "W", "b", "gamma" or "beta"), Chainer's names and shapes (He et al. 2015)."""
    shapes, random, made = shapes_of(net), np.random.RandomState(SEED), {}
    for node in net.nodes:
        given = shapes[node.inputs[0]] if node.inputs else ()
        if node.op == "bn":
            made[node.name, "gamma"] = np.ones(given[0], np.float32)
            made[node.name, "beta"] = np.zeros(given[0], np.float32)
            continue
        if node.op == "conv":
            shape = (node.options["out"], given[0], node.options["kernel"], node.options["kernel"])
        elif node.op == "linear":
            shape = (node.options["out"], product(given))
        else:
            continue
        values = random.standard_normal(shape).astype(np.float32)
        values *= np.float32((2.0 / product(shape[1:])) ** 0.5)
        made[node.name, "W"], made[node.name, "b"] = values, np.zeros(shape[0], np.float32)
    return made


def onnx_model(onnx, net, batch, weights):
    """The network as the bytes of an ONNX model, its outputs named as the nodes that the loss looks at."""
    helper, single = onnx.helper, onnx.TensorProto.FLOAT
    shapes, nodes, initial, inputs, outputs = shapes_of(net), [], [], [], []

    def held(name, array):
        # Raw bytes: as a list of numbers, VGG's first linear layer would take gigabytes for a moment.
        initial.append(helper.make_tensor(name, single, array.shape, array.tobytes(), raw=True))
        return name

    def parameters(node, *names):
        return [held("%s/%s" % (node.name, name), weights[node.name, name]) for name in names]

    def add(op, given, node, **options):
        nodes.append(helper.make_node(op, given, [node.name], name=node.name, **options))

    for node in net.nodes:
        given, options = list(node.inputs), node.options
        if node.op == "image":
            inputs.append(helper.make_tensor_value_info(node.name, single, (batch,) + tuple(options["shape"])))
        elif node.op == "conv":
            window = {"kernel_shape": [options["kernel"]] * 2, "strides": [options["stride"]] * 2}
            add("Conv", given + parameters(node, "W", "b"), node, pads=[options["pad"]] * 4, **window)
        elif node.op in POOLS:
            window = {"kernel_shape": [options["kernel"]] * 2, "strides": [options["stride"]] * 2}
            window["ceil_mode"] = int(bool(options["ceil"]))
            add(POOLS[node.op], given, node, pads=[options["pad"]] * 4, **window)
        elif node.op == "linear":
            if len(shapes[given[0]]) > 1:
                flat = node.name + "/flat"
                nodes.append(helper.make_node("Flatten", given, [flat], name=flat, axis=1))
                given = [flat]
            add("Gemm", given + parameters(node, "W", "b"), node, transB=1)
        elif node.op == "bn":
            first = weights[node.name, "gamma"]
            fixed = [held(node.name + "/mean", 0 * first), held(node.name + "/var", 0 * first + 1)]
            add("BatchNormalization", given + parameters(node, "gamma", "beta") + fixed, node, epsilon=EPSILON)
        elif node.op == "concat":
            add("Concat", given, node, axis=1)
        elif node.op == "logits":
            add("Identity", given, node)
            outputs.append(helper.make_tensor_value_info(node.name, single, (batch,) + tuple(shapes[node.name])))
        else:
            add(PLAIN[node.op], given, node)
    graph = helper.make_graph(nodes, net.name, inputs, outputs, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_operatorsetid("", OPSET)], ir_version=IR)
    return model.SerializeToString()


class Engine(object):
    """OpenCV in this process, and the network that was loaded."""

    def __init__(self):
        self.cv2, self.step = None, None

    def start(self):
        """Import it, once, with the threads that this process may use."""
        if self.cv2 is None:
            import cv2
            import numpy
            import onnx

            self.cv2, self.np, self.onnx = cv2, numpy, onnx
            cv2.setNumThreads(threads_allowed())

    def load(self, request):
        """Make a network and take its first step."""
        self.step = None
        net, batch, told = asked_net(request, "OpenCV")
        self.start()
        forward = self.reader(net, batch, random_weights(self.np, net))
        random, images = self.np.random.RandomState(SEED), {}
        for node in net.nodes:
            if node.op == "image":
                shape = (batch,) + tuple(node.options["shape"])
                images[node.name] = random.standard_normal(shape).astype(self.np.float32)

        def step():
            started = timer()
            forward(images)
            return timer() - started, None

        first, _ = step()
        self.step = step
        normalized = any(node.op == "bn" for node in net.nodes)
        told.update(versions=self.versions(), threads=int(self.cv2.getNumThreads()), first=[first], mkldnn=False)
        return dict(told, note=INFERENCE if normalized else FORWARD)

    def reader(self, net, batch, weights):
        """A function that gives the outputs of a network (a list) for the arrays of its images (by name)."""
        dnn = self.cv2.dnn
        model = onnx_model(self.onnx, net, batch, weights)
        made = dnn.readNetFromONNX(self.np.frombuffer(model, self.np.uint8))
        ends = [node.name for node in net.nodes if node.op == "logits"]

        def forward(images):
            for name in sorted(images):
                made.setInput(images[name], name)
            return made.forward(ends)

        return forward

    def versions(self):
        """Versions of what takes part."""
        return {"opencv": self.cv2.__version__, "numpy": self.np.__version__, "onnx": self.onnx.__version__}


if __name__ == "__main__":
    ENGINE = Engine()
    serve_requests(
        {
            "load": ENGINE.load,
            "steps": lambda request: timed_steps(ENGINE.step, int(request["count"])),
        }
    )
