"""The catalogue of certify: which cases there are, and in which order they are worth trying; a part of the payload.

The order within an operation is that of the list: cheap cases that are known to show faults first, layers of published
networks, as large as time and memory allow, last. A case is an object of JSON (see certify_ops).
"""

import json

from certify_ops import ELEMENTWISE, pair, product  # noqa: E402
from lab import SEEN_WRONG, cache_bytes, exposing_shape  # noqa: E402

# Bounds on a batch of a published layer: multiplications and additions of a forward pass, elements of the input or the
# output, of the matrix that NumPy makes of the input. One image is tried whatever it takes.
MOST_FLOPS = 0.8e9
MOST_ELEMENTS_OF_ARRAY = 1024 * 1024
MOST_NUMBERS = 8 * 1024 * 1024
BATCHES = (64, 32, 16, 8, 4, 3, 2, 1)

# Layers as published: (name, input channels, output channels, kernel, stride, pad, height and width of the input).
# AlexNet: Krizhevsky, Sutskever, Hinton, NIPS 2012, both halves together. OverFeat: Sermanet et al., ICLR 2014, table
# 1, fast model. VGG-A: Simonyan, Zisserman, ICLR 2015, table 1, A. ResNet-50: He et al., CVPR 2016, table 1.
LAYERS = (
    ("AlexNet conv1", 3, 96, 11, 4, 0, 227),
    ("AlexNet conv2", 96, 256, 5, 1, 2, 27),
    ("AlexNet conv3", 256, 384, 3, 1, 1, 13),
    ("AlexNet conv4", 384, 384, 3, 1, 1, 13),
    ("AlexNet conv5", 384, 256, 3, 1, 1, 13),
    ("OverFeat conv1", 3, 96, 11, 4, 0, 231),
    ("OverFeat conv2", 96, 256, 5, 1, 0, 28),
    ("OverFeat conv3", 256, 512, 3, 1, 1, 12),
    ("OverFeat conv4", 512, 1024, 3, 1, 1, 12),
    ("OverFeat conv5", 1024, 1024, 3, 1, 1, 12),
    ("VGG-A conv1", 3, 64, 3, 1, 1, 224),
    ("VGG-A conv2", 64, 128, 3, 1, 1, 112),
    ("VGG-A conv3-1", 128, 256, 3, 1, 1, 56),
    ("VGG-A conv3-2", 256, 256, 3, 1, 1, 56),
    ("VGG-A conv4-1", 256, 512, 3, 1, 1, 28),
    ("VGG-A conv4-2", 512, 512, 3, 1, 1, 28),
    ("VGG-A conv5", 512, 512, 3, 1, 1, 14),
    ("GoogLeNet conv1", 3, 64, 7, 2, 3, 224),
    ("GoogLeNet conv2 reduce", 64, 64, 1, 1, 0, 56),
    ("GoogLeNet conv2", 64, 192, 3, 1, 1, 56),
    ("ResNet-50 conv2 1x1", 64, 64, 1, 1, 0, 56),
    ("ResNet-50 conv2 3x3", 64, 64, 3, 1, 1, 56),
    ("ResNet-50 conv2 expand", 64, 256, 1, 1, 0, 56),
    ("ResNet-50 conv2 reduce", 256, 64, 1, 1, 0, 56),
    ("ResNet-50 conv3 1x1", 256, 128, 1, 2, 0, 56),
    ("ResNet-50 conv3 3x3", 128, 128, 3, 1, 1, 28),
    ("ResNet-50 conv3 expand", 128, 512, 1, 1, 0, 28),
    ("ResNet-50 conv3 shortcut", 256, 512, 1, 2, 0, 56),
    ("ResNet-50 conv3 reduce", 512, 128, 1, 1, 0, 28),
    ("ResNet-50 conv4 1x1", 512, 256, 1, 2, 0, 28),
    ("ResNet-50 conv4 3x3", 256, 256, 3, 1, 1, 14),
    ("ResNet-50 conv4 expand", 256, 1024, 1, 1, 0, 14),
    ("ResNet-50 conv4 shortcut", 512, 1024, 1, 2, 0, 28),
    ("ResNet-50 conv4 reduce", 1024, 256, 1, 1, 0, 14),
    ("ResNet-50 conv5 1x1", 1024, 512, 1, 2, 0, 14),
    ("ResNet-50 conv5 3x3", 512, 512, 3, 1, 1, 7),
    ("ResNet-50 conv5 expand", 512, 2048, 1, 1, 0, 7),
    ("ResNet-50 conv5 shortcut", 1024, 2048, 1, 2, 0, 14),
    ("ResNet-50 conv5 reduce", 2048, 512, 1, 1, 0, 7),
)
# GoogLeNet's inception modules: Szegedy et al., CVPR 2015, table 1: input channels, 1x1, 3x3 reduce, 3x3, 5x5 reduce,
# 5x5, pool projection, height and width.
INCEPTIONS = (
    ("3a", 192, 64, 96, 128, 16, 32, 32, 28),
    ("3b", 256, 128, 128, 192, 32, 96, 64, 28),
    ("4a", 480, 192, 96, 208, 16, 48, 64, 14),
    ("4b", 512, 160, 112, 224, 24, 64, 64, 14),
    ("4c", 512, 128, 128, 256, 24, 64, 64, 14),
    ("4d", 512, 112, 144, 288, 32, 64, 64, 14),
    ("4e", 528, 256, 160, 320, 32, 128, 128, 14),
    ("5a", 832, 256, 160, 320, 32, 128, 128, 7),
    ("5b", 832, 384, 192, 384, 48, 128, 128, 7),
)
# Pooling: name, channels, height and width, kernel, stride, pad, whether the last window may stand over the edge.
POOLINGS = (
    ("AlexNet pool1", 96, 55, 3, 2, 0, True),
    ("AlexNet pool2", 256, 27, 3, 2, 0, True),
    ("AlexNet pool5", 256, 13, 3, 2, 0, True),
    ("OverFeat pool1", 96, 56, 2, 2, 0, True),
    ("OverFeat pool2", 256, 24, 2, 2, 0, True),
    ("OverFeat pool5", 1024, 12, 2, 2, 0, True),
    ("VGG-A pool1", 64, 224, 2, 2, 0, True),
    ("VGG-A pool3", 256, 56, 2, 2, 0, True),
    ("VGG-A pool5", 512, 14, 2, 2, 0, True),
    ("GoogLeNet pool1", 64, 112, 3, 2, 0, True),
    ("GoogLeNet pool3", 480, 28, 3, 2, 0, True),
    ("GoogLeNet 3a pool", 192, 28, 3, 1, 1, False),
    ("GoogLeNet 5b pool", 832, 7, 3, 1, 1, False),
    ("ResNet-50 pool1", 64, 112, 3, 2, 1, False),
)
AVERAGES = (
    ("GoogLeNet global", 1024, 7, 7, 1, 0),
    ("ResNet-50 global", 2048, 7, 7, 1, 0),
    ("GoogLeNet auxiliary", 512, 14, 5, 3, 0),
)
LINEARS = (
    ("AlexNet fc7", 4096, 4096),
    ("AlexNet fc8", 4096, 1000),
    ("OverFeat fc7", 3072, 4096),
    ("GoogLeNet classifier", 1024, 1000),
    ("ResNet-50 classifier", 2048, 1000),
)
NORMALIZED = (
    ("ResNet-50 bn1", 64, 112),
    ("ResNet-50 bn2", 64, 56),
    ("ResNet-50 bn2 expand", 256, 56),
    ("ResNet-50 bn3", 128, 28),
    ("ResNet-50 bn3 expand", 512, 28),
    ("ResNet-50 bn4", 256, 14),
    ("ResNet-50 bn4 expand", 1024, 14),
    ("ResNet-50 bn5", 512, 7),
    ("ResNet-50 bn5 expand", 2048, 7),
)
LOCALLY_NORMALIZED = (("AlexNet", 96, 55), ("AlexNet", 256, 27), ("GoogLeNet", 64, 56), ("GoogLeNet", 192, 56))

# Of two letters: how the input and how the gradient of the output arrive.
LAYOUTS = ("pp", "bp", "pb", "bb")


def case(op, shapes, source="", layout="pp", **more):
    """A case of a function; ``layout`` is that of the first input and of the gradient, unless ``inputs`` is given."""
    found = {"op": op, "shapes": [list(shape) for shape in shapes]}
    if layout[0] == "b" and "inputs" not in more:
        more["inputs"] = "b"
    if layout[1] == "b":
        more["gradient"] = "b"
    # A convolution leaves no vectors; and what is not said is p.
    pairs = zip(more.get("inputs") or "", shapes)
    more["inputs"] = "".join("p" if letter == "b" and len(shape) not in (2, 4) else letter for letter, shape in pairs)
    more["inputs"] = more["inputs"].rstrip("p")
    if source:
        more["source"] = source
    found.update((name, value) for name, value in more.items() if value not in (None, "", False, {}))
    return found


def out_size(size, kernel, stride, pad, dilate=1):
    """Height or width of a convolution's output."""
    return (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1


def convolution(x, w, source="", layout="pp", bias=True, stride=1, pad=0, dilate=1, groups=1, **more):
    """A case of convolution_2d: shapes of input and weight."""
    options = {"stride": stride, "pad": pad, "dilate": dilate, "groups": groups}
    options = dict((name, value) for name, value in options.items() if value != (0 if name == "pad" else 1))
    shapes = [x, w] + ([[w[0]]] if bias else [])
    return case("convolution_2d", shapes, source, layout, options=options, **more)


def layer(row, layout, inputs=None):
    """A case of a published convolution, with the largest batch that time and memory allow."""
    name, channels, out, kernel, stride, pad, size = row
    side = out_size(size, kernel, stride, pad)
    for batch in BATCHES:
        numbers = batch * side * side * channels * kernel * kernel
        elements = batch * max(channels * size * size, out * side * side)
        if numbers <= MOST_NUMBERS and 2 * numbers * out <= MOST_FLOPS and elements <= MOST_ELEMENTS_OF_ARRAY:
            break
    x, w = (batch, channels, size, size), (out, channels, kernel, kernel)
    return convolution(x, w, name, layout, stride=stride, pad=pad, inputs=inputs)


def convolutions():
    """Cases of convolution_2d: what the layouts, sizes and parameters may break first, then published layers."""
    x, w = (2, 16, 9, 9), (32, 16, 3, 3)
    found = [convolution(x, w, pad=1), convolution((2, 3, 32, 32), (16, 3, 7, 7), stride=2, pad=3)]
    found += [convolution(x, w, "", "bb", pad=1), convolution(x, w, "", "bb", pad=1, inputs="bww")]
    found += [convolution(x, w, pad=1, twice=True), convolution(x, w, "", "bb", pad=1, read=True)]
    found += [convolution(x, w, pad=2, dilate=2), convolution(x, w, "", "bp", pad=1, bias=False)]
    found += [convolution((2, 16, 9, 9), (32, 8, 3, 3), pad=1, groups=2)]
    found += [convolution((2, 16, 9, 9), (16, 1, 3, 3), "depthwise", pad=1, groups=16)]
    found += [convolution(x, w, pad=1, special="nan"), convolution(x, w, pad=1, special="inf")]
    for batch in BATCHES[::-1]:
        found.append(convolution((batch, 16, 7, 7), (24, 16, 3, 3), "", "pp" if batch % 2 else "bb", pad=1))
    for channels, out in ((1, 1), (3, 5), (5, 16), (16, 7), (7, 13), (17, 33), (24, 8), (8, 24), (33, 16), (48, 40)):
        for layout in ("pp", "bb"):
            found.append(convolution((2, channels, 8, 10), (out, channels, 3, 3), "", layout, pad=1))
    for kernel in ((1, 1), (1, 7), (7, 1), (2, 2), (3, 5), (5, 5)):
        found.append(convolution((2, 16, 12, 11), (16, 16) + kernel, "", "bp", pad=[kernel[0] // 2, kernel[1] // 2]))
    for stride, pad, kernel in (((2, 1), (1, 2), (3, 3)), ((1, 3), (0, 1), (3, 2)), ((3, 2), (2, 0), (5, 4))):
        for layout in ("pp", "bb"):
            shape = (3, 16, 13, 14)
            found.append(convolution(shape, (16, 16) + kernel, "", layout, stride=list(stride), pad=list(pad)))
    for dilate, size in (((2, 2), 12), ((3, 1), 14), ((1, 2), 11)):
        found.append(convolution((2, 16, size, size), (16, 16, 3, 3), "", "bb", pad=2, dilate=list(dilate)))
        found.append(convolution((2, 5, size, size), (7, 5, 3, 3), pad=1, dilate=list(dilate), twice=True))
    found.append(convolution((1, 1, 5, 5), (1, 1, 5, 5), "one output"))
    found.append(convolution((2, 512, 2, 2), (16, 512, 1, 1), "many channels", "bp"))
    found.append(convolution((3, 8, 64, 3), (8, 8, 3, 3), "narrow", "bb", pad=1))
    rows = list(LAYERS)
    for name, channels, c1, r3, c3, r5, c5, pool, size in INCEPTIONS:
        start = "GoogLeNet %s " % name
        rows += [(start + "1x1", channels, c1, 1, 1, 0, size), (start + "3x3 reduce", channels, r3, 1, 1, 0, size)]
        rows += [(start + "3x3", r3, c3, 3, 1, 1, size), (start + "5x5 reduce", channels, r5, 1, 1, 0, size)]
        rows += [(start + "5x5", r5, c5, 5, 1, 2, size), (start + "pool", channels, pool, 1, 1, 0, size)]
    for row in rows:
        # A first layer gets images; the others what a convolution gave, with the weights of to_intel64().
        found.append(layer(row, "pb") if row[1] == 3 else layer(row, "bb", "bww"))
    return found


def deconvolutions():
    """Cases of deconvolution_2d."""
    found = []
    rows = (
        (2, 16, 16, 3, 1, 1, 7),
        (2, 3, 4, 3, 2, 0, 6),
        (2, 16, 32, 4, 2, 1, 8),
        (1, 5, 7, 2, 2, 0, 5),
        (8, 24, 8, 3, 1, 1, 6),
        (2, 33, 16, 3, 3, 1, 5),
        (4, 64, 32, 4, 2, 1, 14),
        (2, 128, 64, 4, 2, 1, 28),
    )
    for batch, channels, out, kernel, stride, pad, size in rows:
        shapes = [(batch, channels, size, size), (channels, out, kernel, kernel)]
        options = {"stride": stride, "pad": pad}
        for layout, inputs in (("pp", None), ("bb", "bw")):
            found.append(case("deconvolution_2d", shapes, "", layout, options=options, inputs=inputs))
        found.append(case("deconvolution_2d", shapes + [(out,)], "", "pp", options=options))
    first = [(2, 16, 7, 7), (16, 16, 3, 3)]
    found.append(case("deconvolution_2d", first, "", "pp", options={"pad": 1}, twice=True))
    found.append(case("deconvolution_2d", first, "", "bb", options={"pad": 2, "dilate": 2}))
    grouped = [(2, 16, 7, 7), (16, 4, 3, 3)]
    found.append(case("deconvolution_2d", grouped, "", "pp", options={"pad": 1, "groups": 2}))
    return found


def linears():
    """Cases of linear."""
    sizes = [(32, 128, 64), (1, 7, 5), (2, 1, 1), (3, 33, 17), (64, 100, 10), (16, 1000, 100), (4, 256, 1000)]
    found = []
    for batch, inputs, outputs in sizes:
        shapes = [(batch, inputs), (outputs, inputs), (outputs,)]
        found += [case("linear", shapes), case("linear", shapes, "", "bb", inputs="bww")]
    found.append(case("linear", [(8, 48), (24, 48)], twice=True))
    found.append(case("linear", [(8, 48), (24, 48)], "", "bb"))
    # A linear layer after a convolution or a pooling gets its output as it is.
    found.append(case("linear", [(4, 16, 5, 5), (20, 400), (20,)], "after a convolution", "bb"))
    found.append(case("linear", [(4, 24, 3, 3), (20, 216), (20,)], "after a convolution", "bp", inputs="bww"))
    found += [case("linear", sizes_of(33, 5, 4), special=word) for word in ("nan", "inf")]
    for name, inputs, outputs in LINEARS:
        found.append(case("linear", sizes_of(inputs, outputs, 16), name, "pp", inputs="pww"))
    return found


def sizes_of(inputs, outputs, batch):
    """Shapes of a linear layer."""
    return [(batch, inputs), (outputs, inputs), (outputs,)]


def activations():
    """Cases of relu and leaky_relu."""
    found = []
    for op, options in (("relu", None), ("leaky_relu", {"slope": 0.2})):
        for layout in LAYOUTS:
            found.append(case(op, [(2, 16, 9, 9)], "", layout, options=options))
        found += [case(op, [(2, 16, 5, 5)], twice=True, options=options)]
        found += [case(op, [(2, 16, 5, 5)], "", "bb", read=True, options=options)]
        found += [case(op, [(2, 16, 5, 5)], special=word, options=options) for word in ("nan", "inf")]
        for shape in ((3, 5), (64, 100), (1, 1), (7, 24, 3, 5), (2, 3, 11, 4), (1, 33, 1, 1)):
            found.append(case(op, [shape], "", "bb", options=options))
        found.append(case(op, [(6,)], "one dimension", options=options))
        found.append(case(op, [(2, 3, 4)], "three dimensions", options=options))
    for shape, name in (((8, 96, 55, 55), "AlexNet"), ((1, 64, 224, 224), "VGG-A"), ((4, 256, 56, 56), "ResNet-50")):
        found.append(case("relu", [shape], name, "bb"))
    return found


def poolings():
    """Cases of max_pooling_2d and average_pooling_2d."""
    found = []
    windows = ((3, 2, 0, True), (2, 2, 0, False), (3, 1, 1, True), (3, 2, 1, False), (2, 3, 0, True))
    windows += (([3, 2], [1, 2], [1, 0], True), (5, 3, 2, False), (4, 2, 2, True), (7, 2, 3, False), (3, 4, 0, True))
    windows += ((5, 1, 2, False), (5, 3, 1, True), (6, 6, 0, True), ([5, 3], [2, 1], [2, 1], False))
    for ksize, stride, pad, cover_all in windows:
        options = {"ksize": ksize, "stride": stride, "pad": pad}
        for layout in ("pp", "bb") if ksize != 3 else LAYOUTS:
            most = dict(options, cover_all=cover_all)
            found.append(case("max_pooling_2d", [(2, 16, 9, 10)], "", layout, options=most))
            found.append(case("average_pooling_2d", [(2, 16, 9, 10)], "", layout, options=options))
    options = {"ksize": 3, "stride": 2}
    for op in ("max_pooling_2d", "average_pooling_2d"):
        first = [
            case(op, [(2, 16, 9, 9)], options=options, special="nan"),
            case(op, [(2, 16, 9, 9)], "", "bp", options=options, read=True),
            case(op, [(2, 16, 9, 9)], options=options, special="inf"),
            case(op, [(2, 16, 9, 9)], options=options, twice=True),
            case(op, [(2, 16, 9, 9)], "", "bb", options=options, special="nan"),
            case(op, [(2, 16, 9, 9)], "", "bb", options=options, read=True),
        ]
        for shape in ((1, 1, 4, 4), (2, 3, 7, 5), (3, 5, 9, 9), (2, 24, 8, 8), (64, 8, 6, 6), (1, 33, 11, 7)):
            first += [case(op, [shape], "", layout, options=options) for layout in ("pp", "bb")]
        found = first[:2] + found + first[2:]
    for name, channels, size, kernel, stride, pad, cover_all in POOLINGS:
        options = {"ksize": kernel, "stride": stride, "pad": pad, "cover_all": cover_all}
        shape = (largest_batch((channels, size, size)), channels, size, size)
        found.append(case("max_pooling_2d", [shape], name, "bb", options=options))
    for name, channels, size, kernel, stride, pad in AVERAGES:
        shape = (largest_batch((channels, size, size)), channels, size, size)
        options = {"ksize": kernel, "stride": stride, "pad": pad}
        found.append(case("average_pooling_2d", [shape], name, "bp", options=options))
    return found


def largest_batch(image, most=1024 * 1024):
    """The largest usual batch with at most so many elements."""
    return next((batch for batch in BATCHES if batch * product(image) <= most), 1)


def local_normalizations():
    """Cases of local_response_normalization."""
    op, found = "local_response_normalization", []
    usual = {"n": 5, "k": 1, "alpha": 0.1, "beta": 0.75}
    for layout in LAYOUTS:
        found.append(case(op, [(2, 16, 8, 8)], "", layout, options=usual))
    found.append(case(op, [(2, 16, 8, 8)], "", "bb", options=usual, read=True))
    for channels in (24, 32, 20, 3):
        for layout in ("pp", "bb"):
            found.append(case(op, [(2, channels, 7, 7)], "", layout, options=usual))
    for n, k, alpha, beta in ((3, 2, 0.1, 0.75), (7, 1, 0.05, 0.75), (4, 2, 0.1, 0.75), (5, 2, 0.1, 0.5)):
        options = {"n": n, "k": k, "alpha": alpha, "beta": beta}
        found += [case(op, [(2, 32, 7, 7)], "", layout, options=options) for layout in ("pp", "bb")]
    found.append(case(op, [(2, 16, 7, 7)], "", "pp", options={}))
    found.append(case(op, [(2, 16, 7, 7)], "", "pp", options=usual, special="nan"))
    for name, channels, size in LOCALLY_NORMALIZED:
        shape = (largest_batch((channels, size, size)), channels, size, size)
        found.append(case(op, [shape], name, "bb", options={}))
    return found


def normalizations(exposing):
    """Cases of batch_normalization and fixed_batch_normalization; ``exposing`` are shapes made for this machine."""
    op, found = "batch_normalization", []

    def shapes(x, count=3):
        return [x] + [(x[1],)] * (count - 1)

    first = [case(op, shapes((2, 16, 8, 8)))]
    first += [case(op, shapes(shape), "made for %d threads" % threads) for threads, shape in exposing]
    first += [case(op, shapes(shape)) for shape in SEEN_WRONG]
    found += first + [case(op, shapes((2, 16, 8, 8)), "", layout) for layout in LAYOUTS[1:]]
    found += [case(op, shapes((2, 16, 8, 8)), "", "bb", inputs="bww"), case(op, shapes((2, 16, 8, 8)), twice=True)]
    found += [case(op, shapes((2, 16, 8, 8)), "", "bb", read=True)]
    found += [case(op, shapes((2, 16, 8, 8)), special="nan"), case(op, shapes((64, 33))), case(op, shapes((3, 5)))]
    for shape in ((2, 5, 7, 9), (1, 3, 4, 4), (2, 24, 8, 8), (64, 8, 3, 3), (3, 33, 5, 5), (16, 7, 28, 28)):
        found += [case(op, shapes(shape), "", layout) for layout in ("pp", "bb")]
    for batch in (1, 4, 16, 32):
        for channels in (3, 16, 24, 64, 96):
            for size in (7, 14, 28, 56):
                if 16384 <= batch * channels * size * size <= 2 * 1024 * 1024:
                    found.append(case(op, shapes((batch, channels, size, size))))
    fixed = "fixed_batch_normalization"
    for layout in LAYOUTS:
        found.append(case(fixed, shapes((2, 16, 8, 8), 5), "", layout))
    found += [case(fixed, shapes((2, 16, 8, 8), 5), "", "bb", inputs="bwwpp")]
    found += [case(fixed, shapes((2, 16, 8, 8), 5), twice=True), case(fixed, shapes((3, 5), 5))]
    found += [case(fixed, shapes((2, 16, 8, 8), 5), special="nan")]
    for shape in ((2, 5, 7, 9), (2, 24, 8, 8), (8, 64, 14, 14)):
        found += [case(fixed, shapes(shape, 5), "", layout) for layout in ("pp", "bp", "bb")]
    for name, channels, size in NORMALIZED:
        shape = (largest_batch((channels, size, size)), channels, size, size)
        found += [case(op, shapes(shape), name, "bb"), case(fixed, shapes(shape, 5), name, "bb")]
    return found


def joins():
    """Cases of concat, split_axis and add."""
    found, image = [], (6, 6)

    def concat(channels, inputs, source="", options=None, size=image, **more):
        found.append(case("concat", [(2, c) + size for c in channels], source, inputs=inputs, options=options, **more))

    # The first one's blocks are taken for all: what does not fill them ended the process.
    deadly = ((16, 8), (16, 5), (16, 24), (32, 8), (8, 16, 5), (16, 16, 8))
    for channels in ((16, 16),) + deadly[:2] + ((8, 16), (24, 8), (16, 32, 48), (5, 16), (3, 5, 7)) + deadly[2:]:
        concat(channels, "b" * len(channels))
        concat(channels, "b" * len(channels), "", None, image, gradient="b")
    concat((16, 8), "pp")
    concat((16, 16), "bp")
    concat((16, 16), "pb", special="nan")
    concat((16, 16), "bb", twice=True)
    concat((16, 16), "bb", read=True)
    for axis, second in ((2, (2, 16, 2, 4)), (3, (2, 16, 3, 9)), (0, (5, 16, 3, 4))):
        found.append(case("concat", [(2, 16, 3, 4), second], inputs="bb", options={"axis": axis}))
    for name, _, c1, _, c3, _, c5, pool, size in INCEPTIONS:
        concat((c1, c3, c5, pool), "bbbb", "GoogLeNet " + name, None, (size, size), gradient="b")

    def split(channels, where, axis=1, source="", **more):
        options = {"indices_or_sections": where, "axis": axis}
        found.append(case("split_axis", [(2, channels) + image], source, options=options, **more))

    right = ((32, 2), (48, 3), (24, [8]))
    across = ((16, 2), (16, [4, 9]), (8, [4]), (32, [8, 16]), (24, [12]), (48, [8, 24]))
    for channels, where in right[:1] + across[:1] + right[1:] + across[1:]:
        split(channels, where, inputs="b")
        split(channels, where, inputs="b", gradient="b")
    for axis in (0, 2, 3):
        split(16, 2, axis, inputs="b")
    split(20, [3, 8])
    split(32, 2, inputs="b", special="nan")
    split(32, 2, inputs="b", twice=True)
    for count in (2, 3, 5):
        for inputs in ("p" * count, "b" * count, ("bp" * count)[:count], ("pb" * count)[:count]):
            found.append(case("add", [(2, 16, 6, 6)] * count, inputs=inputs, gradient="b" if "b" in inputs else ""))
    found.append(case("add", [(4, 33)] * 3, inputs="bbb"))
    found.append(case("add", [(2, 24, 5, 5)] * 3, inputs="bbb", special="inf"))
    found.append(case("add", [(2, 5, 5, 5)] * 3, inputs="bbb", twice=True))
    found.append(case("add", [(4, 256, 56, 56)] * 2, "ResNet-50 shortcut", inputs="bb", gradient="b"))
    found.append(case("add", [(4, 256, 56, 56)] * 3, inputs="bbb", gradient="b"))
    return found


def recurrent():
    """Cases of lstm, slstm and dropout."""
    found = []
    for batch, units in ((8, 32), (1, 5), (4, 100)):
        found.append(case("lstm", [(batch, units), (batch, 4 * units)], inputs="bb"))
        found.append(case("slstm", [(batch, units)] * 2 + [(batch, 4 * units)] * 2, inputs="bbbb"))
        found.append(case("lstm", [(batch, units), (batch, 4 * units)]))
    found.append(case("lstm", [(2, 4, 3, 3), (2, 16, 3, 3)], "convolutional", inputs="bb", gradient="b"))
    found.append(case("lstm", [(2, 16, 3, 3), (2, 64, 3, 3)], "convolutional", inputs="bb", gradient="b"))
    found.append(case("lstm", [(4, 8), (4, 32)], twice=True))
    for shape in ((64, 256), (4, 16, 32, 32), (2, 24, 17, 17), (4, 5, 33, 31)):
        found += [case("dropout", [shape], "", layout) for layout in ("pp", "bb")]
    return found


# Shapes of second and later inputs where they are not those of the first.
OTHERS = {
    "h * row": [(2, 16, 1, 6)],
    "scale": [(16,)],
    "bias": [(16,)],
    "prelu": [(16,)],
    "group_normalization": [(16,), (16,)],
    "layer_normalization": [(576,), (576,)],
    "local_convolution_2d": [(3, 4, 4, 16, 3, 3)],
}
NUMBER_OF_INPUTS = {"group_normalization": 3, "layer_normalization": 3}
PRODUCTS = ("h * g", "h * h", "h / g", "h * sigmoid(h)", "sigmoid", "tanh")


def elementwise(names):
    """Cases of what NumPy does with arrays of iDeep, in the layouts in which they arrive."""
    found = []
    for first, rest, gradient in (("b", "b", "b"), ("b", "b", ""), ("b", "p", ""), ("p", "p", "b")):
        for name in names:
            count = NUMBER_OF_INPUTS.get(name, len(ELEMENTWISE[name].names))
            shapes = [(2, 16, 6, 6)] + list(OTHERS.get(name, [(2, 16, 6, 6)] * (count - 1)))
            found.append(case(name, shapes, inputs=first + rest * (count - 1), gradient=gradient))
    return found


def products():
    """Cases of multiplication and division, which are wrong for blocked arrays, in more shapes."""
    found = elementwise(PRODUCTS)
    for name in PRODUCTS:
        count = len(ELEMENTWISE[name].names)
        found.append(case(name, [(2, 24, 5, 5)] * count, inputs="b" * count, gradient="b"))
        found.append(case(name, [(2, 16, 5, 5)] * count, inputs="b" * count, twice=True))
        found.append(case(name, [(6, 24)] * count, inputs="b" * count))
    return found


def of_models(optimizers, expressions, protocols, hooks):
    """Cases of whole models and of bare arrays."""
    found, late = [], []
    first = [name for name in ("AdaGrad", "SGD", "MSVAG", "Adam") if name in optimizers]
    for name in first + sorted(set(optimizers) - set(first)):
        found.append({"op": "optimizer", "options": {"name": name}})
    for hook in hooks:
        late.append({"op": "optimizer", "options": {"name": "SGD", "hook": hook}})
    hows = ["load_npz", "load_hdf5", "resume of a Trainer", "copyparams", "load_npz, weights read before"]
    found += [{"op": "load", "options": {"how": how}} for how in hows]
    found.append({"op": "resume", "options": {"how": "MomentumSGD with its state"}})
    ways = ["deepcopy", "save_npz"] + ["pickle protocol %d" % protocol for protocol in protocols]
    found += [{"op": "keep", "options": {"how": how}} for how in ways + ["Link.copy", "to_cpu", "to_cpu and back"]]
    first = ("h * g", "h ** 2", "h + g", "h + float64")
    for name in first + tuple(sorted(set(expressions) - set(first))):
        for shape in ((2, 16, 6, 6), (2, 24, 6, 6)):
            found.append({"op": "mdarray", "shapes": [shape], "options": {"expression": name}})
    found += late
    found.append({"op": "memory", "options": {"shapes": "the same", "count": 240}})
    found += [
        {"op": "memory", "options": {"shapes": "new", "count": 200, "engine": name}} for name in ("iDeep", "NumPy")
    ]
    found.append({"op": "fork", "options": {"children": 3}})
    return found


# A rough estimate, in seconds: of the reference in float64, mostly.
SECONDS_PER_FLOP = 3.0e-10
SECONDS_PER_NUMBER = 6.0e-8


def cost(case):
    """About how many seconds a case takes, iDeep, reference and comparison together."""
    shapes, options = case.get("shapes") or [], case.get("options") or {}
    numbers = sum(product(shape) for shape in shapes)
    seconds = 0.008
    if case["op"] in ("optimizer", "load", "keep", "resume"):
        return 0.1
    if case["op"] in ("memory", "fork"):
        return 1.5
    if case["op"] in ("convolution_2d", "deconvolution_2d"):
        (n, c, height, width), (k, part, rows, columns) = shapes[:2]
        (sy, sx) = pair(options.get("stride", 1))
        places = n * height * width // (sy * sx) if case["op"] == "convolution_2d" else n * height * width
        flops = 2 * places * k * part * rows * columns
        seconds += 3 * flops * SECONDS_PER_FLOP + places * part * rows * columns * SECONDS_PER_NUMBER / 4
    elif case["op"] == "linear":
        seconds += 6 * shapes[0][0] * product(shapes[1]) * SECONDS_PER_FLOP
    elif "ksize" in options:
        seconds += numbers * product(pair(options["ksize"])) * SECONDS_PER_NUMBER / 2
    elif case["op"] == "local_response_normalization":
        seconds += numbers * 10 * SECONDS_PER_NUMBER
    return (seconds + numbers * 4 * SECONDS_PER_NUMBER) * (2 if case.get("twice") else 1)


NOT_IN_KEYS = ("source", "key", "text", "seconds", "family", "risk")


def key_of(case):
    """A text that is the same for the same case, wherever its shapes are from."""
    plain = dict((name, value) for name, value in case.items() if name not in NOT_IN_KEYS)
    return json.dumps(plain, sort_keys=True)


# What --ops and the table call an operation.
FAMILIES = {
    "convolution_2d": "convolution",
    "deconvolution_2d": "deconvolution",
    "max_pooling_2d": "max_pooling",
    "average_pooling_2d": "average_pooling",
    "local_response_normalization": "lrn",
    "fixed_batch_normalization": "fixed_batch_norm",
    "batch_normalization": "batch_norm",
    "optimizer": "optimizers",
    "mdarray": "arrays",
    "resume": "load",
}


def family_of(op):
    """The row of the table that an operation is in."""
    if op in PRODUCTS:
        return "products"
    return "elementwise" if op in ELEMENTWISE else FAMILIES.get(op, op)


def beyond_the_edge(case):
    """Whether a window of a pooling holds no element at all, which makes MKL-DNN write where it must not."""
    options = case.get("options") or {}
    if "ksize" not in options or not options.get("cover_all") or case["op"] != "max_pooling_2d":
        return False
    sizes = zip(case["shapes"][0][2:], *[pair(options.get(name, 0)) for name in ("ksize", "stride", "pad")])
    return any((size + 2 * pad - k + stride - 1) // stride * stride - pad >= size for size, k, stride, pad in sizes)


def risk_of(case):
    """2: it must not share a process, whose memory it spoils or measures; 1: it may end it, and comes last; else 0."""
    options = case.get("options") or {}
    if beyond_the_edge(case) or case["op"] in ("memory", "fork"):
        return 2
    words = str(options.get("expression", "")), str(options.get("how", ""))
    risky = case["op"] == "split_axis" or "float" in words[0] or words[1].startswith("pickle")
    if case["op"] == "concat" and options.get("axis", 1) == 1:
        risky = any(shape[1] % 16 for shape in case["shapes"][1:])
    return int(risky)


def complete(case):
    """A case with its key, its words, its estimate and its place."""
    more = {"key": key_of(case), "text": text_of(case), "seconds": cost(case), "family": family_of(case["op"])}
    return dict(case, risk=risk_of(case), **more)


def catalogue(lab, optimizers, expressions, protocols, hooks):
    """Every case once, each family's in the order in which they are worth trying."""
    counts = sorted(set([2, 3, 4, max(2, lab.threads or 1)]))
    exposing = [(count, exposing_shape(count, cache_bytes(lab.emulated))) for count in counts]
    exposing = [(count, shape) for count, shape in exposing if product(shape) <= 4 * 1024 * 1024]
    lists = convolutions() + deconvolutions() + linears() + activations() + poolings() + local_normalizations()
    lists += normalizations(exposing) + joins() + recurrent() + products()
    lists += elementwise(tuple(sorted(set(ELEMENTWISE) - set(PRODUCTS))))
    lists += of_models(optimizers, expressions, protocols, hooks)
    seen, found = set(), []
    for item in lists:
        key = key_of(item)
        if key not in seen:
            seen.add(key)
            found.append(complete(item))
    return found


def blocked_inputs(case):
    """Which inputs are as a convolution leaves them, in words."""
    inputs = case.get("inputs", "")
    places = [str(number + 1) for number, letter in enumerate(inputs) if letter == "b"]
    if not places:
        return []
    letters = inputs + "p" * len(case["shapes"])
    arrays = [shape for shape, letter in zip(case["shapes"], letters) if len(shape) > 1 and letter != "w"]
    return ["input"] if len(places) >= len(arrays) else ["input " + ", ".join(places)]


def text_of(case):
    """A case in words: shapes, options, layouts."""
    options = dict(case.get("options") or {})
    words = [case["source"]] if case.get("source") else []
    for word in ("expression", "how", "name", "hook"):
        if word in options:
            words.append(str(options.pop(word)))
    if case.get("shapes"):
        words.append(" ".join("(%s)" % ",".join(map(str, shape)) for shape in case["shapes"]))
    for name in sorted(options):
        value = options[name]
        words.append("%s %s" % (name, "x".join(map(str, value)) if isinstance(value, list) else value))
    blocked = blocked_inputs(case) + (["gradient"] if case.get("gradient") == "b" else [])
    if blocked:
        words.append(" and ".join(blocked) + " of a convolution")
    words += [word for word, there in (("weights of to_intel64", "w" in case.get("inputs", "")),) if there]
    words += [text for name, text in (("twice", "differentiated twice"), ("read", "read in between")) if case.get(name)]
    words += {"nan": ["with NaN"], "inf": ["with infinity"]}.get(case.get("special"), [])
    return ", ".join(words)
