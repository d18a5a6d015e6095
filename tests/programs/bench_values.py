"""The networks of bench with the same numbers in Chainer and in its peers: run in each, compared in Chainer's.

    python bench_values.py torch PAYLOAD FOLDER NET BATCH [channels_last]   writes the loss and the gradients
    python bench_values.py chainer PAYLOAD FOLDER NET BATCH                 computes them, too, and compares
    python bench_values.py opencv PAYLOAD FOLDER NET BATCH                  writes the outputs
    python bench_values.py outputs PAYLOAD FOLDER NET BATCH                 computes them, as in inference, and compares

PAYLOAD is the text of the worker with its parts; FOLDER holds what the first writes and the second reads. Weights,
images and labels come from a hash of their place, which both sides compute with whole numbers.
"""

from __future__ import print_function

import ctypes
import json
import os
import sys
import zlib

sys.path[:] = [entry for entry in sys.path if entry]
PART = 1 << 22


def hashed(places, name):
    """A whole number below 2**32 for each place of what has this name; ``places`` is an array or tensor of int64."""
    mixed = (places * 2654435761 + zlib.crc32(name.encode("ascii")) % (1 << 31)) & 0xFFFFFFFF
    mixed = mixed ^ (mixed >> 16)
    mixed = (mixed * 0x45D9F3B) & 0xFFFFFFFF
    return mixed ^ (mixed >> 16)


def scale_of(name, shape):
    """Middle and reach of the values: of weights such that numbers stay in range, of others what shows a mistake."""
    kind = name.rpartition(":")[2]
    if kind == "W":
        fan = 1
        for side in shape[1:]:
            fan *= side
        return 0.0, (6.0 / fan) ** 0.5
    return {"gamma": (1.0, 0.1), "beta": (0.0, 0.1), "b": (0.0, 0.1)}.get(kind, (0.0, 1.0))


def fill(name, shape, flat, places_of, wide, narrow):
    """Fill a flat array or tensor of float32, part by part; ``wide`` and ``narrow``: to float64, to float32."""
    middle, reach = scale_of(name, shape)
    count = 1
    for side in shape:
        count *= side
    for start in range(0, count, PART):
        end = min(count, start + PART)
        values = wide(hashed(places_of(start, end), name)) / 2147483648.0 - 1.0
        flat[start:end] = narrow(middle + reach * values)


def path_of(folder, name):
    return os.path.join(folder, name.replace("/", "_").replace(":", "-") + ".raw")


def in_torch(names, folder, net, batch, channels_last):
    """Losses and gradients of PyTorch in float32 and in float64, written to the folder."""
    torch = names["import_torch"]()
    torch.set_num_threads(names["threads_allowed"]())
    model = names["Model"](torch, net, channels_last)
    shapes = dict((key, tuple(tensor.shape)) for key, tensor in model.weights.items())
    losses = [torch_gradients(torch, model, shapes, folder, batch, kind) for kind in (torch.float32, torch.float64)]
    with open(os.path.join(folder, "loss.json"), "w") as stream:
        json.dump(losses, stream)


def torch_gradients(torch, model, shapes, folder, batch, dtype):
    """Write the gradients of one precision; return the loss (None where there is none)."""

    def made(name, shape):
        tensor = torch.empty(shape)
        fill(name, shape, tensor.view(-1), torch.arange, torch.Tensor.double, torch.Tensor.float)
        return tensor.to(dtype)

    for key, shape in shapes.items():
        model.weights[key] = model.ordered(made("%s:%s" % key, shape)).requires_grad_(True)
    for node, pair in model.seen.items():
        model.seen[node] = tuple(tensor.to(dtype) for tensor in pair)
    images, ends = inputs_of(model.net, batch, made)
    outputs = model.compute(dict((name, model.ordered(image)) for name, image in images.items()))
    loss = None
    if model.net.name == "conv":
        for (output, _), end in zip(outputs, ends):
            output.backward(made(end, tuple(output.shape)))
    else:
        value = model.loss(outputs, torch.tensor([label(position) for position in range(batch)]))
        value.backward()
        loss = float(value.detach())
    for key, tensor in model.weights.items():
        held = tensor.grad
        if held.dim() == 4:
            held = held.contiguous(memory_format=torch.contiguous_format)
        with open(path_of(folder, "%s:%s:%d" % (key + (held.element_size(),))), "wb") as stream:
            stream.write(ctypes.string_at(held.data_ptr(), held.element_size() * held.numel()))
    return loss


def inputs_of(net, batch, made):
    """Images by name, and the names of the outputs."""
    images = {}
    for node in net.nodes:
        if node.op == "image":
            images[node.name] = made(node.name, (batch,) + tuple(node.options["shape"]))
    return images, [node.name for node in net.nodes if node.op == "logits"]


def label(position):
    return (position * 389 + 17) % 1000


def in_chainer(names, folder, net, batch):
    """The same in Chainer with NumPy, and how far the two are apart.

    Prints ``single`` and ``double``, the losses of PyTorch and of Chainer in float32 and in float64; ``errors``: how
    far PyTorch's and Chainer's gradients in float32, taken together, are from those in float64, relative to their
    length; ``apart``: how far the gradients in float64 are apart at most, relative to the length of each, ``where``.
    """
    engine = names["Engine"]()
    engine.start()
    np = engine.np
    engine.chainer.global_config.use_ideep = "never"
    model = names["make_model"](engine, net)
    rough, single = gradients_of(engine, model, net, batch, np.float32)
    right, double = gradients_of(engine, model, net, batch, np.float64)
    with open(os.path.join(folder, "loss.json")) as stream:
        theirs = json.load(stream)
    # What is subtracted again has no gradient, and so no length that an error could be compared with.
    no_bias = set(node.inputs[0] + ":b" for node in net.nodes if node.op == "bn")
    apart, squares = {}, [0.0, 0.0, 0.0]
    for name, gradient in right.items():
        if name in no_bias:
            continue
        other, other32 = [
            np.fromfile(path_of(folder, "%s:%d" % (name, size)), kind).reshape(gradient.shape)
            for size, kind in ((8, np.float64), (4, np.float32))
        ]
        length = np.linalg.norm(gradient)
        apart[name] = float(np.linalg.norm(other - gradient) / length)
        for place, error in enumerate((other32 - gradient, rough.pop(name) - gradient, gradient)):
            squares[place] += float(np.linalg.norm(error)) ** 2
    worst = max(apart, key=apart.get)
    told = {"single": [theirs[0], single], "double": [theirs[1], double], "apart": apart[worst], "where": worst}
    errors = [(square / squares[2]) ** 0.5 for square in squares[:2]]
    print(json.dumps(dict(told, errors=errors, parameters=len(apart))))


def filled(engine, model, dtype):
    """Put the numbers into a model of Chainer; its parameters by ``NODE:KIND``, and what makes such numbers."""
    np = engine.np

    def made(name, shape):
        array = np.empty(shape, np.float32)
        places = lambda start, end: np.arange(start, end, dtype=np.int64)  # noqa: E731
        fill(name, shape, array.reshape(-1), places, np.float64, np.float32)
        return array.astype(dtype)

    params = {}
    for node, link in model.of.items():
        for name in getattr(link, "_persistent", ()):
            if isinstance(getattr(link, name), np.ndarray):
                setattr(link, name, getattr(link, name).astype(dtype))
        for kind in ("W", "b", "gamma", "beta"):
            param = getattr(link, kind, None)
            if param is not None:
                name = "%s:%s" % (node, kind)
                param.cleargrad()
                param.data = made(name, param.shape)
                params[name] = param
    return params, made


def gradients_of(engine, model, net, batch, dtype):
    """Gradients of a model's parameters by ``NODE:KIND``, and the loss (None where there is none)."""
    np, functions = engine.np, engine.F
    params, made = filled(engine, model, dtype)
    images, ends = inputs_of(net, batch, made)
    outputs, loss = model.compute(images), None
    if net.name == "conv":
        for (output, _), end in zip(outputs, ends):
            output.grad = made(end, output.shape)
            output.backward()
    else:
        truth = np.array([label(position) for position in range(batch)], np.int32)
        value = sum(share * functions.softmax_cross_entropy(output, truth) for output, share in outputs)
        value.backward()
        loss = float(value.data)
    return dict((name, param.grad) for name, param in params.items()), loss


def in_opencv(names, folder, net, batch):
    """Outputs of OpenCV, written to the folder."""
    engine = names["Engine"]()
    engine.start()
    np = engine.np

    def made(name, shape):
        array = np.empty(shape, np.float32)
        places = lambda start, end: np.arange(start, end, dtype=np.int64)  # noqa: E731
        fill(name, shape, array.reshape(-1), places, np.float64, np.float32)
        return array

    weights = names["random_weights"](np, net)
    same = dict((key, made("%s:%s" % key, array.shape)) for key, array in weights.items())
    images, ends = inputs_of(net, batch, made)
    for end, output in zip(ends, engine.reader(net, batch, same)(images)):
        np.ascontiguousarray(output, np.float32).tofile(path_of(folder, end))


def compare_outputs(names, folder, net, batch):
    """The same outputs of Chainer in float64; prints the largest error of each, relative to its largest number."""
    engine = names["Engine"]()
    engine.start()
    np = engine.np
    model = names["make_model"](engine, net)
    _, made = filled(engine, model, np.float64)
    images, ends = inputs_of(net, batch, made)
    errors = {}
    with engine.chainer.using_config("train", False), engine.chainer.using_config("enable_backprop", False):
        for end, (output, _) in zip(ends, model.compute(images)):
            theirs = np.fromfile(path_of(folder, end), np.float32).reshape(output.shape)
            errors[end] = float(abs(theirs - output.data).max() / abs(output.data).max())
    print(json.dumps(errors))


def main(side, payload, folder, net, batch, *options):
    names = {"__name__": "payload"}
    with open(payload) as stream:
        exec(compile(stream.read(), payload, "exec"), names)
    net, batch = names["NETS"][net](), int(batch)
    if side == "torch":
        in_torch(names, folder, net, batch, "channels_last" in options)
    else:
        sides = {"chainer": in_chainer, "opencv": in_opencv, "outputs": compare_outputs}
        sides[side](names, folder, net, batch)


if __name__ == "__main__":
    main(*sys.argv[1:])
