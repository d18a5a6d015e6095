"""The networks of bench as tables, and what follows from them: shapes, work, memory. A part of payloads.

A network is a list of nodes in the order in which they can be computed; the peers (PyTorch, OpenCV, Caffe) are built
from the same tables as Chainer's. The layers are those of the publications, in the form in which convnet-benchmarks
runs them: without local response normalization and dropout, AlexNet as one tower, OverFeat's fast model, GoogLeNet with
both auxiliary classifiers, whose losses count 0.3 (Krizhevsky 2014; Szegedy et al. 2015; Simonyan and Zisserman 2015;
Sermanet et al. 2014; He et al. 2016).

Operations and their options:
  image        shape of one image: (channels, height, width)
  conv         out, kernel, stride, pad
  relu, add, concat (of channels), logits (what the loss looks at; option share: its weight in the loss)
  max, average kernel, stride, pad; ceil: a last window may stand out over the edge
  bn           batch normalization of each channel
  linear       out
"""

# Names of the inception modules with their channels: 1x1, 3x3 reduced, 3x3, 5x5 reduced, 5x5, after the pooling.
MODULES = (
    ("3a", 64, 96, 128, 16, 32, 32),
    ("3b", 128, 128, 192, 32, 96, 64),
    ("4a", 192, 96, 208, 16, 48, 64),
    ("4b", 160, 112, 224, 24, 64, 64),
    ("4c", 128, 128, 256, 24, 64, 64),
    ("4d", 112, 144, 288, 32, 64, 64),
    ("4e", 256, 160, 320, 32, 128, 128),
    ("5a", 256, 160, 320, 32, 128, 128),
    ("5b", 384, 192, 384, 48, 128, 128),
)
CLASSES = 1000
FLOAT = 4  # bytes


class Node(object):
    """One operation: its name, what it is, the names of its inputs, its options."""

    def __init__(self, name, op, inputs, options):
        self.name, self.op, self.inputs, self.options = name, op, inputs, options


class Net(object):
    """A network under construction; ``last`` is the node that the next one follows."""

    def __init__(self, name):
        self.name, self.nodes, self.last = name, [], None

    def add(self, op, name=None, after=None, **options):
        """Append an operation behind the last one, or behind ``after`` (a name or a list of names)."""
        name = name or "%s%d" % (op, len(self.nodes))
        inputs = [self.last] if after is None else after if isinstance(after, list) else [after]
        self.nodes.append(Node(name, op, [] if op == "image" else inputs, options))
        self.last = name
        return name

    def conv(self, name, out, kernel, stride=1, pad=0, after=None):
        """A convolution and its ReLU."""
        self.add("conv", name, after, out=out, kernel=kernel, stride=stride, pad=pad)
        return self.add("relu", name + "/relu")

    def pool(self, kernel, stride, pad=0, ceil=False, name=None, after=None, op="max"):
        """A pooling."""
        return self.add(op, name, after, kernel=kernel, stride=stride, pad=pad, ceil=ceil)

    def classify(self, widths, prefix="fc", after=None, share=1.0):
        """Linear layers of these widths with ReLUs between, then a classifier."""
        for number, width in enumerate(widths):
            self.add("linear", "%s%d" % (prefix, number + 6), after if number == 0 else None, out=width)
            self.add("relu")
        self.add("linear", "%s%d" % (prefix, len(widths) + 6), out=CLASSES)
        return self.add("logits", share=share)


def alexnet():
    """AlexNet in one tower (Krizhevsky, "One weird trick", 2014)."""
    net = Net("alexnet")
    net.add("image", "image", shape=(3, 224, 224))
    net.conv("conv1", 64, 11, 4, 2)
    net.pool(3, 2)
    net.conv("conv2", 192, 5, 1, 2)
    net.pool(3, 2)
    net.conv("conv3", 384, 3, 1, 1)
    net.conv("conv4", 256, 3, 1, 1)
    net.conv("conv5", 256, 3, 1, 1)
    net.pool(3, 2)
    net.classify((4096, 4096))
    return net


def overfeat():
    """OverFeat, the fast model."""
    net = Net("overfeat")
    net.add("image", "image", shape=(3, 231, 231))
    net.conv("conv1", 96, 11, 4)
    net.pool(2, 2)
    net.conv("conv2", 256, 5)
    net.pool(2, 2)
    net.conv("conv3", 512, 3, 1, 1)
    net.conv("conv4", 1024, 3, 1, 1)
    net.conv("conv5", 1024, 3, 1, 1)
    net.pool(2, 2)
    net.classify((3072, 4096))
    return net


def vgga():
    """VGG with configuration A."""
    net = Net("vgga")
    net.add("image", "image", shape=(3, 224, 224))
    for block, widths in enumerate(((64,), (128,), (256, 256), (512, 512), (512, 512))):
        for number, width in enumerate(widths):
            net.conv("conv%d_%d" % (block + 1, number + 1), width, 3, 1, 1)
        net.pool(2, 2)
    net.classify((4096, 4096))
    return net


def googlenet():
    """GoogLeNet with its two auxiliary classifiers."""
    net = Net("googlenet")
    net.add("image", "image", shape=(3, 224, 224))
    net.conv("conv1", 64, 7, 2, 3)
    net.pool(3, 2, ceil=True)
    net.conv("conv2_reduce", 64, 1)
    net.conv("conv2", 192, 3, 1, 1)
    net.pool(3, 2, ceil=True)
    for name, one, reduce3, three, reduce5, five, pooled in MODULES:
        start, name = net.last, "inc" + name
        parts = [net.conv(name + "_1x1", one, 1, after=start)]
        net.conv(name + "_3x3_reduce", reduce3, 1, after=start)
        parts.append(net.conv(name + "_3x3", three, 3, 1, 1))
        net.conv(name + "_5x5_reduce", reduce5, 1, after=start)
        parts.append(net.conv(name + "_5x5", five, 5, 1, 2))
        net.pool(3, 1, 1, name=name + "_pool", after=start)
        parts.append(net.conv(name + "_proj", pooled, 1))
        end = net.add("concat", name, parts)
        if name in ("inc4a", "inc4d"):
            net.pool(5, 3, op="average")
            net.conv(name + "_aux", 128, 1)
            net.classify((1024,), name + "_fc", share=0.3)
            net.last = end
        if name in ("inc3b", "inc4e"):
            net.pool(3, 2, ceil=True)
    net.pool(7, 1, op="average")
    net.classify(())
    return net


def resnet50():
    """ResNet-50; a stage halves the image in the first convolution of its first block, as published."""
    net = Net("resnet50")
    net.add("image", "image", shape=(3, 224, 224))
    normalized(net, "conv1", 64, 7, 2, 3)
    net.pool(3, 2, 1)
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            name, start = "res%d%s" % (stage + 2, "abcdef"[block]), net.last
            stride = 2 if stage and not block else 1
            short = start
            if not block:
                short = normalized(net, name + "_short", 4 * width, 1, stride, 0, start, relu=False)
            normalized(net, name + "_1", width, 1, stride, 0, start)
            normalized(net, name + "_2", width, 3, 1, 1)
            end = normalized(net, name + "_3", 4 * width, 1, 1, 0, relu=False)
            net.add("add", name, [end, short])
            net.add("relu")
    net.pool(7, 1, op="average")
    net.classify(())
    return net


def normalized(net, name, out, kernel, stride, pad, after=None, relu=True):
    """A convolution, its batch normalization, and mostly a ReLU."""
    net.add("conv", name, after, out=out, kernel=kernel, stride=stride, pad=pad)
    last = net.add("bn", name + "/bn")
    return net.add("relu", name + "/relu") if relu else last


def convolutions():
    """Single convolutions as they stand in the networks above, each with an input of its own."""
    net = Net("conv")
    for name, shape, out, kernel, stride, pad in (
        ("first", (3, 224, 224), 64, 7, 2, 3),
        ("shallow", (64, 56, 56), 64, 3, 1, 1),
        ("middle", (128, 28, 28), 128, 3, 1, 1),
        ("deep", (256, 14, 14), 256, 3, 1, 1),
        ("last", (512, 7, 7), 512, 3, 1, 1),
        ("wide", (96, 27, 27), 256, 5, 1, 2),
        ("pointwise", (256, 28, 28), 64, 1, 1, 0),
    ):
        net.add("image", name + "/image", shape=shape)
        net.add("conv", name, out=out, kernel=kernel, stride=stride, pad=pad)
        net.add("logits", name + "/end", share=1.0)
    return net


NETS = {
    "alexnet": alexnet,
    "googlenet": googlenet,
    "vgga": vgga,
    "overfeat": overfeat,
    "resnet50": resnet50,
    "conv": convolutions,
}


def window(size, options):
    """Side of what a convolution or a pooling makes of this side."""
    span = size + 2 * options["pad"] - options["kernel"]
    if options.get("ceil"):
        span += options["stride"] - 1
    return span // options["stride"] + 1


def shapes_of(net):
    """Shape of one image behind each node, by name."""
    shapes = {}
    for node in net.nodes:
        given = [shapes[name] for name in node.inputs]
        if node.op == "image":
            shape = tuple(node.options["shape"])
        elif node.op in ("conv", "max", "average"):
            out = node.options["out"] if node.op == "conv" else given[0][0]
            shape = (out, window(given[0][1], node.options), window(given[0][2], node.options))
        elif node.op == "linear":
            shape = (node.options["out"],)
        elif node.op == "concat":
            shape = (sum(part[0] for part in given),) + given[0][1:]
        else:
            shape = given[0]
        shapes[node.name] = shape
    return shapes


def product(numbers):
    """Product of whole numbers."""
    result = 1
    for number in numbers:
        result *= number
    return result


def work_of(net):
    """Multiplications and additions of one image, forward and backward, of each convolution and linear layer.

    A product of the weights with each output in the forward pass, one for the gradient of the weights, and one for that
    of the input, but for layers whose input is an image. Other operations do next to nothing of the work.
    """
    shapes, work = shapes_of(net), {}
    images = set(node.name for node in net.nodes if node.op == "image")
    for node in net.nodes:
        if node.op not in ("conv", "linear"):
            continue
        given, made = shapes[node.inputs[0]], shapes[node.name]
        terms = given[0] * node.options["kernel"] ** 2 if node.op == "conv" else product(given)
        forward = 2 * terms * product(made)
        work[node.name] = (forward, forward * (1 if node.inputs[0] in images else 2))
    return work


def flops_of(net, batch):
    """Multiplications and additions of a batch, forward and backward."""
    work = work_of(net)
    return [float(batch * sum(pair[place] for pair in work.values())) for place in (0, 1)]


def parameters_of(net):
    """Number of parameters of each convolution, linear layer and batch normalization."""
    shapes, counts = shapes_of(net), {}
    for node in net.nodes:
        given = shapes[node.inputs[0]] if node.inputs else ()
        if node.op == "conv":
            counts[node.name] = node.options["out"] * (given[0] * node.options["kernel"] ** 2 + 1)
        elif node.op == "linear":
            counts[node.name] = node.options["out"] * (product(given) + 1)
        elif node.op == "bn":
            counts[node.name] = 2 * given[0]
    return counts


def memory_of(net, batch, columns):
    """Bytes that a step takes at its peak, roughly: parameters and their gradients, and what each node made.

    Gradients of what nodes made live for a short time only; half of them is added. With ``columns`` (NumPy) a
    convolution unfolds its input first, as many numbers as its kernel has for each output, and keeps nothing of it.
    """
    shapes = shapes_of(net)
    made = [product(shapes[node.name]) for node in net.nodes if node.op != "logits"]
    largest = 0
    for node in net.nodes:
        if columns and node.op == "conv":
            channels, out = shapes[node.inputs[0]][0], shapes[node.name]
            largest = max(largest, 2 * channels * node.options["kernel"] ** 2 * out[1] * out[2])
    return FLOAT * (2 * sum(parameters_of(net).values()) + batch * (sum(made) * 3 // 2 + largest))
