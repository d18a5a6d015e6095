"""Why Chainer computed a function with NumPy: from what was recorded of its inputs and of the settings. Pure.

The conditions are Chainer's own, which did not change from version 4 to 7: a function asks iDeep if ``use_ideep`` is
``auto`` or ``always``, its first input has a number of dimensions that the function takes, and all inputs are float32
and not empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ideepdoctor.model.trace import Cause, Why
from ideepdoctor.proof.trace_records import Row

_IMAGES, _BOTH, _MATRICES = (4,), (2, 4), (2,)
SERVED: Mapping[str, tuple[int, ...]] = {
    "Convolution2DFunction": _IMAGES,
    "Convolution2DGradW": _IMAGES,
    "Deconvolution2DFunction": _IMAGES,
    "LinearFunction": _MATRICES,
    "LinearGradData": _MATRICES,
    "LinearGradWeight": _MATRICES,
    "MaxPooling2D": _IMAGES,
    "MaxPooling2DGrad": _IMAGES,
    "MaxPoolingND": _IMAGES,
    "MaxPoolingNDGrad": _IMAGES,
    "AveragePooling2D": _IMAGES,
    "AveragePooling2DGrad": _IMAGES,
    "ReLU": _BOTH,
    "ReLUGrad2": _BOTH,
    "LeakyReLU": _BOTH,
    "_LeakyReLUGrad": _BOTH,
    "LocalResponseNormalization": _IMAGES,
    "LocalResponseNormalizationGrad": _IMAGES,
    "Dropout": _BOTH,
    "DropoutGrad": _BOTH,
    "BatchNormalization": _BOTH,
    "BatchNormalizationGrad": _BOTH,
    "FixedBatchNormalization": _BOTH,
    "Concat": _IMAGES,
    "SplitAxis": _IMAGES,
    "MultiAdd": _BOTH,
}
"""Functions that ask iDeep, and the numbers of dimensions that they ask it for."""

SILENT = frozenset({"Dropout", "DropoutGrad"})
"""Those that iDeep computes without MKL-DNN: no line of it shows that."""

FAST_UPDATES = frozenset({"SGD", "MomentumSGD"})
"""Optimizers that gain by to_intel64(). Measured with Chainer 7.8.1 and ideep4py 2.0.0.post3 on a busy machine, whole
steps of an AlexNet of half width with NumPy's weights against iDeep's, in turn: SGD 1.05 to 1.07 times as long,
MomentumSGD 1.12 to 1.19, Adam 0.9 to 1.07. The updates alone take longer with iDeep's arrays, but for SGD's."""

_LEAST_CHANNELS = 64
"""From so many channels on, two convolutions of halves by iDeep are faster than one of two groups by NumPy. Measured as
above with two threads, forward and backward: 64 and 384 channels 1.2 and 1.6 times, AlexNet's 96 to 256 2.5 times, 16
to 32 channels 0.3 to 1.1 times; four groups and eight of 64 and 128 channels 1.0 to 1.1 times."""

_FIRST_INPUTS = ("input", "weights", "bias")
_NAMES = {"BatchNormalization": ("input", "gamma", "beta"), "Concat": (), "MultiAdd": (), "SplitAxis": ()}
_GENERAL = {
    "ConvolutionND": "L.Convolution2D",
    "DeconvolutionND": "L.Deconvolution2D",
    "AveragePoolingND": "F.average_pooling_2d",
    "MaxPoolingND": "F.max_pooling_2d",
}


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a function: ``kind`` is n for NumPy's array, m for iDeep's, g for another one, empty for none."""

    kind: str
    dtype: str
    shape: tuple[int, ...]
    parameter: bool

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point array."""
        return self.dtype.startswith("float")


def inputs_of(row: Row) -> tuple[Input, ...]:
    """The inputs of a row, as they were when it was first seen."""
    found = []
    for item in row.rows("inputs"):
        if isinstance(item, list) and len(item) == 4 and isinstance(item[2], list):
            found.append(Input(str(item[0]), str(item[1]), tuple(map(int, item[2])), bool(item[3])))
    return tuple(found)


def would_ask(row: Row, available: bool) -> bool:
    """Whether Chainer asks iDeep for this function, by its own conditions."""
    return row.text("function") in SERVED and not reasons(row, {"available": available})


def reasons(row: Row, chainer: Mapping[str, Any]) -> tuple[Why, ...]:
    """Why a function does not go to iDeep, the decisive reason first; empty where it does.

    Args:
        row: of a function.
        chainer: facts of the import of Chainer.
    """
    name, inputs = row.text("function"), inputs_of(row)
    if not inputs and name not in SERVED:
        return (_unserved(name),)
    if any(item.kind == "g" for item in inputs):
        return (Why(Cause.GPU, "its arrays are on a GPU", False),)
    found = [] if chainer.get("available") else [unavailable(chainer)]
    general = _general(row, name, chainer)
    if name not in SERVED and not general:
        return (_unserved(name),)
    if row.text("use") == "never":
        found.append(never(row, chainer))
    found += _widths(row, name, inputs)
    empty = [item for item in inputs if item.kind == "n" and item.dtype == "float32" and 0 in item.shape]
    if empty:
        shape = "x".join(map(str, empty[0].shape))
        found.append(Why(Cause.EMPTY, f"an empty input ({shape})", True))
    found += general
    if name in SERVED and inputs and len(inputs[0].shape) not in SERVED[name]:
        found.append(_dimensions(name, len(inputs[0].shape)))
    found += _groups(row, inputs)
    # What no change of the rest would cure decides.
    hopeless = [item for item in found if not item.curable]
    return tuple(hopeless + [item for item in found if item.curable])


def _unserved(name: str) -> Why:
    return Why(Cause.UNSERVED, f"iDeep has no {name}" if name else "iDeep has no such function", False)


def unavailable(chainer: Mapping[str, Any]) -> Why:
    """Why Chainer has no iDeep at all."""
    error = str(chainer.get("error", ""))
    if not chainer:
        text = "Chainer was not seen"
    elif "No module named" in error:
        text = "ideep4py is not installed"
    elif error:
        text = f"ideep4py cannot be imported: {error.splitlines()[0][:200]}"
    else:
        text = f"Chainer {chainer.get('version', '')} takes another ideep4py than this one"
    return Why(Cause.UNAVAILABLE, text, True)


def never(row: Row, chainer: Mapping[str, Any]) -> Why:
    """Who keeps Chainer from asking iDeep, for a row that was computed under ``never``."""
    made, variables = row.table("set"), chainer.get("variables", {})
    if made.get("line"):
        return Why(Cause.NEVER, "use_ideep is 'never'", True)
    if "CHAINER_USE_IDEEP" in variables:
        return Why(Cause.NEVER, f"CHAINER_USE_IDEEP is {variables['CHAINER_USE_IDEEP']}", True)
    if made.get("scope") == "thread":
        return Why(Cause.NEVER, "use_ideep is 'never' in this thread", True)
    return Why(Cause.UNSET, "CHAINER_USE_IDEEP is not set", True)


def _widths(row: Row, name: str, inputs: tuple[Input, ...]) -> list[Why]:
    """What is not float32, by name."""
    found = []
    # Labels and ids are whole numbers by right; no function that iDeep has takes any.
    wrong = [(index, item) for index, item in enumerate(inputs) if item.kind == "n" and item.dtype != "float32"]
    given = [(index, item) for index, item in wrong if not item.parameter]
    if given:
        index, item = given[0]
        found.append(Why(Cause.WIDTH, f"{item.dtype} {_input_name(name, index)}", True))
    if len(given) < len(wrong):
        item = next(item for _, item in wrong if item.parameter)
        # With float64 parameters Chainer wants float64 inputs: the parameters come first.
        found.insert(0, Why(Cause.DEFAULT_WIDTH, f"{item.dtype} parameters", True))
    return found


def _input_name(function: str, index: int) -> str:
    names = _NAMES.get(function, _FIRST_INPUTS)
    return names[index] if index < len(names) else "input"


def _general(row: Row, name: str, chainer: Mapping[str, Any]) -> list[Why]:
    """Functions for any number of dimensions."""
    number = row.table("decisive").get("ndim")
    if name not in _GENERAL or not isinstance(number, int):
        return []
    if name == "MaxPoolingND" and not str(chainer.get("version", "")).startswith(("4.", "5.", "6.")):
        return []  # Chainer 7 has it for two dimensions, too, and then it asks iDeep
    if number == 2:
        return [Why(Cause.GENERAL, f"{name} never asks iDeep; {_GENERAL[name]} does", True)]
    return [_dimensions(name, number + 2)]


def _dimensions(name: str, number: int) -> Why:
    """Nothing is gained by other shapes of the same elements: measured with Chainer 7.8.1 and ideep4py 2.0.0.post3, two
    threads, convolution of sequences as Convolution2D takes 1.3 times as long as ConvolutionND, and reshaping for ReLU,
    Dropout and BatchNormalization more than it saves.
    """
    taken = "4-D" if name in _GENERAL or SERVED.get(name) == _IMAGES else "2-D and 4-D"
    return Why(Cause.DIMENSIONS, f"{number}-D input; iDeep takes {taken}", False)


def _groups(row: Row, inputs: tuple[Input, ...]) -> list[Why]:
    groups = row.table("decisive").get("groups")
    if not isinstance(groups, int) or groups < 2:
        return []
    channels = inputs[0].shape[1] if inputs and len(inputs[0].shape) > 1 else 0
    if groups == channels:
        return [Why(Cause.DEPTHWISE, f"depthwise (groups={groups}); iDeep has no such convolution", False)]
    worth = groups == 2 and channels >= _LEAST_CHANNELS
    return [Why(Cause.GROUPS, f"groups={groups}; iDeep has no grouped convolution", worth)]
